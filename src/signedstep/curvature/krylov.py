"""Models that are known by their products with vectors only: Lanczos' method finds the part of B that g can see."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from signedstep import spectrum as rules
from signedstep.curvature.base import OVERFLOWS, Curvature, refusal_threshold
from signedstep.curvature.lanczos import Subspace
from signedstep.curvature.symmetric import eigen
from signedstep.objective import HasGaussNewton, HasHessianProducts, Objective, Point, Product
from signedstep.space import Space
from signedstep.spectrum import Spectrum

LOOSEST = 0.1
"""The largest relative residual that a Krylov space may leave."""


class Krylov(Curvature):
    """B on the Krylov space of the gradient, span(g, Bg, B^2 g, ...), of at most `size` vectors.

    The space is built when it is first wanted at a point and kept while the point stays. It ends where -B^-1 g is known
    to a relative residual of `tolerance`; None: a tenth, and less while the gradient falls fast (Eisenstat and Walker
    1996, choice 2), which keeps convergence superlinear.

    The gradient may be orthogonal to directions of negative curvature. A spectrum of a model that may be indefinite
    therefore looks further if it has seen no negative curvature: a second start, at the lowest eigenvector of the
    last point (B times a random vector at first, and where the gradient sees that one), costs a quarter of the products
    again; as many again (or 10) where the gradient falls fast, as it does next to saddles, or the first space is
    invariant, so that the rest of B is unknown. `trust` and `cubic` step along what it finds, with a sign that is as
    arbitrary as the random vector's.
    """

    def __init__(self, space: Space, size: int, tolerance: float | None):
        self.space, self.size, self.tolerance = space, size, tolerance

    @abstractmethod
    def products(self, objective: Objective, at: Point) -> Product:
        """The products of this model at a point."""

    def start(self, objective: Objective, at: Point) -> None:
        self._probe: Tensor | None = None
        self._forcing = LOOSEST
        self.move(objective, at)

    def move(self, objective: Objective, at: Point) -> None:
        self.objective, self.at = objective, at
        self._forgotten, self._looked_further = False, False
        self._subspace: Subspace | None = None
        self._product: Product | None = None  # holds a graph: free it before the next one is made

    def forget(self, objective: Objective, at: Point) -> None:
        self._forgotten = True

    def update(self, old: Point, new: Point) -> bool:
        if self._looked_further and self._subspace:
            self._probe = self._lowest(self._subspace)
        before, after = self.space.square(old.g), self.space.square(new.g)
        self._forcing = min(LOOSEST, max(0.9 * after / before, refusal_threshold(new.g.dtype)))
        self.move(self.objective, new)
        return True

    def learn_from_refused(self, at: Point, tried: Point) -> None:
        """Nothing to learn: B is evaluated at the point where the model stays."""

    def informed(self) -> bool:
        return not self._forgotten and self._krylov_space(self.at.g).k > 0

    @property
    def forgettable(self) -> bool:
        return not self._forgotten and (self._subspace is None or self._subspace.k > 0)

    def solve(self, g: Tensor) -> Tensor:
        if not self.informed():
            return g.clone()
        w, c, lift = self._diagonalised(self._krylov_space(g), g)
        return lift(-rules.newton(w, c))

    def spectrum(self, g: Tensor) -> Spectrum:
        if not self.informed():
            return rules.along(g, math.sqrt(self.space.square(g)), 1.0)
        subspace = self._krylov_space(g)
        if not (self.definite or self._looked_further):
            self._looked_further = True
            if self._product is not None:
                self._look_further(subspace, self._product)
        return self._diagonalised(subspace, g)

    def matrix(self) -> Tensor:
        n = self.at.x.numel()
        eye = torch.eye(n, dtype=self.at.x.dtype, device=self.at.x.device)
        if not self.informed() or self._product is None:
            return eye.double()
        try:
            product = self._product
            B = torch.stack([product(row) for row in eye]).double()
        except OVERFLOWS:
            return eye.double()
        return (B + B.T) / 2

    def state(self, at: Point) -> dict[str, Any]:
        probe = None if self._probe is None else self._probe.clone()
        return {"probe": probe, "forcing": self._forcing, "forgotten": self._forgotten}

    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        self.move(self.objective, at)
        self._probe = None if state["probe"] is None else state["probe"].to(at.x)
        self._forcing, self._forgotten = state["forcing"], state["forgotten"]

    def _krylov_space(self, g: Tensor) -> Subspace:
        """The Krylov space of g; empty where products overflow."""
        if self._subspace is None or g is not self._start:
            self._start, self._looked_further = g, False
            self._subspace = Subspace(self.space, g)
            try:
                self._product = product = self.products(self.objective, self.at)
                tolerance = self._forcing if self.tolerance is None else self.tolerance
                self._subspace.solve(product, g, tolerance, self.size)
            except OVERFLOWS:
                self._subspace.broken = True
        return self._subspace

    def _look_further(self, subspace: Subspace, product: Product) -> None:
        """Look for negative curvature that the gradient does not see."""
        near = subspace.invariant or self._forcing < LOOSEST
        count = max(subspace.k, 10) if near else 1 + subspace.k // 4
        try:
            if self._probe is not None and subspace.look(product, self._probe, count):
                return
            if subspace.k < subspace.n:  # from within the range of B: what f does not depend on stays where it is
                subspace.look(product, product(self._random()), count)
        except OVERFLOWS:
            subspace.broken = True

    def _random(self) -> Tensor:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(len(self.at.x), generator=generator, dtype=torch.float64, device="cpu").to(self.at.x)

    def _diagonalised(self, subspace: Subspace, g: Tensor) -> Spectrum:
        w, Q = eigen(subspace.T)
        V, size = subspace.V, math.sqrt(self.space.square(g))

        def lift(a: np.ndarray) -> Tensor:
            return self.space.combine(Q @ a, V, 0.0, g)

        return Spectrum(w, size * Q[0], lift)

    def _lowest(self, subspace: Subspace) -> Tensor:
        _, Q = eigen(subspace.T)
        return self.space.combine(Q[:, 0].copy(), subspace.V, 0.0, self.at.g)


class NewtonCG(Krylov):
    """The Hessian, by its products: k of them an iteration, O(kn) memory."""

    definite = False

    def products(self, objective: Objective, at: Point) -> Product:
        if not isinstance(objective, HasHessianProducts):
            raise TypeError("newton-cg needs an objective with products with its Hessian")
        return objective.hvp(at)


class GaussNewton(Krylov):
    """The generalised Gauss-Newton matrix (Schraudolph 2002), by its products: g lies in its range."""

    definite = True

    def products(self, objective: Objective, at: Point) -> Product:
        return _squared(objective, "gauss-newton").gauss_newton(at)


class Natural(Krylov):
    """The Fisher information, by its products (Amari 1998), exact or from `samples` labels drawn at each example."""

    definite = True

    def __init__(self, space: Space, size: int, tolerance: float | None, samples: int):
        super().__init__(space, size, tolerance)
        self.samples = samples

    def products(self, objective: Objective, at: Point) -> Product:
        return _squared(objective, "natural").fisher(at, self.samples)


def _squared(objective: Objective, name: str) -> HasGaussNewton:
    if not isinstance(objective, HasGaussNewton):
        raise TypeError(f"{name} needs residuals (signedstep.LeastSquares) or a module (signedstep.ModuleLoss)")
    return objective
