"""Lanczos' method: a symmetric matrix that is known by its products only, seen from a few directions.

An orthonormal basis V (rows) and T = V B V' grow by one product at a time. Each new row is orthogonalised against all
others, twice, so V is orthonormal to rounding and T has no ghosts of eigenvalues found before (Parlett 1998, chapter
13). T is tridiagonal up to rounding for one start; with a second start it is not, so all of it is kept.
"""

import math

import numpy as np
import torch
from torch import Tensor

from signedstep.objective import Product
from signedstep.space import Space


class Subspace:
    """The span of Krylov spaces: V and T = V B V', in float64 whatever the precision of V."""

    def __init__(self, space: Space, like: Tensor):
        self.space, self.n = space, like.numel()
        self.invariant = False
        """Whether B maps the span into itself, up to rounding."""
        self.broken = False
        """Whether a product was not finite: the span ends before it."""
        self._rows = like.new_empty(min(8, self.n), self.n)
        self._T = np.zeros((len(self._rows), len(self._rows)))
        self.k = 0
        """The dimension."""

    @property
    def V(self) -> Tensor:
        return self._rows[: self.k]

    @property
    def T(self) -> np.ndarray:
        return self._T[: self.k, : self.k]

    def solve(self, product: Product, b: Tensor, tolerance: float, count: int) -> None:
        """Grow from b until B x = b has a solution in the span with a residual of at most `tolerance` |b|.

        Like `look`, it makes at most `count` products.
        """
        ahead = b
        for _ in range(min(count, self.n)):
            ahead, outside = self._add(product, ahead)
            if self.broken or self.invariant or self._residual(outside) <= tolerance:
                return

    def look(self, product: Product, start: Tensor, count: int) -> bool:
        """Grow from a second start until there is negative curvature in the span; False if it is within the span."""
        ahead = self._outside(start)[0]
        (new,), (whole,) = self.space.dots_each((ahead, (ahead,)), (start, (start,)))
        if not new > torch.finfo(start.dtype).eps * whole:  # what is left of it is mostly rounding, in no new direction
            return False
        for _ in range(min(count, self.n - self.k)):
            if self.broken or self.negative:
                break
            ahead, _ = self._add(product, ahead)
            if self.invariant:
                break
        return True

    @property
    def negative(self) -> bool:
        """Whether B has negative curvature in the span, beyond rounding."""
        w = np.linalg.eigvalsh(self.T)
        return w[0] < -self._rounding() * self.k

    def _add(self, product: Product, ahead: Tensor) -> tuple[Tensor, float]:
        """Take in a direction that is orthogonal to the span: what B makes of it outside the new span, and its length.

        A direction whose product is not finite is not taken in.
        """
        length = math.sqrt(self.space.dots(ahead, (ahead,))[0])
        if not 0 < length < math.inf:
            self.invariant, self.broken = length == 0, length != 0
            return ahead, 0.0
        self._room()
        self._rows[self.k] = ahead / length
        u = product(self._rows[self.k])
        self.k += 1
        rest, column = self._outside(u)
        (square,) = self.space.dots(rest, (rest,))
        if not (math.isfinite(square) and np.isfinite(column).all()):
            self.k -= 1
            self.broken = True
            return ahead, 0.0
        self._T[: self.k, self.k - 1] = self._T[self.k - 1, : self.k] = column
        outside = math.sqrt(square)
        self.invariant = outside <= self._rounding()
        return rest, outside

    def _outside(self, u: Tensor) -> tuple[Tensor, np.ndarray]:
        """The part of u outside the span, and the coordinates of the part inside."""
        V, inside = self.V, np.zeros(self.k)
        for _ in range(2 if self.k else 0):  # once leaves an error of rounding times |u|/|rest|
            c = self.space.inner(V, (u,))[:, 0]
            u, inside = self.space.combine(-c, V, 1.0, u), inside + c
        return u, inside

    def _residual(self, outside: float) -> float:
        """|B x - b|/|b| for the Galerkin solution: B V'y leaves the span only through the newest row."""
        try:
            return outside * abs(float(np.linalg.solve(self.T, np.eye(self.k)[0])[-1]))
        except np.linalg.LinAlgError:
            return math.inf

    def _rounding(self) -> float:
        return 10 * torch.finfo(self._rows.dtype).eps * float(np.abs(self.T).max(initial=0.0))

    def _room(self) -> None:
        if self.k == len(self._rows):  # half as much again: a space that stays small costs little memory
            rows = self._rows.new_empty(min(self.k + self.k // 2, self.n), self.n)
            rows[: self.k] = self.V
            self._rows, self._T = rows, np.pad(self.T, (0, len(rows) - self.k))
