"""Nonlinear conjugate gradients: p = -g + beta p_before, with one vector of memory and no matrix at all."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from signedstep.curvature.base import Curvature
from signedstep.objective import Objective, Point
from signedstep.space import Space
from signedstep.spectrum import Spectrum


class Products(NamedTuple):
    """Inner products of a step along p: g is the gradient after it, o the one before, y = g - o."""

    gg: float
    gy: float
    oo: float
    py: float


BETAS: dict[str, Callable[[Products], float]] = {
    "fr": lambda k: k.gg / k.oo,  # Fletcher and Reeves 1964, the method of Dai's (1999) negative steps
    "pr+": lambda k: max(0.0, k.gy / k.oo),  # Polak and Ribiere 1969; Gilbert and Nocedal 1992
    "hs": lambda k: k.gy / k.py,  # Hestenes and Stiefel 1952
    "dy": lambda k: k.gg / k.py,  # Dai and Yuan 1999
}

_POWELL = {"fr": 0.2, "dy": 0.2}
"""How far from orthogonal two gradients in a row may be, |g.o| / g.g, before FR and DY start again. PR+ and HS start
again by themselves: with short steps g.y goes to 0."""


class ConjugateGradient(Curvature):
    """Directions of nonlinear conjugate gradients (Nocedal-Wright 2006, section 5.2).

    FR and DY start again from -g where two gradients in a row are far from orthogonal, |g.o| >= 0.2 g.g (Powell 1977),
    all where beta is not finite and after a step that was not along p. A direction that points uphill is left to the
    globalization: `wolfe` starts again from -g, `wolfe+-` steps backwards.
    """

    definite = False
    has_matrix = False

    def __init__(self, beta: str, space: Space):
        self.beta, self.powell, self.space = BETAS[beta], _POWELL.get(beta, math.inf), space

    def start(self, objective: Objective, at: Point) -> None:
        self.learned = 0
        self.past: Tensor | None = None  # beta p_before

    def update(self, old: Point, new: Point) -> bool:
        p = self.solve(old.g).neg_()
        beta = self._beta(p, old, new)
        if not beta:
            self.learned, self.past = 0, None
            return False
        self.learned, self.past = self.learned + 1, p.mul_(beta)
        return True

    def _beta(self, p: Tensor, old: Point, new: Point) -> float:
        """The weight of the direction p that led here; 0 to start again."""
        s, y = new.x - old.x, new.g - old.g
        (pp, ps, py), (ss,), (gg, go, gy), (oo,) = self.space.dots_each(
            (p, (p, s, y)), (s, (s,)), (new.g, (new.g, old.g, y)), (old.g, (old.g,))
        )
        along = ps * ps >= 0.5 * pp * ss > 0
        if not (along and oo > 0 and py and abs(go) < self.powell * gg):
            return 0.0
        beta = self.beta(Products(gg, gy, oo, py))
        return beta if abs(beta) < torch.finfo(p.dtype).max else 0.0

    def solve(self, g: Tensor) -> Tensor:
        return g.clone() if self.past is None else g - self.past

    def spectrum(self, g: Tensor) -> Spectrum:
        raise NotImplementedError("conjugate gradients have no matrix to diagonalise")

    def matrix(self) -> Tensor:
        raise NotImplementedError("conjugate gradients have no matrix")

    def state(self, at: Point) -> dict[str, Any]:
        return {"learned": self.learned} if self.past is None else {"learned": self.learned, "past": self.past.clone()}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.learned = state["learned"]
        self.past = state["past"].to(at.x, copy=True) if "past" in state else None
