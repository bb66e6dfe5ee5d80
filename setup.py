"""What `signedstep.native` has in C; where it cannot be compiled the package installs without it."""

import sysconfig

from setuptools import Extension, setup

stable = not sysconfig.get_config_var("Py_GIL_DISABLED")  # Python without its lock has no stable ABI yet


def extension(name: str, source: str, *headers: str) -> Extension:
    folder = "src/signedstep/native"
    return Extension(
        f"signedstep.native.{name}",
        sources=[f"{folder}/{source}"],
        depends=[f"{folder}/{header}" for header in headers],
        define_macros=[("Py_LIMITED_API", "0x030b0000")] if stable else [],
        extra_compile_args=["-O3", "-Wno-psabi"],
        py_limited_api=stable,
        optional=True,
    )


setup(
    ext_modules=[
        extension("_native", "module.c", "passes.h", "vectors.h", "compiler.h"),
        extension("_small", "small.c", "matrices.h", "compiler.h"),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if stable else {},
)
