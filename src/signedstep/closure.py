"""The closure of a torch optimizer as an objective: parameters in, loss and gradient out."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from signedstep.flat import Flat
from signedstep.objective import Point, scalar


class ClosureObjective:
    """Evaluates a closure at a flat vector, which it first writes into the parameters.

    The closure may call `backward` itself or only return the loss; it may return `(loss, aux)`.
    """

    def __init__(self, flat: Flat, closure: Callable[[], Any], maximize: bool = False):
        self.flat, self.closure, self.sign = flat, closure, -1.0 if maximize else 1.0
        self.newest: Tensor | None = None
        """The gradient that the parameters carry now."""
        self._like: Tensor | None = None

    def __call__(self, x: Tensor) -> Point:
        self.newest = None
        self.flat.write(x)
        self.flat.clear_grads()
        f, aux = self.called()
        return self.pointed(x, f, self.flat.read_grads(), aux)

    def called(self) -> tuple[float, Any]:
        """Call the closure where the parameters are: its loss, and what it returns beside it."""
        with torch.enable_grad():
            returned = self.closure()
            loss, aux = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
            f = scalar(loss, "the closure")
            if isinstance(loss, Tensor) and (self._like is None or math.isfinite(f)):
                self._like = loss.detach()
            if not self.flat.has_grads():
                self._differentiate(loss, f)
        return f, aux

    def pointed(self, x: Tensor, f: float, g: Tensor, aux: Any) -> Point:
        """The point of a loss and its gradient, which is to be minimised."""
        if self.sign < 0:
            g.neg_()
        self.newest = g
        return Point(x, self.sign * f, g, aux)

    def leave_at(self, at: Point) -> None:
        """Leave parameters and gradients at a point that has been evaluated."""
        if self.newest is not at.g:
            self.flat.write(at.x)
            self.flat.write_grads(at.g if self.sign > 0 else -at.g)
            self.newest = at.g

    def loss(self, at: Point) -> Any:
        """The loss at a point in the type that the closure returns."""
        f = self.sign * at.f
        return f if self._like is None else self._like.new_tensor(f)

    def _differentiate(self, loss: Any, f: float) -> None:
        """Call `backward` for a closure that has not; a loss that is not finite needs no gradient."""
        if isinstance(loss, Tensor) and loss.requires_grad:
            loss.backward()
        elif self.flat.params and math.isfinite(f):
            raise RuntimeError(
                "the closure left no gradient: it must call backward() itself, or return a loss that autograd can "
                "differentiate"
            )
