"""The step of a bounded model, exactly: `ball` and `cubic` solve a secular equation on eigenvalues w and coordinates c.

Both minimise c.a + a.diag(w)a/2, within |a| <= radius or with sigma |a|^3/3 added, and return a and the multiplier l
of the optimality conditions: (w + l) a = -c with w + l >= 0, and l (radius - |a|) = 0 or l = sigma |a| (Nocedal-Wright
2006, theorem 4.1; Cartis, Gould and Toint 2011, theorem 3.1). Infinite eigenvalues allow no step.

The unknown is m = l + min(0, w), the distance to the pole, so that a multiplier next to it keeps all its digits. On
1/|a(m)| the equation is concave and increasing, and Newton's method from the left of the root is monotone (Conn, Gould
and Toint 2000, section 7.3).
"""

from collections.abc import Callable

import numpy as np

from signedstep.rounding import UNITS

_EPS = float(np.finfo(float).eps)
_SMALLEST = 1e-120
"""The least ratio of two scales: squares of its inverse do not overflow."""

Bound = Callable[[float], tuple[float, float]]
"""1/|a| as the bound asks for it at a multiplier, and its derivative."""


def ball(w: np.ndarray, c: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
    """The least of the model within |a| <= radius, and its multiplier."""
    kept = np.isfinite(w)
    w, most = w[kept], _largest(c[kept])
    size = max(_largest(w), most / radius) or 1.0
    force = max(most, _SMALLEST * radius * size) or 1.0
    reach = radius * (size / force)

    def below(d: np.ndarray, b: np.ndarray, shift: float) -> np.ndarray:  # |c|/(d + m) = radius
        return b / reach - d - UNITS * _EPS * (b / reach + d)

    a, multiplier = _root(w / size, c[kept] / force, lambda _: (1 / reach, 0.0), below)
    return _spread(a * (force / size), kept), multiplier * size


def cubic(w: np.ndarray, c: np.ndarray, sigma: float) -> tuple[np.ndarray, float]:
    """The least of the model with sigma |a|^3/3 added, and its multiplier."""
    kept = np.isfinite(w)
    w, most = w[kept], _largest(c[kept])
    size = max(_largest(w), sigma**0.5 * most**0.5) or 1.0
    force = max(most, _SMALLEST * (size / sigma) * size) or 1.0
    weight = sigma * (force / size) / size

    def below(d: np.ndarray, b: np.ndarray, shift: float) -> np.ndarray:  # (m - shift) (m + d) = sigma |c|
        p, q = d - shift, weight * b + d * shift - UNITS * _EPS * (weight * b - d * shift)
        q = np.maximum(q, 0.0)
        return np.divide(2 * q, p + np.sqrt(p * p + 4 * q), out=np.zeros_like(q), where=q > 0)

    def bound(multiplier: float) -> tuple[float, float]:
        inverse = weight / multiplier if multiplier > 0 else np.inf
        return inverse, -inverse / multiplier if multiplier > 0 else 0.0

    a, multiplier = _root(w / size, c[kept] / force, bound, below)
    return _spread(a * (force / size), kept), multiplier * size


def decrease(w: np.ndarray, c: np.ndarray, a: np.ndarray) -> float:
    """How far the model falls over a step: -c.a - a.diag(w)a/2."""
    return -float(c @ a + 0.5 * (np.where(np.isfinite(w), w, 0.0) * a) @ a)


def _root(w: np.ndarray, c: np.ndarray, bound: Bound, below: Callable[..., np.ndarray]) -> tuple[np.ndarray, float]:
    """a and its multiplier; `below` gives, for each coordinate and for all of c at once, an m left of the root."""
    shift = min(0.0, float(w.min(initial=0.0)))
    d = w - shift
    start = below(np.append(d, d.max(initial=0.0)), np.append(np.abs(c), _norm(c)), shift)
    met = (d > 0) | (start[:-1] > 0)
    m = max(0.0, float(start.max()))
    if m == 0:
        a = _step(d, c, 0.0, met)
        if _norm(a) == 0 or 1 / _norm(a) >= bound(-shift)[0]:
            return _hard(a, d, -shift, bound) if shift < 0 else (a, 0.0)
    return _newton(d, c, m, met, shift, bound)


def _newton(
    d: np.ndarray, c: np.ndarray, m: float, met: np.ndarray, shift: float, bound: Bound
) -> tuple[np.ndarray, float]:
    """Newton's method from the left of the root, until rounding stops it."""
    for _ in range(200):
        a = _step(d, c, m, met)
        length = _norm(a)
        wanted, slope = bound(m - shift)
        gap = wanted - 1 / length
        rise = float(a[met] / length @ (a[met] / length / (d[met] + m))) / length
        longer = m + gap / (rise - slope) if gap < np.inf else 2 * m
        if gap <= 2 * _EPS * wanted or not longer > m:
            break
        m = longer
    return _step(d, c, m, met), m - shift


def _hard(a: np.ndarray, d: np.ndarray, multiplier: float, bound: Bound) -> tuple[np.ndarray, float]:
    """The hard case: the gradient does not see the lowest eigenvector, and the step goes along it up to the bound."""
    length, rest = 1 / bound(multiplier)[0], _norm(a)
    a[int(np.argmin(d))] = np.sqrt(max(0.0, (length - rest) * (length + rest)))
    return a, multiplier


def _step(d: np.ndarray, c: np.ndarray, m: float, met: np.ndarray) -> np.ndarray:
    a = np.zeros_like(c)
    a[met] = -c[met] / (d[met] + m)
    return a


def _spread(a: np.ndarray, kept: np.ndarray) -> np.ndarray:
    whole = np.zeros(len(kept))
    whole[kept] = a
    return whole


def _largest(v: np.ndarray) -> float:
    return float(np.abs(v).max(initial=0.0))


def _norm(v: np.ndarray) -> float:
    largest = _largest(v)  # squares of the rest neither overflow nor vanish
    return largest * float(np.sqrt((v / largest) @ (v / largest))) if largest else 0.0
