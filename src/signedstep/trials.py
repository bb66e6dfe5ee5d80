"""What line searches share: the function along a line, made safe, and the end of a search."""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

from signedstep.failures import attempted
from signedstep.interpolate import Sample
from signedstep.noise import Noise
from signedstep.status import Status

LONGEST = 1e10
"""The longest step as a multiple of the first that is tried, along a line or in a region."""
Phi = Callable[[float], tuple[float, float]]
"""phi(t) = f(x + t p) and its slope."""


class Found(NamedTuple):
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

    @property
    def sparing(self) -> bool:
        """Whether the first step of all is to be as short as that of `torch.optim.LBFGS`."""
        ...

    def __call__(self, phi: Phi, f0: float, slope0: float, t0: float, budget: float = math.inf) -> Found: ...


class Trials:
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
        self.drowned = self.blocked = self.contradicted = False
        self.unseen = 0.0
        """The longest trial that changed neither f nor the slope: x + t p is x."""
        self._shortest = math.inf
        self.error: Exception | None = None

    def __call__(self, t: float) -> Sample:
        """phi(t) - phi(0) and phi'(t); a difference below the noise is replaced by what the slopes say."""
        self.evals += 1
        tried, error = attempted(lambda: self.phi(t))
        self.error = error or self.error
        f, slope = tried or (math.nan, math.nan)
        if not (math.isfinite(f) and math.isfinite(slope)):
            self.blocked = True
            return Sample(t, math.inf, math.nan)
        self.measured = f
        if f == self.f0 and slope == self.slope0:
            self.unseen = max(self.unseen, t)
        if f < self.lowest.f:
            self.lowest = Sample(t, f, slope)
        change, drowned = self.noise.change(f, t * self.slope0, t * slope)
        self.drowned = self.drowned or drowned
        if t < self._shortest and abs(change) > self.noise.most:  # longer steps may just have passed a hill
            self._shortest, self.contradicted = t, self.noise.contradicts(change, slope)
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
            reason = Status.CONTRADICTION if self.contradicted else reason
            reason = Status.WALL if self.blocked else reason
        return Found(low.t, low.f, low.slope, self.evals, reason, self.error)
