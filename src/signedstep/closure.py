"""The closure of a torch optimizer as an objective: parameters in, loss and gradient out."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from signedstep.flat import Flat
from signedstep.kronecker import Block, Eigenbasis, Eigensystem
from signedstep.objective import Point, Product
from signedstep.returned import scalar
from signedstep.tensors import differentiated


@runtime_checkable
class PartsClosure(Protocol):
    """A closure that shows outputs and loss apart, and so more matrices than the Hessian, at the present parameters."""

    def gauss_newton(self, params: list[Tensor]) -> Any: ...

    def fisher(self, params: list[Tensor], samples: int) -> Any: ...

    def kronecker(self, params: list[Tensor], samples: int) -> list[Block]: ...


def _released() -> Any:
    raise RuntimeError("the step that this closure was for is over")


class ClosureObjective:
    """Evaluates a closure at a flat vector, which it first writes into the parameters.

    The closure may call `backward` itself or only return the loss; it may return `(loss, aux)`.
    """

    cost = 1
    hessian_cost = products_cost = 1
    parts_cost = 0
    resolution = 0.0

    def __init__(
        self,
        flat: Flat,
        closure: Callable[[], Any],
        maximize: bool = False,
        counted: Callable[[], None] = lambda: None,
    ):
        self.flat, self.closure, self.sign, self.counted = flat, closure, -1.0 if maximize else 1.0, counted
        self.evals = self.gradients = self.hessians = 0
        self.carried: Tensor | None = None
        """The gradient that the parameters carry now."""
        self._like: Tensor | None = None
        self._graph: list[Tensor] = []

    def __call__(self, x: Tensor) -> Point:
        self._place(x)
        f, aux = self.called()
        return self.pointed(x, f, self.flat.read_grads(), aux)

    def called(self) -> tuple[float, Any]:
        """Call the closure where the parameters are: its loss, and what it returns beside it."""
        self.evals += 1
        with torch.enable_grad():
            loss, aux = self._returned()
            f = scalar(loss, "the closure")
            if math.isfinite(f) or (self._like is None and isinstance(loss, Tensor)):
                self._like = loss.detach() if isinstance(loss, Tensor) and loss.is_floating_point() else None
            if not self.flat.has_grads():
                self._differentiate(loss, f)
        return f, aux

    def pointed(self, x: Tensor, f: float, g: Tensor, aux: Any) -> Point:
        """The point of a loss and its gradient, which is to be minimised."""
        self.gradients += 1
        if self.sign < 0:
            g.neg_()
        self.carried = g
        return Point(x, self.sign * f, g, aux)

    def hvp(self, at: Point) -> Product:
        """Products with the Hessian by a second backward pass, through the loss of one more call of the closure."""
        self.evals, self.gradients = self.evals + 1, self.gradients + 1
        with torch.enable_grad():
            self._place(at.x)
            loss, _ = self._returned()
            if self.flat.has_grads() or not (isinstance(loss, Tensor) and loss.requires_grad):
                raise RuntimeError(
                    "products with the Hessian need a closure that only returns the loss, without calling backward() "
                    "or item(): that frees the graph, which has to be differentiated a second time"
                )
            params = self.flat.params
            found = torch.autograd.grad(loss, params, create_graph=True, allow_unused=True)
            self._check_found(found, at)
            self._graph = g = [torch.zeros_like(p) if h is None else h for h, p in zip(found, params, strict=True)]

        def product(v: Tensor) -> Tensor:
            self.hessians += 1
            Hv = self.flat.gathered(differentiated(g, params, self.flat.shaped(v)))
            return Hv.neg_() if self.sign < 0 else Hv

        return product

    def _check_found(self, found: Sequence[Tensor | None], at: Point) -> None:
        """Complain of gradients that backward() has found and a second backward pass would miss."""
        parts = self.flat.shaped(at.g) if any(g is None for g in found) else []
        if any(g is None and bool(part.any()) for g, part in zip(found, parts, strict=bool(parts))):
            raise RuntimeError(
                "products with the Hessian need a loss that autograd can differentiate twice, and the way from it to a "
                "parameter is hidden: torch.utils.checkpoint needs use_reentrant=False"
            )

    def gauss_newton(self, at: Point) -> Product:
        return self._operator(at, self._with_parts().gauss_newton(self._params_at(at)))

    def fisher(self, at: Point, samples: int) -> Product:
        return self._operator(at, self._with_parts().fisher(self._params_at(at), samples))

    def kronecker(self, at: Point, samples: int) -> Eigensystem:
        self.hessians += 1
        with torch.enable_grad():
            blocks = self._with_parts().kronecker(self._params_at(at), samples)
        basis, flat = Eigenbasis(blocks), self.flat
        coordinates = lambda v: basis.coordinates(flat.shaped(v))  # noqa: E731
        return Eigensystem(basis.w, coordinates, lambda a: flat.gathered(basis.lift(a, flat.params)))

    def _with_parts(self) -> PartsClosure:
        if not isinstance(self.closure, PartsClosure):
            raise TypeError(
                "Gauss-Newton and Fisher matrices need to know outputs and loss apart: pass step() a "
                f"signedstep.ModuleLoss(model, loss_func, data) as its closure, not {self.closure!r}"
            )
        if self.sign < 0:
            raise ValueError("Gauss-Newton and Fisher matrices model a loss from below: they cannot maximize")
        return self.closure

    def _params_at(self, at: Point) -> list[Tensor]:
        """The parameters, set to a point."""
        if any(p.is_complex() for p in self.flat.params):
            raise TypeError("Gauss-Newton and Fisher matrices need real parameters")
        self.carried = None
        self.flat.write(at.x)
        return self.flat.params

    def _operator(self, at: Point, matrix: Any) -> Product:
        def product(v: Tensor) -> Tensor:
            self.hessians += 1
            self._params_at(at)  # trials may have been evaluated since
            return self.flat.gathered(matrix @ self.flat.shaped(v))

        return product

    def _place(self, x: Tensor) -> None:
        """Set the parameters to x, without gradients."""
        self.carried = None
        self.flat.write(x)
        self.flat.clear_grads()

    def _returned(self) -> tuple[Any, Any]:
        """The loss where the parameters are, and what else the closure returns."""
        self.counted()
        returned = self.closure()
        return returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)

    def release(self) -> None:
        """Let go of the closure and of graphs: a closure most often knows its optimizer, which knows this object."""
        self.closure = _released
        self._graph.clear()

    def leave_at(self, at: Point) -> None:
        """Leave parameters and gradients at a point that has been evaluated."""
        if self.carried is not at.g:
            self.flat.write(at.x)
            self.flat.write_grads(at.g if self.sign > 0 else -at.g)
            self.carried = at.g

    def loss(self, at: Point) -> Any:
        """The loss at a point in the type and shape that the closure returns."""
        f = self.sign * at.f
        return f if self._like is None else torch.full_like(self._like, f)

    def _differentiate(self, loss: Any, f: float) -> None:
        """Call `backward` for a closure that has not; a loss that is not finite needs no gradient."""
        if isinstance(loss, Tensor) and loss.requires_grad:
            unrelated = "the loss depends on none of the parameters that the optimizer was given to train"
            try:
                loss.backward()
            except RuntimeError as error:
                if "second time" in str(error):
                    spent = "or backward() has been called on it before: the closure must compute it anew"
                    raise RuntimeError(f"{unrelated}, {spent}") from error
                raise
            if self.flat.params and math.isfinite(f) and not self.flat.has_grads():
                raise RuntimeError(unrelated)
        elif self.flat.params and math.isfinite(f):
            raise RuntimeError(
                "the closure left no gradient: it must call backward() itself, or return a loss that autograd can "
                "differentiate"
            )
