"""Globalizations without a line: the least of a bounded model, tried as it is, and a bound that follows its success.

The step is exact on the spectrum (`secular`), so for a limited-memory model it costs what a direction costs: for L-SR1
this is the method OBS of Brust, Erway and Marcia (2017). A trial that is refused teaches the model all the same, and
the engine asks again with a tighter bound. There is no sign to choose: alpha is 1 for a step that is taken, or the
learning rate if that is less.

The hard case needs a component along an eigenvector that the gradient does not meet. Dense models list all of theirs;
limited-memory models list all but those of gamma, which is positive and so never the negative eigenvalue in question.
"""

import math
import sys
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from signedstep import secular
from signedstep.curvature import Curvature
from signedstep.curvature.base import NOT_FINITE
from signedstep.failures import attempted
from signedstep.globalization import Globalization, Scale, Step
from signedstep.noise import Noise
from signedstep.objective import Objective, Point
from signedstep.rounding import FLOAT64, UNITS
from signedstep.space import Space
from signedstep.spectrum import Spectrum, along
from signedstep.status import Status
from signedstep.trials import LONGEST

_GOOD, _POOR = 0.75, 0.25
"""Parts of the predicted fall from which a model is believed farther out, and below which less far."""
_LESSON = 100.0
"""A refused trial that rises by more than so many times the fall that was predicted lies where no parabola reaches:
the curvature it shows would make the next steps too short to be seen."""


class Trial(NamedTuple):
    """A trial step: its length, the slope g.p at its start, the fall of f that the model predicted and the actual one.

    Length and slope are at first what the model believes, and after the evaluation what they are.
    """

    length: float
    slope: float
    predicted: float
    far: float
    """The length from which it counts as the longest."""
    actual: float = math.nan
    """NaN where the objective is not finite or raises."""
    drowned: bool = False
    """The fall of f is below the noise, and was taken from the slopes."""
    accepted: bool = False
    contradicted: bool = False
    """f rises, plainly, to where its slope still says that it falls."""

    @property
    def ratio(self) -> float:
        return self.actual / self.predicted

    @property
    def status(self) -> Status:
        if self.accepted:
            far = self.length >= self.far and self.ratio >= _GOOD
            return Status.MAX_STEP if far else (Status.APPROXIMATE_RATIO if self.drowned else Status.RATIO)
        if math.isnan(self.actual):
            return Status.WALL
        if self.contradicted:
            return Status.CONTRADICTION
        return Status.STALLED if self.drowned else Status.NO_LOWER_POINT

    @property
    def teaches(self) -> bool:
        """Whether a model can learn from it, though it was refused."""
        return self.actual >= -_LESSON * self.predicted

    def parabola(self) -> float:
        """The part of a refused step at which a parabola through what is known has its minimum."""
        if math.isnan(self.actual):
            return 0.25
        if not self.actual + self.slope < 0:
            return 0.5
        return min(max(0.5 * self.slope / (self.actual + self.slope), 0.1), 0.5)


class Region(Globalization):
    """A bounded model: one trial a call, accepted if f falls by at least c1 times what the model predicts.

    A fall that drowns in noise is taken from the slopes by the trapezoid rule, as line searches do. The first bound
    comes from the model's own length along the gradient, |g|^3/|g.Bg|, or is that of a step of length 1 (or of the last
    step) while the model knows nothing: then only the gradient is used.
    """

    def __init__(self, space: Space, c1: float = 1e-4, rounding: float = FLOAT64, patience: int = 30):
        self.space, self.c1, self.rounding, self.patience = space, c1, rounding, patience

    @property
    def share(self) -> float:
        """How much of the way to the least point to go: a learning rate below 1."""
        return min(1.0, self.rate)

    @abstractmethod
    def first(self, length: float, size: float) -> float:
        """The bound that lets a gradient of this size go about this far."""

    def tightened(self, model: Spectrum, bound: float, length: float) -> float:
        """The bound for this trial; `length` is that of the last step, NaN at first."""
        return bound

    @abstractmethod
    def least(self, model: Spectrum, bound: float) -> np.ndarray:
        """The coordinates of the bounded model's least point."""

    def fall(self, model: Spectrum, bound: float, a: np.ndarray) -> float:
        """How far the bounded model falls up to a point."""
        return secular.decrease(model.w, model.c, a)

    @abstractmethod
    def binds(self, bound: float, trial: Trial) -> bool:
        """Whether the bound has shortened a trial, more than a little."""

    @abstractmethod
    def after(self, bound: float, trial: Trial) -> float:
        """The bound for the next trial, after this one was accepted or refused."""

    def step(self, objective: Objective, at: Point, B: Curvature, scale: Scale, budget: float = math.inf) -> Step:
        model, size = self._model(at.g, B), math.sqrt(self.space.square(at.g))
        # a unit in the last place of x: less may change x by rounding only
        visible = self.rounding / UNITS * math.sqrt(self.space.square(at.x))
        bound, a, trial = self._planned(model, size, scale, 100 * visible)
        length = trial.length
        if not (trial.predicted > 0 and 0 < length < math.inf):
            return Step(None, 0.0, math.nan, 0, Status.STALLED, scale)
        p = model.lift(a)
        if length <= visible and self.space.agreed(torch.equal(self.space.moved(at.x, p, 1.0), at.x)):
            return Step(None, 0.0, math.nan, 0, Status.STALLED, scale)
        point, trial, error = self._tried(objective, at, B, p, trial)
        length = trial.length
        if not length > 0:
            return Step(None, 0.0, math.nan, 1, Status.STALLED, scale, error)
        scale = scale._replace(bound=self.after(bound, trial))
        if trial.accepted:
            scale = scale._replace(length=length, first=scale.first if scale.first > 0 else length)
        tried = Step(None, 0.0, -trial.slope / (size * length), 1, trial.status, scale, error)
        if trial.accepted:
            bounded = trial.ratio >= _GOOD and self.binds(bound, trial)
            return tried._replace(point=point, alpha=self.share, bounded=bounded)
        return tried._replace(refused=point if trial.teaches else None, retry=True)

    @np.errstate(all="ignore")  # eigenvalues of any size
    def _planned(self, model: Spectrum, size: float, scale: Scale, shortest: float) -> tuple[float, np.ndarray, Trial]:
        """The bound for this trial, its coordinates and what the model says of it; the first of all is to be seen in
        the digits of x."""
        bound = scale.bound if scale.bound > 0 else self.first(max(_natural(model, size, scale), shortest), size)
        bound = self.tightened(model, bound, scale.length / self.share)
        a = self.share * self.least(model, bound)
        length, far = float(np.linalg.norm(a)), LONGEST * scale.first
        far = far if scale.first > 0 else LONGEST * length
        return bound, a, Trial(length, float(model.c @ a), self.fall(model, bound, a), far)

    def _model(self, g: Tensor, B: Curvature) -> Spectrum:
        """The model's spectrum; that of a plain slope where it knows nothing yet, or has overflowed."""
        try:
            model = B.spectrum(g) if B.informed() else None
        except NOT_FINITE:
            model = None
        if model and np.isfinite(model.c).all() and not np.isnan(model.w).any():
            return model
        return along(g, math.sqrt(self.space.square(g)), 0.0)

    def _tried(
        self, objective: Objective, at: Point, B: Curvature, p: Tensor, trial: Trial
    ) -> tuple[Point | None, Trial, Exception | None]:
        """The point of a trial, the trial with what was seen there, or what it raised."""
        low = at.f - self.c1 * trial.predicted

        def look(new: Point) -> list[list[float]]:
            sums = self.space.later((p, (at.g, p)), (new.g, (p, new.g)))
            if not new.f <= low:  # else it is taken, and measured for less once |g| is known
                B.meet(at, new)
            return sums()

        tried, error = attempted(lambda: self.space.evaluated(objective, self.space.moved(at.x, p, 1.0), look))
        if tried is None:
            return None, trial, error
        point, sums = tried
        return point, self._judged(at, point, trial, *sums), None

    def _judged(self, at: Point, point: Point, trial: Trial, start: list[float], end: list[float]) -> Trial:
        """The trial with its real slope and length, from the products of p at its start, and what its end shows."""
        slope, square = start
        trial = trial._replace(slope=slope, length=math.sqrt(square) if 0 <= square < math.inf else math.nan)
        slope, square = end
        if not (math.isfinite(point.f) and math.isfinite(slope) and math.isfinite(square)):
            return trial
        noise = Noise(at.f, self.rounding)
        change, drowned = noise.change(point.f, trial.slope, slope)
        accepted = -change >= self.c1 * trial.predicted
        if accepted:
            self.space.remember(point.g, square)
        return trial._replace(
            actual=-change,
            drowned=drowned,
            accepted=accepted,
            contradicted=noise.contradicts(change, slope),
        )


def exact(w: np.ndarray, c: np.ndarray, radius: float) -> np.ndarray:
    """The least of the model within a radius."""
    return secular.ball(w, c, radius)[0]


class TrustRegion(Region):
    """A low point of the model within a radius: the least of all by default, else what `rule` makes of (w, c, radius).

    Accepted: the radius becomes at least `growth` times the step if the fall was 3/4 of the prediction or more, and
    half the step if it was less than 1/4. Refused: it becomes the minimiser of the parabola through f, its slope and
    the trial, between a tenth and a half of the step; a quarter where f is not finite.
    """

    growth = 2.0

    def __init__(self, *args, rule: Callable[[np.ndarray, np.ndarray, float], np.ndarray] = exact, **kwargs):
        super().__init__(*args, **kwargs)
        self.rule = rule

    def first(self, length: float, size: float) -> float:
        return length

    def least(self, model: Spectrum, bound: float) -> np.ndarray:
        return self.rule(model.w, model.c, bound)

    def binds(self, bound: float, trial: Trial) -> bool:
        return trial.length >= 0.99 * self.share * bound

    def after(self, bound: float, trial: Trial) -> float:
        length = trial.length / self.share
        if not trial.accepted:
            return trial.parabola() * length
        if trial.ratio >= _GOOD:
            return max(bound, self.growth * length)
        return bound if trial.ratio >= _POOR else 0.5 * length


class Cubic(Region):
    """The least of the model with sigma |p|^3/3 added: adaptive cubic regularization (Cartis, Gould and Toint 2011).

    sigma follows the third-order term that the trial has shown, 3 (f(x + p) - q(p))/|p|^3 for the quadratic model q
    (Gould, Porcelli and Toint 2012): refused, it grows to it, at least twice and at most a hundred times; accepted with
    3/4 of the prediction or more, it falls to it, at most to a tenth, while the cubic term is
    more than a hundredth of the prediction.

    sigma says nothing about lengths: where a learned model has a far too negative eigenvalue, a step is as long as that
    over sigma, and what the model learns out there is of no use. So sigma is first raised until the step is at most
    `reach` times as long as the last one. A model without such an eigenvalue says itself how far to go.
    """

    reach = 4.0
    """How many times as long as the last step a step may be."""

    def first(self, length: float, size: float) -> float:
        return max(size / length / length, sys.float_info.min)

    def tightened(self, model: Spectrum, bound: float, length: float) -> float:
        a, _ = secular.cubic(model.w, model.c, bound)
        longest = self.reach * length
        if model.w.min() >= 0 or not float(a @ a) > longest * longest:
            return bound
        _, multiplier = secular.ball(model.w, model.c, longest)
        return max(bound, multiplier / longest)

    def least(self, model: Spectrum, bound: float) -> np.ndarray:
        return secular.cubic(model.w, model.c, bound)[0]

    def fall(self, model: Spectrum, bound: float, a: np.ndarray) -> float:
        length = float(np.linalg.norm(a))
        return super().fall(model, bound, a) - bound * length * length * length / 3

    def binds(self, bound: float, trial: Trial) -> bool:
        return bound * trial.length * trial.length * trial.length / 3 > 0.01 * trial.predicted

    def after(self, bound: float, trial: Trial) -> float:
        # f(x + p) - q(p) = predicted - actual + sigma |p|^3/3
        shown = bound + 3 * (trial.predicted - trial.actual) / trial.length / trial.length / trial.length
        if not trial.accepted:
            return min(max(shown, 2 * bound), 100 * bound) if math.isfinite(shown) else 10 * bound
        lower = self.binds(bound, trial) and trial.ratio >= _GOOD
        return max(min(max(shown, 0.1 * bound), bound), sys.float_info.min) if lower else bound


def _natural(model: Spectrum, size: float, scale: Scale) -> float:
    """A first length: the model's along the gradient, else that of the last step, else 1."""
    w = np.where(np.isfinite(model.w), model.w, 0.0)
    curvature = abs(float(w @ (model.c / size) ** 2))
    length = size / curvature if curvature > 0 else math.inf
    return length if 0 < length < math.inf else (scale.length if scale.length > 0 else 1.0)
