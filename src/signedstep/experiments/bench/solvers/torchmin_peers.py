"""pytorch-minimize's solvers."""

from functools import partial
from typing import Any

from signedstep.experiments.bench.meter import Meter
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended, differentiable


def _solve(method: str, meter: Meter, memory: int) -> Ended:
    from torchmin import minimize

    options: dict[str, Any] = {"gtol": 0.0, "xtol": 0.0, "gtd_tol": 0.0}
    if method == "l-bfgs":
        options["history_size"] = memory
    result = minimize(partial(differentiable, meter), meter.start, method, max_iter=10**9, options=options)
    return Ended(str(result.message), int(result.nit))


SOLVERS = (
    BenchSolver(
        "torchmin-lbfgs",
        "pytorch-minimize L-BFGS",
        "torchmin.minimize, l-bfgs with its strong Wolfe search",
        partial(_solve, "l-bfgs"),
        package="torchmin",
    ),
    BenchSolver(
        "torchmin-bfgs",
        "pytorch-minimize BFGS",
        "torchmin.minimize, bfgs with its strong Wolfe search",
        partial(_solve, "bfgs"),
        package="torchmin",
        dense=True,
    ),
)
