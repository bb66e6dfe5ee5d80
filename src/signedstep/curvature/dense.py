"""Dense BFGS and SR1: one n x n buffer holds H = B^-1 and takes updates of rank two or one."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from signedstep.curvature.base import Curvature, refusal_threshold
from signedstep.curvature.gamma import Gamma
from signedstep.objective import Objective, Point
from signedstep.spectrum import Spectrum


class Dense(Curvature):
    """H in float64, whatever the precision of the vectors: a direction costs one product, O(n^2).

    The first pair also sets the scale, H = I/gamma (Nocedal-Wright 2006, equation 6.20).
    """

    def __init__(self, gamma: Gamma):
        self.policy = gamma

    def start(self, objective: Objective, at: Point) -> None:
        self.refusal = refusal_threshold(at.x.dtype)
        self.learned = 0
        self.H = torch.eye(at.x.numel(), dtype=torch.float64, device=at.x.device)

    def update(self, old: Point, new: Point) -> bool:
        s, y = new.x.double() - old.x.double(), new.g.double() - old.g.double()
        length = float(s.norm())
        if not 0 < length < float("inf"):
            return False
        s, y = s / length, y / length  # both updates are invariant to the length of the pair
        if self.learned:
            return self._correct(s, y, self.H @ y)
        return any(
            self._correct(s, y, y / gamma, gamma)
            for gamma in self.policy.candidates(1.0, float(s @ y), float(y @ y), previous=1.0)
        )

    def _correct(self, s: Tensor, y: Tensor, Hy: Tensor, gamma: float | None = None) -> bool:
        """Add the correction for a pair to H, or to I/gamma; False if it is refused."""
        factors = self.correction(s, y, Hy)
        if factors is None:
            return False
        if gamma is not None:
            self.H.zero_().diagonal().fill_(1 / gamma)
        U, K = factors
        self.H.addmm_(U @ K, U.T)
        self.learned += 1
        return True

    @abstractmethod
    def correction(self, s: Tensor, y: Tensor, Hy: Tensor) -> tuple[Tensor, Tensor] | None:
        """U and K of the update H + U K U', so that H y = s holds after it; None refuses the pair."""

    def solve(self, g: Tensor) -> Tensor:
        return (self.H @ g.double()).to(g.dtype)

    def spectrum(self, g: Tensor) -> Spectrum:
        h, V = torch.linalg.eigh(self.H)
        noise = torch.finfo(h.dtype).eps * h.abs().max()
        h = torch.where((h < 0) & (h > -noise), 0.0, h)  # a sign that is rounding: no huge negative curvature, but inf
        c = V.T @ g.double()

        def lift(a) -> Tensor:
            return (V @ torch.as_tensor(a, dtype=V.dtype, device=V.device)).to(g.dtype)

        return Spectrum(h.reciprocal().cpu().numpy(), c.cpu().numpy(), lift)

    def matrix(self) -> Tensor:
        h, V = torch.linalg.eigh(self.H)
        return (V / h) @ V.T

    def state(self, at: Point) -> dict[str, Any]:
        return {"H": self.H.clone(), "learned": self.learned}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.H.copy_(state["H"])
        self.learned = state["learned"]


class BFGS(Dense):
    """Broyden, Fletcher, Goldfarb, Shanno (Nocedal-Wright 2006, equation 6.17)."""

    definite = True

    def correction(self, s: Tensor, y: Tensor, Hy: Tensor) -> tuple[Tensor, Tensor] | None:
        sy = float(s @ y)
        if not sy > self.refusal * float(y.norm()):
            return None
        K = torch.tensor([[(1 + float(y @ Hy) / sy) / sy, -1 / sy], [-1 / sy, 0.0]], dtype=s.dtype, device=s.device)
        return torch.stack((s, Hy), dim=1), K


class SR1(Dense):
    """Symmetric rank one (Nocedal-Wright 2006, equation 6.25), free to be indefinite.

    The refusal rule is the dual of their equation 6.26: |y.(s - H y)| >= r |y| |s - H y|.
    """

    definite = False

    def correction(self, s: Tensor, y: Tensor, Hy: Tensor) -> tuple[Tensor, Tensor] | None:
        u = s - Hy
        size, denominator = float(u.norm()), float(u @ y)
        already_known = size <= self.refusal * (1 + float(Hy.norm()))
        if already_known or not abs(denominator) > self.refusal * size * float(y.norm()):
            return None
        return u[:, None], torch.tensor([[1 / denominator]], dtype=s.dtype, device=s.device)
