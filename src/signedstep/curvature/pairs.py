"""The memory of limited-memory models: a ring of pairs (s, y) and their inner products.

Long vectors are touched twice an iteration: one product of all stored rows with the new s, y and g, and one linear
combination for the direction. Everything else is algebra on small float64 matrices, in chronological order.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from signedstep.objective import Point
from signedstep.space import Space


class NewPair(NamedTuple):
    """A measured pair; each array has one entry for every stored pair, oldest first, and ends with the new pair."""

    slot: int
    Ss: np.ndarray
    Ys: np.ndarray
    Sy: np.ndarray
    Yy: np.ndarray

    @property
    def sy(self) -> float:
        return float(self.Sy[-1])

    @property
    def yy(self) -> float:
        return float(self.Yy[-1])


class Seen(NamedTuple):
    """A gradient and its products with the stored pairs."""

    g: Tensor
    Sg: np.ndarray
    Yg: np.ndarray
    gg: float


class Pairs:
    """Up to m pairs, scaled to |s| = 1 (the updates do not depend on the length of a pair).

    Slot i holds s in row 2i and y in row 2i + 1. One slot is spare: a new pair is measured there first, so that a
    refused pair costs no memory and an accepted one is not copied.
    """

    def __init__(self, m: int, at: Point, space: Space):
        self.m, self.space = m, space
        self.rows = torch.empty(2 * (m + 1), at.x.numel(), dtype=at.x.dtype, device=at.x.device)
        self._SS, self._SY, self._YY = np.zeros((3, m, m))
        self.order: list[int] = []
        """The slots in use, oldest pair first."""
        self.spare = 0
        self._seen: Seen | None = None

    def __len__(self) -> int:
        return len(self.order)

    @property
    def grams(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """S'S, S'Y and Y'Y."""
        k = len(self.order)
        return self._SS[:k, :k], self._SY[:k, :k], self._YY[:k, :k]

    def measure(self, old: Point, new: Point) -> NewPair | None:
        """Put the step between two points into the spare slot, with its products; None if it is of no use."""
        rows = self.rows[2 * self.spare : 2 * self.spare + 2]
        torch.sub(new.x, old.x, out=rows[0])
        torch.sub(new.g, old.g, out=rows[1])
        used = self.rows[: 2 * (len(self.order) + 1)]
        products = self.space.inner(used, (rows[0], rows[1], new.g)).reshape(-1, 2, 3)[[*self.order, self.spare]]
        Sg, Yg = products[:, 0, 2], products[:, 1, 2]
        length = products[-1, 0, 0] ** 0.5
        if not (0 < length < np.inf and np.isfinite(products[-1]).all()):
            rows.zero_()  # a zero coefficient does not silence NaN
            return None
        rows.div_(length)
        products[:, :, :2] /= length
        products[-1] /= length
        self._seen = Seen(new.g, Sg, Yg, self.space.dot(new.g, new.g))
        (Ss, Ys), (Sy, Yy) = products[:, :, 0].T, products[:, :, 1].T
        return NewPair(self.spare, Ss, Ys, Sy, Yy)

    def store(self, new: NewPair) -> None:
        """Make the measured pair the newest one; a full ring drops its oldest, whose slot becomes the spare one."""
        full = len(self.order) == self.m
        self.order.append(new.slot)
        self.spare = self.order.pop(0) if full else len(self.order)
        first, k = int(full), len(self.order) - 1
        for gram, row, column in (
            (self._SS, new.Ss, new.Ss),
            (self._SY, new.Ys, new.Sy),
            (self._YY, new.Yy, new.Yy),
        ):
            if full:
                gram[:-1, :-1] = gram[1:, 1:]
            gram[k, : k + 1], gram[: k + 1, k] = row[first:], column[first:]
        if self._seen:
            self._seen = self._seen._replace(Sg=self._seen.Sg[first:], Yg=self._seen.Yg[first:])

    def products(self, g: Tensor) -> Seen:
        """S'g, Y'g and g.g; those of the newest point are known since its pair was measured."""
        k = len(self.order)
        if self._seen is None or self._seen.g is not g:
            used = self.rows[: 2 * (max(self.order, default=-1) + 1)]
            Sg, Yg = self.space.inner(used, (g,)).reshape(-1, 2)[self.order].T
            self._seen = Seen(g, Sg, Yg, self.space.dot(g, g))
        return self._seen._replace(Sg=self._seen.Sg[:k], Yg=self._seen.Yg[:k])

    def combine(self, cs: np.ndarray, cy: np.ndarray, scale: float, g: Tensor) -> Tensor:
        """The vector S cs + Y cy + scale g."""
        slots = max(self.order, default=-1) + 1
        coefficients = np.zeros((slots, 2))
        coefficients[self.order, 0], coefficients[self.order, 1] = cs, cy
        return self.space.combine(coefficients.reshape(-1), self.rows[: 2 * slots], scale, g)
