"""The line x + t p, for a search that deals in floats."""

import math
from typing import Any, NamedTuple

from torch import Tensor

from signedstep.objective import Objective, Point
from signedstep.space import Space


class _Kept(NamedTuple):
    """What a line keeps of its lowest trial; x is made again if it is wanted."""

    t: float
    f: float
    g: Tensor
    aux: Any
    square: float


class Line:
    """phi(t) = f(x + t p) for a search, which deals in floats: keeps the newest and the lowest gradient for it."""

    def __init__(self, objective: Objective, at: Point, p: Tensor, space: Space):
        self.objective, self.at, self.p, self.space = objective, at, p, space
        self.newest: tuple[float, Point, float] | None = None  # t, the point and g.g there
        self.lowest = _Kept(0.0, at.f, at.g, at.aux, math.nan)

    def __call__(self, t: float) -> tuple[float, float]:
        self.newest = None  # frees its vectors before new ones are made
        point, (slope, square) = self.space.evaluated(self.objective, self._x(t), self._look)
        self.newest = (t, point, square)
        if not (math.isfinite(point.f) and math.isfinite(slope) and math.isfinite(square)):
            return math.nan, math.nan  # a gradient with NaN where p is 0 has a finite slope, but no finite square
        if point.f < self.lowest.f:
            self.lowest = _Kept(t, point.f, point.g, point.aux, square)
        return point.f, slope

    def point(self, t: float) -> Point:
        """The point of a trial that a search may return: its newest or its lowest."""
        if self.newest and self.newest[0] == t:
            _, point, square = self.newest
        else:
            kept, f, g, aux, square = self.lowest
            assert kept == t, "a search returns its newest or its lowest trial"
            self.newest = None  # frees its vectors first
            point = Point(self._x(t), f, g, aux)
        self.space.remember(point.g, square)
        return point

    def _look(self, new: Point) -> list[float]:
        return self.space.dots(new.g, (self.p, new.g))

    def _x(self, t: float) -> Tensor:
        return self.space.moved(self.at.x, self.p, t)
