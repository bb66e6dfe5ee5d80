"""The options of a parameter group, checked when they are given and not at the first step; and what `step` is given."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

import numpy as np
import torch

from signedstep.catalogue import Settings
from signedstep.checks import check_choice, check_count, check_flag, check_number
from signedstep.methods import build, full_name, model_of
from signedstep.space import Space

LINE_SEARCH_FN = {
    None: None,  # that of the model; torch's default is no search at all, ours always has one
    "strong_wolfe": "strong",
    "weak_wolfe": "weak",
    "paper_wolfe": "paper",
    "armijo": "armijo",
}
FURTHER = tuple(f.name for f in fields(Settings) if f.name not in ("history_size", "condition", "mixing"))
"""Options that shape a method and have no argument of their own, since `torch.optim.LBFGS` has none.

Those that could not be loaded with `weights_only=True` are left out.
"""

_TORCHS = "lbfgs/wolfe"
"""The method that is torch's, too: asked for torch's search by its name there, it takes torch's steps."""
_RATE = "a finite number that is not negative"


def check(options: Mapping[str, Any], space: Space | None = None) -> None:
    """Complain about wrong options, and about methods that cannot be in this space."""
    rate(options)
    check_count("max_iter", options["max_iter"], least=0)
    check_count("max_eval", options["max_eval"], least=1)
    check_flag("maximize", options["maximize"])
    check_flag("reuse", options["reuse"])
    for name in ("tolerance_grad", "tolerance_change"):
        check_number(name, options[name], "a number (zero or less switches the test off)")
    check_choice("line_search_fn", options["line_search_fn"], LINE_SEARCH_FN)  # type: ignore[arg-type]
    parts = build(options["method"], torch.zeros(0, device="cpu"), space or Space(), settings(options))
    if model_of(parts.name).needs_hessian:
        raise ValueError(
            f"the method {parts.name!r} needs Hessians, which a closure that calls backward() cannot give; "
            "use signedstep.minimize, or a quasi-Newton model such as 'lsr1'"
        )
    if space is not None and (model_of(parts.name).needs_products or model_of(parts.name).needs_parts):
        raise ValueError(
            f"the method {parts.name!r} multiplies with a matrix of which each rank would only see its own samples; "
            "on several ranks use a quasi-Newton model such as 'lsr1'"
        )


def check_closure(closure: Any) -> None:
    """Complain about a step without one, and say why one is needed."""
    if not callable(closure):
        raise TypeError(
            "step() needs a closure that evaluates the loss: second-order methods try several points, and "
            "accept only one that lowers it. Write `def closure(): optimizer.zero_grad(); loss = ...; "
            "loss.backward(); return loss` and call `optimizer.step(closure)`"
        )


def check_known(given: Iterable[str], own: Iterable[str]) -> None:
    """Complain about options of an optimizer that it does not know; `own` are its arguments."""
    known = [*own, *FURTHER]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise TypeError(f"unknown options {', '.join(unknown)}; known are {', '.join(known)}{_advice(unknown, known)}")


def check_shared(groups: Sequence[Mapping[str, Any]], names: Iterable[str]) -> None:
    """Complain about groups that differ in an option; schedulers change the learning rate, which `rate` looks at."""
    for name in sorted(names):  # which may be a set, in another order on each rank
        given = [group[name] for group in groups if name != "lr" and name in group]
        for other in given[1:]:
            if other != given[0]:
                share = "all parameter groups share one step"
                raise ValueError(f"{share}, so {name} must be {given[0]!r} as in the first group, got {other!r}")


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """NumPy's numbers as Python's, with which `torch.load(weights_only=True)` takes what was saved."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}


def check_group(group: Mapping[str, Any], known: set[str]) -> None:
    """Complain about entries of a parameter group that look like options but would do nothing; others are labels."""
    for name, value in group.items():
        advice = "" if name in known or value == 0 else _advice([name], known)
        if advice:
            raise TypeError(f"a parameter group has the unknown option {name}{advice}")


def _advice(unknown: Sequence[str], known: Iterable[str]) -> str:
    if "weight_decay" in unknown:
        return "; weight decay is a term of the loss, see docs/torch.md"
    close = [match for name in unknown for match in get_close_matches(name, known, 1, 0.8)]
    return f"; did you mean {', '.join(close)}?" if close else ""


def settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that shape a method."""
    chosen = {name: options[name] for name in (*FURTHER, "history_size") if name in options}
    if options["line_search_fn"] == "strong_wolfe" and full_name(options["method"]) == _TORCHS:
        chosen = {"search": "zoom", **chosen}
    return {**chosen, "condition": LINE_SEARCH_FN[options["line_search_fn"]]}


def spelled(options: Mapping[str, Any], lr: float) -> list[str]:
    """All that must be the same on every rank, an option a line; `lr` is the rate as a number."""
    return [f"{name} = {value!r}" for name, value in sorted({**options, "lr": lr}.items())]


def rate(*groups: Mapping[str, Any]) -> float:
    """The learning rate, which all groups must share."""
    given = [_number(group["lr"]) for group in groups]
    rates = {check_number("lr", value, _RATE) for value in given}
    largest = max(rates)
    check_number("lr", largest, _RATE, lambda rate: 0 <= rate < math.inf)
    if len(rates) > 1:
        raise ValueError(f"all parameter groups share one step, so lr must be the same in each, got {sorted(rates)}")
    return largest


def _number(lr: Any) -> Any:
    """A rate that may be a tensor of one number."""
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element, got {lr!r}")  # the error of torch's optimizers
    return lr.item() if isinstance(lr, torch.Tensor) else lr
