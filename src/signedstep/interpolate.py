"""The next trial of a line search from the values and slopes it has seen (More and Thuente 1994, section 4)."""

import math
from typing import NamedTuple


class Sample(NamedTuple):
    """A value and a slope at t."""

    t: float
    f: float
    slope: float

    @property
    def finite(self) -> bool:
        return math.isfinite(self.f)

    def tilted(self, by: float) -> "Sample":
        """The same sample of the function minus the line of slope `by`."""
        return Sample(self.t, self.f - by * self.t, self.slope - by) if by else self


def trial_step(
    best: Sample, other: Sample | None, now: Sample, tilt: float, limit: float
) -> tuple[float, Sample, Sample | None]:
    """The next trial and the updated ends of the search interval.

    `best` has the lowest value so far and its slope points to the other end; `other` is None until a minimiser is
    bracketed. Values are compared, and interpolated, after the line of slope `tilt` has been taken off.
    """
    if not now.finite:  # beyond the wall nothing can be interpolated
        return best.t + (now.t - best.t) * (0.5 if best.t else 0.1), best, now
    x, t = best.tilted(tilt), now.tilted(tilt)
    step = _candidate(x, other.tilted(tilt) if other else None, t, limit)
    if t.f > x.f:
        return step, best, now
    if t.slope * x.slope < 0:
        return step, now, best
    return step, now, other


def cubic_within(a: Sample, b: Sample, low: float, high: float) -> float:
    """The minimiser of the cubic through a and b, moved between two bounds; their middle if it has none.

    That of a line is beyond all bounds.
    """
    theta = _theta(a, b)
    if not theta * theta >= a.slope * b.slope:
        return 0.5 * (low + high)
    least = _cubic(a, b)
    return high if math.isnan(least) else min(max(least, low), high)


def _candidate(x: Sample, y: Sample | None, t: Sample, limit: float) -> float:
    """The four cases of More and Thuente; the trial stays within the interval, or within its extrapolation."""
    if t.f > x.f:  # a minimiser lies between: lean to the better of the cubic and the parabola
        cubic, parabola = _cubic(x, t), _parabola(x, t)
        return cubic if abs(cubic - x.t) < abs(parabola - x.t) else 0.5 * (cubic + parabola)
    if t.slope * x.slope < 0:  # lower, and the slope changed sign: the farther of cubic and secant
        cubic, secant = _cubic(x, t), _secant(x, t)
        return cubic if abs(cubic - t.t) > abs(secant - t.t) else secant
    if abs(t.slope) <= abs(x.slope):  # lower and flatter: follow the slope beyond t
        return _beyond(x, y, t, limit)
    if y is None:  # lower and steeper: go as far as allowed
        return min(limit, t.t + 4 * (t.t - x.t))
    return _cubic(t, y) if y.finite else 0.5 * (t.t + y.t)


def _beyond(x: Sample, y: Sample | None, t: Sample, limit: float) -> float:
    secant = _secant(x, t)
    cubic = _cubic(x, t)
    outward = (cubic - t.t) * (t.t - x.t) > 0 and math.isfinite(cubic)
    if y is None:  # extrapolate boundedly, with the bolder of the two
        low, high = t.t + 1.1 * (t.t - x.t), t.t + 4 * (t.t - x.t)
        if not outward:
            cubic = high
        step = cubic if abs(cubic - t.t) > abs(secant - t.t) else secant
        return min(limit, max(low, min(high, step))) if math.isfinite(step) else min(limit, high)
    step = cubic if outward and abs(cubic - t.t) < abs(secant - t.t) else secant
    bound = t.t + 0.66 * (y.t - t.t)
    return (min if t.t > x.t else max)(bound, step) if math.isfinite(step) else bound


def _cubic(a: Sample, b: Sample) -> float:
    """The minimiser of the cubic with the values and slopes of a and b; infinite or NaN if it has none."""
    if not (a.finite and b.finite):
        return math.nan
    theta = _theta(a, b)
    size = max(abs(theta), abs(a.slope), abs(b.slope))
    if not size or not math.isfinite(size):
        return math.nan
    radicand = (theta / size) ** 2 - (a.slope / size) * (b.slope / size)
    root = math.copysign(size * math.sqrt(max(0.0, radicand)), b.t - a.t)
    denominator = (root - a.slope) + root + b.slope
    return a.t + (root - a.slope + theta) / denominator * (b.t - a.t) if denominator else math.nan


def _theta(a: Sample, b: Sample) -> float:
    """More and Thuente's theta: that cubic has a minimiser if its square is at least the product of both slopes."""
    return 3 * (a.f - b.f) / (b.t - a.t) + a.slope + b.slope


def _parabola(a: Sample, b: Sample) -> float:
    """The minimiser of the parabola with both values and the slope of a."""
    denominator = (a.f - b.f) / (b.t - a.t) + a.slope
    return a.t + 0.5 * a.slope / denominator * (b.t - a.t) if denominator else math.nan


def _secant(a: Sample, b: Sample) -> float:
    """The zero of the line through both slopes."""
    return b.t + b.slope / (b.slope - a.slope) * (a.t - b.t) if a.slope != b.slope else math.inf
