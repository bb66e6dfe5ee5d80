"""Parameters as one flat vector: several tensors of any shape, layout, precision and device go in and come out."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor


class Flat:
    """Copies parameters and their gradients to and from flat vectors, with one foreach copy each.

    Frozen parameters (`requires_grad=False`) are left out. Complex numbers count as two real ones. The flat vector
    has the widest precision among the parameters, at least float32, so half-precision parameters keep a master copy.
    """

    def __init__(self, params: Iterable[Tensor]):
        self.params = [p for p in params if p.requires_grad]
        if any(p.is_conj() or p.is_neg() for p in self.params):
            raise ValueError("a parameter is a lazy conjugate or negative: resolve_conj() or resolve_neg() it first")
        reals = _reals(self.params)
        self.dtype = torch.float32
        for p in reals:
            self.dtype = torch.promote_types(self.dtype, p.dtype)
        self.device = reals[0].device if reals else torch.device("cpu")
        self.layout = [(tuple(p.shape), str(p.dtype).removeprefix("torch.")) for p in self.params]
        self.n = sum(p.numel() for p in reals)
        self._uniform = all(p.dtype == self.dtype and p.device == self.device for p in reals)

    def same(self, other: "Flat") -> bool:
        """Whether two of these are of the very same parameters."""
        return self.layout == other.layout and all(p is q for p, q in zip(self.params, other.params, strict=True))

    def read(self) -> Tensor:
        """The parameters as a new flat vector."""
        return self._gathered(_reals(self.params))

    def write(self, x: Tensor) -> None:
        """Set the parameters to a flat vector."""
        if self.params:
            _copy(_reals(self.params), self._views(x))

    def holds(self, x: Tensor) -> bool:
        """Whether the parameters are this flat vector, rounded to their own precision."""
        if self._uniform:
            return torch.equal(self.read(), x)
        pairs = zip(_reals(self.params), self._views(x), strict=True)
        return all(torch.equal(p, v.to(p.device, p.dtype)) for p, v in pairs)

    def clear_grads(self) -> None:
        """No parameter has a gradient, so that one computed afterwards is known to be new."""
        for p in self.params:
            p.grad = None

    def has_grads(self) -> bool:
        return any(p.grad is not None for p in self.params)

    def read_grads(self) -> Tensor:
        """The gradients as a new flat vector; a missing one counts as zero, a sparse one becomes dense."""
        grads = [_dense(p.grad) for p in self.params if p.grad is not None]
        if len(grads) == len(self.params):
            return self._gathered(_reals(grads))
        flat = torch.zeros(self.n, dtype=self.dtype, device=self.device)
        views = [v for v, p in zip(self._views(flat), self.params, strict=True) if p.grad is not None]
        if grads:
            _copy(views, _reals(grads))
        return flat

    def write_grads(self, g: Tensor) -> None:
        """Set the gradients to a flat vector, in new tensors: those of a closure may be of other use."""
        self.clear_grads()
        grads = [torch.empty_like(p, requires_grad=False) for p in self.params]
        if grads:
            _copy(_reals(grads), self._views(g))
        for p, grad in zip(self.params, grads, strict=True):
            p.grad = grad

    def _gathered(self, tensors: Sequence[Tensor]) -> Tensor:
        flat = torch.empty(self.n, dtype=self.dtype, device=self.device)
        if self.params:
            _copy(self._views(flat), tensors)
        return flat

    def _views(self, flat: Tensor) -> Sequence[Tensor]:
        """The parts of a flat vector in the shapes of the parameters."""
        return _unflatten(flat, _reals(self.params)) if self.params else ()


_copy: Callable[[Sequence[Tensor], Sequence[Tensor]], None] = torch._foreach_copy_  # pyright: ignore
_unflatten: Callable[[Tensor, Sequence[Tensor]], Sequence[Tensor]] = torch._C._nn.unflatten_dense_tensors  # pyright: ignore
"""All views in one call: a Python loop over the parameters costs more than the copy where they are small."""


def _reals(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same storage, complex numbers as pairs of real ones."""
    return [torch.view_as_real(t.detach().resolve_conj()) if t.is_complex() else t.detach() for t in tensors]


def _dense(grad: Tensor) -> Tensor:
    return grad if grad.layout == torch.strided else grad.to_dense()
