"""Several limited-memory models of the same stored pairs, weighted by how well each predicted the last steps.

After a step, and before its pair is stored, H y = s is what each expert should have said. The log of its error,
averaged with decay, is the expert's loss, and the weights are those of exponentially weighted averaging. All of it
happens in coefficients of the pairs: beside the two passes of L-BFGS there is only algebra on small matrices.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from signedstep.checks import check_at_least_zero, check_flag, check_fraction, check_positive
from signedstep.curvature.experts import FlippedLSR1, ScaledLBFGS
from signedstep.curvature.gamma import Gamma
from signedstep.curvature.limited import Limited
from signedstep.curvature.lowrank import Eigen, diagonalise, positive
from signedstep.curvature.pairs import Grams, NewPair
from signedstep.objective import Objective, Point
from signedstep.rounding import UNITS
from signedstep.space import Space

_POSITIVE = 1e-10
"""L-BFGS leaves out pairs with s.y below this part of |s| |y|."""
_SMALL, _DEEP = 2000, 50
"""Up to so many unknowns so many pairs are kept if nobody says how many: badly scaled problems need them."""
_EXACT = 1e-8
"""The least relative error an expert is credited with; 1/_EXACT is the largest it is blamed for."""


@dataclass(frozen=True)
class Mixing:
    """Which experts, and how they are weighed. The defaults come from the ablation in docs/research.md."""

    flips: Sequence[tuple[float, float]] = ((0.3, 1e-3), (1.0, 1e-2), (0.1, 1e-4))
    """L-SR1 with a sign for each eigendirection: the curvature outside the pairs over |y|/|s|, the floor under |w|."""
    spectrum: float = 0.2
    """The gamma of the spectrum that these share, over |y|/|s|."""
    lbfgs: bool = True
    """Whether L-BFGS is one of the experts; twice, from a short and a long scale, where m pairs can span the space."""
    eta: float = 4.0
    """How sharply weights follow losses: 0 is a plain average, infinity follows the best expert alone."""
    decay: float = 0.9
    """How much of an expert's loss is remembered from step to step."""
    convex: float = 0.4
    """How much lower L-BFGS's loss counts while the shared spectrum is positive: then there is nothing to flip."""
    lenience: float = 0.5
    """How much of too long a prediction is forgiven: its error counts divided by this power of its length over |s|.

    A search can shorten a step; a prediction of nothing at all has the error 1 without any merit.
    """

    def __post_init__(self) -> None:
        check_flag("lbfgs", self.lbfgs)
        if not self.flips and not self.lbfgs:
            raise ValueError("flips must name at least one model if L-BFGS is left out")
        for factor, floor in self.flips:
            check_positive("a curvature of flips", factor)
            check_fraction("a floor of flips", floor)
        check_positive("spectrum", self.spectrum)
        check_at_least_zero("eta", self.eta)
        check_at_least_zero("convex", self.convex)
        check_at_least_zero("lenience", self.lenience)
        check_fraction("decay", self.decay)


class Mix(Limited):
    """The weighted mean H of several positive definite inverses H_i = h_i I + Z K_i Z'; B is its inverse."""

    definite = True
    steady = 3.0  # an average of models changes slowly

    def __init__(self, m: int, mixing: Mixing, space: Space, asked: bool = True):
        """`asked`: whether somebody has asked for m pairs; else small problems keep more."""
        if not isinstance(mixing, Mixing):
            raise TypeError(f"mixing must be a signedstep.Mixing, got {mixing!r}")
        super().__init__(m, Gamma("norm"), space)
        self.mixing, self.asked = mixing, asked

    def start(self, objective: Objective, at: Point) -> None:
        if not self.asked and self.space.dimension(at.x) <= _SMALL:
            self.m = max(self.m, _DEEP)
        n, rounding = self.space.dimension(at.x), UNITS * torch.finfo(at.x.dtype).eps
        flipped = FlippedLSR1(self.mixing.spectrum, self.mixing.flips, rounding, n)
        scaled = ScaledLBFGS(_POSITIVE, two_scales=n <= self.m)
        self._families = [*([scaled] if self.mixing.lbfgs else []), *([flipped] if flipped.count else [])]
        super().start(objective, at)
        self.pairs.track_s()

    def forget(self, objective: Objective, at: Point) -> None:
        super().forget(objective, at)
        self.losses, self._judged = [0.0] * sum(family.count for family in self._families), 0

    @property
    def weights(self) -> np.ndarray:
        """The share of each expert."""
        losses = self.losses
        if self.mixing.lbfgs and self._families[-1].positive:
            convex = self._families[0].count
            losses = [loss - self.mixing.convex for loss in losses[:convex]] + losses[convex:]
        least = min(losses)
        shares = [math.exp(-self.mixing.eta * (loss - least)) if loss > least else 1.0 for loss in losses]
        return np.array(shares) / sum(shares)

    def accepts(self, grams: Grams, gamma: float) -> bool:
        """Any pair that shows curvature: L-BFGS leaves out those it cannot use, L-SR1 sees the rank of what is left."""
        return bool(0 < grams.YY[-1, -1] < math.inf)

    def adopt(self, pair: NewPair, grams: Grams, gamma: float) -> None:
        if self.learned:
            self._judge(pair)
        super().adopt(pair, grams, gamma)
        self._learn()

    def _judge(self, pair: NewPair) -> None:
        """Hindsight: who knew that H y = s? The stored s is of length 1."""
        self._judged += 1
        decay = self.mixing.decay
        newest = (1 - decay) / (1 - decay**self._judged)  # an average from the first error on, with no zero before it
        said = [each for family in self._families for each in family.say(pair)]
        self.losses = [
            loss + newest * (math.log(self._error(*each)) - loss) for loss, each in zip(self.losses, said, strict=True)
        ]

    def _error(self, along: float, square: float) -> float:
        """|s - H y| from s.(H y) and |H y|^2, less what is forgiven to a long H y."""
        error = math.sqrt(max(1 - 2 * along + square, 0.0)) * max(square, 1.0) ** (-0.5 * self.mixing.lenience)
        return max(error, _EXACT) if error < 1 / _EXACT else 1 / _EXACT  # also where something has overflowed

    def _learn(self) -> None:
        """Make the experts anew from the stored pairs."""
        for family in self._families:
            family.learn(self.pairs.grams)
        self._h = np.concatenate([family.h for family in self._families])

    def _act(self, Sv: np.ndarray, Yv: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a weighted mean of the experts adds to its h v: the coefficients of K Z'v from S'v and Y'v."""
        first, cs, cy = 0, 0.0, 0.0
        for family in self._families:
            its = family.act(Sv, Yv, weights[first : first + family.count])
            cs, cy, first = cs + its[0], cy + its[1], first + family.count
        return cs, cy  # type: ignore[return-value]

    def inverse(self, Sg: np.ndarray, Yg: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        weights = self.weights
        return *self._act(Sg, Yg, weights), float(self._h @ weights)

    def diagonalised(self) -> tuple[Eigen, float]:
        """H's eigenvalues, inverted: H = h I + Z K Z' has the compact form that B has in the other models."""
        h = float(self._h @ self.weights)
        w, vectors = positive(diagonalise(h, self.pairs.ZZ, self._K(), self.rank), h)
        return Eigen(1 / w, vectors), 1 / h

    def _K(self) -> np.ndarray:
        """K of the mean, which is symmetric."""
        of_S, of_Y = np.split(np.eye(2 * self.learned), 2, axis=1)
        return np.concatenate(self._act(of_S, of_Y, self.weights), axis=1)

    def matrix(self) -> Tensor:
        n = self.pairs.rows.shape[1]
        if not self.learned:
            return self.gamma * torch.eye(n, dtype=torch.float64, device="cpu")
        Z = np.concatenate(self.pairs.vectors())
        H = float(self._h @ self.weights) * np.eye(n) + Z.T @ self._K() @ Z
        return torch.linalg.inv(torch.from_numpy(H))

    def onto(self, Sv: np.ndarray, Yv: np.ndarray) -> np.ndarray:
        return np.concatenate((Sv, Yv))

    def spread(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cs, cy = np.split(z, 2)
        return cs, cy

    def state(self, at: Point) -> dict[str, Any]:
        return {**super().state(at), "losses": list(self.losses), "judged": self._judged}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        super().restore(state, at)
        self.losses, self._judged = list(state["losses"]), state["judged"]
        if self.learned:
            self._learn()
