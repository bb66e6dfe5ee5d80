"""Newton's model: the exact Hessian at the newest point."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from signedstep.curvature.base import OVERFLOWS, Curvature
from signedstep.objective import Objective, Point, Twice
from signedstep.spectrum import Spectrum


class Exact(Curvature):
    """B is the Hessian, in float64, evaluated when it is first wanted at a point: O(n^2) memory, O(n^3) time.

    A Hessian that is not finite says nothing: B is the identity there, and `learned` is 0.
    """

    definite = False
    dense = True

    def start(self, objective: Objective, at: Point) -> None:
        self.move(objective, at)

    def move(self, objective: Objective, at: Point) -> None:
        if not isinstance(objective, Twice):
            raise TypeError("newton needs an objective with a Hessian")
        self.objective: Twice = objective
        self.at, self._known = at, False
        self._H: Tensor | None = None
        self._eigen: tuple[Tensor, Tensor] | None = None

    def forget(self, objective: Objective, at: Point) -> None:
        self._H, self._known = None, True

    def update(self, old: Point, new: Point) -> bool:
        self.move(self.objective, new)
        return True

    def learn_from_refused(self, at: Point, tried: Point) -> bool:
        return False

    @property
    def H(self) -> Tensor | None:
        """The Hessian; None where it is unknown."""
        if not self._known:
            self._known = True
            try:
                H = self.objective.hessian(self.at).double()
                self._H = (H + H.T) / 2 if torch.isfinite(H).all() else None
            except OVERFLOWS:
                self._H = None
        return self._H

    @property
    def learned(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return int(self.H is not None)

    def solve(self, g: Tensor) -> Tensor:
        return g.clone() if self.H is None else torch.linalg.solve(self.H, g.double()).to(g.dtype)

    def spectrum(self, g: Tensor) -> Spectrum:
        if self._eigen is None or self.H is None:
            self._eigen = tuple(torch.linalg.eigh(self.matrix().to(g.device)))
        w, V = self._eigen

        def lift(a: np.ndarray) -> Tensor:
            return (V @ torch.as_tensor(a, dtype=V.dtype, device=V.device)).to(g.dtype)

        return Spectrum(w.numpy(force=True), (V.T @ g.double()).numpy(force=True), lift)

    def matrix(self) -> Tensor:
        return torch.eye(self.at.x.numel(), dtype=torch.float64) if self.H is None else self.H

    def state(self, at: Point) -> dict[str, Any]:
        return {"H": None if self.H is None else self.H.clone()}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.move(self.objective, at)
        self._H, self._known = state["H"], True
