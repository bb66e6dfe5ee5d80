"""Conjugate gradients on the model, stopped by a radius or by negative curvature (Toint 1981, Steihaug 1983)."""

import numpy as np

from signedstep.plane import farthest

TOLERANCE = 1e-8
"""The residual, relative to the gradient, at which they stop within the radius."""


def steihaug(w: np.ndarray, c: np.ndarray, radius: float) -> np.ndarray:
    """A point within the radius where the model c.a + a.diag(w)a/2 is as low as at Cauchy's, or lower.

    In the coordinates of a spectrum conjugate gradients take the steps that they take in R^n, and products with B are
    products with w: no more of B is needed than its spectrum as seen from the gradient (Nocedal-Wright 2006, algorithm
    7.2). Infinite eigenvalues allow no step. In the hard case this ends at the saddle of the model, `ball` does not.
    """
    kept = np.isfinite(w)
    a = np.zeros(len(w))
    a[kept] = _scaled(w[kept], c[kept], radius)
    return a


def _scaled(w: np.ndarray, c: np.ndarray, radius: float) -> np.ndarray:
    """`steihaug` for the largest of |w| and of |c| made 1, so that no square overflows."""
    force = np.abs(c).max(initial=0.0)
    size = np.abs(w).max(initial=0.0) or force / radius
    if not force:
        return np.zeros_like(c)
    return _conjugate(w / size, c / force, radius * (size / force)) * (force / size)


def _conjugate(w: np.ndarray, c: np.ndarray, radius: float) -> np.ndarray:
    a, r, d = np.zeros_like(c), c, -c
    for _ in range(2 * len(c)):  # n would do without rounding
        rr, curvature = float(r @ r), float(d @ (w * d))
        if curvature <= 0:
            ends = [farthest(a / radius, way) for way in (d, -d)]  # the far end may be lower, though uphill first
            return radius * min(ends, key=lambda end: float(end @ (c / radius + 0.5 * w * end)))
        further = a + rr / curvature * d
        if np.linalg.norm(further) >= radius:
            return radius * farthest(a / radius, d)
        a, r = further, r + rr / curvature * (w * d)
        if np.linalg.norm(r) <= TOLERANCE * np.linalg.norm(c):
            break
        d = -r + float(r @ r) / rr * d
    return a
