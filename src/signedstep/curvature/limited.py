"""Limited-memory BFGS and SR1 in compact form (Byrd, Nocedal and Schnabel 1994).

A direction costs O(mn) for two passes over the stored pairs and O(m^3) for the algebra between them, for raw
directions and for those made from the spectrum alike.
"""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from signedstep.curvature.base import Curvature, refusal_threshold
from signedstep.curvature.compact import diagonalise, solve_symmetric, solve_upper
from signedstep.curvature.gamma import Gamma
from signedstep.curvature.pairs import NewPair, Pairs
from signedstep.objective import Objective, Point
from signedstep.space import Space
from signedstep.spectrum import Spectrum


class Compact(NamedTuple):
    """B = gamma I + Psi M^-1 Psi', where Psi = S A + Y C."""

    gamma: float
    A: np.ndarray
    C: np.ndarray
    M: np.ndarray


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

    def update(self, old: Point, new: Point) -> bool:
        pair = self.pairs.measure(old, new)
        if pair is None:
            return False
        gamma = self.policy(1.0, pair.sy, pair.yy, self.gamma)
        if self.refuses(pair, gamma):
            return False
        self.gamma = gamma
        self.pairs.store(pair)
        return True

    @abstractmethod
    def refuses(self, pair: NewPair, gamma: float) -> bool:
        """Whether the pair would spoil the model."""

    @abstractmethod
    def compact(self) -> Compact:
        """The compact form of B."""

    def spectrum(self, g: Tensor) -> Spectrum:
        gamma, A, C, M = self.compact()
        SS, SY, YY = self.pairs.grams
        seen = self.pairs.products(g)
        PsiPsi = A.T @ SS @ A + A.T @ SY @ C + C.T @ SY.T @ A + C.T @ YY @ C
        w, V = diagonalise(gamma, PsiPsi, M) if len(M) else (np.zeros(0), np.zeros((0, 0)))
        SV, YV = A @ V, C @ V  # the eigenvectors are S SV + Y YV
        c = SV.T @ seen.Sg + YV.T @ seen.Yg
        rest = seen.gg - float(c @ c)  # the gradient's part that the pairs have not seen; there B is gamma
        outside = rest**0.5 if rest > 64 * np.finfo(float).eps * seen.gg else 0.0

        def lift(a: np.ndarray) -> Tensor:
            scale = float(a[-1]) / outside if outside else 0.0
            inside = a[:-1] - scale * c
            return self.pairs.combine(SV @ inside, YV @ inside, scale, g)

        return Spectrum(np.append(w, gamma), np.append(c, outside), lift)

    def matrix(self) -> Tensor:
        gamma, A, C, M = self.compact()
        rows = self.pairs.rows.double().cpu()
        order = torch.tensor(self.pairs.order, dtype=torch.long)
        Psi = rows[2 * order].T.numpy() @ A + rows[2 * order + 1].T.numpy() @ C
        return torch.from_numpy(gamma * np.eye(len(Psi)) + Psi @ solve_symmetric(M, np.ascontiguousarray(Psi.T)))


class LBFGS(Limited):
    """L-BFGS: positive definite, solved by the inverse compact form (their theorem 2.2)."""

    definite = True

    def refuses(self, pair: NewPair, gamma: float) -> bool:
        return not pair.sy > self.refusal * pair.yy**0.5

    def solve(self, g: Tensor) -> Tensor:
        _, SY, YY = self.pairs.grams
        seen, gamma = self.pairs.products(g), self.gamma
        if not len(SY):
            return g / gamma
        a = solve_upper(SY, seen.Sg)
        b = solve_upper(SY, np.diag(SY) * a + (YY @ a - seen.Yg) / gamma, transposed=True)
        return self.pairs.combine(b, -a / gamma, 1 / gamma, g)

    def compact(self) -> Compact:
        """Their theorem 2.3, with Psi = [gamma S, Y]."""
        SS, SY, _ = self.pairs.grams
        k, L = len(SY), np.tril(SY, -1)
        M = -np.block([[self.gamma * SS, L], [L.T, -np.diag(np.diag(SY))]])
        zero, one = np.zeros((k, k)), np.eye(k)
        return Compact(self.gamma, np.hstack((self.gamma * one, zero)), np.hstack((zero, one)), M)


class LSR1(Limited):
    """L-SR1: free to be indefinite (their theorem 5.1, and its dual for the inverse)."""

    definite = False

    def refuses(self, pair: NewPair, gamma: float) -> bool:
        """|s.(y - B s)| < r |s| |y - B s| for the B that the pair would be added to (Nocedal-Wright, equation 6.26).

        s.(y - B s) is the last pivot of M with the new pair, a Schur complement; y - B s = psi - Psi z.
        """
        dropped = int(len(self.pairs) == self.m)
        SS, SY, YY = (gram[dropped:, dropped:] for gram in self.pairs.grams)
        Ss, Ys, Sy, Yy = (column[dropped:] for column in pair[1:])
        onto_s = Ys - gamma * Ss  # Psi's, then psi.s for the new pair itself
        onto_psi = Yy - gamma * (Ys + Sy) + gamma * gamma * Ss
        z = solve_symmetric(_middle(SS, SY, gamma), onto_s[:-1])
        pivot = onto_s[-1] - onto_s[:-1] @ z
        PsiPsi = YY - gamma * (SY + SY.T) + gamma * gamma * SS
        residual = max(0.0, onto_psi[-1] - 2 * onto_psi[:-1] @ z + z @ PsiPsi @ z) ** 0.5
        already_known = residual <= self.refusal * (pair.yy**0.5 + gamma)
        return already_known or not abs(pivot) > self.refusal * residual

    def solve(self, g: Tensor) -> Tensor:
        _, SY, YY = self.pairs.grams
        seen, gamma = self.pairs.products(g), self.gamma
        R = np.triu(SY)
        N = R + np.triu(SY, 1).T - YY / gamma  # R + R' - D - Y'Y/gamma, with the upper triangle R
        z = solve_symmetric(N, seen.Sg - seen.Yg / gamma)
        return self.pairs.combine(z, -z / gamma, 1 / gamma, g)

    def compact(self) -> Compact:
        SS, SY, _ = self.pairs.grams
        one = np.eye(len(SY))
        return Compact(self.gamma, -self.gamma * one, one, _middle(SS, SY, self.gamma))


def _middle(SS: np.ndarray, SY: np.ndarray, gamma: float) -> np.ndarray:
    """M = D + L + L' - gamma S'S."""
    return np.tril(SY) + np.tril(SY, -1).T - gamma * SS
