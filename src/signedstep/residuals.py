"""Least squares: half the sum of squares of residuals as an objective that knows the Gauss-Newton matrix J'J."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import approx_fprime
from torch import Tensor

from signedstep.arrays import NumpyObjective, precision
from signedstep.objective import Point, Product
from signedstep.returned import array_of, check_real
from signedstep.tensors import TorchObjective, materialised


class LeastSquares:
    """f(x) = |r(x)|^2/2, for `minimize` in the place of `fun`: with every method, and the Gauss-Newton matrix besides.

    `residuals(x, *args)` returns r, of any shape, in the type of x0. For arrays, `jac(x, *args)` returns the Jacobian
    (dense, sparse or a SciPy LinearOperator; None: forward differences); for tensors it comes from autograd.
    `"gauss-newton/trust"` is then the method of Levenberg and Marquardt, in More's form (1978): within a radius.
    """

    def __init__(self, residuals: Callable, jac: Callable | None = None):
        if not callable(residuals) or not (jac is None or callable(jac)):
            raise TypeError(f"residuals must be callable, and jac callable or None, got {residuals!r}, {jac!r}")
        self.residuals, self.jac = residuals, jac

    def bind(
        self, args: tuple, shape: tuple[int, ...], tensors: bool, keep: bool = True
    ) -> "TorchResiduals | NumpyResiduals":
        """The objective for an x0 of this shape and type; `keep`: whether anybody wants the Jacobian of a point."""
        if not tensors:
            return NumpyResiduals(self.residuals, self.jac, args, shape, keep)
        if self.jac is not None:
            raise ValueError("LeastSquares takes jac= for arrays only; for tensors autograd multiplies with J")
        return TorchResiduals(self.residuals, args, shape)


class TorchResiduals(TorchObjective):
    """Residuals that autograd can differentiate."""

    parts_cost = 1

    def __init__(self, residuals: Callable, args: tuple, shape: tuple[int, ...]):
        super().__init__(self._half_square, None, args, shape)
        self.residuals = residuals

    def _half_square(self, x: Tensor, *args: Any) -> Tensor:
        r = self.residuals(x, *args)
        if not (isinstance(r, Tensor) and r.requires_grad):
            raise TypeError(f"residuals must return a torch tensor that depends on x, got {type(r).__name__}")
        return 0.5 * r.square().sum()

    def gauss_newton(self, at: Point) -> Product:
        """J'(J v): J' u is linear in u, so its derivative is J'; one more evaluation at the point."""
        self.evals, self.gradients = self.evals + 1, self.gradients + 1
        with torch.enable_grad():
            leaf = at.x.detach().view(self.shape).requires_grad_(True)
            r = self.residuals(leaf, *self.args)
            u = torch.zeros_like(r, requires_grad=True)
            (back,) = torch.autograd.grad(r, leaf, u, create_graph=True, allow_unused=True, materialize_grads=True)

        def product(v: Tensor) -> Tensor:
            self.hessians += 1
            (Jv,) = torch.autograd.grad(back, u, v.view(self.shape), retain_graph=True)
            return materialised(torch.autograd.grad(r, leaf, Jv, retain_graph=True)[0]).reshape(-1)

        return product

    def fisher(self, at: Point, samples: int) -> Product:
        """That of normally distributed residuals of variance 1, which is J'J exactly."""
        return self.gauss_newton(at)


class NumpyResiduals(NumpyObjective):
    """Residuals of arrays; each point keeps its Jacobian, if anybody wants it."""

    def __init__(
        self, residuals: Callable, jacobian: Callable | None, args: tuple, shape: tuple[int, ...], keep: bool = True
    ):
        super().__init__(self._both, True, args, shape)
        self.residuals, self.jacobian, self.keep = residuals, jacobian, keep
        self._newest: Any = None
        """The Jacobian of an evaluation, until its point has it."""

    @property
    def cost(self) -> int:
        return 1 if self.jacobian else 1 + int(np.prod(self.shape))

    def __call__(self, x: Tensor) -> Point:
        point = super().__call__(x)
        J, self._newest = self._newest, None
        return point._replace(aux=J)

    def gauss_newton(self, at: Point) -> Product:
        J = at.aux

        def product(v: Tensor) -> Tensor:
            self.hessians += 1
            return torch.from_numpy(np.asarray(J.T @ (J @ v.numpy()), dtype=at.x.numpy().dtype))

        return product

    def fisher(self, at: Point, samples: int) -> Product:
        """That of normally distributed residuals of variance 1, which is J'J exactly."""
        return self.gauss_newton(at)

    def _both(self, x: np.ndarray, *args: Any) -> tuple[float, np.ndarray]:
        if self.jacobian is None:
            x = x.astype(np.float64)  # differences of float32 numbers have hardly a digit
        r = _floats(self.residuals(self._shaped(x), *args))
        J = self._jacobian(x.reshape(-1), r)
        self._newest = _copied(J) if self.keep else None
        return 0.5 * float(r @ r), np.asarray(J.T @ r).reshape(-1)

    def _jacobian(self, x: np.ndarray, r: np.ndarray) -> Any:
        if self.jacobian is not None:
            J = self.jacobian(self._shaped(x), *self.args)
            return self._checked(J if hasattr(J, "tocsr") or hasattr(J, "rmatvec") else array_of(J), len(r))
        if not np.isfinite(r).all():  # nobody asks for J there, and each column would cost a value
            return np.full((len(r), len(x)), np.nan)
        steps = precision(r) ** 0.5 * np.maximum(1, np.abs(x))

        def at(z: np.ndarray) -> np.ndarray:
            if np.array_equal(z, x):
                return r
            self.evals += 1
            return _floats(self.residuals(self._shaped(z), *self.args))

        return np.asarray(approx_fprime(x, at, np.where(x < 0, -steps, steps))).reshape(len(r), len(x))

    def _checked(self, J: Any, count: int) -> Any:
        """A Jacobian, if it has a row for each residual."""
        n = int(np.prod(self.shape))
        wanted = (count, n)
        if J.shape == wanted:
            return J
        if isinstance(J, np.ndarray) and (J.shape == (count, *self.shape) or (1 in wanted and J.shape == (count * n,))):
            return J.reshape(wanted)
        raise ValueError(f"jac must return a Jacobian of the shape {wanted}, a row for each residual, got {J.shape}")


def _copied(J: Any) -> Any:
    """A Jacobian of our own: users may fill the same one at each point."""
    return J.copy() if hasattr(J, "copy") else J  # a LinearOperator has no numbers to copy


def _floats(residuals: Any) -> np.ndarray:
    """Residuals as a flat array of floats: squares of integers may overflow."""
    check_real(residuals, "residuals")
    r = array_of(residuals).reshape(-1)
    return r if r.dtype.kind == "f" else r.astype(np.float64)
