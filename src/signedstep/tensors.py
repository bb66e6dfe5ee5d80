"""Functions of torch tensors as objectives, with derivatives from the user or by autograd."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from signedstep.objective import Point, Product
from signedstep.returned import check_real, check_shape, pair, scalar, square
from signedstep.room import Room


class TorchObjective:
    """A function of a torch tensor; its gradient comes from autograd unless `jac` provides it."""

    cost = 1
    parts_cost = 0
    resolution = 0.0

    def __init__(
        self, fun: Callable, jac: Any, args: tuple, shape: tuple[int, ...], hess: Any = None, hessp: Any = None
    ):
        self.fun, self.jac, self.args, self.shape, self.hess, self.hessp = fun, jac, args, shape, hess, hessp
        self.evals = self.gradients = self.hessians = 0
        self._room = Room()

    @property
    def hessian_cost(self) -> int:
        """Values of the function that a Hessian costs."""
        return int(self.hess is None)

    @property
    def products_cost(self) -> int:
        """Values of the function that a point costs before it has products with its Hessian."""
        return int(self.hess is None and self.hessp is None)

    def __call__(self, x: Tensor) -> Point:
        if torch.is_grad_enabled():
            return self._evaluated(x)
        with torch.enable_grad():  # functions may use autograd whatever mode the caller is in
            return self._evaluated(x)

    def _evaluated(self, x: Tensor) -> Point:
        self.evals += 1
        if not self.jac:
            if torch.is_inference_mode_enabled():
                raise RuntimeError("fun is to be differentiated by autograd, which torch.inference_mode() switches off")
            leaf, version = x.detach().view(self.shape).requires_grad_(True), x._version
            value = self.fun(leaf, *self.args)
            f = scalar(value)
            if x._version != version:
                raise ValueError("fun must not write into x, which autograd differentiates; let it work on a copy")
            (g,) = torch.autograd.grad(differentiable(value), leaf, allow_unused=True, materialize_grads=True)
            g = self._room.copy(materialised(g))  # somebody's backward may use its buffer again
            self.gradients += 1
            return Point(x, f, g.reshape(-1))
        value = self.fun(self._shaped(x), *self.args)
        if self.jac is True:
            value, g = pair(value)
            self.gradients += 1
            return Point(x, scalar(value), self._owned(g, x))
        f = scalar(value)
        if not math.isfinite(f):  # nobody asks for its gradient there
            return Point(x, f, torch.full_like(x, math.nan))
        self.gradients += 1
        return Point(x, f, self._owned(self.jac(self._shaped(x), *self.args), x))

    def _owned(self, g: Any, x: Tensor) -> Tensor:
        """A gradient as a flat vector like x; a copy: functions may use their buffer again."""
        if not (isinstance(g, Tensor) and g.dtype is x.dtype and g.device == x.device):
            check_real(g)
            g = torch.as_tensor(g, dtype=x.dtype, device=x.device)
        if g.shape != self.shape:
            check_shape(g.shape, self.shape)
        g = self._room.copy(g.detach())
        return g if g.ndim == 1 else g.reshape(-1)

    @torch.enable_grad()
    def hessian(self, at: Point) -> Tensor:
        self.hessians += 1
        n = at.x.numel()
        if self.hess is not None:
            H = self.hess(self._shaped(at.x), *self.args)
            check_real(H, "the Hessian")
            return square(torch.as_tensor(H, dtype=at.x.dtype, device=at.x.device).detach(), self.shape)
        self.evals, self.gradients = self.evals + 1, self.gradients + 1
        # n backward passes: no demands on the function, where vmap has some
        value = lambda z: self.fun(z.view(self.shape), *self.args).reshape(())  # noqa: E731
        return torch.autograd.functional.hessian(value, at.x).view(n, n)  # type: ignore[union-attr]

    def hvp(self, at: Point) -> Product:
        """By the user's products or matrix, else by differentiating the gradient, which is evaluated once more."""
        if self.hessp is not None:
            return self._given(at)
        if self.hess is not None:
            return self.hessian(at).mv
        self.evals, self.gradients = self.evals + 1, self.gradients + 1
        with torch.enable_grad():
            leaf = at.x.detach().view(self.shape).requires_grad_(True)
            value = differentiable(self.fun(leaf, *self.args))
            (g,) = torch.autograd.grad(value, leaf, create_graph=True, allow_unused=True, materialize_grads=True)

        def product(v: Tensor) -> Tensor:
            self.hessians += 1
            return differentiated([g], [leaf], [v.view(self.shape)])[0].reshape(-1)

        return product

    def _given(self, at: Point) -> Product:
        def product(v: Tensor) -> Tensor:
            self.hessians += 1
            given = self.hessp(self._shaped(at.x), self._shaped(v), *self.args)
            check_real(given, "hessp's product")
            given = torch.as_tensor(given, dtype=at.x.dtype, device=at.x.device).detach()
            check_shape(given.shape, self.shape, "hessp's product")
            return given.reshape(-1).clone()

        return product

    def _shaped(self, x: Tensor) -> Tensor:
        x = self._room.copy(x)  # functions may write into their argument
        return x if len(self.shape) == 1 else x.view(self.shape)


def differentiable(value: Any) -> Tensor:
    """The value of a function, if autograd can differentiate it."""
    if not (isinstance(value, Tensor) and value.requires_grad):
        raise TypeError(
            "fun must return a torch tensor that depends on x so that autograd can differentiate it, "
            f"got {type(value).__name__}; otherwise pass jac="
        )
    return value


def differentiated(gradients: list[Tensor], leaves: list[Tensor], v: list[Tensor]) -> list[Tensor]:
    """Products with the Hessian by a second backward pass; the gradients' graph is kept for the next one."""
    curved = [(g, part) for g, part in zip(gradients, v, strict=True) if g.requires_grad]
    if not curved:  # f is linear
        return [torch.zeros_like(leaf) for leaf in leaves]
    outputs, weights = zip(*curved, strict=True)
    found = torch.autograd.grad(outputs, leaves, weights, retain_graph=True, allow_unused=True, materialize_grads=True)
    return [materialised(v) for v in found]


def materialised(v: Tensor) -> Tensor:
    """A vector of autograd's that is really there: the derivative of a sign, for one, is zeros without memory."""
    return v.clone() if v._is_zerotensor() else v
