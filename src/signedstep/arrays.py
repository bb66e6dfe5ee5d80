"""Functions of NumPy arrays as objectives, with derivatives from the user or by finite differences."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import approx_fprime
from torch import Tensor

from signedstep.objective import Point, Product
from signedstep.returned import array_of, check_real, check_shape, check_square, pair, scalar, square


class NumpyObjective:
    """A function of a NumPy array, called as SciPy calls it; without `jac` by SciPy's finite differences."""

    products_cost = parts_cost = 0

    def __init__(
        self, fun: Callable, jac: Any, args: tuple, shape: tuple[int, ...], hess: Any = None, hessp: Any = None
    ):
        self.fun, self.jac, self.args, self.shape, self.hess, self.hessp = fun, jac, args, shape, hess, hessp
        self.evals = self.gradients = self.hessians = 0

    @property
    def cost(self) -> int:
        """Values of the function that a point costs."""
        n = math.prod(self.shape)
        return 1 if callable(self.jac) or self.jac is True else 1 + (2 * n if self.jac == "3-point" else n)

    @property
    def resolution(self) -> float:
        """The length of the steps of differences: over shorter ones gradients change little more than they err."""
        given = callable(self.jac) or self.jac is True
        return 0.0 if given else np.finfo(np.float64).eps ** (1 / 3 if self.jac == "3-point" else 1 / 2)

    @property
    def hessian_cost(self) -> int:
        """Values of the function that a Hessian costs: differences of gradients that come with values."""
        return self.cost * math.prod(self.shape) if self.hess is None and self.jac is True else 0

    @torch.enable_grad()  # functions of arrays may use autograd inside
    def __call__(self, x: Tensor) -> Point:
        array = x.numpy()
        if self.jac is True:
            value, g = pair(self._value(array))
            f = scalar(value)
            self.gradients += 1
        else:
            exact = array if callable(self.jac) else array.astype(np.float64)  # differences need all the digits
            value = self._value(exact)
            f = scalar(value)
            if not math.isfinite(f):  # nobody asks for the gradient there
                return Point(x, f, torch.full_like(x, math.nan))
            given = callable(self.jac)
            self.gradients += 1
            g = self.jac(self._shaped(array), *self.args) if given else self._differences(exact, f, precision(value))
        check_real(g)
        g = _cast(g, array.dtype)
        check_shape(g.shape, self.shape)
        return Point(x, f, torch.from_numpy(g.reshape(-1)))

    @torch.enable_grad()
    def hessian(self, at: Point) -> Tensor:
        """From the user, or by forward differences of the gradient, n of them."""
        array = at.x.numpy()
        if self.hess is not None:
            H = self._hess(array)
            return self._matrix(H @ np.eye(len(array)) if _multiplies(H) else H, array.dtype)
        self.hessians += 1
        steps = np.finfo(array.dtype).eps ** 0.5 * np.maximum(1, np.abs(array))
        steps = np.where(array < 0, -steps, steps)
        gradient = lambda z: at.g.numpy() if np.array_equal(z, array) else self._gradient(z)  # noqa: E731
        try:
            rows: Any = approx_fprime(array, gradient, steps)
        except Exception:  # beyond the domain, as a trial point may be
            rows = np.full((len(array), len(array)), np.nan)
        return torch.from_numpy(rows.reshape(len(array), len(array)))

    def hvp(self, at: Point) -> Product:
        """By the user's products or matrix, sparse or a LinearOperator, else by differences of the gradient along v."""
        array = at.x.numpy()
        if self.hessp is None and self.hess is not None:
            return self._operator(at)
        multiply = self._given if self.hessp is not None else self._along

        @torch.enable_grad()
        def product(v: Tensor) -> Tensor:
            self.hessians += 1
            return torch.from_numpy(_cast(multiply(at, array, v.numpy()), array.dtype))

        return product

    def _hess(self, x: np.ndarray) -> Any:
        """The user's Hessian as it is: an array, a sparse one or a LinearOperator."""
        self.hessians += 1
        H = self.hess(self._shaped(x), *self.args)
        check_real(H, "the Hessian")
        if _multiplies(H):
            check_square(H.shape, self.shape)
        return H

    def _matrix(self, H: Any, dtype: np.dtype) -> Tensor:
        return square(torch.from_numpy(_cast(H, dtype)), self.shape)

    @torch.enable_grad()
    def _operator(self, at: Point) -> Product:
        array = at.x.numpy()
        H = self._hess(array)
        if not _multiplies(H):
            return self._matrix(H, array.dtype).mv
        return lambda v: torch.from_numpy(_cast(H @ v.numpy().copy(), array.dtype))  # it may write into its argument

    def _given(self, at: Point, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        given = self.hessp(self._shaped(x), self._shaped(v), *self.args)
        check_real(given, "hessp's product")
        given = array_of(given)
        check_shape(given.shape, self.shape, "hessp's product")
        return given.reshape(-1)

    def _along(self, at: Point, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        length = float(np.linalg.norm(v)) or 1.0
        step = np.finfo(x.dtype).eps ** 0.5 * max(1.0, float(np.linalg.norm(x))) / length
        try:
            ahead = self._gradient((x + step * v).astype(x.dtype))
        except Exception:  # beyond the domain, as a trial point may be
            return np.full_like(x, np.nan)
        with np.errstate(all="ignore"):
            return (ahead - at.g.numpy()) / step

    def _gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient alone, for differences of it."""
        self.gradients += 1
        given = pair(self._value(x))[1] if self.jac is True else self.jac(self._shaped(x), *self.args)
        return np.array(array_of(given), dtype=float).reshape(-1)

    def _value(self, x: np.ndarray) -> Any:
        self.evals += 1
        return self.fun(self._shaped(x), *self.args)

    def _shaped(self, x: np.ndarray) -> np.ndarray:
        return x.copy().reshape(self.shape)  # a copy: functions may write into their argument

    def _differences(self, x: np.ndarray, f: float, eps: float) -> np.ndarray:
        """Forward ("2-point", the default) or central ("3-point") differences with steps relative to x.

        They are so long that values of this precision show the difference.
        """

        def value(z: np.ndarray) -> float:
            return f if np.array_equal(z, x) else scalar(self._value(z))

        central = self.jac == "3-point"
        size = eps ** (1 / 3 if central else 1 / 2)
        steps = np.where(x < 0, -size, size) * np.maximum(1, np.abs(x))
        forward = np.asarray(approx_fprime(x, value, steps))
        return (forward + np.asarray(approx_fprime(x, value, -steps))) / 2 if central else forward


def precision(value: Any) -> float:
    """The relative rounding of what a function of float64 numbers returns, which may compute in less itself."""
    if isinstance(value, Tensor):
        eps = torch.finfo(value.dtype).eps if value.is_floating_point() else 0.0
    else:
        dtype = np.asarray(value).dtype
        eps = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
    return max(eps, float(np.finfo(np.float64).eps))


def _cast(given: Any, dtype: np.dtype) -> np.ndarray:
    """A copy in another precision, whose range it may leave."""
    with np.errstate(over="ignore"):
        return np.array(array_of(given), dtype=dtype)


def _multiplies(H: Any) -> bool:
    """Whether a matrix is sparse or a LinearOperator, to be multiplied with and not to be looked into."""
    return hasattr(H, "tocsr") or hasattr(H, "matvec")
