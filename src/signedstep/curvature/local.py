"""Models that know B at the newest point only, and nothing of the points before."""

from abc import abstractmethod
from typing import Generic, TypeVar

from signedstep.curvature.base import OVERFLOWS, Curvature
from signedstep.objective import Objective, Point

K = TypeVar("K")


class Local(Curvature, Generic[K]):
    """What is known of B is evaluated when it is first wanted at a point, and kept while the point stays.

    What cannot be evaluated, or is not finite, says nothing: B is the identity there, and it is not `informed`.
    """

    @abstractmethod
    def evaluated(self) -> K | None:
        """What the objective knows of B at `self.at`; None where it is not finite."""

    def start(self, objective: Objective, at: Point) -> None:
        self.move(objective, at)

    def move(self, objective: Objective, at: Point) -> None:
        self.objective, self.at = objective, at
        self._asked = False
        self._known: K | None = None

    def forget(self, objective: Objective, at: Point) -> None:
        self._asked, self._known = True, None

    def update(self, old: Point, new: Point) -> bool:
        self.move(self.objective, new)
        return True

    def learn_from_refused(self, at: Point, tried: Point) -> None:
        """Nothing to learn: B is evaluated at the point where the model stays."""

    @property
    def known(self) -> K | None:
        """What is known of B; None where nothing is."""
        if not self._asked:
            self._asked = True
            try:
                self._known = self.evaluated()
            except OVERFLOWS:
                self._known = None
        return self._known

    @property
    def forgettable(self) -> bool:
        return not self._asked or self._known is not None

    def informed(self) -> bool:
        return self.known is not None
