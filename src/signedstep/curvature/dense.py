"""Dense BFGS and SR1: one n x n buffer holds H = B^-1 and takes updates of rank two or one."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from signedstep.curvature.base import Curvature
from signedstep.curvature.gamma import Gamma
from signedstep.objective import Objective, Point
from signedstep.rounding import UNITS
from signedstep.spectrum import Spectrum, of_eigenvectors


class Pair(NamedTuple):
    """A step s of length 1, the change y of the gradient over it, H y, and the gradient g where the step began."""

    s: Tensor
    y: Tensor
    Hy: Tensor
    g: Tensor
    noise: float
    """The length of what rounding of both gradients may leave in y."""


class Correction(NamedTuple):
    """The new H is scale H + U K U', with U of a few columns."""

    U: Tensor
    K: Tensor
    scale: float = 1.0


class Dense(Curvature):
    """H in float64, whatever the precision of the vectors: a direction costs one product, O(n^2).

    The first pair also sets the scale, H = I/gamma (Nocedal-Wright 2006, equation 6.20).
    """

    dense = True

    def __init__(self, gamma: Gamma):
        self.policy = gamma

    def start(self, objective: Objective, at: Point) -> None:
        self.eps = torch.finfo(at.x.dtype).eps
        self.learned = 0
        n = at.x.numel()
        try:
            self.H = torch.eye(n, dtype=torch.float64, device=at.x.device)
        except RuntimeError as error:
            message = f"there is no room for a matrix of {n} x {n} numbers: use a limited-memory model such as 'lbfgs'"
            raise MemoryError(message) from error

    def forget(self, objective: Objective, at: Point) -> None:
        self._reset()

    def update(self, old: Point, new: Point) -> bool:
        s, y = new.x.double() - old.x.double(), new.g.double() - old.g.double()
        length = float(s.norm())
        if not 0 < length < float("inf"):
            return False
        s, y = s / length, y / length  # the updates are invariant to the length of the pair
        g = old.g.double()
        noise = UNITS * self.eps * (float(g.norm()) + float(new.g.double().norm())) / length
        if self.learned:
            Hy = self.H @ y
            if not (self.definite and float(y @ Hy) < 0):
                return self._correct(Pair(s, y, Hy, g, noise))
            # Rounding has made H indefinite, and every pair would be refused from now on: start anew from this one.
        return any(
            self.can_begin(s, y, gamma) and self._correct(Pair(s, y, y / gamma, g, noise), gamma)
            for gamma in self.policy.candidates(1.0, float(s @ y), float(y @ y), previous=1.0)
        )

    def can_begin(self, s: Tensor, y: Tensor, gamma: float) -> bool:
        """Whether I/gamma may be corrected for a first pair."""
        return True

    def _reset(self, gamma: float = 1.0) -> None:
        self.H.zero_().diagonal().fill_(1 / gamma)
        self.learned = 0

    def _correct(self, pair: Pair, gamma: float | None = None) -> bool:
        """Correct H, or I/gamma, for a pair; False if it is refused."""
        change = self.correction(pair)
        if change is None:
            return False
        if gamma is not None:
            self._reset(gamma)
        self.H.addmm_(change.U @ change.K, change.U.T, beta=change.scale)
        self.learned += 1
        return True

    @abstractmethod
    def correction(self, pair: Pair) -> Correction | None:
        """The change after which H y = s holds; None refuses the pair."""

    def solve(self, g: Tensor) -> Tensor:
        return (self.H @ g.double()).to(g.dtype)

    def spectrum(self, g: Tensor) -> Spectrum:
        h, V = torch.linalg.eigh(self.H)
        noise = torch.finfo(h.dtype).eps * h.abs().max()
        h = torch.where((h < 0) & (h > -noise), 0.0, h)  # a sign that is rounding: no huge negative curvature, but inf
        return of_eigenvectors(h.reciprocal(), V, g)

    def matrix(self) -> Tensor:
        h, V = torch.linalg.eigh(self.H)
        return (V / h) @ V.T

    def state(self, at: Point) -> dict[str, Any]:
        return {"H": self.H.clone(), "learned": self.learned}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.H.copy_(state["H"])
        self.learned = state["learned"]


class BFGS(Dense):
    """Broyden, Fletcher, Goldfarb, Shanno (Nocedal-Wright 2006, equation 6.17).

    A pair is refused where s.y may be rounding, and only there. A bound on the angle between s and y would refuse more:
    where eigenvalues are far apart the two are nearly orthogonal, and from some point on every pair would go.
    """

    definite = True

    def correction(self, pair: Pair) -> Correction | None:
        s, y, Hy, _, noise = pair
        sy = float(s @ y)
        if not sy > noise:
            return None
        K = torch.tensor([[(1 + float(y @ Hy) / sy) / sy, -1 / sy], [-1 / sy, 0.0]], dtype=s.dtype, device=s.device)
        return Correction(torch.stack((s, Hy), dim=1), K)


class SR1(Dense):
    """Symmetric rank one (Nocedal-Wright 2006, equation 6.25), free to be indefinite.

    The refusal rule is the dual of their equation 6.26: |y.(s - H y)| >= r |y| |s - H y|, with an r of 2e-12 in float64
    and 6e-6 in float32: what is nearly orthogonal need not be noise.
    """

    definite = False

    @property
    def refusal(self) -> float:
        return self.eps**0.75

    def can_begin(self, s: Tensor, y: Tensor, gamma: float) -> bool:
        """Where s.(y - gamma s) = 0 the corrected H is singular, and so are all that come of it."""
        rest = y - gamma * s
        return abs(float(s @ rest)) > self.refusal * float(rest.norm())

    def correction(self, pair: Pair) -> Correction | None:
        s, y, Hy, *_ = pair
        u = s - Hy
        size, denominator, refusal = float(u.norm()), float(u @ y), self.refusal
        already_known = size <= refusal * (1 + float(Hy.norm()))
        if already_known or not abs(denominator) > refusal * size * float(y.norm()):
            return None
        return Correction(u[:, None], torch.tensor([[1 / denominator]], dtype=s.dtype, device=s.device))
