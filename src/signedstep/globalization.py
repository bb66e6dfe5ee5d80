"""Globalizations: how a curvature model that may be wrong, or point uphill, is turned into a step that is safe.

Here is their contract. Those that go along a line are in `alongline`, those that bound the model in `region`.
"""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

from signedstep.curvature import Curvature
from signedstep.objective import Objective, Point
from signedstep.status import Status


class Scale(NamedTuple):
    """What a step should know about the lengths of those before it."""

    length: float = math.nan
    """How far the last step went."""
    share: float = 1.0
    """How much of the model's own step, |t| = 1, to try first."""
    change: float = math.nan
    """How f would have changed in the last step, were it linear: t times the slope."""
    bound: float = math.nan
    """What bounds the next step of a region: its radius, or the weight of the cubic term."""
    first: float = math.nan
    """How far the first step of a region went."""


class Step(NamedTuple):
    """A proposal: where to go and how it was found. `point` is None where no acceptable point was found.

    A trial that was refused need not be the end: with `retry` the globalization asks to be called again, with this
    `scale`, after the model has learned from `refused`, the trial's point if it is finite.
    """

    point: Point | None
    alpha: float
    cosine: float
    evals: int
    status: Status
    scale: Scale
    error: Exception | None = None
    refused: Point | None = None
    retry: bool = False
    bounded: bool = False
    """Whether a bound, and not the model, has decided how far it goes, though the model is right even there: a short
    step is then no sign of convergence."""


class Globalization(ABC):
    """Proposes a step from a point and a model, which stay as they are; at most the model measures a trial (`meet`)."""

    rate = 1.0
    """A factor on the first length that is tried: the learning rate of the torch.optim front."""

    dense = False
    """Whether it works on a matrix of n x n numbers, which needs whole vectors."""

    patience = 1
    """How many proposals one iteration may ask for."""

    @abstractmethod
    def step(self, objective: Objective, at: Point, B: Curvature, scale: Scale, budget: float = math.inf) -> Step:
        """A step from `at` within `budget` evaluations; `scale` is that of the last step."""
