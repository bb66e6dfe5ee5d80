"""The vector space on several ranks: copies, or slices whose sums are completed over the ranks."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from signedstep.distributed.link import Link
from signedstep.space import Space


class Copied(Space):
    """R^n, whole and alike on every rank of a link."""

    def __init__(self, link: Link):
        super().__init__()
        self.link = link

    def moved(self, x: Tensor, p: Tensor, t: float) -> Tensor:
        with self.link.together():
            return super().moved(x, p, t)


class Sharded(Copied):
    """R^n over the ranks of a link. Linear combinations need no communication, sums a few numbers of it."""

    whole = False

    def __init__(self, link: Link, n: int):
        super().__init__(link)
        self.n = n

    def inner(self, A: Tensor, B: Sequence[Tensor]) -> np.ndarray:
        return self.link.sums(super().inner(A, B))

    def dots(self, a: Tensor, B: Sequence[Tensor]) -> list[float]:
        return self.dots_each((a, B))[0]

    def dots_each(self, *groups: tuple[Tensor, Sequence[Tensor]]) -> list[list[float]]:
        return self._complete([super(Sharded, self).dots(a, B) for a, B in groups])[1]

    def inner_and_dots(
        self, A: Tensor, B: Sequence[Tensor], *groups: tuple[Tensor, Sequence[Tensor]]
    ) -> tuple[np.ndarray, list[list[float]]]:
        part = super().inner(A, B)
        found, dots = self._complete([super(Sharded, self).dots(a, C) for a, C in groups], part.ravel())
        return found.reshape(part.shape), dots

    def dimension(self, v: Tensor) -> int:
        return self.n

    def agreed(self, here: bool) -> bool:
        return self.link.all(here)

    def largest(self, v: Tensor) -> float:
        return self.link.largest(super().largest(v))

    def _complete(
        self, groups: list[list[float]], more: np.ndarray | None = None
    ) -> tuple[np.ndarray, list[list[float]]]:
        """The sums over all ranks of some numbers, with those of `more` before them."""
        parts = [np.zeros(0) if more is None else more, *map(np.array, groups)]
        ends = np.cumsum([len(part) for part in parts])[:-1]
        found, *sums = np.split(self.link.sums(np.concatenate(parts)), ends)
        return found, [values.tolist() for values in sums]
