"""SciPy's solvers. They work in float64; a float32 problem rounds what they ask for and what they get."""

from functools import partial
from typing import Any

import scipy.optimize

from signedstep.experiments.bench.meter import Meter
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended


def _first_order(method: str, options: dict[str, Any], meter: Meter, memory: int) -> Ended:
    limits: dict[str, Any] = {"gtol": 0, "maxiter": 10**9, **options}
    if method == "L-BFGS-B":
        limits |= {"ftol": 0, "maxfun": 10**9, "maxcor": memory}
    result = scipy.optimize.minimize(meter.array, meter.x0, jac=True, method=method, options=limits)
    return Ended(str(result.message), int(result.nit))


def _hessian(method: str, meter: Meter, memory: int) -> Ended:
    """A trust region with exact products; each of them is an evaluation."""
    options: dict[str, Any] = {"gtol": 0, "maxiter": 10**9}
    result = scipy.optimize.minimize(meter.array, meter.x0, jac=True, hessp=meter.hessp, method=method, options=options)
    return Ended(str(result.message), int(result.nit))


def _learned(meter: Meter, memory: int) -> Ended:
    """A trust region on SciPy's own dense SR1."""
    options: dict[str, Any] = {"gtol": 0, "maxiter": 10**9}
    hess = scipy.optimize.SR1()
    result = scipy.optimize.minimize(meter.array, meter.x0, jac=True, hess=hess, method="trust-ncg", options=options)
    return Ended(str(result.message), int(result.nit))


SOLVERS = (
    BenchSolver("scipy-lbfgsb", "SciPy L-BFGS-B", "scipy.optimize, L-BFGS-B", partial(_first_order, "L-BFGS-B", {})),
    BenchSolver("scipy-bfgs", "SciPy BFGS", "scipy.optimize, BFGS", partial(_first_order, "BFGS", {}), dense=True),
    BenchSolver(
        "scipy-trust-ncg",
        "SciPy trust-ncg",
        "scipy.optimize, trust-ncg with exact Hessian products, each counted as an evaluation",
        partial(_hessian, "trust-ncg"),
    ),
    BenchSolver(
        "scipy-trust-krylov",
        "SciPy trust-krylov",
        "scipy.optimize, trust-krylov with exact Hessian products, each counted as an evaluation",
        partial(_hessian, "trust-krylov"),
    ),
    BenchSolver(
        "scipy-trust-sr1", "SciPy trust-ncg SR1", "scipy.optimize, trust-ncg on SciPy's dense SR1", _learned, dense=True
    ),
)
