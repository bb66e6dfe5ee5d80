"""Objectives: a flat vector in, value and gradient out. The only autograd of the package is here."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from scipy.optimize import approx_fprime
from torch import Tensor


class Point(NamedTuple):
    """One evaluated point: a flat vector, its value and its gradient. Nobody writes into a point."""

    x: Tensor
    f: float
    g: Tensor
    aux: Any = None
    """What else the objective has to say about the point."""


class Objective(Protocol):
    """A function that evaluates value and gradient together."""

    def __call__(self, x: Tensor) -> Point: ...


@runtime_checkable
class Twice(Objective, Protocol):
    """An objective that can be differentiated twice."""

    def hessian(self, at: Point) -> Tensor:
        """The n x n matrix of second derivatives at a point; it need not be symmetric to the last digit."""
        ...


class TorchObjective:
    """A function of a torch tensor; its gradient comes from autograd unless `jac` provides it."""

    cost = 1
    hessian_cost = 0

    def __init__(self, fun: Callable, jac: Any, args: tuple, shape: tuple[int, ...], hess: Any = None):
        self.fun, self.jac, self.args, self.shape, self.hess = fun, jac, args, shape, hess
        self.evals = self.gradients = self.hessians = 0

    def __call__(self, x: Tensor) -> Point:
        if torch.is_grad_enabled():
            return self._evaluated(x)
        with torch.enable_grad():  # functions may use autograd whatever mode the caller is in
            return self._evaluated(x)

    def _evaluated(self, x: Tensor) -> Point:
        self.evals += 1
        if not self.jac:
            leaf = x.detach().view(self.shape).requires_grad_(True)
            value = self.fun(leaf, *self.args)
            f = scalar(value)
            (g,) = torch.autograd.grad(_differentiable(value), leaf, allow_unused=True, materialize_grads=True)
            return Point(x, f, g.reshape(-1))
        value = self.fun(self._shaped(x), *self.args)
        value, g = _pair(value) if self.jac is True else (value, self.jac(self._shaped(x), *self.args))
        g = torch.as_tensor(g, dtype=x.dtype, device=x.device).detach()
        _check_shape(g.shape, self.shape)
        return Point(x, scalar(value), g.reshape(-1).clone())  # a copy: they may reuse their buffer

    @torch.enable_grad()
    def hessian(self, at: Point) -> Tensor:
        self.hessians += 1
        n = at.x.numel()
        if self.hess is not None:
            H = torch.as_tensor(self.hess(self._shaped(at.x), *self.args), dtype=at.x.dtype, device=at.x.device)
            return _square(H.detach(), n)
        # n backward passes: no demands on the function, where vmap has some
        value = lambda z: self.fun(z.view(self.shape), *self.args).reshape(())  # noqa: E731
        return _square(torch.autograd.functional.hessian(value, at.x), n)  # type: ignore[arg-type]

    def _shaped(self, x: Tensor) -> Tensor:
        return x.clone().view(self.shape)  # a copy: functions may write into their argument


class NumpyObjective:
    """A function of a NumPy array, called as SciPy calls it; without `jac` by SciPy's finite differences."""

    def __init__(self, fun: Callable, jac: Any, args: tuple, shape: tuple[int, ...], hess: Any = None):
        self.fun, self.jac, self.args, self.shape, self.hess = fun, jac, args, shape, hess
        self.evals = self.gradients = self.hessians = 0

    @property
    def cost(self) -> int:
        """Values of the function that a point costs."""
        n = math.prod(self.shape)
        return 1 if callable(self.jac) or self.jac is True else 1 + (2 * n if self.jac == "3-point" else n)

    @property
    def hessian_cost(self) -> int:
        """Values of the function that a Hessian costs: differences of gradients that come with values."""
        return math.prod(self.shape) if self.hess is None and self.jac is True else 0

    @torch.enable_grad()  # functions of arrays may use autograd inside
    def __call__(self, x: Tensor) -> Point:
        array = x.numpy()
        if self.jac is True:
            value, g = _pair(self._value(array))
        elif callable(self.jac):
            value, g = self._value(array), self.jac(self._shaped(array), *self.args)
        else:
            value = self._value(array)
            g = self._differences(array, scalar(value))
        g = np.array(g.numpy(force=True) if isinstance(g, Tensor) else g, dtype=array.dtype)
        _check_shape(g.shape, self.shape)
        return Point(x, scalar(value), torch.from_numpy(g.reshape(-1)))

    @torch.enable_grad()
    def hessian(self, at: Point) -> Tensor:
        """From the user, or by forward differences of the gradient, n of them."""
        self.hessians += 1
        array = at.x.numpy()
        if self.hess is not None:
            H = self.hess(self._shaped(array), *self.args)
            H = H.toarray() if hasattr(H, "toarray") else H
            return _square(torch.from_numpy(np.array(H, dtype=array.dtype)), len(array))
        steps = np.finfo(array.dtype).eps ** 0.5 * np.maximum(1, np.abs(array))
        steps = np.where(array < 0, -steps, steps)
        gradient = lambda z: at.g.numpy() if np.array_equal(z, array) else self._gradient(z)  # noqa: E731
        rows: Any = approx_fprime(array, gradient, steps)
        return _square(torch.from_numpy(np.atleast_2d(rows)), len(array))

    def _gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient alone, for differences of it."""
        self.gradients += 1
        given = _pair(self._value(x))[1] if self.jac is True else self.jac(self._shaped(x), *self.args)
        return np.array(given.numpy(force=True) if isinstance(given, Tensor) else given, dtype=float).reshape(-1)

    def _value(self, x: np.ndarray) -> Any:
        self.evals += 1
        return self.fun(self._shaped(x), *self.args)

    def _shaped(self, x: np.ndarray) -> np.ndarray:
        return x.copy().reshape(self.shape)  # a copy: functions may write into their argument

    def _differences(self, x: np.ndarray, f: float) -> np.ndarray:
        """Forward ("2-point", the default) or central ("3-point") differences with steps relative to x."""

        def value(z: np.ndarray) -> float:
            return f if np.array_equal(z, x) else scalar(self._value(z.astype(x.dtype)))

        central = self.jac == "3-point"
        size = np.finfo(x.dtype).eps ** (1 / 3 if central else 1 / 2)
        steps = np.where(x < 0, -size, size) * np.maximum(1, np.abs(x))
        forward = np.asarray(approx_fprime(x, value, steps))
        return (forward + np.asarray(approx_fprime(x, value, -steps))) / 2 if central else forward


def scalar(value: Any, source: str = "fun") -> float:
    """The value of a function as a float, if it is one real number; `source` names the function in errors."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
        return float(value.item())
    if isinstance(value, str | bytes | tuple | None):
        also = "with jac=True, a scalar and a gradient" if source == "fun" else "or a scalar and something else"
        raise TypeError(f"{source} must return a scalar ({also}), got {value!r}")
    size = value.numel() if isinstance(value, Tensor) else np.size(value)
    if size != 1:
        raise ValueError(f"{source} must return a scalar, got an array of {size} numbers")
    if isinstance(value, Tensor) or np.iscomplexobj(value):
        raise TypeError(f"{source} must return a real number, got a complex one")
    return float(np.asarray(value).item())


def _pair(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise TypeError(f"with jac=True, fun must return a value and a gradient, got {type(returned).__name__}")
    return returned[0], returned[1]


def _check_shape(given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if given != wanted and given != (math.prod(wanted),):
        raise ValueError(f"the gradient must have the shape {wanted} of x0, got {given}")


def _square(H: Tensor, n: int) -> Tensor:
    if H.numel() != n * n:
        raise ValueError(f"the Hessian must have the shape {(n, n)}, got {tuple(H.shape)}")
    return H.reshape(n, n)


def _differentiable(value: Any) -> Tensor:
    if not (isinstance(value, Tensor) and value.requires_grad):
        raise TypeError(
            "fun must return a torch tensor that depends on x so that autograd can differentiate it, "
            f"got {type(value).__name__}; otherwise pass jac="
        )
    return value
