"""What the tests of `minimize` share: functions and a recorder."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import approx_fprime

import signedstep
from signedstep import Result
from signedstep.methods import full_name, model_of

FUNCTION_METHODS = [name for name in signedstep.methods() if name == "auto" or not model_of(name).needs_parts]
"""Those that take any function; the others need its residuals, or a module."""
METHODS = [name for name in FUNCTION_METHODS if not name.startswith("newton-cg")]
"""Those of the contract tests; newton-cg has tests of its own."""
SHOWN_TO_FAIL = ("sr1/wolfe", "lsr1/wolfe", "newton/wolfe", "newton-cg/wolfe")
"""Positive steps only on an indefinite model: they may end at a direction that points uphill, and say so."""
NEWTONS = ["newton", "newton/wolfe+-", "newton/flip", "newton/cubic"]
"""Some that take differences of the gradient, so that SciPy's habit of giving none is not for them."""
SOME_METHODS = ["auto", "gd", "bfgs", "sr1", "lbfgs", "lsr1", "lsr1/wolfe+-", "lsr1/damp"]
START = np.array([-1.2, 1.0])


def rosenbrock(x):
    """Rosenbrock's function of two variables, for arrays and tensors."""
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def rosenbrock_gradient(x: np.ndarray) -> np.ndarray:
    return np.array([-400 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0]), 200 * (x[1] - x[0] ** 2)])


def rosenbrock_with_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
    return rosenbrock(x), rosenbrock_gradient(x)


def bowl(x, centre: Any = 1.0):
    """A sphere around `centre`, for arrays and tensors of any shape."""
    return ((x - centre) ** 2).sum()


def bowl_gradient(x, centre: Any = 1.0):
    return 2 * (x - centre)


def with_hessian(method: str, gradient: Callable) -> dict[str, Any]:
    """hess= for methods that want one: differences of a gradient that nobody counts."""
    if not model_of(full_name(method)).needs_hessian:
        return {}
    return {"hess": lambda x: np.atleast_2d(approx_fprime(np.asarray(x, float), gradient, 1e-7))}


class Recorded:
    """A function that keeps its arguments and its values."""

    def __init__(self, function: Callable):
        self.function = function
        self.seen: list[Any] = []
        self.values: list[Any] = []

    def __call__(self, x, *args):
        self.seen.append(copy.deepcopy(x))
        self.values.append(self.function(x, *args))
        return self.values[-1]


def assert_same_run(a: Result, b: Result) -> None:
    """Two results agree bit for bit, clocks apart."""
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.jac, b.jac)
    for key in ("fun", "nit", "nfev", "njev", "nhev", "success", "status", "message"):
        assert a[key] == b[key], key
    assert [r._replace(seconds=0) for r in a.history] == [r._replace(seconds=0) for r in b.history]
