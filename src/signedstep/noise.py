"""How far differences of f can be trusted, and what to believe where they cannot: the slopes."""

import math

_STRAIGHT = 0.1
"""Slopes that differ by less than this part show f as a straight line; what f adds to it is noise."""

_CLEAR = 3.0
"""How many times what the slopes promise a deviation of f must be to count as noise. A gradient with the wrong sign
deviates by twice the promise at every length of step; noise stays when the promise shrinks."""

_FAR = 100.0
"""How many times the noise the slopes may promise; more would have shown in f, whatever the noise."""


class Noise:
    """The noise in values of f along a line: that of rounding at first, raised where the values show more.

    Sums of many terms, and of terms that cancel, carry more noise than their last digits. It shows where both ends of
    a step have nearly the same slope and f still does not follow it.
    """

    def __init__(self, f0: float, rounding: float):
        self.f0, self.level = f0, rounding * abs(f0)
        self.most = math.sqrt(rounding) * abs(f0)
        """No noise is larger."""

    def change(self, f: float, start: float, end: float) -> tuple[float, bool]:
        """f - f0 after a step; if it drowns in noise, what the trapezoid rule says instead. Tells whether it did.

        `start` and `end` are the slopes at both ends of the step, times its length.
        """
        by_values, by_slopes = f - self.f0, 0.5 * (start + end)
        small = abs(by_values) <= self.most and abs(by_slopes) <= _FAR * self.most
        deviation = abs(by_values - by_slopes)
        if small and abs(end - start) <= _STRAIGHT * abs(start) and deviation > _CLEAR * abs(by_slopes):
            self.level = max(self.level, min(2 * deviation, self.most))
        if abs(by_values) <= self.level and (abs(by_slopes) <= _FAR * self.level or self.f0 == 0):
            return by_slopes, True
        return by_values, False

    def contradicts(self, change: float, end: float) -> bool:
        """Whether f rises, plainly, to where its slope still says that it falls."""
        return change > self.most and end < 0
