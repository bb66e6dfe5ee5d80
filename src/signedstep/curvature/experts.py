"""The models that `mix` weighs: positive definite inverses H = h I + Z K Z' over the same stored pairs, Z = [S, Y].

They are made anew from the Gram matrices after each step, and act on vectors by their products with the pairs, so that
nothing here is n numbers long. Products of several vectors are rows: `act` takes one vector's, or a matrix of them.
"""

from collections.abc import Sequence

import numpy as np

from signedstep.curvature.lowrank import pencil
from signedstep.curvature.pairs import Grams, NewPair
from signedstep.curvature.symmetric import multiply_below, solve_upper


class ScaledLBFGS:
    """L-BFGS (Byrd, Nocedal and Schnabel 1994, theorem 2.2) over the pairs of positive curvature, s.y > r |s| |y|.

    The curvature where the pairs have seen nothing is that of the newest, y.y/s.y. With `two_scales` there is a second
    version with the least curvature that they have seen.
    """

    positive = False
    """Whether the pairs have shown positive curvature only: L-BFGS, which looks at no other, cannot tell."""

    def __init__(self, refusal: float, two_scales: bool = False):
        self.refusal, self.count = refusal, 1 + two_scales

    def learn(self, grams: Grams) -> None:
        """Make the inverses anew; without a pair that they can use they are a multiple of the identity."""
        sy, yy = grams.upper.diagonal(), grams.YY.diagonal()
        positive = sy > self.refusal * np.sqrt(yy)
        self.used = slice(None) if positive.all() else np.flatnonzero(positive)
        self.SS, self.lower, self.upper, self.YY = grams.stacked[:, self.used][:, :, self.used]
        known = len(self.upper) > 0
        h = [self.upper[-1, -1] / self.YY[-1, -1] if known else yy[-1] ** -0.5]
        if self.count > 1:
            h.append(1 / self.upper.diagonal().min() if known else h[0])
        self.h = np.array(h)

    def act(self, Sv: np.ndarray, Yv: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the weighted mean adds to its h v: the coefficients of S and of Y in K Z'v, from S'v and Y'v."""
        cs, cy = np.zeros_like(Sv), np.zeros_like(Sv)
        if len(self.upper):
            a, right, rest = self._halfway(Sv[..., self.used], Yv[..., self.used])
            h = float(weights @ self.h)
            cs[..., self.used] = solve_upper(self.upper, float(weights.sum()) * right + h * rest, transposed=True)
            cy[..., self.used] = -h * a
        return cs, cy

    def say(self, pair: NewPair) -> list[tuple[float, float]]:
        """What each version says of a pair that it has not learned: s.(H y) and |H y|^2.

        With a = R^-1 S'y and its coefficients b of S, H y = h (y - Y a) + S b, and S'(y - Y a) = -L a.
        """
        if not len(self.upper):
            return [(h * pair.sy, h * h * pair.yy) for h in self.h.tolist()]
        Ss, Ys, Sy, Yy = pair.columns[:, :-1][:, self.used]
        a, right, rest = self._halfway(Sy, Yy)
        La, Ya_s, residual = multiply_below(self.lower, a), float(Ys @ a), pair.yy + float(a @ (rest - Yy))
        said = []
        for h in self.h.tolist():
            b = solve_upper(self.upper, right + h * rest, transposed=True)
            along, square = h * (pair.sy - Ya_s) + float(Ss @ b), h * h * residual
            said.append((along, square + float(b @ (self.SS @ b - 2 * h * La))))
        return said

    def _halfway(self, Sv: np.ndarray, Yv: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """a = R^-1 S'v, and the right side of R' b = D a + h (Y'Y a - Y'v) in its two parts."""
        a = solve_upper(self.upper, Sv)
        return a, self.upper.diagonal() * a, a @ self.YY.T - Yv


class FlippedLSR1:
    """L-SR1 with a sign for each eigendirection, |B|^-1, in several versions that share one spectrum.

    B = gamma I + Psi M^-1 Psi' with Psi = Y - gamma S is diagonalised once, for gamma = `spectrum` times |y|/|s|. A
    version has its own curvature where the pairs have seen nothing, `outside` times |y|/|s|, and its own floor under
    |w|, relative to the largest.
    """

    def __init__(self, spectrum: float, versions: Sequence[tuple[float, float]], rounding: float, n: int):
        self.spectrum, self.count, self.rounding, self.n = spectrum, len(versions), rounding, n
        self.outside, self.floors = np.array(versions, dtype=float).reshape(-1, 2).T
        self.positive = False

    def learn(self, grams: Grams) -> None:
        """Make the inverses anew, by the eigenvectors Psi V."""
        SS, lower, upper, YY, _ = grams
        size = float(YY[-1, -1]) ** 0.5  # |y|/|s|: the stored s are of length 1
        gamma = self.gamma = self.spectrum * size
        PsiPsi = YY - gamma * (lower + upper - gamma * SS)
        noise = self.rounding * (YY.diagonal() + gamma * gamma)
        w, self.V = pencil(gamma, PsiPsi, lower - gamma * SS, noise, self.n)
        sizes, self.positive = np.abs(w), bool((w > 0).all())
        largest = sizes[sizes < np.inf].max(initial=gamma)
        self.h = 1 / (self.outside * size)
        self.change = 1 / np.maximum(sizes[:, None], self.floors * largest) - self.h

    def act(self, Sv: np.ndarray, Yv: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the weighted mean adds to its h v: the coefficients of S and of Y in K Z'v, from S'v and Y'v."""
        c = (Yv - self.gamma * Sv) @ self.V
        cy = (c * (self.change @ weights)) @ self.V.T
        return -self.gamma * cy, cy

    def say(self, pair: NewPair) -> list[tuple[float, float]]:
        """What each version says of a pair that it has not learned: s.(H y) and |H y|^2.

        The eigenvectors are orthonormal, so the coordinates of s and y in them are enough.
        """
        Z = pair.columns[:, :-1].reshape(2, 2, -1)
        s, y = (Z[:, 1] - self.gamma * Z[:, 0]) @ self.V
        h, change = self.h, self.change
        along, squares = h * pair.sy + (s * y) @ change, h * h * pair.yy + (y * y) @ (change * (change + 2 * h))
        return list(zip(along.tolist(), squares.tolist(), strict=True))
