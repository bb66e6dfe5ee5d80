"""Which options a method looks at: those that change what it is made of. Others would be shown as if they mattered."""

import warnings
from collections.abc import Mapping
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
def shaping(full: str, armijo: bool = False) -> tuple[str, ...]:
    """The options that shape a method, by its full name, with its own line search or Armijo's."""

    def made(option: str, which: int) -> Any:
        options = {"condition": "armijo" if armijo else None, option: PROBES[option][which]}
        return _content(build(full, torch.zeros(3, device="cpu"), Space(), options))

    return tuple(f.name for f in fields(Settings) if made(f.name, 0) != made(f.name, 1))


def warn_of_no_effect(given: Mapping[str, Any], full: str, stacklevel: int) -> None:
    """Warn of options that a method, by its full name, does not look at; None stands for a default."""
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return
    armijo = given.get("condition") == "armijo"
    effective = shaping(full, armijo)
    idle = [name for name in given if name not in effective]
    if idle:
        method = f"{full!r} with condition 'armijo'" if armijo else repr(full)
        message = f"{method} does not use {', '.join(idle)}; the options it uses are {', '.join(effective)}"
        warnings.warn(message, OptimizeWarning, stacklevel=stacklevel + 1)


def _content(part: Any) -> Any:
    """What a part of a method is made of, as values that can be compared."""
    if isinstance(part, tuple):
        return [_content(each) for each in part]
    if isinstance(part, FunctionType | type) or not hasattr(part, "__dict__"):
        return part
    return type(part), {name: _content(value) for name, value in vars(part).items()}
