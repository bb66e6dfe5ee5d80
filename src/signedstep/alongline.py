"""Globalizations that go along a line. They differ in the direction: raw, or made from the spectrum by a rule."""

import math
import sys
from abc import abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from signedstep import spectrum as rules
from signedstep.curvature import Curvature
from signedstep.curvature.base import NOT_FINITE
from signedstep.globalization import Globalization, Scale, Step
from signedstep.line import Line
from signedstep.objective import Objective, Point
from signedstep.space import Space
from signedstep.spectrum import Spectrum
from signedstep.status import Status
from signedstep.trials import Found, Search

_CLIFF = 1e3
"""How many times as long as the last step a first trial without a model may be: f may just have fallen off a cliff."""
BEYOND = 10.0
"""How many times as long as the last step it may be where a rule has replaced a negative eigenvalue: no curvature gives
a length there."""


_NO_LENGTH = (Status.ARMIJO, Status.APPROXIMATE_ARMIJO)
"""Without a curvature condition a step is as long as its first trial, or as what backtracking has left of it."""


class First(Enum):
    """What tells the length of the first trial along a direction."""

    MODEL = "the model, which has its minimum at t = 1"
    LENGTH = "the length of the last step: the model has no minimum this way"
    CHANGE = "the first-order change of f in the last step: there is no model (Nocedal-Wright 2006, section 3.5)"


class Direction(NamedTuple):
    """A direction with its slope g.p and length, and how far to go first."""

    p: Tensor
    slope: float
    length: float
    first: First
    steady: float = 0.0
    """If the model errs alike from step to step, so that where the last step should have gone tells something: how many
    times that step the next may be."""
    reach: float = math.inf
    """How many times as long as the last step the first trial may be."""


class AlongLine(Globalization):
    """A direction, guarded against orthogonality to the gradient, and a search along it."""

    def __init__(self, search: Search, delta: float, space: Space):
        self.search, self.delta, self.space = search, delta, space

    @abstractmethod
    def propose(self, g: Tensor, B: Curvature) -> Direction:
        """The direction, whichever way it points."""

    def step(self, objective: Objective, at: Point, B: Curvature, scale: Scale, budget: float = math.inf) -> Step:
        size = math.sqrt(self.space.square(at.g))
        way = self._guarded(at.g, size, B)
        line = Line(objective, at, way.p, self.space)
        found = self.search(line, at.f, way.slope, self._first_trial(way, scale, at.g, size), budget)
        taken = found.t != 0 and (found.ok or found.f < at.f)
        return Step(
            point=line.point(found.t) if taken else None,
            alpha=found.t if taken else 0.0,
            cosine=-way.slope / (size * way.length),
            evals=found.evals,
            status=found.status,
            scale=self._next_scale(way, found, scale) if taken else scale,
            error=found.error,
            bounded=found.status in _NO_LENGTH and not self._is_models(way, found.t),
        )

    def _is_models(self, way: Direction, t: float) -> bool:
        """Whether a step is as long as the model's own."""
        return way.first is First.MODEL and abs(t) >= min(1.0, self.rate)

    def _first_trial(self, way: Direction, scale: Scale, g: Tensor, size: float) -> float:
        """How far to go first; before there is a last step, what `_as_last` says."""
        if way.first is First.MODEL:
            first = scale.share
        elif way.first is First.CHANGE and scale.change < 0:
            first = scale.change / -abs(way.slope)
        else:
            first = self._as_last(way, scale, g, size)
        if way.reach < math.inf:
            first = min(first, way.reach * self._as_last(way, scale, g, size))
        return min(max(self.rate * first, sys.float_info.min), sys.float_info.max)

    def _as_last(self, way: Direction, scale: Scale, g: Tensor, size: float) -> float:
        """The trial that is as long as the last step. The first of all is 1, or that of torch.optim.LBFGS, of at most 1
        in the sum of its entries."""
        if scale.length > 0:
            return scale.length / way.length
        length = size / max(1.0, self.space.dots(g, (g.sign(),))[0]) if self.search.sparing else 1.0
        return length / way.length

    def _next_scale(self, way: Direction, found: Found, scale: Scale) -> Scale:
        """A steady model's next share is where the slopes of this step say that its minimum was, or not far beyond."""
        t = abs(found.t)
        share = scale.share
        if way.steady > 0 and way.first is First.MODEL:
            left = found.slope / way.slope  # how much of the slope is left; below 0 beyond the minimum
            most = way.steady / min(1.0, self.rate)  # t was made shorter by as much
            share = min(1.0, t * min(1 / (1 - left) if left < 1 else math.inf, most))
        return scale._replace(length=t * way.length, share=share, change=found.t * way.slope)

    def _guarded(self, g: Tensor, size: float, B: Curvature) -> Direction:
        """Proposition 1 needs |cos(p, g)| >= delta: else the flipped direction of the same model, else -g."""
        way = self._tried(lambda: self.propose(g, B), size)
        if way is None and B.informed() and B.has_matrix:
            way = self._tried(lambda: self._flipped(g, B), size)
        return way or steepest(self.space, g)

    def _tried(self, make: Callable[[], Direction], size: float) -> Direction | None:
        """A direction, unless it is nearly orthogonal to the gradient or overflows on the way."""
        try:
            way = make()
        except NOT_FINITE:
            return None
        sound = 0 < way.length < math.inf and abs(way.slope) >= self.delta * way.length * size
        return way if sound else None

    def _flipped(self, g: Tensor, B: Curvature) -> Direction:
        seen = B.spectrum(g)
        floor = max(self.delta, float(np.finfo(float).eps) ** 0.5)
        p = seen.lift(rules.flip(seen.w, seen.c, floor))
        return Direction(p, *measured(self.space, p, g), First.MODEL)


class Raw(AlongLine):
    """The raw direction -B^-1 g: with a plain search positive steps only, with `Signed` the paper's Wolfe+-."""

    def propose(self, g: Tensor, B: Curvature) -> Direction:
        if B.has_matrix and not B.informed():
            return steepest(self.space, g)
        p = B.raw(g)
        slope, length = measured(self.space, p, g)
        # B p = -g gives p.B p = -g.p: the model has a minimum along p, at t = 1, exactly if p points downhill.
        if not B.has_matrix:
            return Direction(p, slope, length, First.CHANGE, reach=_CLIFF)
        return Direction(p, slope, length, First.MODEL if slope < 0 else First.LENGTH, steady=B.steady)


class Modified(AlongLine):
    """A direction made from the model's spectrum by a rule that makes it positive definite: flip, clip or damp.

    `steady` and `reach` are those of its directions, `reach` where an eigenvalue is negative. With `dense` the spectrum
    comes from an O(n^3) eigendecomposition of the n x n matrix, as in the paper: to show what that costs.
    """

    def __init__(
        self,
        rule: Callable[..., np.ndarray],
        floor: float,
        search: Search,
        delta: float,
        space: Space,
        steady: float = 0.0,
        reach: float = math.inf,
        dense: bool = False,
    ):
        super().__init__(search, delta, space)
        self.rule, self.floor, self.steady, self.reach, self.dense = rule, floor, steady, reach, dense

    @np.errstate(all="ignore")  # eigenvalues of any size
    def propose(self, g: Tensor, B: Curvature) -> Direction:
        if not B.informed():
            return steepest(self.space, g)
        seen = _dense_spectrum(g, B) if self.dense else B.spectrum(g)
        p = seen.lift(self.rule(seen.w, seen.c, self.floor))
        reach = self.reach if seen.w.min() < 0 else math.inf
        return Direction(p, *measured(self.space, p, g), First.MODEL, self.steady, reach)


def _dense_spectrum(g: Tensor, B: Curvature) -> Spectrum:
    w, V = torch.linalg.eigh(B.matrix())
    return rules.of_eigenvectors(w, V, g)


def steepest(space: Space, g: Tensor) -> Direction:
    """The direction of a model that knows nothing."""
    square = space.square(g)
    return Direction(-g, -square, math.sqrt(square), First.LENGTH)


def measured(space: Space, p: Tensor, g: Tensor) -> tuple[float, float]:
    """The slope and the length that a direction really has, not those the model believes in."""
    slope, square = space.dots(p, (g, p))
    return slope, math.sqrt(square) if square >= 0 else math.nan
