"""gamma I: gradient descent, with the step length of the last pair."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from signedstep.curvature.base import Curvature, Met
from signedstep.curvature.gamma import Gamma
from signedstep.objective import Objective, Point
from signedstep.space import Space
from signedstep.spectrum import Spectrum, along


class Identity(Curvature):
    """B = gamma I. With gamma = s.y/s.s this is the step of Barzilai and Borwein (1988).

    A fixed gamma makes -g/gamma the first trial; 1, the identity, is no estimate, and lengths are left to the search.
    """

    definite = True

    def __init__(self, gamma: Gamma, space: Space):
        self.policy, self.space = gamma, space

    def start(self, objective: Objective, at: Point) -> None:
        self.gamma, self.learned, self.n = 1.0, 0, at.x.numel()
        self._met: Met[list[list[float]]] = Met()

    def meet(self, old: Point, new: Point) -> None:
        if self.policy.rule != "identity":
            self._met.keep(new, self._measured(old, new))

    def _measured(self, old: Point, new: Point) -> list[list[float]]:
        s, y = new.x - old.x, new.g - old.g
        return self.space.dots_each((s, (s, y)), (y, (y,)))

    def update(self, old: Point, new: Point) -> bool:
        if self.policy.rule == "identity":
            self.gamma, self.learned = self.policy.factor, int(self.policy.factor != 1)
            return bool(self.learned)
        (ss, sy), (yy,) = self._met.take(new, lambda: self._measured(old, new))
        if not (0 < ss < math.inf and 0 < yy < math.inf):
            return False
        self.gamma = self.policy(ss, sy, yy, self.gamma)
        self.learned = 1
        return True

    def solve(self, g: Tensor) -> Tensor:
        return g / self.gamma

    def spectrum(self, g: Tensor) -> Spectrum:
        return along(g, math.sqrt(self.space.square(g)), self.gamma)

    def matrix(self) -> Tensor:
        return torch.eye(self.n, dtype=torch.float64, device="cpu") * self.gamma

    def state(self, at: Point) -> dict[str, Any]:
        return {"gamma": self.gamma, "learned": self.learned}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.gamma, self.learned = state["gamma"], state["learned"]
