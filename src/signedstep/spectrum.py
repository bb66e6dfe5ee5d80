"""The one idea: seen from the gradient, a curvature model is a small diagonal quadratic, and a globalization is a
pure function of its eigenvalues `w` and of the gradient's coordinates `c`.

Every rule returns the coordinates `a` of a direction; all but `newton` give a descent direction for any spectrum.
`floor` is relative to the largest magnitude in `w`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Spectrum(NamedTuple):
    """Eigenvalues `w` of B, coordinates `c` of the gradient in orthonormal eigenvectors, and the way back to R^n.

    Only eigenvectors that the gradient can meet are listed: a model that is gamma I outside a small subspace has one
    coordinate for the whole complement, along the gradient's part in it.
    """

    w: np.ndarray
    c: np.ndarray
    lift: Callable[[np.ndarray], Tensor]


def along(g: Tensor, size: float, w: float) -> Spectrum:
    """Of w I, for a gradient of this size: all that it can meet is along it."""
    return Spectrum(np.array([w]), np.array([size]), lambda a: g * (a[0] / size))


def of_eigenvectors(w: Tensor, V: Tensor, g: Tensor) -> Spectrum:
    """Of a whole matrix with eigenvectors in the columns of V, in whatever precision and wherever they are."""

    def lift(a: np.ndarray) -> Tensor:
        return (V @ torch.as_tensor(a, dtype=V.dtype, device=V.device)).to(g)

    return Spectrum(w.numpy(force=True), (V.T @ g.to(V)).numpy(force=True), lift)


def newton(w: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The raw direction -B^-1 g, which may point uphill."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return -c / w


def flip(w: np.ndarray, c: np.ndarray, floor: float) -> np.ndarray:
    """A sign for each eigendirection: -|B|^-1 g (saddle-free, Dauphin et al. 2014), with |w| kept off zero."""
    return -c / np.maximum(np.abs(w), _level(w, floor))


def clip(w: np.ndarray, c: np.ndarray, floor: float) -> np.ndarray:
    """Negative and tiny eigenvalues replaced by a small positive one (Nocedal-Wright 2006, section 3.4)."""
    return -c / np.maximum(w, _level(w, floor))


def damp(w: np.ndarray, c: np.ndarray, floor: float) -> np.ndarray:
    """Every eigenvalue moved up until the lowest is positive: -(B + shift I)^-1 g."""
    least, level = float(w.min()), _level(w, floor)
    return -c / (w if least >= level else (w - least) + level)  # in this order the lowest is never zero


def _level(w: np.ndarray, floor: float) -> float:
    """The smallest eigenvalue allowed; infinite eigenvalues (a singular inverse) do not count."""
    magnitudes = np.abs(w[np.isfinite(w)])
    largest = float(magnitudes.max(initial=0.0)) or 1.0
    return floor * largest or np.finfo(float).tiny
