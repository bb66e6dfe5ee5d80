"""Our methods as solvers: `"lsr1/flip"`, or with options of `signedstep.minimize`, `"lsr1/flip:floor=1e-8,c2=0.5"`.

The fields of `Mixing` count as options too: `"mix:eta=4,flips=((0.3,1e-3),)"`.
"""

import ast
import math
from collections import Counter
from contextlib import suppress
from dataclasses import fields
from functools import cache, partial
from typing import Any

import torch

import signedstep
from signedstep.catalogue import CURVATURES
from signedstep.curvature import Mixing
from signedstep.effects import shaping
from signedstep.engine import Tolerances
from signedstep.experiments.bench.meter import BudgetSpent, Meter, Objective
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended
from signedstep.methods import build, full_name, model_of, parts_in_words
from signedstep.space import Space

_MIXING = tuple(f.name for f in fields(Mixing))
_TRIAL = 4
"""Evaluations of a trial."""


@cache
def ours(name: str) -> BenchSolver:
    """The solver of a name; a ValueError if there is no such method, or if it would fail in every run."""
    method, colon, given = name.partition(":")
    full = full_name(method)
    if lacking := _lacking(full):
        offered = [model for model in CURVATURES if not _lacking(model)]
        raise ValueError(
            f"{method!r} needs {lacking}, which this benchmark does not offer; "
            f"it offers values and gradients, for {', '.join(offered)}"
        )
    options = _options(full, given) if colon else {}
    parts = build(full, torch.zeros(1), Space(), {})
    found = BenchSolver(
        name=name,
        label=name,
        text=f"signedstep.minimize, method {method!r}" + (f" with {given}" if given else ""),
        solve=partial(_solve, method, options),
        dense=parts.curvature.dense or parts.globalization.dense,
        ours=True,
    )
    _try(found)
    return found


def _lacking(full: str) -> str:
    """What a method needs beside values and gradients."""
    return (
        parts_in_words(full)
        or ("the exact Hessian" if model_of(full).needs_hessian else "")
        or ("products with the Hessian" if model_of(full).needs_products else "")
    )


def _options(full: str, given: str) -> dict[str, Any]:
    """The options of a name, written as the arguments of a call; what is no number, tuple or truth is a word."""
    try:
        call = ast.parse(f"options({given})", mode="eval").body
    except SyntaxError:
        call = None
    words = call.keywords if isinstance(call, ast.Call) and not call.args else []
    if not words or any(word.arg is None for word in words):
        raise ValueError(f"options of a method are written as name=value,name=value, got {given!r}")
    names = Counter(str(word.arg) for word in words)
    accepted = _accepted(full)
    for option, times in names.items():
        if option not in accepted:
            raise ValueError(f"options of {full!r} are {', '.join(accepted)}, got {option!r}")
        if times > 1:
            raise ValueError(f"the option {option!r} must be given once, got {given!r}")
    options = {str(word.arg): _value(word.value) for word in words}
    mixing = {option: options.pop(option) for option in _MIXING if option in options}
    return {**options, "mixing": _mixing(mixing)} if mixing else options


def _accepted(full: str) -> list[str]:
    """The options that a method may be given; those that it would not look at are none of them."""
    shapes = [name for name in shaping(full) if name != "mixing"]
    tests = [f.name for f in fields(Tolerances)]
    return [*shapes, *tests, *(_MIXING if "mixing" in shaping(full) else ())]


def _mixing(options: dict[str, Any]) -> Mixing:
    try:
        return Mixing(**options)
    except TypeError as error:
        raise ValueError(f"{', '.join(f'{name}={value!r}' for name, value in options.items())}: {error}") from None


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node).replace(" ", "")


def _try(found: BenchSolver) -> None:
    """Complain now, once, of values that would end every run: minimise a bowl for a few evaluations."""
    bowl = Objective(lambda x: (0.5 * float(x @ x), x.clone()), torch.ones(2, dtype=torch.float64))
    try:
        with suppress(BudgetSpent):
            found.solve(Meter(bowl, _TRIAL), 5)
    except (ValueError, TypeError) as error:
        raise ValueError(str(error)) from error


def _solve(method: str, options: dict[str, Any], meter: Meter, memory: int) -> Ended:
    limits = {"gtol": 0, "maxiter": math.inf, "maxfun": meter.budget}
    if "history_size" in shaping(full_name(method)):
        limits["history_size"] = memory
    result = signedstep.minimize(meter, meter.start, method=method, jac=True, options={**limits, **options})
    return Ended(result.message, result.nit)
