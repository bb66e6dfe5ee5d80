"""The models that `mix` weighs: positive definite inverses H = h I + Z K Z' over the same stored pairs, Z = [S, Y].

They are made anew from the Gram matrices after each step, and act on vectors by their products with the pairs, so that
nothing here is n numbers long.
"""

from collections.abc import Sequence

import numpy as np

from signedstep.curvature.compact import pencil, solve_upper
from signedstep.curvature.pairs import Grams


class Scaled:
    """L-BFGS (Byrd, Nocedal and Schnabel 1994, theorem 2.2) over the pairs of positive curvature, s.y > r |s| |y|.

    The curvature where the pairs have seen nothing is that of the newest, y.y/s.y. With `long` there is a second
    version with the least curvature that they have seen.
    """

    positive = False
    """Whether the pairs have shown positive curvature only: L-BFGS, which looks at no other, cannot tell."""

    def __init__(self, refusal: float, long: bool = False):
        self.refusal, self.count = refusal, 1 + long

    def learn(self, grams: Grams) -> None:
        """Make the inverses anew; without a pair that they can use they are a multiple of the identity."""
        sy, yy = grams.upper.diagonal(), grams.YY.diagonal()
        positive = sy > self.refusal * np.sqrt(yy)
        self.used = slice(None) if positive.all() else np.flatnonzero(positive)
        self.upper, self.YY = grams.upper[self.used][:, self.used], grams.YY[self.used][:, self.used]
        known = len(self.upper) > 0
        h = [self.upper[-1, -1] / self.YY[-1, -1] if known else yy[-1] ** -0.5]
        if self.count > 1:
            h.append(1 / self.upper.diagonal().min() if known else h[0])
        self.h = np.array(h)

    def act(self, Sv: np.ndarray, Yv: np.ndarray, cs: np.ndarray, cy: np.ndarray) -> None:
        """Write K Z'v, the coefficients of S and of Y in a column for each version, from S'v and Y'v.

        They are zero before.
        """
        upper, used = self.upper, self.used
        if len(upper):
            a = solve_upper(upper, Sv[used])
            short, rest = upper.diagonal() * a, self.YY @ a - Yv[used]
            for i, h in enumerate(self.h):
                cs[used, i] = solve_upper(upper, short + h * rest, transposed=True)
                cy[used, i] = -h * a


class Flipped:
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

    def act(self, Sv: np.ndarray, Yv: np.ndarray, cs: np.ndarray, cy: np.ndarray) -> None:
        """Write K Z'v, the coefficients of S and of Y in a column for each version, from S'v and Y'v."""
        c = self.V.T @ (Yv - self.gamma * Sv)
        np.matmul(self.V, c[:, None] * self.change, out=cy)
        np.multiply(cy, -self.gamma, out=cs)
