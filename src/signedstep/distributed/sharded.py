"""The vector space on several ranks: copies, or slices whose sums are completed over the ranks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from signedstep.distributed.link import Link
from signedstep.native import Difference
from signedstep.space import Group, Space


class Copied(Space):
    """R^n, whole and alike on every rank of a link."""

    def __init__(self, link: Link):
        super().__init__()
        self.link = link

    def evaluated(self, objective: Any, x: Tensor, look: Callable[[Any], Any]) -> tuple[Any, Any]:
        return objective.evaluated(x, look)

    def moved(self, x: Tensor, p: Tensor, t: float) -> Tensor:
        with self.link.together():
            return super().moved(x, p, t)


class Sharded(Copied):
    """R^n over the ranks of a link. Linear combinations need no communication, sums a few numbers of it.

    Where there are several copies of the slices, those of one copy count.
    """

    whole = False

    def __init__(self, link: Link, n: int, counts: bool = True):
        super().__init__(link)
        self.n, self.counts = n, counts

    def inner(self, A: Tensor, B: Sequence[Tensor]) -> np.ndarray:
        return self._later(super().inner(A, B))()

    def grams(self, A: Tensor, V: Sequence[Difference], count: int) -> tuple[np.ndarray, np.ndarray]:
        VA, VV = (self._later(found) for found in super().grams(A, V, count))
        return VA(), VV()

    def dots(self, a: Tensor, B: Sequence[Tensor]) -> list[float]:
        return self.later((a, B))()[0]

    def later(self, *groups: Group) -> Callable[[], list[list[float]]]:
        each = [self._later(np.array(super(Sharded, self).dots(a, B))) for a, B in groups]
        return lambda: [sums().tolist() for sums in each]

    def dimension(self, v: Tensor) -> int:
        return self.n

    def agreed(self, here: bool) -> bool:
        return self.link.all(here)

    def largest(self, v: Tensor) -> float:
        return self.largest_later(v)()

    def largest_later(self, v: Tensor) -> Callable[[], float]:
        everyone = self._later(self.link.row([super().largest(v)]))
        return lambda: float(everyone().max())

    def _later(self, values: np.ndarray) -> Callable[[], np.ndarray]:
        """The sums over all ranks of what was summed here."""
        return self.link.later(values if self.counts else np.zeros_like(values))
