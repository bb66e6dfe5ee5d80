"""Newton's model: the exact Hessian at the newest point."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from signedstep.curvature.local import Local
from signedstep.objective import HasHessian, Objective, Point
from signedstep.spectrum import Spectrum, of_eigenvectors


class Exact(Local[Tensor]):
    """B is the Hessian, in float64: O(n^2) memory, O(n^3) time."""

    definite = False
    dense = True

    def move(self, objective: Objective, at: Point) -> None:
        super().move(objective, at)
        self._eigen: tuple[Tensor, Tensor] | None = None

    def evaluated(self) -> Tensor | None:
        if not isinstance(self.objective, HasHessian):
            raise TypeError("newton needs an objective with a Hessian")
        H = self.objective.hessian(self.at).double()
        return (H + H.T) / 2 if torch.isfinite(H).all() else None

    def solve(self, g: Tensor) -> Tensor:
        return g.clone() if self.known is None else torch.linalg.solve(self.known, g.double()).to(g.dtype)

    def spectrum(self, g: Tensor) -> Spectrum:
        if self._eigen is None or self.known is None:
            self._eigen = tuple(torch.linalg.eigh(self.matrix().to(g.device)))
        return of_eigenvectors(*self._eigen, g)

    def matrix(self) -> Tensor:
        x = self.at.x
        return torch.eye(x.numel(), dtype=torch.float64, device=x.device) if self.known is None else self.known

    def state(self, at: Point) -> dict[str, Any]:
        return {"H": None if self.known is None else self.known.clone()}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.move(self.objective, at)
        self._known, self._asked = state["H"], True
