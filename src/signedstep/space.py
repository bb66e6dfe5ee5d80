"""The vector space R^n: the only place where methods of O(n) memory sum n numbers, so that ranks can share them.

Scalars and small matrices are float64 on the host, whatever the precision and device of the vectors, so that every
decision is made in double precision. A distributed space only has to reduce what these methods return.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

_BLOCK = 8192
"""Columns per partial sum: it runs in the precision of the vectors, the sum over blocks in float64.

A batch of blocks also keeps every thread busy, which torch's plain product of a wide matrix and a vector does not.
"""
_LONG = 2**17
"""Vectors longer than this have blocks enough for every thread; then blocks of twice the size are faster."""
_STRETCH = 2**20
"""Columns at a time where rows meet several vectors, so that copies of these stay small."""
_SUM = 2**18
"""Numbers in one sum of a product of two vectors, in their own precision; several such sums are added in float64."""

_LEAST, _MOST = 1e-30, 1e30
"""Between these the products of float32 vectors are safe; beyond, squares of their entries may leave its range."""

Group = tuple[Tensor, Sequence[Tensor]]
"""A vector, and those that it is to be multiplied with."""
P = TypeVar("P")
T = TypeVar("T")


class Space:
    """Euclidean inner products and linear combinations of long vectors."""

    whole = True
    """Whether vectors are whole here; if not, models that need a matrix of n x n numbers cannot be."""

    def __init__(self) -> None:
        self._squares: list[tuple[Callable[[], Tensor | None], float]] = []

    def inner(self, A: Tensor, B: Sequence[Tensor]) -> np.ndarray:
        """All inner products of the rows of A [r, n] with the vectors of B: [r, s] in float64."""
        found = _inner(A, B) if A.shape[1] <= _STRETCH else _sum(_inner(a, b) for a, b in _stretches(A, B, _STRETCH))
        if A.dtype == torch.float32 and A.numel() and not _in_range(found):
            doubles = ((a.double(), [v.double() for v in b]) for a, b in _stretches(A, B, _BLOCK))
            found = _sum(_inner(a, b) for a, b in doubles)
        return found

    def dots(self, a: Tensor, B: Sequence[Tensor]) -> list[float]:
        """The inner products of one vector with those of B."""
        if a.numel() <= _SUM:  # five times as fast as len()
            values = [torch.dot(a, b).item() for b in B]
        else:
            values = [0.0] * len(B)
            for i in range(0, a.numel(), _SUM):  # a stretch stays in cache while it meets every vector
                stretch = a[i : i + _SUM]
                for j, b in enumerate(B):
                    values[j] += torch.dot(stretch, b[i : i + _SUM]).item()
        if a.dtype == torch.float32 and not all(_LEAST < abs(value) < _MOST for value in values):
            return [torch.dot(a.double(), b.double()).item() for b in B]
        return values

    def later(self, *groups: Group) -> Callable[[], list[list[float]]]:
        """`dots` of several vectors, once they are asked for: one reduction carries all that was wanted before it."""
        return lambda: [self.dots(a, B) for a, B in groups]

    def dots_each(self, *groups: Group) -> list[list[float]]:
        """`dots` of several vectors, each with vectors of its own, in one reduction."""
        return self.later(*groups)()

    def inner_and_dots(self, A: Tensor, B: Sequence[Tensor], *groups: Group) -> tuple[np.ndarray, list[list[float]]]:
        """`inner` and `dots_each` in one reduction."""
        dots = self.later(*groups)
        return self.inner(A, B), dots()

    def evaluated(self, objective: Callable[[Tensor], P], x: Tensor, look: Callable[[P], T]) -> tuple[P, T]:
        """The point of an objective at x, and what `look` sums of it, which is not to depend on the value there.

        Where ranks report on the evaluation, their reports travel with the sums.
        """
        point = objective(x)
        return point, look(point)

    def square(self, v: Tensor) -> float:
        """v.v, remembered for four vectors: parts of an iteration share those of x and of the gradient, old and new."""
        for known, value in self._squares:
            if known() is v:
                return value
        (value,) = self.dots(v, (v,))
        self.remember(v, value)
        return value

    def square_later(self, v: Tensor) -> Callable[[], float]:
        """The same, once it is asked for."""
        if any(known() is v for known, _ in self._squares):
            return lambda: self.square(v)
        dots = self.later((v, (v,)))

        def square() -> float:
            ((value,),) = dots()
            self.remember(v, value)
            return value

        return square

    def remember(self, v: Tensor, square: float) -> None:
        """Keep v.v, which the caller has just computed along with something else."""
        self._squares = [(weakref.ref(v), square), *self._squares[:3]]

    def combine(self, c: np.ndarray, A: Tensor, scale: float, v: Tensor) -> Tensor:
        """The vector c[0] A[0] + ... + c[r-1] A[r-1] + scale v."""
        weights = torch.from_numpy(c).to(A)
        scale = _held(scale, A)
        whole, count = _split(A.shape[1])
        if not count:
            return torch.addmv(v, A.T, weights, beta=scale)
        out = torch.mul(v, scale)
        out[:whole].view(count, 1, -1).baddbmm_(weights.expand(count, 1, -1), _blocks(A, whole, count))
        if whole < A.shape[1]:
            out[whole:].addmv_(A[:, whole:].T, weights)
        return out

    def moved(self, x: Tensor, p: Tensor, t: float) -> Tensor:
        """The point x + t p."""
        return torch.add(x, p, alpha=_held(t, p))

    def dimension(self, v: Tensor) -> int:
        """The n of the space that v is in, of which a distributed space keeps a part here."""
        return v.numel()

    def agreed(self, here: bool) -> bool:
        """Whether something holds for all parts of the vectors; it does for those here if `here`."""
        return here

    def largest(self, v: Tensor) -> float:
        """The largest magnitude in v; NaN if v holds one."""
        if not v.numel():
            return 0.0
        low, high = torch.aminmax(v)
        return max(-low.item(), high.item())

    def largest_later(self, v: Tensor) -> Callable[[], float]:
        """The same, once it is asked for."""
        return lambda: self.largest(v)


def _held(t: float, v: Tensor) -> float:
    """A number within the precision of v: torch refuses factors that overflow it."""
    most = torch.finfo(v.dtype).max
    return min(max(t, -most), most)


def _stretches(A: Tensor, B: Sequence[Tensor], size: int) -> Iterator[tuple[Tensor, list[Tensor]]]:
    """Some columns of A [r, n] after the others, with the same entries of the vectors of B."""
    return ((A[:, i : i + size], [b[i : i + size] for b in B]) for i in range(0, A.shape[1], size))


def _in_range(products: np.ndarray) -> bool:
    """Whether no product with a vector is near overflow, and not all of them near underflow."""
    largest = np.abs(products).max(axis=0, initial=0.0)
    return bool(((largest > _LEAST) & (largest < _MOST)).all())


def _sum(parts: Iterator[np.ndarray]) -> np.ndarray:
    return reduce(np.add, parts)


def _inner(A: Tensor, B: Sequence[Tensor]) -> np.ndarray:
    whole, count = _split(A.shape[1])
    if not count:
        products = [torch.mv(A, b) for b in B]
        found = products[0][:, None] if len(B) == 1 else torch.stack(products, dim=1)
        return found.double().numpy(force=True)
    b = B[0][None] if len(B) == 1 else torch.stack(tuple(B))
    out = torch.bmm(_blocks(b, whole, count), _blocks(A, whole, count).mT).sum(0, dtype=torch.float64)
    if whole < A.shape[1]:
        out += b[:, whole:] @ A[:, whole:].T
    return out.T.numpy(force=True)


def _split(n: int) -> tuple[int, int]:
    """How many of n columns fall into whole blocks, and how many blocks; none for short vectors."""
    block = _BLOCK if n <= _LONG else 2 * _BLOCK
    count = n // block + (n > block // 2)
    return (n - n % count, count) if count > 1 else (0, 0)


def _blocks(A: Tensor, whole: int, count: int) -> Tensor:
    """The first columns of A [r, n] as a batch of matrices [r, block]; a view."""
    return A[:, :whole].unflatten(1, (count, -1)).transpose(0, 1)
