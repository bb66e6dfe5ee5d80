"""Line searches over floats: a search sees phi(t) = f(x + t p) and its slope, never a vector.

A search is a frozen dataclass called as `search(phi, f0, slope0, t0, budget)`; `phi(t)` returns (value, slope). Trials
that are not finite or raise count as +infinity. When the conditions cannot be met the lowest point seen is returned,
with the reason as its status.
"""

import math
from dataclasses import dataclass

from signedstep.interpolate import Sample, cubic_within, trial_step
from signedstep.rounding import FLOAT64
from signedstep.status import Status
from signedstep.trials import LONGEST, Found, Phi, Search, Trials

CURVATURE_CONDITIONS = ("strong", "weak", "paper")
SEARCHES = ("more-thuente", "zoom")
_UNSEEN = 4.0
"""How many times a step that changes nothing, x + t p being x, an interval must reach to be worth a search."""


@dataclass(frozen=True)
class Signed:
    """Wolfe+-, Algorithm 1 of the paper: along an ascent direction, search backwards and negate the step."""

    search: Search

    @property
    def sparing(self) -> bool:
        return self.search.sparing

    def __call__(self, phi: Phi, f0: float, slope0: float, t0: float, budget: float = math.inf) -> Found:
        if slope0 < 0:
            return self.search(phi, f0, slope0, abs(t0), budget)

        def mirrored(t: float) -> tuple[float, float]:
            f, slope = phi(-t)
            return f, -slope

        found = self.search(mirrored, f0, -slope0, abs(t0), budget)
        return found._replace(t=-found.t, slope=-found.slope)


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
    max_growth: float = LONGEST
    """The longest step as a multiple of the first trial; the smaller of both limits counts."""
    max_evals: int = 30
    rounding: float = FLOAT64
    narrow: float = 1e-10
    """Relative width at which an interval counts as exhausted."""
    sparing = False

    def __post_init__(self) -> None:
        if not 0 < self.c1 <= self.c2 < 1:
            raise ValueError(f"the Wolfe conditions need 0 < c1 <= c2 < 1, got c1={self.c1!r} and c2={self.c2!r}")
        if self.curvature not in CURVATURE_CONDITIONS:
            raise ValueError(f"curvature must be one of {CURVATURE_CONDITIONS}, got {self.curvature!r}")
        _check_limits(self.max_step, self.max_evals)

    def __call__(self, phi: Phi, f0: float, slope0: float, t0: float, budget: float = math.inf) -> Found:
        trials = Trials(phi, f0, slope0, t0, self.rounding)
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
                right = max(best.t, other.t)
                if width <= self.narrow * right or right <= _UNSEEN * trials.unseen:
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
class Zoom(Wolfe):
    """The same conditions by the search of torch.optim.LBFGS (Nocedal-Wright 2006, algorithms 3.5 and 3.6).

    Its trials are torch's up to rounding, as long as all of them are finite: bold steps until a minimiser is between
    two of them, then the minimiser of the cubic through both, kept off their ends.
    """

    sparing = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.curvature == "paper":
            raise ValueError("the paper's one-sided condition needs the search 'more-thuente', got 'zoom'")

    def __call__(self, phi: Phi, f0: float, slope0: float, t0: float, budget: float = math.inf) -> Found:
        trials = Trials(phi, f0, slope0, t0, self.rounding)
        if not slope0 < 0:
            return trials.ended(Status.NOT_DESCENT)
        most, limit = min(self.max_evals, budget), min(self.max_step, self.max_growth * t0)
        last, t = Sample(0.0, 0.0, slope0), min(t0, limit)
        while trials.evals < most:
            now = trials(t)
            high = not self._decreases(now, slope0) or (trials.evals > 2 and now.f >= last.f)
            if not high and self._curved(now.slope, slope0):
                return trials.accepted(now, self.c1, Status.WOLFE, Status.APPROXIMATE_WOLFE)
            if high or now.slope >= 0:
                return self._between(trials, last, now, most)
            if t == limit:
                return trials.ended(Status.MAX_STEP)
            t = min(limit, cubic_within(last, now, t + 0.01 * (t - last.t), 10 * t))
            last = now
        return trials.ended(Status.MAX_SEARCH)

    def _between(self, trials: Trials, low: Sample, high: Sample, most: float) -> Found:
        """Shrink an interval that holds a minimiser; `low` is its lower end."""
        low, high = (high, low) if high.f < low.f else (low, high)
        near = False  # whether the last trial was near an end
        while trials.evals < most:
            left, right = min(low.t, high.t), max(low.t, high.t)
            if right - left <= self.narrow * right or right <= _UNSEEN * trials.unseen:
                return trials.ended(Status.NARROW if high.finite else Status.WALL)
            t = cubic_within(low, high, left, right) if high.finite else left + (right - left) * (0.5 if left else 0.1)
            margin = 0.1 * (right - left)
            beside = min(right - t, t - left) < margin
            if beside and (near or not left < t < right):
                t = right - margin if right - t < t - left else left + margin
                beside = False
            near = beside
            now = trials(t)
            if not self._decreases(now, trials.slope0) or now.f >= low.f:
                low, high = (now, low) if now.f < low.f else (low, now)
                continue
            if self._curved(now.slope, trials.slope0):
                return trials.accepted(now, self.c1, Status.WOLFE, Status.APPROXIMATE_WOLFE)
            low, high = now, low if now.slope * (high.t - low.t) >= 0 else high
        return trials.ended(Status.MAX_SEARCH if high.finite else Status.WALL)


@dataclass(frozen=True)
class Armijo:
    """Backtracking to sufficient decrease, phi(t) <= phi(0) + c1 t phi'(0), by safeguarded interpolation."""

    c1: float = 1e-4
    max_step: float = math.inf
    max_evals: int = 30
    rounding: float = FLOAT64
    sparing = False

    def __post_init__(self) -> None:
        if not 0 < self.c1 < 1:
            raise ValueError(f"the Armijo condition needs 0 < c1 < 1, got c1={self.c1!r}")
        _check_limits(self.max_step, self.max_evals)

    def __call__(self, phi: Phi, f0: float, slope0: float, t0: float, budget: float = math.inf) -> Found:
        trials = Trials(phi, f0, slope0, t0, self.rounding)
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


def _check_limits(max_step: float, max_evals: int) -> None:
    if not max_step > 0:
        raise ValueError(f"max_step must be positive, got {max_step!r}")
    if max_evals < 1:
        raise ValueError(f"max_evals must be at least 1, got {max_evals!r}")
