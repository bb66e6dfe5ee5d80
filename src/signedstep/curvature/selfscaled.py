"""Self-scaled BFGS and Broyden: dense models that shrink or stretch H by 1/tau before they correct it.

What BFGS has learned wrongly about the scale it unlearns slowly; a factor on all of H corrects that at once. With
b = s.B s / s.y and h = y.H y / s.y, the family in Broyden's phi (1: BFGS, 0: DFP) is

    H+ = (H - H y y'H / y.H y + phi y.H y v v') / tau + s s' / s.y,   v = s / s.y - H y / y.H y

(Al-Baali and Khalfan 2005; Urban, Stefanou and Pons 2025, J. Comput. Phys. 523, "Unveiling the optimization process of
physics informed neural networks", section 3; Kiyani et al. 2025, arXiv:2501.16371).
"""

import math
from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from signedstep.curvature.dense import Correction, Dense, Pair


class Scaling(NamedTuple):
    """The factor 1/tau on H, and the place phi in Broyden's family."""

    tau: float = 1.0
    phi: float = 1.0


class SelfScaled(Dense):
    """H stays positive definite: pairs are refused as by BFGS, and tau > 0, phi > -1/(b h - 1).

    The first pair is plain BFGS, since gamma scales H there.
    """

    definite = True

    def correction(self, pair: Pair) -> Correction | None:
        s, y, Hy, _, noise = pair
        sy, yHy = float(s @ y), float(y @ Hy)
        if not (sy > noise and 0 < yHy < math.inf):
            return None
        tau, phi = self._scaling(pair, sy, yHy / sy)
        v = (s / sy - Hy / yHy) * math.sqrt(abs(phi) * yHy / tau)
        U = torch.stack((Hy / math.sqrt(yHy * tau), v, s / math.sqrt(sy)), dim=1)
        # Signs only: products of U's entries keep H symmetric to the last bit, which 1/tau > 1 would else undo.
        signs = torch.tensor([-1.0, math.copysign(1.0, phi), 1.0], dtype=s.dtype, device=s.device)
        return Correction(U, signs.diag(), 1 / tau)

    def _scaling(self, pair: Pair, sy: float, h: float) -> Scaling:
        """That of the method, or of BFGS where B along s is not known or its curvature is lost in rounding."""
        if not self.learned:
            return Scaling()
        b = self._model_curvature(pair.s, pair.g) / sy
        if not 0 < b < math.inf:
            return Scaling()
        found = self.scaling(b, h, len(pair.s))
        return found if all(map(math.isfinite, found)) and found.tau > 0 else Scaling()

    @abstractmethod
    def scaling(self, b: float, h: float, n: int) -> Scaling:
        """tau and phi from the curvature of B along s and that of H along y, both relative to s.y; b h >= 1."""

    def _model_curvature(self, s: Tensor, g: Tensor) -> float:
        """s.B s, although only H is kept: from s = -t H g follows B s = -t g. Other steps cost a solution, O(n^3).

        What is left of s beside H g is rounding of x while it is small, and B would only magnify it.
        """
        d = self.H @ g
        square = float(d @ d)
        t = float(s @ d) / square if square > 0 else 0.0
        if float((s - t * d).norm()) <= self.eps**0.25:
            return t * float(s @ g)
        z, _ = torch.linalg.solve_ex(self.H, s)
        return float(s @ z)


class SSBFGS(SelfScaled):
    """Self-scaled BFGS (Oren and Luenberger 1974) with Al-Baali's (1998) tau = min(1, s.y / s.B s)."""

    def scaling(self, b: float, h: float, n: int) -> Scaling:
        return Scaling(min(1.0, 1 / b))


class SSBroyden(SelfScaled):
    """Self-scaled Broyden with tau and phi of Al-Baali and Khalfan (2005), as PINN papers use it.

    With a = b h - 1, c = sqrt(a / (a + 1)) and rho = min(1, h (1 - c)), theta (the dual of phi, 0 for BFGS) is 1/b - 1,
    kept between (rho - 1) / a and 1 / rho. With sigma = 1 + a theta and r = min(1, 1/b), phi = (1 - theta) / sigma and

    - tau = r min(sigma^(-1/(n-1)), 1/theta) for theta > 0,
    - tau = min(r sigma^(-1/(n-1)), sigma)   else.
    """

    def scaling(self, b: float, h: float, n: int) -> Scaling:
        a, shrink = b * h - 1, min(1.0, 1 / b)
        if not a > torch.finfo(torch.float64).eps:
            return Scaling(shrink)  # s and H y are parallel, and phi has no effect
        c = math.sqrt(a / (a + 1))
        rho = min(1.0, h / ((1 + a) * (1 + c)))  # 1 - c without cancellation
        theta = max((rho - 1) / a, min(1 / rho, 1 / b - 1))
        sigma = max(rho, 1 + a * theta)  # rho where theta is at its lower bound, whatever rounding says
        spread = sigma ** (-1 / (n - 1)) if n > 1 else 1.0
        tau = shrink * min(spread, 1 / theta) if theta > 0 else min(shrink * spread, sigma)
        return Scaling(tau, (1 - theta) / sigma)
