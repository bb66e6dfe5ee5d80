"""Which options a method looks at: those that change what it is made of. Others would be shown as if they mattered."""

import warnings
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from types import FunctionType
from typing import Any

import torch
from scipy.optimize import OptimizeWarning

from signedstep.catalogue import Settings
from signedstep.curvature import Mixing
from signedstep.methods import build
from signedstep.space import Space

PROBES: dict[str, tuple[Any, Any]] = {
    "history_size": (3, 4),
    "gamma": (2.0, 3.0),
    "floor": (0.1, 0.2),
    "c1": (1e-3, 1e-2),
    "c2": (0.3, 0.4),
    "condition": ("strong", "weak"),
    "search": ("more-thuente", "zoom"),
    "max_linesearch": (3, 4),
    "beta": ("fr", "dy"),
    "mixing": (Mixing(eta=1), Mixing(eta=2)),
    "krylov_size": (3, 4),
    "krylov_tol": (0.1, 0.2),
    "fisher_samples": (3, 4),
    "delta": (0.1, 0.2),
    "on_failure": ("restart", "stop"),
}
"""Two values of every option that shapes a method."""


@cache
def shaping(full: str) -> tuple[str, ...]:
    """The options that shape a method, by its full name."""
    return tuple(f.name for f in fields(Settings) if _made(full, f.name, 0) != _made(full, f.name, 1))


def warn_of_no_effect(given: Sequence[str], full: str, stacklevel: int) -> None:
    """Warn of options that a method, by its full name, does not look at."""
    idle = [name for name in given if name not in shaping(full)] if given else []
    if idle:
        message = f"{', '.join(idle)} has no effect on {full!r}; what has is {', '.join(shaping(full))}"
        warnings.warn(message, OptimizeWarning, stacklevel=stacklevel + 1)


def _made(full: str, option: str, which: int) -> Any:
    return _content(build(full, torch.zeros(3, device="cpu"), Space(), {option: PROBES[option][which]}))


def _content(part: Any) -> Any:
    """What a part of a method is made of, as values that can be compared."""
    if isinstance(part, tuple):
        return [_content(each) for each in part]
    if isinstance(part, FunctionType | type) or not hasattr(part, "__dict__"):
        return part
    return type(part), {name: _content(value) for name, value in vars(part).items()}
