"""Fingerprints of code that numbers depend on: where it changes, they are computed again."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import signedstep
from signedstep import native

PACKAGE = Path(signedstep.__file__).parent
STUDIES = ("data", "execute", "models", "problems", "sets", "solvers", "training")
"""The files of the experiments that decide what a training run computes."""


def library() -> list[Path]:
    """The library itself: all of the package but experiments and command line, and what is in C only where built."""
    others = ("experiments", "cli.py")
    python = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in others]
    return [*python, *(sorted(PACKAGE.glob("native/*.[ch]")) if native.available() else [])]


def digest(paths: Iterable[Path], *also: object) -> str:
    """A short hash of some files, and of what can be written beside them."""
    found = hashlib.sha256(repr(also).encode())
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


@cache
def of_studies() -> str:
    """That of every training run."""
    return digest([*library(), *(Path(__file__).with_name(f"{name}.py") for name in STUDIES)])
