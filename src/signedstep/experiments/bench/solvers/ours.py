"""Our methods as solvers: `"lsr1/flip"`, or with options of `signedstep.minimize`, `"lsr1/flip:floor=1e-8,c2=0.5"`."""

import ast
import math
from functools import partial
from typing import Any

import signedstep
from signedstep.experiments.bench.meter import Meter
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended
from signedstep.methods import full_name, needs_hessian

DENSE = ("bfgs", "sr1", "ssbfgs", "ssbroyden")


def ours(name: str) -> BenchSolver:
    """The solver of a name; a ValueError if there is no such method, or if it needs more than gradients."""
    method, _, given = name.partition(":")
    full = full_name(method, n=10**9, history_size=1)
    if needs_hessian(full):
        raise ValueError(f"{method!r} needs the exact Hessian, which this benchmark does not offer")
    options = {key: _value(text) for key, _, text in (pair.partition("=") for pair in given.split(",") if given)}
    return BenchSolver(
        name=name,
        label=name,
        text=f"signedstep.minimize, method {method!r}" + (f" with {given}" if given else ""),
        solve=partial(_solve, method, options),
        dense=full.partition("/")[0] in DENSE or full.endswith("dense"),
        ours=True,
    )


def _value(text: str) -> Any:
    """A number as a number, anything else as a word."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _solve(method: str, options: dict[str, Any], meter: Meter, memory: int) -> Ended:
    limits = {"gtol": 0, "maxiter": math.inf, "maxfun": meter.budget, "history_size": memory}
    result = signedstep.minimize(meter, meter.start, method=method, jac=True, options={**limits, **options})
    return Ended(result.message, result.nit)
