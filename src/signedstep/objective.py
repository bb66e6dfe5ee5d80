"""Objectives: a flat vector in, value and gradient out. The only autograd of the package is here."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from scipy.optimize import approx_fprime
from torch import Tensor


class Point(NamedTuple):
    """One evaluated point: a flat vector, its value and its gradient. Nobody writes into a point."""

    x: Tensor
    f: float
    g: Tensor


class Objective(Protocol):
    """A function that evaluates value and gradient together."""

    def __call__(self, x: Tensor) -> Point: ...


class TorchObjective:
    """A function of a torch tensor; its gradient comes from autograd unless `jac` provides it."""

    def __init__(self, fun: Callable, jac: Any, args: tuple, shape: Sequence[int]):
        self.fun, self.jac, self.args, self.shape = fun, jac, args, tuple(shape)
        self.evals = 0

    @torch.enable_grad()
    def __call__(self, x: Tensor) -> Point:
        self.evals += 1
        shaped = x.view(self.shape)
        if callable(self.jac):
            value, g = self.fun(shaped, *self.args), self.jac(shaped, *self.args)
        elif self.jac is True:
            value, g = self.fun(shaped, *self.args)
        else:
            leaf = shaped.detach().requires_grad_(True)
            value = self.fun(leaf, *self.args)
            _check_differentiable(value)
            (g,) = torch.autograd.grad(value, leaf, allow_unused=True, materialize_grads=True)
        if not isinstance(g, Tensor) or g.dtype != x.dtype or g.requires_grad:
            g = torch.as_tensor(g, dtype=x.dtype, device=x.device).detach()
        return Point(x, _scalar(value), _flat_gradient(g, x))


class NumpyObjective:
    """A function of a NumPy array, called as SciPy calls it; without `jac` by SciPy's finite differences."""

    def __init__(self, fun: Callable, jac: Any, args: tuple, shape: Sequence[int]):
        self.fun, self.jac, self.args, self.shape = fun, jac, args, tuple(shape)
        self.evals = 0

    @torch.enable_grad()  # functions of arrays may use autograd inside
    def __call__(self, x: Tensor) -> Point:
        if callable(self.jac):
            value, g = self._value(x.numpy()), self.jac(self._shaped(x.numpy()), *self.args)
        elif self.jac is True:
            self.evals += 1
            value, g = self.fun(self._shaped(x.numpy()), *self.args)
        else:
            value = self._value(x.numpy())
            g = self._differences(x.numpy(), _scalar(value))
        g = torch.from_numpy(np.array(g, dtype=x.numpy().dtype))
        return Point(x, _scalar(value), _flat_gradient(g, x))

    def _value(self, x: np.ndarray) -> Any:
        self.evals += 1
        return self.fun(self._shaped(x), *self.args)

    def _shaped(self, x: np.ndarray) -> np.ndarray:
        return x.copy().reshape(self.shape)

    def _differences(self, x: np.ndarray, f: float) -> np.ndarray:
        """Forward ("2-point", the default) or central ("3-point") differences with steps relative to x."""

        def value(z: np.ndarray) -> float:
            return f if np.array_equal(z, x) else _scalar(self._value(z))

        central = self.jac == "3-point"
        size = np.finfo(x.dtype).eps ** (1 / 3 if central else 1 / 2)
        steps = np.where(x < 0, -size, size) * np.maximum(1, np.abs(x))
        forward = np.asarray(approx_fprime(x, value, steps))
        return (forward + np.asarray(approx_fprime(x, value, -steps))) / 2 if central else forward


def _scalar(value: Any) -> float:
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
        return float(value.item())
    size = value.numel() if isinstance(value, Tensor) else np.size(value)
    if size != 1:
        raise ValueError(f"fun must return a scalar, got an array of {size} numbers")
    if isinstance(value, Tensor) or np.iscomplexobj(value):
        raise TypeError("fun must return a real number, got a complex one")
    return float(np.asarray(value).item())


def _flat_gradient(g: Tensor, x: Tensor) -> Tensor:
    if g.shape == x.shape:
        return g
    if g.numel() != x.numel():
        raise ValueError(f"the gradient must have {x.numel()} entries like x0, got shape {tuple(g.shape)}")
    return g.reshape(-1)


def _check_differentiable(value: Any) -> None:
    if not (isinstance(value, Tensor) and value.requires_grad):
        raise TypeError(
            "fun must return a torch tensor that depends on x so that autograd can differentiate it, "
            f"got {type(value).__name__}; otherwise pass jac="
        )
