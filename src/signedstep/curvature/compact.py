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

from signedstep.curvature.limited import Limited
from signedstep.curvature.lowrank import Eigen, diagonalise, pencil, positive
from signedstep.curvature.pairs import Grams
from signedstep.curvature.symmetric import invert, solve_upper
from signedstep.objective import Objective, Point


class Compact(NamedTuple):
    """B = gamma I + Psi M^-1 Psi', as far as small matrices know it."""

    PsiPsi: np.ndarray
    M: np.ndarray


class CompactModel(Limited):
    """A limited-memory model by its compact form of B."""

    @abstractmethod
    def compact(self) -> Compact:
        """The compact form of B; at least one pair has been learned."""

    def matrix(self) -> Tensor:
        B = self.gamma * np.eye(self.pairs.rows.shape[1])
        if self.learned:
            Psi = self.onto(*self.pairs.vectors())
            B += Psi.T @ invert(self.compact().M)[0] @ Psi
        return torch.from_numpy(B)


class LBFGS(CompactModel):
    """L-BFGS: positive definite, solved by the inverse compact form (their theorem 2.2)."""

    definite = True

    def accepts(self, grams: Grams, gamma: float) -> bool:
        """s.y > r |s| |y|: positive curvature, not just rounding."""
        return bool(grams.upper[-1, -1] > self.refusal * grams.YY[-1, -1] ** 0.5)

    def inverse(self, Sg: np.ndarray, Yg: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        gamma, (_, _, upper, YY, _) = self.gamma, self.pairs.grams
        a = solve_upper(upper, Sg)
        b = solve_upper(upper, upper.diagonal() * a + (YY @ a - Yg) / gamma, transposed=True)
        return b, -a / gamma, 1 / gamma

    def compact(self) -> Compact:
        """Their theorem 2.3, with Psi = [gamma S, Y]."""
        self.pairs.track_s()
        SS, lower, upper, YY, _ = self.pairs.grams
        D = np.diag(upper.diagonal())
        L, SY = np.tril(lower, -1), np.triu(upper) + np.tril(lower, -1)
        PsiPsi = np.block([[self.gamma * self.gamma * SS, self.gamma * SY], [self.gamma * SY.T, YY]])
        return Compact(PsiPsi, -np.block([[self.gamma * SS, L], [L.T, -D]]))

    def diagonalised(self) -> tuple[Eigen, float]:
        PsiPsi, M = self.compact()
        return positive(diagonalise(self.gamma, PsiPsi, invert(M)[0], self.rank), self.gamma), self.gamma

    def onto(self, Sv: np.ndarray, Yv: np.ndarray) -> np.ndarray:
        return np.concatenate((self.gamma * Sv, Yv))

    def spread(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = self.learned
        return self.gamma * z[:k], z[k:]


class LSR1(CompactModel):
    """L-SR1: free to be indefinite (their theorem 5.1, and its dual for the inverse)."""

    definite = False

    def start(self, objective: Objective, at: Point) -> None:
        super().start(objective, at)
        self.pairs.track_s()

    def accepts(self, grams: Grams, gamma: float) -> bool:
        """Whether |s.(y - B s)| >= r |s| |y - B s| for the B without the newest pair (Nocedal-Wright, equation 6.26).

        With Psi and M of all pairs, the last column of M^-1 is (-z, 1)/pivot, where the pivot is s.(y - B s) and
        Psi (-z, 1) is y - B s. A pair of which nothing is left but the rounding of that sum is known already: where s
        is nearly a combination of those before it, its terms are much longer than y.
        """
        PsiPsi, M = compact = _sr1(grams, gamma)
        M_inverse, regular = invert(M)
        column = M_inverse[:, -1]
        residual = max(0.0, column @ PsiPsi @ column) ** 0.5  # |y - B s| / |pivot|
        new = 8 * (grams.YY[-1, -1] ** 0.5 + gamma) * abs(column[-1])
        known = residual <= self.refusal * max(new, np.abs(column) @ np.sqrt(PsiPsi.diagonal()))
        if not regular or known or not self.refusal * residual < 1:
            return False
        self._compact = compact
        return True

    def inverse(self, Sg: np.ndarray, Yg: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        gamma, grams = self.gamma, self.pairs.grams
        N_inverse, _ = invert(grams.upper - grams.YY / gamma)
        z = N_inverse @ (Sg - Yg / gamma)
        return z, -z / gamma, 1 / gamma

    def compact(self) -> Compact:
        return self._compact

    def diagonalised(self) -> tuple[Eigen, float]:
        PsiPsi, M = self._compact
        n = self.space.dimension(self.pairs.rows[0])
        return pencil(self.gamma, PsiPsi, M, self.rank * PsiPsi.diagonal(), n), self.gamma

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        super().restore(state, at)
        if self.learned:
            self._compact = _sr1(self.pairs.grams, self.gamma)

    def onto(self, Sv: np.ndarray, Yv: np.ndarray) -> np.ndarray:
        return Yv - self.gamma * Sv

    def spread(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -self.gamma * z, z


def _sr1(grams: Grams, gamma: float) -> Compact:
    """L-SR1 of some pairs."""
    SS, lower, upper, YY, _ = grams
    return Compact(YY - gamma * (lower + upper) + gamma * gamma * SS, lower - gamma * SS)
