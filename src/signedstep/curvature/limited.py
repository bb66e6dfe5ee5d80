"""What limited-memory models share: a ring of pairs, and the way from small matrices to directions and spectra."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from signedstep.curvature.base import Curvature, Met, refusal_threshold
from signedstep.curvature.gamma import Gamma
from signedstep.curvature.lowrank import Eigen, rank_threshold
from signedstep.curvature.pairs import Grams, NewPair, Pairs
from signedstep.objective import Objective, Point
from signedstep.space import Space
from signedstep.spectrum import Spectrum


class Limited(Curvature):
    """What limited-memory models share: the ring of pairs, gamma, and a spectrum from small matrices.

    Psi is a matrix of combinations of the stored vectors, one or two for each pair.
    """

    def __init__(self, m: int, gamma: Gamma, space: Space):
        self.m, self.policy, self.space = m, gamma, space

    @property
    def learned(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.pairs)

    def start(self, objective: Objective, at: Point) -> None:
        self.refusal, self.rank = refusal_threshold(at.x.dtype), rank_threshold(at.x.dtype)
        self.pairs = Pairs(self.m, at, self.space)
        self.forget(objective, at)

    def forget(self, objective: Objective, at: Point) -> None:
        """The memory of the pairs stays, and is used again."""
        self.gamma = 1.0
        self.pairs.clear()
        self._met: Met[NewPair | None] = Met()

    def move(self, objective: Objective, at: Point) -> None:
        self.pairs.products(at.g)

    @np.errstate(all="ignore")  # a trial that overflows is not learned from
    def meet(self, old: Point, new: Point) -> None:
        self._met.keep(new, self.pairs.measure(old, new, trial=True))

    @np.errstate(all="ignore")  # a pair that overflows is refused, not warned of
    def update(self, old: Point, new: Point) -> bool:
        pair = self._met.take(new, lambda: self.pairs.measure(old, new))
        if pair is None:
            return False
        grams = self.pairs.bordered(pair)
        for gamma in self.policy.candidates(1.0, pair.sy, pair.yy, self.gamma):
            if self.accepts(grams, gamma):
                self.adopt(pair, grams, gamma)
                return True
        return False

    def adopt(self, pair: NewPair, grams: Grams, gamma: float) -> None:
        """Make an accepted pair the newest."""
        self.gamma = gamma
        self.pairs.store(pair, grams)

    @abstractmethod
    def accepts(self, grams: Grams, gamma: float) -> bool:
        """Whether the model would be sound with the newest pair of these."""

    @abstractmethod
    def inverse(self, Sg: np.ndarray, Yg: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """B^-1 g from S'g and Y'g, once a pair is learned: cs, cy and h, so that it is S cs + Y cy + h g."""

    @abstractmethod
    def diagonalised(self) -> tuple[Eigen, float]:
        """B's eigenvalues with eigenvectors Psi z, and its eigenvalue for all that is orthogonal to Psi."""

    @abstractmethod
    def onto(self, Sv: np.ndarray, Yv: np.ndarray) -> np.ndarray:
        """Psi'v from S'v and Y'v."""

    @abstractmethod
    def spread(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients of Psi z: it is S cs + Y cy."""

    def solve(self, g: Tensor) -> Tensor:
        return -self.raw(g)

    @np.errstate(all="ignore")
    def raw(self, g: Tensor) -> Tensor:
        if not self.learned:
            return g / -self.gamma
        cs, cy, h = self.inverse(*self.pairs.products(g))
        return self.pairs.combine(-cs, -cy, -h, g)

    @np.errstate(all="ignore")
    def spectrum(self, g: Tensor) -> Spectrum:
        products, gg = self.pairs.products(g), self.space.square(g)
        w, vectors, gamma = np.zeros(0), np.zeros((0, 0)), self.gamma
        if self.learned:
            (w, vectors), gamma = self.diagonalised()
        c = vectors.T @ self.onto(*products)
        rest = gg - float(c @ c)  # the gradient's part that the pairs have not seen; there B is gamma
        whole = len(w) == self.space.dimension(g)
        outside = rest**0.5 if rest > 64 * np.finfo(float).eps * gg and not whole else 0.0

        @np.errstate(all="ignore")
        def lift(a: np.ndarray) -> Tensor:
            scale = float(a[len(w)]) / outside if outside else 0.0
            cs, cy = self.spread(vectors @ (a[: len(w)] - scale * c))
            return self.pairs.combine(cs, cy, scale, g)

        if whole:
            return Spectrum(w, c, lift)
        return Spectrum(np.append(w, gamma), np.append(c, outside), lift)

    def state(self, at: Point) -> dict[str, Any]:
        return {"gamma": self.gamma, "pairs": self.pairs.state(at.g)}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.gamma = state["gamma"]
        self.pairs.restore(state["pairs"], at.g)
