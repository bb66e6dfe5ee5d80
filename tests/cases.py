"""What the tests of `minimize` share: functions and a recorder."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import signedstep
from signedstep import Result
from signedstep.methods import needs_parts

FUNCTION_METHODS = [name for name in signedstep.methods() if name == "auto" or not needs_parts(name)]
"""Those that take any function; the others need its residuals, or a module."""
METHODS = [name for name in FUNCTION_METHODS if not name.startswith("newton")]
"""Those that need nothing but a function; newton and newton-cg have tests of their own."""
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
