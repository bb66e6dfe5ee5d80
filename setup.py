"""The passes of `signedstep.native` in C; where they cannot be compiled the package installs without them."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "signedstep.native._native",
            sources=["src/signedstep/native/module.c"],
            depends=["src/signedstep/native/passes.h"],
            extra_compile_args=["-O3", "-Wno-psabi"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
