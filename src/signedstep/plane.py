"""Steps of a bounded model that need no secular equation of all eigenvalues: the dogleg, and the least of a plane.

Both are within |a| <= radius and fall at least as far as the model does along the gradient (Cauchy's point), which is
what the convergence of trust regions rests on. Infinite eigenvalues allow no step. Inside, lengths are in units of the
radius, and eigenvalues and coordinates at most 1, so that no square overflows.
"""

from collections.abc import Callable

import numpy as np

from signedstep.secular import ball, decrease

_EPS = float(np.finfo(float).eps)
_FAR = 1e100
"""A length in units of the radius beyond which a point is only a direction."""


def dogleg(w: np.ndarray, c: np.ndarray, radius: float) -> np.ndarray:
    """Powell's (1970) dogleg: from 0 to Cauchy's point, from there to Newton's, as far as the radius allows.

    Where the model is not positive definite, the second leg changes only coordinates of positive eigenvalues, and a
    third one goes along the lowest eigenvector to the boundary. On every leg each coordinate moves where the model
    falls, so the last point within the radius is the lowest of the path. A second leg that begins on the boundary may
    lead through the ball, but not if the model is positive definite.
    """
    return _in_units(_dogleg, w, c, radius)


def subspace(w: np.ndarray, c: np.ndarray, radius: float) -> np.ndarray:
    """The least of the model over the plane of g and B^-1 g, exactly (Byrd, Schnabel and Shultz 1988).

    Where the model is not positive definite, B + shift I takes its place, 1.5 times the lowest eigenvalue up, and the
    plane of (B + shift I)^-1 g and the lowest eigenvector is tried too (Nocedal-Wright 2006, section 4.1). A wide
    spectrum can drown the small eigenvalue of a plane in rounding; the dogleg, where it is lower, takes over.
    """
    return _in_units(_subspace, w, c, radius)


def farthest(a: np.ndarray, d: np.ndarray, most: float = np.inf) -> np.ndarray:
    """The farthest point of a + t d, t |d| <= most, within the unit ball."""
    gap, length = max(0.0, 1 - float(a @ a)), float(np.linalg.norm(d))
    if length == 0:
        return a
    u = d / length
    inward = -float(a @ u)
    root = (inward * inward + gap) ** 0.5
    t = inward + root if inward >= 0 else gap / (root - inward)  # the larger root, without cancellation
    return a + min(t, most) * u


def _in_units(rule: Callable[..., np.ndarray], w: np.ndarray, c: np.ndarray, radius: float) -> np.ndarray:
    a, kept = np.zeros(len(w)), np.isfinite(w)
    w, c = w[kept], c[kept]
    size = max(float(np.abs(w).max(initial=0.0)), float(np.abs(c).max(initial=0.0)) / radius)
    if size > 0:
        a[kept] = radius * rule(w / size, c / size / radius)
    return a


def _dogleg(w: np.ndarray, c: np.ndarray) -> np.ndarray:
    a = _cauchy(w, c)
    up = w > 0
    second = np.where(up, _newton(np.where(up, w, 1.0), c), a) - a
    a = farthest(a, second, float(np.linalg.norm(second)))
    third = _lowest(w, c)
    return a if third is None else farthest(a, third)


def _subspace(w: np.ndarray, c: np.ndarray) -> np.ndarray:
    lowest = float(w.min())
    shift = 0.0 if lowest > 0 else max(-1.5 * lowest, _EPS - lowest)
    s = _newton(w + shift, c)
    if shift == 0 and np.linalg.norm(s) <= 1:
        return s
    third = _lowest(w, c)
    planes = [(c, s)] if third is None else [(c, s), (s, third)]
    tried = [_dogleg(w, c), *(_least(w, c, np.stack(plane, axis=1)) for plane in planes)]
    return max(tried, key=lambda a: decrease(w, c, a))


def _cauchy(w: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The least of the model along the gradient."""
    length = float(np.linalg.norm(c))
    if length == 0:
        return np.zeros_like(c)
    u = c / length
    curvature = float(w @ (u * u))
    return -u * (length / curvature if curvature > length else 1.0)


def _newton(w: np.ndarray, c: np.ndarray) -> np.ndarray:
    """-c/w for positive w; a coordinate that is farther than far stops short of it."""
    with np.errstate(over="ignore"):
        return -np.clip(c / w, -_FAR, _FAR)


def _lowest(w: np.ndarray, c: np.ndarray) -> np.ndarray | None:
    """The unit vector along which the model falls without end, if there is one: in the hard case c does not meet it."""
    bottom = np.where(w == w.min(), np.abs(c), -1.0)
    i = int(np.argmax(bottom))
    if not (w[i] < 0 or (w[i] == 0 and c[i] != 0)):
        return None
    v = np.zeros_like(c)
    v[i] = -1.0 if c[i] > 0 else 1.0
    return v


def _least(w: np.ndarray, c: np.ndarray, spanning: np.ndarray) -> np.ndarray:
    """The least of the model over the span of some columns, within the unit ball."""
    norms = np.linalg.norm(spanning, axis=0)
    Q, _ = np.linalg.qr(spanning / np.where(norms > 0, norms, 1.0))
    v, V = np.linalg.eigh(Q.T @ (w[:, None] * Q))
    basis = Q @ V
    return basis @ ball(v, basis.T @ c, 1.0)[0]
