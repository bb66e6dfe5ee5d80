"""The memory of limited-memory models: a ring of pairs (s, y) and their inner products.

Long vectors are touched twice an iteration: one product of all stored rows with the few vectors that are new, and one
linear combination for the direction. Everything else is algebra on small float64 matrices, in chronological order.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from signedstep.objective import Point
from signedstep.space import Space


class Grams(NamedTuple):
    """Inner products of k pairs, oldest first, as four symmetric k x k matrices, and all of them in one array.

    S'Y = L + D + (R - D) is kept as two of them, which is how every formula uses it. SS and lower are only right
    while products with s are tracked.
    """

    SS: np.ndarray
    lower: np.ndarray
    """L + D + L', the lower triangle of S'Y mirrored."""
    upper: np.ndarray
    """R + R' - D, the upper triangle of S'Y mirrored."""
    YY: np.ndarray
    stacked: np.ndarray

    @classmethod
    def of(cls, stacked: np.ndarray) -> "Grams":
        SS, lower, upper, YY = stacked
        return cls(SS, lower, upper, YY, stacked)


class NewPair(NamedTuple):
    """A measured pair: its column in each of the four Gram matrices, and the gradients at its ends.

    Columns and products end with the pair itself, scaled to |s| = 1 by the factor `shrink`.
    """

    old: Point
    new: Point
    shrink: float
    columns: np.ndarray
    gradients: "list[Gradient]"

    @property
    def sy(self) -> float:
        return float(self.columns[1, -1])

    @property
    def yy(self) -> float:
        return float(self.columns[3, -1])


class Gradient(NamedTuple):
    """A gradient and its products with the pairs: a row for S'g and one for Y'g."""

    g: Tensor
    products: np.ndarray


class Pairs:
    """Up to m pairs, scaled to |s| = 1 (the updates do not depend on the length of a pair).

    Slot i holds s in row 2i and y in row 2i + 1. A new pair is measured from its two points, and first made where it is
    to stay: as long as a search goes on, when most vectors are alive, there is no room for it.
    """

    def __init__(self, m: int, at: Point, space: Space):
        self.m, self.space = m, space
        try:
            self.rows = torch.empty(2 * m, at.x.numel(), dtype=at.x.dtype, device=at.x.device)
        except (RuntimeError, TypeError) as error:  # the latter where the number is beyond all integers of torch
            kept = f"{m} pairs of {at.x.numel()} numbers"
            raise MemoryError(f"there is no room to keep {kept}: choose a smaller history_size") from error
        self._slots: dict[int, tuple[Tensor, Tensor]] = {}
        """Views of s and y in the slots that have been used: to make one takes longer than to find it."""
        self._tracks_s = False
        self.clear()

    def clear(self) -> None:
        """Forget all pairs."""
        self.grams = Grams.of(np.zeros((4, 0, 0)))
        self._order(0, 0)
        self._gradients: list[Gradient] = []

    def _order(self, k: int, first: int) -> None:
        """Take the first k slots as those in use, and one of them as that of the oldest pair."""
        self.first = first
        self._used = self.rows if k == self.m else self.rows[: 2 * k]
        self.order, self._places, self._turned = _rotation(k, first)

    def __len__(self) -> int:
        return len(self.order)

    @property
    def ZZ(self) -> np.ndarray:
        """Z'Z for Z = [S, Y], all of it."""
        (SS, lower, upper, YY, _), k = self.grams, len(self.order)
        Z = np.empty((2 * k, 2 * k))
        Z[:k, :k], Z[k:, k:] = SS, YY
        Z[:k, k:] = np.where(_above(k), upper, lower)
        Z[k:, :k] = Z[:k, k:].T
        return Z

    def measure(self, old: Point, new: Point, trial: bool = False) -> NewPair | None:
        """The step between two points, with its products; None if it is of no use.

        A trial may be refused, so both of its ends stay known.
        """
        V = [(new.g, None), (new.g, old.g), (new.x, old.x)]
        known = None
        if trial:
            known = self.products(old.g)
            V.append((old.g, None))
        count = 3 if self._tracks_s else 2
        VZ, VV = self.space.grams(self._used, V, count)
        (_, yg, sg, *_), (_, yy, sy, *_), (_, _, ss, *_), *_ = VV.tolist()
        if not (0 < ss < math.inf and math.isfinite(yy)):
            return None
        k, shrink = len(self.order), ss**-0.5
        found = np.zeros((3, 2, k + 1))  # of g, s and y with the rows of S and of Y, the new ones at the end
        met = VZ.take(self._places, axis=1).reshape(count, 2, k)
        found[::2, :, :k] = met[:2]
        if self._tracks_s:
            found[1, :, :k] = met[2]
        found[:, :, k] = (sg, yg), (ss, sy), (sy, yy)
        found[1:] *= shrink
        found[:, :, k] *= shrink
        gradients = [Gradient(new.g, found[0])]
        if known is not None:
            ends = VV[3, 2:0:-1, None] * shrink
            gradients.insert(0, Gradient(old.g, np.concatenate((known, ends), axis=1)))
        self._gradients = [Gradient(g, products[:, :k]) for g, products in gradients]
        return NewPair(old, new, shrink, found[1:].reshape(4, k + 1), gradients)

    def bordered(self, pair: NewPair) -> Grams:
        """The Gram matrices with the new pair as the newest, and without the oldest if the ring is full."""
        drop = int(len(self.order) == self.m)
        columns = pair.columns[:, drop:]
        k = columns.shape[1]
        grams = np.empty((4, k, k))
        grams[:, -1, :] = grams[:, :, -1] = columns
        grams[:, :-1, :-1] = self.grams.stacked[:, drop:, drop:]
        return Grams.of(grams)

    def store(self, pair: NewPair, grams: Grams) -> None:
        """Make the measured pair the newest, in a full ring in the place of the oldest."""
        drop = int(len(self.order) == self.m)
        slot = self.first if drop else len(self.order)
        if slot not in self._slots:
            self._slots[slot] = self.rows[2 * slot], self.rows[2 * slot + 1]
        s, y = self._slots[slot]
        self.space.write_differences(pair.shrink, (pair.new.x, pair.old.x, s), (pair.new.g, pair.old.g, y))
        self._order(*((self.m, (slot + 1) % self.m) if drop else (slot + 1, 0)))
        self.grams = grams
        self._gradients = [Gradient(g, products[:, drop:]) for g, products in pair.gradients]

    def track_s(self) -> None:
        """Keep S'S and the lower triangle of S'Y from now on, which only spectra need: one more column a pass."""
        if not self._tracks_s:
            k = len(self.order)
            if k:
                ZS = self.space.inner(self._used, [self.rows[2 * slot] for slot in self.order])[self._places]
                lower = np.tril(ZS[k:].T)
                self.grams.stacked[:2] = ZS[:k], lower + np.tril(lower, -1).T
            self._tracks_s = True  # if nothing has interrupted this

    def products(self, g: Tensor) -> np.ndarray:
        """A row for S'g and one for Y'g; those of the newest point are known since its pair was measured."""
        products = self._known(g)
        if products is None:
            k = len(self.order)
            Zg = self.space.inner(self._used, [g])[self._places, 0] if k else np.zeros(0)
            products = Zg.reshape(2, k)
        self._gradients = [Gradient(g, products)]  # frees others
        return products

    def _known(self, g: Tensor) -> np.ndarray | None:
        for known, products in self._gradients:
            if known is g:
                return products
        return None

    def combine(self, cs: np.ndarray, cy: np.ndarray, scale: float, g: Tensor) -> Tensor:
        """The vector S cs + Y cy + scale g."""
        return self.space.combine(np.concatenate((cs, cy))[self._turned], self._used, scale, g)

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """S and Y, a row for each vector, in float64: for small n."""
        S, Y = self._used.double().numpy(force=True)[self._places].reshape(2, -1, self.rows.shape[1])
        return S, Y

    def state(self, g: Tensor) -> dict[str, Any]:
        """The pairs and what is known of them and of the gradient g; small matrices as lists, which nothing casts."""
        known = self._known(g)
        return {
            "rows": self._used.clone(),
            "order": self.order.tolist(),
            "grams": self.grams.stacked.tolist(),
            "tracks_s": self._tracks_s,
            "seen": None if known is None else known.tolist(),
        }

    def restore(self, state: Mapping[str, Any], g: Tensor) -> None:
        k = len(state["order"])
        self._order(k, state["order"][0] if k else 0)
        self._tracks_s = state["tracks_s"]
        self.grams = Grams.of(np.array(state["grams"], dtype=float).reshape(4, k, k))
        self._used.copy_(state["rows"])
        if state["seen"] is not None:
            self._gradients = [Gradient(g, np.array(state["seen"], dtype=float))]


@lru_cache
def _rotation(k: int, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The slots of k pairs from the oldest on, the rows of their s, then of their y, and the way back to these rows."""
    order = (np.arange(k) + first) % max(k, 1)
    places = np.concatenate((2 * order, 2 * order + 1))
    return order, places, np.argsort(places)


@lru_cache
def _above(k: int) -> np.ndarray:
    """Where a k x k matrix is on or above its diagonal."""
    return np.triu(np.ones((k, k), dtype=bool))
