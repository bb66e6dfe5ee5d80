"""KFAC: the Fisher information as Kronecker products, one for each layer, and their eigenvalues exactly."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from signedstep.curvature.local import Local
from signedstep.kronecker import Eigensystem
from signedstep.objective import HasKronecker, Point
from signedstep.rounding import UNITS
from signedstep.spectrum import Spectrum


class KFAC(Local[Eigensystem]):
    """B is block-diagonal, G x A for each layer (Martens and Grosse 2015): O(d^3) for layers of width d.

    The eigenvalues are the products of those of the factors, so every globalization is exact on it. Some are zero: the
    loss does not change with a number that is added to all outputs of a softmax. What the gradient has there allows no
    step unless it is more than rounding. B^-1 g is the pseudo-inverse's.
    """

    definite = True

    def __init__(self, samples: int):
        self.samples = samples

    def evaluated(self) -> Eigensystem | None:
        if not isinstance(self.objective, HasKronecker):
            raise TypeError("kfac needs the loss of a module: signedstep.ModuleLoss")
        known = self.objective.kronecker(self.at, self.samples)
        return known if np.isfinite(known.w).all() else None

    def solve(self, g: Tensor) -> Tensor:
        if self.known is None:
            return g.clone()
        w, coordinates, lift = self.known
        return lift(np.divide(coordinates(g), w, out=np.zeros_like(w), where=w > 0))

    def spectrum(self, g: Tensor) -> Spectrum:
        if self.known is None:
            return Spectrum(np.ones(len(g)), g.double().numpy(force=True), lambda a: torch.from_numpy(a).to(g))
        w, coordinates, lift = self.known
        c = coordinates(g)
        # the gradient is a mean of gradients of examples, whose mean square is the trace of B
        eps = torch.finfo(g.dtype).eps
        noise = max(eps**0.5 * np.linalg.norm(c), UNITS * eps * w.sum() ** 0.5)
        return Spectrum(np.where((w == 0) & (np.abs(c) <= noise), np.inf, w), c, lift)

    def matrix(self) -> Tensor:
        n = self.at.x.numel()
        rows = torch.eye(n, dtype=torch.float64, device="cpu")
        if self.known is None:
            return rows
        w, coordinates, lift = self.known
        return torch.stack([lift(w * coordinates(row)).double().cpu() for row in rows.to(self.at.x)])

    def state(self, at: Point) -> dict[str, Any]:
        return {"forgotten": self._asked and self._known is None}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.move(self.objective, at)
        self._asked = state["forgotten"]
