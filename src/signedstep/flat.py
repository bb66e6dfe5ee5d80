"""Parameters as one flat vector: several tensors of any shape, layout, precision and device go in and come out."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from signedstep import native
from signedstep.space import Space


class Flat:
    """Copies parameters and their gradients to and from flat vectors, in a few calls however many there are.

    Frozen parameters (`requires_grad=False`) are left out, and one that is given twice counts once. Complex numbers
    count as two real ones. The flat vector has the widest precision among the parameters, at least float32, so
    half-precision parameters keep a master copy. Of a DTensor it holds what is on this rank.
    """

    def __init__(self, params: Iterable[Tensor]):
        self.params = [p for p in dict.fromkeys(params) if p.requires_grad]
        if any(p.is_conj() or p.is_neg() for p in self.params):
            raise ValueError("a parameter is a lazy conjugate or negative: resolve_conj() or resolve_neg() it first")
        reals = [real(p) for p in self.params]
        _check_apart(reals)
        self.dtype = torch.float32
        for p in reals:
            self.dtype = torch.promote_types(self.dtype, p.dtype)
        self.device = reals[0].device if reals else torch.device("cpu")
        self.layout = [(tuple(p.shape), str(p.dtype).removeprefix("torch.")) for p in self.params]
        self._sizes = [p.numel() for p in reals]
        self.n = sum(p.numel() * (2 if p.is_complex() else 1) for p in self.params)
        """How many numbers there are, on all ranks together."""
        self._sharded = any(is_sharded(p) for p in self.params)
        self._missing = [False] * len(self.params)
        self._plain = not (self._sharded or any(p.is_complex() for p in self.params))
        self._look(reals)

    def same(self, other: "Flat") -> bool:
        """Whether two of these are of the very same parameters."""
        return self.layout == other.layout and all(p is q for p, q in zip(self.params, other.params, strict=True))

    def check_alike(self, options: Sequence[str]) -> None:
        """Complain where ranks that share the parameters have not the same, or other options; one alone cannot."""

    def together(self) -> AbstractContextManager[None]:
        """What ranks that share the parameters must do all or none; one alone may fail."""
        return nullcontext()

    def space(self) -> Space:
        """The space that the flat vectors are in."""
        return Space()

    def saved(self, t: Tensor) -> Any:
        """A flat vector, or rows of them, as a state dict keeps it."""
        return t

    def takes(self, saved: Any) -> bool:
        """Whether a vector of a state dict is of a kind that `loaded` knows."""
        return not any(is_sharded(part) for part in (saved if isinstance(saved, list) else [saved]))

    def loaded(self, saved: Any) -> Tensor:
        """The inverse; a vector may also have been saved as a list of parts, one for each parameter."""
        if isinstance(saved, Tensor):
            return saved
        lead = saved[0].ndim - real(self.params[0]).ndim
        parts = zip(saved, self._sizes, strict=True)
        return torch.cat([part.reshape(*part.shape[:lead], size) for part, size in parts], dim=-1)  # even of no pairs

    def room(self, shape: tuple[int, ...], dtype: torch.dtype, part: int | None) -> Tensor:
        """Room to load what was saved in this shape: vectors, or the part of them that belongs to a parameter."""
        return torch.empty(shape, dtype=dtype, device=self.device)

    def read(self) -> Tensor:
        """The parameters as a new flat vector."""
        return self.gathered(self.params)

    def write(self, x: Tensor) -> None:
        """Set the parameters to a flat vector."""
        self._fill(x)
        torch.clear_autocast_cache()  # which may hold casts of what they were, if `step` is within autocast

    def holds(self, x: Tensor) -> bool:
        """Whether the parameters are this flat vector, rounded to their own precision."""
        if self._uniform:
            return torch.equal(self.read(), x)
        parts = zip(self._current(), self._parts(x), strict=True)
        return all(torch.equal(p, v.to(p.device, p.dtype)) for p, v in parts)

    def clear_grads(self) -> None:
        """No parameter has a gradient, so that one computed afterwards is known to be new."""
        for p in self.params:
            p.grad = None

    def has_grads(self) -> bool:
        return any(p.grad is not None for p in self.params)

    def read_grads(self) -> Tensor:
        """The gradients as a new flat vector; a missing one counts as zero, a sparse one becomes dense."""
        return self._gathered(self.grads())

    def grads(self) -> list[Tensor]:
        """The gradients as they are read: real numbers, dense, zero where missing; perhaps of another precision."""
        grads = [p.grad for p in self.params]
        self._missing = [g is None for g in grads]
        if self._plain and all(g is not None and g.layout is torch.strided for g in grads):
            return grads  # type: ignore[return-value] # as nearly always, and many calls less
        pairs = zip(grads, self.params, strict=True)
        return [real(torch.zeros_like(p) if g is None else _dense(g)) for g, p in pairs]

    def write_grads(self, g: Tensor) -> None:
        """Set the gradients to a flat vector, in new tensors: those of a closure may be of other use.

        A parameter that had none when they were last read has none then, either.
        """
        self.clear_grads()
        for p, grad, missing in zip(self.params, self.shaped(g), self._missing, strict=True):
            if missing and not grad.any():
                continue
            p.grad = grad.to(getattr(p, "grad_dtype", None) or grad.dtype)  # torch lets it differ from the parameter's

    def shaped(self, v: Tensor) -> list[Tensor]:
        """A flat vector as new tensors like the parameters."""
        tensors = [torch.empty_like(p, memory_format=torch.contiguous_format) for p in self.params]
        if tensors:
            _copy([real(tensor).view(-1) for tensor in tensors], v.split(self._sizes))
        return tensors

    def gathered(self, tensors: Iterable[Tensor]) -> Tensor:
        """Tensors like the parameters as a new flat vector."""
        return self._gathered([real(t) for t in tensors])

    def _gathered(self, tensors: list[Tensor]) -> Tensor:
        if not tensors:
            return torch.empty(0, dtype=self.dtype, device=self.device)
        if not self._uniform:
            tensors = [t.to(self.device, self.dtype) for t in tensors]
        out = torch.empty(sum(self._sizes), dtype=self.dtype, device=self.device)
        if native.gather(out, tensors):
            return out
        flat = torch.cat((tensors[0].reshape(-1),)) if len(tensors) == 1 else _flatten(tensors)  # which would not copy
        return flat.detach().to(self.dtype)

    def _fill(self, x: Tensor) -> None:
        """Copy a flat vector into the memory of the parameters."""
        if self.params:
            targets = self._current()
            if native.scatter(x, targets):
                increment_version(self.params)  # so that autograd complains of graphs that are older
            else:
                _copy(targets, self._parts(x))

    def _look(self, reals: list[Tensor]) -> None:
        """Take the memory of the parameters as it is now."""
        if [p.numel() for p in reals] != self._sizes:
            raise RuntimeError("a parameter has changed its size within a step")
        self._addresses = self._where()
        self._uniform = all(p.dtype == self.dtype and p.device == self.device for p in reals)
        self._targets = [p.view(-1) if p.is_contiguous() else p for p in reals]
        self._shaped = [(i, p.shape) for i, p in enumerate(reals) if not p.is_contiguous()]

    def _current(self) -> list[Tensor]:
        """What to write into: a closure may give a parameter other memory, as RNNs do that flatten their weights, or
        another precision."""
        if self._where() != self._addresses:
            self._look([real(p) for p in self.params])
        return self._targets

    def _where(self) -> list[int]:
        parts = [local(p) for p in self.params] if self._sharded else self.params
        return [p.data_ptr() for p in parts]

    def _parts(self, flat: Tensor) -> list[Tensor]:
        """The parts of a flat vector in the shapes of the targets."""
        parts = list(flat.split(self._sizes)) if self._sizes else []
        for i, shape in self._shaped:
            parts[i] = parts[i].view(shape)
        return parts


_copy: Callable[[Sequence[Tensor], Sequence[Tensor]], None] = torch._foreach_copy_  # pyright: ignore
_flatten: Callable[[Sequence[Tensor]], Tensor] = torch._C._nn.flatten_dense_tensors  # pyright: ignore


def real(t: Tensor) -> Tensor:
    """The same storage, complex numbers as pairs of real ones."""
    t = local(t.detach() if t.requires_grad else t)
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _check_apart(reals: list[Tensor]) -> None:
    """Complain of parameters that share memory: the step of one would move the others, too."""
    ends = []
    for i, p in enumerate(reals):
        if p.numel() and p.data_ptr():  # some devices have no addresses
            reach = 1 + sum((size - 1) * stride for size, stride in zip(p.shape, p.stride(), strict=True))
            if reach < p.numel():
                raise ValueError(f"parameter {i} of shape {tuple(p.shape)} is expanded: its entries share memory")
            ends.append((p.data_ptr(), p.data_ptr() + reach * p.element_size(), reach == p.numel(), i))
    ends.sort()
    for (start, end, dense, i), (next_start, _, next_dense, j) in pairwise(ends):
        if start == next_start or (next_start < end and dense and next_dense):  # others may be interleaved
            raise ValueError(
                f"parameters {min(i, j)} and {max(i, j)} share memory: where one weight has two uses, it must be one "
                "nn.Parameter, as in `decoder.weight = encoder.weight`"
            )


def is_sharded(t: Tensor) -> bool:
    """Whether a tensor is a DTensor, of which this rank has a part; importing that class takes a second."""
    return hasattr(t, "to_local")


def local(t: Tensor) -> Tensor:
    """The part of a tensor that is on this rank."""
    return t.to_local() if is_sharded(t) else t  # type: ignore[attr-defined]


def _dense(grad: Tensor) -> Tensor:
    return grad if grad.layout == torch.strided else grad.to_dense()
