"""Limited-memory BFGS and SR1 in compact form (Byrd, Nocedal and Schnabel 1994).

A direction costs O(mn) for two passes over the stored pairs and O(m^3) for the algebra between them, for raw
directions and for those made from the spectrum alike.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from signedstep.curvature.base import Curvature, refusal_threshold
from signedstep.curvature.compact import diagonalise, invert, solve_upper
from signedstep.curvature.gamma import Gamma
from signedstep.curvature.pairs import Grams, Pairs
from signedstep.objective import Objective, Point
from signedstep.space import Space
from signedstep.spectrum import Spectrum


class Compact(NamedTuple):
    """B = gamma I + Psi M^-1 Psi', as far as small matrices know it."""

    PsiPsi: np.ndarray
    M_inverse: np.ndarray


class Limited(Curvature):
    """What L-BFGS and L-SR1 share: the ring of pairs, gamma, and the spectrum of a compact form."""

    def __init__(self, m: int, gamma: Gamma, space: Space):
        self.m, self.policy, self.space = m, gamma, space

    @property
    def learned(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.pairs)

    def start(self, objective: Objective, at: Point) -> None:
        self.refusal = refusal_threshold(at.x.dtype)
        self.gamma = 1.0
        self.pairs = Pairs(self.m, at, self.space)

    @np.errstate(all="ignore")  # a pair that overflows is refused, not warned of
    def update(self, old: Point, new: Point) -> bool:
        pair = self.pairs.measure(old, new)
        if pair is None:
            return False
        grams = self.pairs.bordered(pair)
        for gamma in self.policy.candidates(1.0, pair.sy, pair.yy, self.gamma):
            if self.accepts(grams, gamma):
                self.gamma = gamma
                self.pairs.store(pair, grams)
                return True
        return False

    @abstractmethod
    def accepts(self, grams: Grams, gamma: float) -> bool:
        """Whether the model would be sound with the newest pair of these."""

    @abstractmethod
    def compact(self) -> Compact:
        """The compact form of B; at least one pair has been learned."""

    @abstractmethod
    def onto(self, Sv: np.ndarray, Yv: np.ndarray) -> np.ndarray:
        """Psi'v from S'v and Y'v."""

    @abstractmethod
    def spread(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients of Psi z: it is S cs + Y cy."""

    @np.errstate(all="ignore")
    def spectrum(self, g: Tensor) -> Spectrum:
        seen = self.pairs.seen(g)
        w, vectors = np.zeros(0), np.zeros((0, 0))
        if self.learned:
            w, vectors = diagonalise(self.gamma, *self.compact())
        c = vectors.T @ self.onto(seen.Sg, seen.Yg)
        rest = seen.gg - float(c @ c)  # the gradient's part that the pairs have not seen; there B is gamma
        whole = len(w) == self.space.dimension(g)
        outside = rest**0.5 if rest > 64 * np.finfo(float).eps * seen.gg and not whole else 0.0

        @np.errstate(all="ignore")
        def lift(a: np.ndarray) -> Tensor:
            scale = float(a[len(w)]) / outside if outside else 0.0
            cs, cy = self.spread(vectors @ (a[: len(w)] - scale * c))
            return self.pairs.combine(cs, cy, scale, g)

        if whole:
            return Spectrum(w, c, lift)
        return Spectrum(np.append(w, self.gamma), np.append(c, outside), lift)

    def matrix(self) -> Tensor:
        n = self.pairs.rows.shape[1]
        B = self.gamma * np.eye(n)
        if self.learned:
            S, Y = self.pairs.rows.double().numpy(force=True).reshape(-1, 2, n)[self.pairs.order].transpose(1, 0, 2)
            Psi = self.onto(S, Y)
            B += Psi.T @ self.compact().M_inverse @ Psi
        return torch.from_numpy(B)

    def state(self, at: Point) -> dict[str, Any]:
        return {"gamma": self.gamma, "pairs": self.pairs.state(at.g)}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.gamma = state["gamma"]
        self.pairs.restore(state["pairs"], at.g)


class LBFGS(Limited):
    """L-BFGS: positive definite, solved by the inverse compact form (their theorem 2.2)."""

    definite = True

    def accepts(self, grams: Grams, gamma: float) -> bool:
        """s.y > r |s| |y|: positive curvature, not just rounding."""
        return bool(grams.upper[-1, -1] > self.refusal * grams.YY[-1, -1] ** 0.5)

    @np.errstate(all="ignore")
    def solve(self, g: Tensor) -> Tensor:
        gamma = self.gamma
        if not self.learned:
            return g / gamma
        seen, (_, _, upper, YY) = self.pairs.seen(g), self.pairs.grams
        a = solve_upper(upper, seen.Sg)
        b = solve_upper(upper, upper.diagonal() * a + (YY @ a - seen.Yg) / gamma, transposed=True)
        return self.pairs.combine(b, -a / gamma, 1 / gamma, g)

    def compact(self) -> Compact:
        """Their theorem 2.3, with Psi = [gamma S, Y]."""
        self.pairs.track_s()
        SS, lower, upper, YY = self.pairs.grams
        D = np.diag(upper.diagonal())
        L, SY = np.tril(lower, -1), np.triu(upper) + np.tril(lower, -1)
        PsiPsi = np.block([[self.gamma * self.gamma * SS, self.gamma * SY], [self.gamma * SY.T, YY]])
        return Compact(PsiPsi, -invert(np.block([[self.gamma * SS, L], [L.T, -D]]))[0])

    def onto(self, Sv: np.ndarray, Yv: np.ndarray) -> np.ndarray:
        return np.concatenate((self.gamma * Sv, Yv))

    def spread(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = self.learned
        return self.gamma * z[:k], z[k:]


class LSR1(Limited):
    """L-SR1: free to be indefinite (their theorem 5.1, and its dual for the inverse)."""

    definite = False

    def start(self, objective: Objective, at: Point) -> None:
        super().start(objective, at)
        self.pairs.track_s()

    def accepts(self, grams: Grams, gamma: float) -> bool:
        """Whether |s.(y - B s)| >= r |s| |y - B s| for the B without the newest pair (Nocedal-Wright, equation 6.26).

        With Psi and M of all pairs, the last column of M^-1 is (-z, 1)/pivot, where the pivot is s.(y - B s) and
        Psi (-z, 1) is y - B s: one inverse tests the pair and serves the spectrum afterwards.
        """
        SS, lower, upper, YY = grams
        PsiPsi = YY - gamma * (lower + upper) + gamma * gamma * SS
        M_inverse, regular = invert(lower - gamma * SS)
        column, inverse_pivot = M_inverse[:, -1], abs(M_inverse[-1, -1])
        residual = max(0.0, column @ PsiPsi @ column) ** 0.5  # |y - B s| / |pivot|
        known = residual <= 8 * self.refusal * (YY[-1, -1] ** 0.5 + gamma) * inverse_pivot
        if not regular or known or not self.refusal * residual < 1:
            return False
        self._compact = Compact(PsiPsi, M_inverse)
        return True

    @np.errstate(all="ignore")
    def solve(self, g: Tensor) -> Tensor:
        gamma = self.gamma
        if not self.learned:
            return g / gamma
        seen, grams = self.pairs.seen(g), self.pairs.grams
        N_inverse, _ = invert(grams.upper - grams.YY / gamma)
        z = N_inverse @ (seen.Sg - seen.Yg / gamma)
        return self.pairs.combine(z, -z / gamma, 1 / gamma, g)

    def compact(self) -> Compact:
        return self._compact

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        super().restore(state, at)
        if self.learned:
            self.accepts(self.pairs.grams, self.gamma)

    def onto(self, Sv: np.ndarray, Yv: np.ndarray) -> np.ndarray:
        return Yv - self.gamma * Sv

    def spread(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -self.gamma * z, z
