"""The few statistics of the report; an infinite loss (a run that diverged) is an ordinary value here."""

import math
from collections.abc import Sequence

import numpy as np


def quantile(values: Sequence[float], q: float) -> float:
    """The q-quantile by linear interpolation, as NumPy's, but right where values are infinite."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    place = q * (len(ordered) - 1)
    low, part = int(place), place - int(place)
    if part == 0 or ordered[low] == ordered[low + 1]:
        return ordered[low]
    return ordered[low] + part * (ordered[low + 1] - ordered[low])


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


def sign_test(wins: int, losses: int) -> float:
    """The chance of at least so many wins if both sides were equally likely to win (ties do not count)."""
    n = wins + losses
    return sum(math.comb(n, k) for k in range(wins, n + 1)) / 2**n


def power(x: Sequence[float], y: Sequence[float]) -> float | None:
    """The exponent a of the least-squares fit y ~ x^a; None unless there are two different x."""
    if len({*x}) < 2:
        return None
    u, v = np.log(x), np.log(y)
    u = u - u.mean()
    return float(u @ v / (u @ u))
