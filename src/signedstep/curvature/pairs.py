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

_CANCELLATION = 0.03
"""Products with y = g - g_old may be taken from those with g and g_old unless |y| is below this part of |g|.

|y| is at least the difference of |g| and |g_old|, which is known before any product with y is.
"""
_LONG = 2**17
"""For vectors longer than this |y| itself is cheaper than products of all pairs with y."""


class Grams(NamedTuple):
    """Inner products of k pairs, oldest first, as four symmetric k x k matrices.

    S'Y = L + D + (R - D) is kept as two of them, which is how every formula uses it. SS and lower are only right
    while products with s are tracked.
    """

    SS: np.ndarray
    lower: np.ndarray
    """L + D + L', the lower triangle of S'Y mirrored."""
    upper: np.ndarray
    """R + R' - D, the upper triangle of S'Y mirrored."""
    YY: np.ndarray


class NewPair(NamedTuple):
    """A measured pair: its column in each of the four Gram matrices (ending with itself), and its ends.

    Those are s.g and y.g for each gradient whose products with the stored pairs are known. All are of the pair scaled
    to |s| = 1, which `vectors`, the rows s and y, become by the factor `shrink`.
    """

    vectors: Tensor
    shrink: float
    columns: np.ndarray
    ends: list[tuple[float, float]]

    @property
    def sy(self) -> float:
        return float(self.columns[1, -1])

    @property
    def yy(self) -> float:
        return float(self.columns[3, -1])


class Seen(NamedTuple):
    """A gradient and its products with the stored pairs."""

    g: Tensor
    Sg: np.ndarray
    Yg: np.ndarray


class Pairs:
    """Up to m pairs, scaled to |s| = 1 (the updates do not depend on the length of a pair).

    Slot i holds s in row 2i and y in row 2i + 1. A new pair stays outside until it is accepted: as long as a search
    goes on, when most vectors are alive, there is no room for it.
    """

    def __init__(self, m: int, at: Point, space: Space):
        self.m, self.space = m, space
        self.rows = torch.empty(2 * m, at.x.numel(), dtype=at.x.dtype, device=at.x.device)
        self._tracks_s = False
        self.clear()

    def clear(self) -> None:
        """Forget all pairs."""
        self._grams = np.zeros((4, 0, 0))
        self.order = np.zeros(0, dtype=np.intp)
        """The slots in use, oldest pair first."""
        self._used = self.rows[:0]
        self._seen: list[Seen] = []

    def __len__(self) -> int:
        return len(self.order)

    @property
    def grams(self) -> Grams:
        return Grams(*self._grams)

    @property
    def gram(self) -> np.ndarray:
        """Z'Z for Z = [S, Y], all of it."""
        (SS, lower, upper, YY), k = self._grams, len(self.order)
        Z = np.empty((2 * k, 2 * k))
        Z[:k, :k], Z[k:, k:] = SS, YY
        Z[:k, k:] = np.where(_above(k), upper, lower)
        Z[k:, :k] = Z[:k, k:].T
        return Z

    def measure(self, old: Point, new: Point, trial: bool = False) -> NewPair | None:
        """The step between two points, with its products; None if it is of no use.

        A trial may be refused, so both of its ends stay known. |g| at the new one, which would tell whether products
        with y may be differences, is not known before this reduction.
        """
        vectors = torch.empty(2, self.rows.shape[1], dtype=self.rows.dtype, device=self.rows.device)
        s, y = vectors.unbind()
        torch.sub(new.x, old.x, out=s)
        torch.sub(new.g, old.g, out=y)
        known = self.seen(old.g) if trial else self._known(old.g)
        difference = known if known and not trial and self._apart(old.g, new.g, y) else None
        others = [new.g, *([] if difference else [y]), *([s] if self._tracks_s else [])]
        ends = (old.g, new.g) if trial else (new.g,)
        (Sv, Yv), ((ss, sy, *sg), (yy, *yg)) = self._products(others, (s, (s, y, *ends)), (y, (y, *ends)))
        if not (0 < ss < math.inf and math.isfinite(yy)):
            return None
        columns = np.zeros((4, len(self.order) + 1))
        if self._tracks_s:
            columns[:2, :-1] = Sv[-1], Yv[-1]
        columns[2:, :-1] = (Sv[0] - difference.Sg, Yv[0] - difference.Yg) if difference else (Sv[1], Yv[1])
        columns[:, -1] = ss, sy, sy, yy
        self._seen = [*(self._seen if trial else []), Seen(new.g, Sv[0], Yv[0])]
        shrink = ss**-0.5
        columns *= shrink
        columns[:, -1] *= shrink
        return NewPair(vectors, shrink, columns, [(a * shrink, b * shrink) for a, b in zip(sg, yg, strict=True)])

    def bordered(self, pair: NewPair) -> Grams:
        """The Gram matrices with the new pair as the newest, and without the oldest if the ring is full."""
        drop = int(len(self.order) == self.m)
        columns = pair.columns[:, drop:]
        k = columns.shape[1]
        grams = np.empty((4, k, k))
        grams[:, -1, :] = grams[:, :, -1] = columns
        grams[:, :-1, :-1] = self._grams[:, drop:, drop:]
        return Grams(*grams)

    def store(self, pair: NewPair, grams: Grams) -> None:
        """Make the measured pair the newest, in a full ring in the place of the oldest."""
        drop = int(len(self.order) == self.m)
        slot = int(self.order[0]) if drop else len(self.order)
        torch.mul(pair.vectors, pair.shrink, out=self.rows[2 * slot : 2 * slot + 2])
        self.order = _extended(self.order[drop:], slot)
        self._used = self.rows[: 2 * len(self.order)]
        self._grams = np.array(grams)
        self._seen = [
            Seen(g, _extended(Sg[drop:], sg), _extended(Yg[drop:], yg))
            for (g, Sg, Yg), (sg, yg) in zip(self._seen, pair.ends, strict=True)
        ]

    def track_s(self) -> None:
        """Keep S'S and the lower triangle of S'Y from now on, which only spectra need: one more column a pass."""
        if not self._tracks_s:
            self._tracks_s = True
            S = [self.rows[2 * slot] for slot in self.order]
            if len(S):
                (SS, SY), _ = self._products(S)
                lower = np.tril(SY)
                self._grams[:2] = SS, lower + np.tril(lower, -1).T

    def seen(self, g: Tensor) -> Seen:
        """S'g and Y'g; those of the newest point are known since its pair was measured."""
        seen = self._known(g)
        if seen is None:
            ((Sg,), (Yg,)), _ = self._products([g])
            seen = Seen(g, Sg, Yg)
        self._seen = [seen]  # frees other gradients
        return seen

    def _known(self, g: Tensor) -> Seen | None:
        for seen in self._seen:
            if seen.g is g:
                return seen
        return None

    def combine(self, cs: np.ndarray, cy: np.ndarray, scale: float, g: Tensor) -> Tensor:
        """The vector S cs + Y cy + scale g."""
        coefficients = np.zeros(len(self._used))
        coefficients[2 * self.order] = cs
        coefficients[2 * self.order + 1] = cy
        return self.space.combine(coefficients, self._used, scale, g)

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """S and Y, a row for each vector, in float64: for small n."""
        S, Y = self.rows.double().numpy(force=True).reshape(-1, 2, self.rows.shape[1])[self.order].transpose(1, 0, 2)
        return S, Y

    def state(self, g: Tensor) -> dict[str, Any]:
        """The pairs and what is known of them and of the gradient g; small matrices as lists, which nothing casts."""
        seen = self._known(g)
        return {
            "rows": self._used.clone(),
            "order": self.order.tolist(),
            "grams": self._grams.tolist(),
            "tracks_s": self._tracks_s,
            "seen": None if seen is None else [seen.Sg.tolist(), seen.Yg.tolist()],
        }

    def restore(self, state: Mapping[str, Any], g: Tensor) -> None:
        self.order = np.array(state["order"], dtype=np.intp)
        self._tracks_s = state["tracks_s"]
        self._grams = np.array(state["grams"], dtype=float).reshape(4, len(self.order), len(self.order))
        self._used = self.rows[: 2 * len(self.order)]
        self._used.copy_(state["rows"])
        if state["seen"] is not None:
            Sg, Yg = state["seen"]
            self._seen = [Seen(g, np.array(Sg, dtype=float), np.array(Yg, dtype=float))]

    def _products(
        self, vectors: list[Tensor], *groups: tuple[Tensor, tuple[Tensor, ...]]
    ) -> tuple[np.ndarray, list[list[float]]]:
        """S'v and Y'v of the stored pairs for each vector, [2, vectors, pairs]; with them the products of `groups`."""
        if not len(self.order):
            return np.zeros((2, len(vectors), 0)), self.space.dots_each(*groups)
        found, others = self.space.inner_and_dots(self._used, vectors, *groups)
        return found.reshape(-1, 2, len(vectors))[self.order].transpose(1, 2, 0), others

    def _apart(self, old: Tensor, new: Tensor, y: Tensor) -> bool:
        """Whether two gradients differ so much that their difference does not cancel."""
        before, after = math.sqrt(self.space.square(old)), math.sqrt(self.space.square(new))
        length = abs(after - before)
        if length <= _CANCELLATION * before and self.space.whole and y.numel() > _LONG:  # whole: it takes no reduction
            length = math.sqrt(self.space.dots(y, (y,))[0])
        return length > _CANCELLATION * before


def _extended(array: np.ndarray, value: float) -> np.ndarray:
    """The array with one more entry; np.append takes five times as long at these sizes."""
    longer = np.empty(len(array) + 1, dtype=array.dtype)
    longer[:-1], longer[-1] = array, value
    return longer


@lru_cache
def _above(k: int) -> np.ndarray:
    """Where a k x k matrix is on or above its diagonal."""
    return np.triu(np.ones((k, k), dtype=bool))
