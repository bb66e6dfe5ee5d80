"""The passes of `signedstep.native` in C; where they cannot be compiled the package installs without them."""

import sysconfig

from setuptools import Extension, setup

stable = not sysconfig.get_config_var("Py_GIL_DISABLED")  # Python without its lock has no stable ABI yet

setup(
    ext_modules=[
        Extension(
            "signedstep.native._native",
            sources=["src/signedstep/native/module.c"],
            depends=["src/signedstep/native/passes.h"],
            define_macros=[("Py_LIMITED_API", "0x030b0000")] if stable else [],
            extra_compile_args=["-O3", "-Wno-psabi"],
            py_limited_api=stable,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if stable else {},
)
