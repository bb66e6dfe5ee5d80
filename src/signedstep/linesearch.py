"""Line searches over floats: a search sees phi(t) = f(x + t p) and its slope, never a vector.

A search is a frozen dataclass called as `search(phi, f0, slope0, t0, budget)`; `phi(t)` returns (value, slope). Trials
that are not finite or raise count as +infinity. When the conditions cannot be met the lowest point seen is returned,
with the reason as its status.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from traceback import clear_frames
from typing import Protocol

from signedstep.interpolate import Sample, trial_step
from signedstep.noise import Noise
from signedstep.status import Status

Phi = Callable[[float], tuple[float, float]]

CURVATURE_CONDITIONS = ("strong", "weak", "paper")


@dataclass(frozen=True, slots=True)
class Found:
    """The end of a search: the step, what phi is there, what it cost and whether the conditions hold."""

    t: float
    f: float
    slope: float
    evals: int
    status: Status
    error: Exception | None = None
    """The last exception a trial raised, for the message of a search that found nothing."""

    @property
    def ok(self) -> bool:
        return self.status.ok


class Search(Protocol):
    """Anything that finds a step along a line."""

    def __call__(self, phi: Phi, f0: float, slope0: float, t0: float, budget: float = math.inf) -> Found: ...


@dataclass(frozen=True)
class Signed:
    """Wolfe+-, Algorithm 1 of the paper: along an ascent direction, search backwards and negate the step."""

    search: Search

    def __call__(self, phi: Phi, f0: float, slope0: float, t0: float, budget: float = math.inf) -> Found:
        if slope0 < 0:
            return self.search(phi, f0, slope0, abs(t0), budget)

        def mirrored(t: float) -> tuple[float, float]:
            f, slope = phi(-t)
            return f, -slope

        found = self.search(mirrored, f0, -slope0, abs(t0), budget)
        return replace(found, t=-found.t, slope=-found.slope)


@dataclass(frozen=True)
class Wolfe:
    """A search for the Wolfe conditions after More and Thuente (1994).

    Sufficient decrease, phi(t) <= phi(0) + c1 t phi'(0), and one of three curvature conditions:

    - strong: |phi'(t)| <= c2 |phi'(0)|
    - weak:    phi'(t) >= c2 phi'(0)
    - paper:   0 >= phi'(t) >= c2 phi'(0), equation 7 of the paper

    Where phi(t) - phi(0) drowns in noise, which is at least `rounding` |phi(0)|, the difference is taken from the
    slopes by the trapezoid rule; sufficient decrease then reads phi'(t) <= (2 c1 - 1) phi'(0), the approximate Wolfe
    condition of Hager and Zhang (2005).
    """

    c1: float = 1e-4
    c2: float = 0.9
    curvature: str = "strong"
    max_step: float = math.inf
    max_growth: float = 1e10
    """The longest step as a multiple of the first trial; the smaller of both limits counts."""
    max_evals: int = 30
    rounding: float = 8 * 2.0**-52
    narrow: float = 1e-10
    """Relative width at which an interval counts as exhausted."""

    def __post_init__(self) -> None:
        if not 0 < self.c1 <= self.c2 < 1:
            raise ValueError(f"the Wolfe conditions need 0 < c1 <= c2 < 1, got c1={self.c1!r} and c2={self.c2!r}")
        if self.curvature not in CURVATURE_CONDITIONS:
            raise ValueError(f"curvature must be one of {CURVATURE_CONDITIONS}, got {self.curvature!r}")
        _check_limits(self.max_step, self.max_evals)

    def __call__(self, phi: Phi, f0: float, slope0: float, t0: float, budget: float = math.inf) -> Found:
        trials = _Trials(phi, f0, slope0, t0, self.rounding)
        if not slope0 < 0:
            return trials.ended(Status.NOT_DESCENT)
        # Minimise psi(t) = phi(t) - tilt t phi'(0) first: its minimisers satisfy sufficient decrease. The paper's
        # one-sided condition holds there too if the tilt is between 0 and c2, so that case always keeps psi.
        always = self.curvature == "paper"
        tilt = max(self.c1, self.c2 / 2) if always else self.c1
        tilted = True
        best, other = Sample(0.0, 0.0, slope0), None
        widths = (math.inf, math.inf)
        limit = min(self.max_step, self.max_growth * t0)
        t = min(t0, limit)
        for _ in range(int(min(self.max_evals, budget))):
            now = trials(t)
            if now.finite and self._decreases(now, slope0):
                if self._curved(now.slope, slope0):
                    return trials.accepted(now, self.c1, Status.WOLFE, Status.APPROXIMATE_WOLFE)
                if t == limit and now.slope < self.c2 * slope0:
                    return trials.ended(Status.MAX_STEP)
            below = now.f <= tilt * t * slope0
            if below and now.slope >= 0 and not always:
                tilted = False
            line = tilt * slope0 if always or (tilted and not below) else 0.0
            t, best, other = trial_step(best, other, now, line, limit)
            if other is not None:
                width = abs(other.t - best.t)
                if width <= self.narrow * max(best.t, other.t):
                    return trials.ended(Status.NARROW if math.isfinite(other.f) else Status.WALL)
                if width >= 0.66 * widths[0] or not min(best.t, other.t) < t < max(best.t, other.t):
                    t = 0.5 * (best.t + other.t)
                widths = (widths[1], width)
            if t in (best.t, now.t):  # nowhere left to go in this precision
                return trials.ended(Status.MAX_STEP if t == limit else Status.NARROW)
        return trials.ended(Status.WALL if other and not other.finite else Status.MAX_SEARCH)

    def _decreases(self, now: Sample, slope0: float) -> bool:
        return now.f <= self.c1 * now.t * slope0

    def _curved(self, slope: float, slope0: float) -> bool:
        if self.curvature == "strong":
            return abs(slope) <= -self.c2 * slope0
        if self.curvature == "weak":
            return slope >= self.c2 * slope0
        return 0 >= slope >= self.c2 * slope0


@dataclass(frozen=True)
class Armijo:
    """Backtracking to sufficient decrease, phi(t) <= phi(0) + c1 t phi'(0), by safeguarded interpolation."""

    c1: float = 1e-4
    max_step: float = math.inf
    max_evals: int = 30
    rounding: float = 8 * 2.0**-52

    def __post_init__(self) -> None:
        if not 0 < self.c1 < 1:
            raise ValueError(f"the Armijo condition needs 0 < c1 < 1, got c1={self.c1!r}")
        _check_limits(self.max_step, self.max_evals)

    def __call__(self, phi: Phi, f0: float, slope0: float, t0: float, budget: float = math.inf) -> Found:
        trials = _Trials(phi, f0, slope0, t0, self.rounding)
        if not slope0 < 0:
            return trials.ended(Status.NOT_DESCENT)
        t = min(t0, self.max_step)
        for _ in range(int(min(self.max_evals, budget))):
            now = trials(t)
            if now.f <= self.c1 * t * slope0:
                return trials.accepted(now, self.c1, Status.ARMIJO, Status.APPROXIMATE_ARMIJO)
            excess = now.f - t * slope0  # the minimiser of the parabola through phi(0), phi'(0), phi(t)
            parabola = -0.5 * slope0 * t * t / excess if math.isfinite(excess) else 0.1 * t
            t = min(max(parabola, 0.1 * t), 0.5 * t)
        return trials.ended(Status.MAX_SEARCH)


class _Trials:
    """Counts the trials of one search, makes them safe and remembers the lowest.

    The samples it gives are relative to phi(0), so that small differences are not lost in a large value.
    """

    def __init__(self, phi: Phi, f0: float, slope0: float, t0: float, rounding: float):
        if not t0 > 0:
            raise ValueError(f"the first trial step t0 must be positive, got {t0!r}")
        self.phi, self.f0, self.slope0 = phi, f0, slope0
        self.noise = Noise(f0, rounding)
        self.lowest = Sample(0.0, f0, slope0)
        self.measured = f0
        self.evals = 0
        self.drowned = self.blocked = False
        self.error: Exception | None = None

    def __call__(self, t: float) -> Sample:
        """phi(t) - phi(0) and phi'(t); a difference below the noise is replaced by what the slopes say."""
        self.evals += 1
        try:
            f, slope = self.phi(t)
        except Exception as error:
            clear_frames(error.__traceback__)  # else what ran out of memory would still be held at the next trial
            self.error = error
            f = slope = math.nan
        if not (math.isfinite(f) and math.isfinite(slope)):
            self.blocked = True
            return Sample(t, math.inf, math.nan)
        self.measured = f
        if f < self.lowest.f:
            self.lowest = Sample(t, f, slope)
        change, drowned = self.noise.change(f, t * self.slope0, t * slope)
        self.drowned = self.drowned or drowned
        return Sample(t, change, slope)

    def accepted(self, now: Sample, c1: float, exact: Status, approximate: Status) -> Found:
        """The newest trial, which satisfies the conditions, by its measured value or by the approximate test."""
        holds = self.measured - self.f0 <= c1 * now.t * self.slope0
        return Found(now.t, self.measured, now.slope, self.evals, exact if holds else approximate, self.error)

    def ended(self, reason: Status) -> Found:
        """The lowest point seen, which does not satisfy the conditions for this reason."""
        low = self.lowest
        if low.t == 0 and reason is not Status.NOT_DESCENT:
            reason = Status.STALLED if self.drowned else Status.NO_LOWER_POINT
            reason = Status.WALL if self.blocked else reason
        return Found(low.t, low.f, low.slope, self.evals, reason, self.error)


def _check_limits(max_step: float, max_evals: int) -> None:
    if not max_step > 0:
        raise ValueError(f"max_step must be positive, got {max_step!r}")
    if max_evals < 1:
        raise ValueError(f"max_evals must be at least 1, got {max_evals!r}")
