"""Our methods as solvers: `"lsr1/flip"`, or with options of `signedstep.minimize`, `"lsr1/flip:floor=1e-8,c2=0.5"`.

The fields of `Mixing` count as options too: `"mix:eta=4,flips=((0.3,1e-3),)"`.
"""

import ast
import math
from dataclasses import fields
from functools import partial
from typing import Any

import signedstep
from signedstep.curvature import Mixing
from signedstep.experiments.bench.meter import Meter
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended
from signedstep.methods import full_name, needs_hessian

DENSE = ("bfgs", "sr1", "ssbfgs", "ssbroyden")


def ours(name: str) -> BenchSolver:
    """The solver of a name; a ValueError if there is no such method, or if it needs more than gradients."""
    method, _, given = name.partition(":")
    full = full_name(method)
    if needs_hessian(full):
        raise ValueError(f"{method!r} needs the exact Hessian, which this benchmark does not offer")
    options = _options(given)
    return BenchSolver(
        name=name,
        label=name,
        text=f"signedstep.minimize, method {method!r}" + (f" with {given}" if given else ""),
        solve=partial(_solve, method, options),
        dense=full.partition("/")[0] in DENSE or full.endswith("dense"),
        ours=True,
    )


def _options(given: str) -> dict[str, Any]:
    """The options of a name, written as the arguments of a call; what is no number, tuple or truth is a word."""
    try:
        call = ast.parse(f"options({given})", mode="eval").body
    except SyntaxError:
        call = None
    if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
        raise ValueError(f"options of a method are written as name=value,name=value, got {given!r}")
    options = {word.arg: _value(word.value) for word in call.keywords if word.arg}
    mixing = {f.name: options.pop(f.name) for f in fields(Mixing) if f.name in options}
    return {**options, "mixing": Mixing(**mixing)} if mixing else options


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node).replace(" ", "")


def _solve(method: str, options: dict[str, Any], meter: Meter, memory: int) -> Ended:
    limits = {"gtol": 0, "maxiter": math.inf, "maxfun": meter.budget, "history_size": memory}
    result = signedstep.minimize(meter, meter.start, method=method, jac=True, options={**limits, **options})
    return Ended(result.message, result.nit)
