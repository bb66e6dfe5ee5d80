"""Fingerprints of code and packages that numbers depend on: where they change, numbers are computed again."""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import signedstep
from signedstep import native

PACKAGE = Path(signedstep.__file__).parent
EXPERIMENTS = Path(__file__).parent
STUDIES = ("child", "execute", "models", "problems", "solvers", "training")
"""The files of the experiments that decide what a training run computes, beside those of its data."""
DATA = ("data", "identity", "sets", "sources")
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn")
"""What computes the numbers of every run, or brings the data."""


def library() -> list[Path]:
    """The library itself: all of the package but experiments and command line, and what is in C only where built."""
    others = ("experiments", "cli.py", "__main__.py")
    python = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in others]
    return [*python, *(sorted(PACKAGE.glob("native/*.[ch]")) if native.available() else [])]


def data_files() -> list[Path]:
    """The files that decide what is in a data set: how it is found, read, checked and scaled."""
    return [*(EXPERIMENTS / f"{name}.py" for name in DATA), *sorted(EXPERIMENTS.glob("readers/*.py"))]


def versions(distributions: Iterable[str] = PACKAGES) -> dict[str, str]:
    """The versions of what is installed."""
    return {name: version(name) for name in distributions}


def digest(paths: Iterable[Path], *also: object) -> str:
    """A short hash of some files, and of what can be written beside them."""
    found = hashlib.sha256(repr(also).encode())
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


@cache
def of_studies() -> str:
    """That of every training run."""
    return digest([*library(), *data_files(), *(EXPERIMENTS / f"{name}.py" for name in STUDIES)], versions())
