"""All curvature models and globalizations by name, with their defaults, and the options that shape them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from signedstep import plane, spectrum
from signedstep.alongline import BEYOND, Modified, Raw
from signedstep.checks import check_choice, check_count, check_fraction
from signedstep.curvature import (
    BETAS,
    BFGS,
    KFAC,
    LBFGS,
    LSR1,
    SR1,
    SSBFGS,
    ConjugateGradient,
    Curvature,
    Exact,
    Gamma,
    GaussNewton,
    Identity,
    Mix,
    Mixing,
    Natural,
    NewtonCG,
    SSBroyden,
)
from signedstep.engine import ON_FAILURE
from signedstep.globalization import Globalization
from signedstep.linesearch import CURVATURE_CONDITIONS, SEARCHES, Armijo, Signed, Wolfe
from signedstep.region import Cubic, Region, TrustRegion
from signedstep.space import Space
from signedstep.steihaug import steihaug


@dataclass(frozen=True)
class Settings:
    """The options that shape a method. None: the default of the curvature model."""

    history_size: int | None = None
    gamma: Any = None
    floor: float | None = None
    c1: float = 1e-4
    c2: float | None = None
    condition: str | None = None
    search: str | None = None
    max_linesearch: int = 30
    beta: str = "pr+"
    mixing: Mixing | None = None
    krylov_size: int = 50
    krylov_tol: float | None = None
    fisher_samples: int = 0
    delta: float | None = None
    on_failure: str | None = None

    def __post_init__(self) -> None:
        for name, least in (("max_linesearch", 1), ("krylov_size", 1), ("fisher_samples", 0)):
            object.__setattr__(self, name, check_count(name, getattr(self, name), least=least))
        if self.history_size is not None:
            object.__setattr__(self, "history_size", check_count("history_size", self.history_size, least=1))
        check_fraction("c1", self.c1)
        check_choice("beta", self.beta, BETAS)
        if self.condition is not None:
            check_choice("condition", self.condition, (*CURVATURE_CONDITIONS, "armijo"))
        if self.search is not None:
            check_choice("search", self.search, SEARCHES)
        if self.on_failure is not None:
            check_choice("on_failure", self.on_failure, ON_FAILURE)
        for name in ("c2", "floor", "krylov_tol", "delta"):
            if getattr(self, name) is not None:
                check_fraction(name, getattr(self, name))

    @property
    def pairs(self) -> int:
        """How many pairs limited-memory models keep."""
        return 20 if self.history_size is None else self.history_size


PARTS = {
    "LeastSquares": "residuals (signedstep.LeastSquares)",
    "ModuleLoss": "a module (signedstep.ModuleLoss)",
}
"""In words, for messages: what each class shows of an objective."""


class Model(NamedTuple):
    """A curvature model and its defaults."""

    text: str
    make: Callable[[Settings, Gamma, Space], Curvature]
    globalization: str
    gamma: str = "identity"
    """For models that begin with a multiple of the identity."""
    floor: float = 1e-14
    c2: float = 0.9
    condition: str = "strong"
    no_spectrum: str = ""
    """Why it has no spectrum; globalizations that need one are refused with these words."""
    needs_hessian: bool = False
    needs_products: bool = False
    needs_parts: tuple[str, ...] = ()
    """Where f alone is not enough: the classes that show its parts, of which it takes any."""


class Knobs(NamedTuple):
    """What globalizations are made with; each takes what it needs."""

    space: Space
    floor: float
    delta: float
    c1: float
    rounding: float
    trials: int
    """The most trials of one iteration."""
    make_search: Callable[[], Armijo | Wolfe]

    def line(self, rule: Callable[..., np.ndarray], **how: Any) -> Modified:
        """A line search along what a rule makes of the spectrum; `how` far it goes first."""
        return Modified(rule, self.floor, self.make_search(), self.delta, self.space, **how)

    def region(self, kind: type[Region], **how: Any) -> Region:
        """A bounded model."""
        return kind(self.space, self.c1, self.rounding, self.trials, **how)


class Strategy(NamedTuple):
    """A globalization."""

    text: str
    make: Callable[[Knobs], Globalization]
    needs_spectrum: bool = True


CURVATURES: dict[str, Model] = {
    "gd": Model(
        "gradient descent, scaled by the curvature along the last step",
        lambda settings, gamma, space: Identity(gamma, space),
        "wolfe",
        gamma="sy/ss",
    ),
    "cg": Model(
        "nonlinear conjugate gradients",
        lambda settings, gamma, space: ConjugateGradient(settings.beta, space),
        "wolfe",
        c2=0.1,  # a beta stands on the slope along the last direction being nearly zero
        no_spectrum="cg has no curvature model, only a direction",
    ),
    "bfgs": Model("dense BFGS", lambda settings, gamma, space: BFGS(gamma), "wolfe", gamma="yy/sy"),
    "ssbfgs": Model("dense self-scaled BFGS", lambda settings, gamma, space: SSBFGS(gamma), "wolfe", gamma="yy/sy"),
    "ssbroyden": Model(
        "dense self-scaled Broyden", lambda settings, gamma, space: SSBroyden(gamma), "wolfe", gamma="yy/sy"
    ),
    "sr1": Model("dense symmetric rank one", lambda settings, gamma, space: SR1(gamma), "wolfe+-", gamma="norm"),
    "lbfgs": Model(
        "limited-memory BFGS",
        lambda settings, gamma, space: LBFGS(settings.pairs, gamma, space),
        "wolfe",
        gamma="yy/sy",
    ),
    "lsr1": Model(
        "limited-memory symmetric rank one",
        lambda settings, gamma, space: LSR1(settings.pairs, gamma, space),
        "flip",
        gamma="0.1*norm",
        floor=1e-3,
    ),
    "mix": Model(
        "L-BFGS and sign-corrected L-SR1 models of the same pairs, weighted by hindsight",
        lambda settings, gamma, space: Mix(
            settings.pairs, settings.mixing or Mixing(), space, asked=settings.history_size is not None
        ),
        "wolfe",
        c2=0.999,  # it learns from any pair, so that only a step that is far too short is worth another evaluation
        condition="weak",
    ),
    "newton": Model("the exact Hessian", lambda settings, gamma, space: Exact(), "trust", needs_hessian=True),
    "newton-cg": Model(
        "the Hessian, by its products with vectors",
        lambda settings, gamma, space: NewtonCG(space, settings.krylov_size, settings.krylov_tol),
        "trust",
        needs_products=True,
    ),
    "gauss-newton": Model(
        "the generalised Gauss-Newton matrix, by its products",
        lambda settings, gamma, space: GaussNewton(space, settings.krylov_size, settings.krylov_tol),
        "trust",
        needs_parts=("LeastSquares", "ModuleLoss"),
    ),
    "natural": Model(
        "the Fisher information, by its products",
        lambda settings, gamma, space: Natural(
            space, settings.krylov_size, settings.krylov_tol, settings.fisher_samples
        ),
        "trust",
        needs_parts=("LeastSquares", "ModuleLoss"),
    ),
    "kfac": Model(
        "the Fisher information as Kronecker products, one for each layer",
        lambda settings, gamma, space: KFAC(settings.fisher_samples),
        "trust",
        needs_parts=("ModuleLoss",),
    ),
}

GLOBALIZATIONS: dict[str, Strategy] = {
    "wolfe": Strategy(
        "raw direction, positive steps only",
        lambda knobs: Raw(knobs.make_search(), knobs.delta, knobs.space),
        needs_spectrum=False,
    ),
    "wolfe+-": Strategy(
        "raw direction, a negative step where it points uphill (the paper's)",
        lambda knobs: Raw(Signed(knobs.make_search()), knobs.delta, knobs.space),
        needs_spectrum=False,
    ),
    "flip": Strategy(
        "a sign for each eigendirection: -|B|^-1 g",
        lambda knobs: knobs.line(spectrum.flip, steady=1.5),
    ),
    "clip": Strategy(
        "negative eigenvalues replaced by a small positive one",
        lambda knobs: knobs.line(spectrum.clip, reach=BEYOND),
    ),
    "damp": Strategy(
        "all eigenvalues moved up by the most negative one",
        lambda knobs: knobs.line(spectrum.damp, reach=BEYOND),  # not steady: the shift jumps from step to step
    ),
    "damp-dense": Strategy(
        "damp by an O(n^3) eigendecomposition of the n x n matrix, as in the paper",
        lambda knobs: knobs.line(spectrum.damp, dense=True, reach=BEYOND),
    ),
    "trust": Strategy(
        "the least of the model within a radius that follows its success",
        lambda knobs: knobs.region(TrustRegion),
    ),
    "dogleg": Strategy(
        "within that radius, the path by Cauchy's point to Newton's, or along the lowest eigenvector",
        lambda knobs: knobs.region(TrustRegion, rule=plane.dogleg),
    ),
    "subspace": Strategy(
        "within that radius, the least of the model over the plane of g and B^-1 g, made positive if need be",
        lambda knobs: knobs.region(TrustRegion, rule=plane.subspace),
    ),
    "steihaug": Strategy(
        "conjugate gradients on the model up to a radius or to negative curvature",
        lambda knobs: knobs.region(TrustRegion, rule=steihaug),
    ),
    "cubic": Strategy(
        "the least of the model with a cubic term that follows its success",
        lambda knobs: knobs.region(Cubic),
    ),
}
