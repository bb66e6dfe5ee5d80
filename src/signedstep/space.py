"""The vector space R^n: the only place where methods of O(n) memory sum n numbers, so that ranks can share them.

Scalars and small matrices are float64 on the host, whatever the precision and device of the vectors, so that every
decision is made in double precision. A distributed space only has to reduce what these methods return.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from signedstep import sums
from signedstep.native import Difference
from signedstep.room import Room

Group = tuple[Tensor, Sequence[Tensor]]
"""A vector, and those that it is to be multiplied with."""
P = TypeVar("P")
T = TypeVar("T")


class Space:
    """Euclidean inner products and linear combinations of long vectors."""

    whole = True
    """Whether vectors are whole here; if not, models that need a matrix of n x n numbers cannot be."""

    def __init__(self) -> None:
        self.room = Room()
        self._squares: list[tuple[Callable[[], Tensor | None], float]] = []
        self._combined: tuple[Callable[[], Tensor | None], Callable[[], Tensor | None], list[float]] | None = None

    def inner(self, A: Tensor, B: Sequence[Tensor]) -> np.ndarray:
        """All inner products of the rows of A [r, n] with the vectors of B: [r, s] in float64."""
        return sums.products(A, B)

    def grams(self, A: Tensor, V: Sequence[Difference], count: int) -> tuple[np.ndarray, np.ndarray]:
        """The products of the first `count` of some vectors V with the rows of A, and V V', in one reduction."""
        return sums.grams(A, V, count)

    def dots(self, a: Tensor, B: Sequence[Tensor]) -> list[float]:
        """The inner products of one vector with those of B.

        Those of the newest combination with the vector in it and with itself, in this order, were summed as it was
        made.
        """
        if self._combined is not None and len(B) == 2:
            p, v, products = self._combined
            if p() is a is B[1] and v() is B[0]:
                return products
        return sums.dots(a, B)

    def later(self, *groups: Group) -> Callable[[], list[list[float]]]:
        """`dots` of several vectors, once they are asked for: one reduction carries all that was wanted before it."""
        return lambda: [self.dots(a, B) for a, B in groups]

    def dots_each(self, *groups: Group) -> list[list[float]]:
        """`dots` of several vectors, each with vectors of its own, in one reduction."""
        return self.later(*groups)()

    def evaluated(self, objective: Callable[[Tensor], P], x: Tensor, look: Callable[[P], T]) -> tuple[P, T]:
        """The point of an objective at x, and what `look` sums of it.

        Where ranks report on the evaluation, their reports travel with the sums: `look` makes the same sums on every
        rank, also while the value of its point is not known yet.
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
        """v.v as a function, so that one reduction carries this sum and others that are wanted by then."""
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
        """The vector c[0] A[0] + ... + c[r-1] A[r-1] + scale v. Nobody writes into it: its products may be known."""
        p, products = sums.combination(c, A, scale, v, out=self.room.like(v))
        self._combined = (weakref.ref(p), weakref.ref(v), products) if products else None
        return p

    def write_differences(self, scale: float, *triples: tuple[Tensor, Tensor, Tensor]) -> None:
        """For each (plus, minus, out) make scale (plus - minus) where it is to stay."""
        sums.write_differences(scale, triples)

    def moved(self, x: Tensor, p: Tensor, t: float) -> Tensor:
        """The point x + t p."""
        return torch.add(x, p, alpha=sums.held(t, p.dtype), out=self.room.like(x))

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
        """The largest magnitude as a function, which may share a reduction with what is wanted by then."""
        return lambda: self.largest(v)
