"""Curvature models: what is known about the Hessian. `base` has the contract.

- Learned from pairs (s, y): `identity` and `conjugate`; n x n matrices in `dense` and `selfscaled`; limited memory in
  `compact` (L-BFGS, L-SR1) and `mix` (whose `experts` are several models of the same pairs), on what they share:
  `limited` and its `pairs`.
- Known at one point: `local`, with the Hessian in `exact` and Kronecker factors in `kfac`; `krylov`, by products with
  vectors, on the basis that `lanczos` builds.
- Beneath them: `gamma`, the curvature where nothing is learned; algebra of small matrices in `lowrank` and `symmetric`.
"""

from signedstep.curvature.base import Curvature
from signedstep.curvature.compact import LBFGS, LSR1
from signedstep.curvature.conjugate import BETAS, ConjugateGradient
from signedstep.curvature.dense import BFGS, SR1
from signedstep.curvature.exact import Exact
from signedstep.curvature.gamma import Gamma
from signedstep.curvature.identity import Identity
from signedstep.curvature.kfac import KFAC
from signedstep.curvature.krylov import GaussNewton, Natural, NewtonCG
from signedstep.curvature.mix import Mix, Mixing
from signedstep.curvature.selfscaled import SSBFGS, SSBroyden

__all__ = [
    "BETAS",
    "BFGS",
    "KFAC",
    "LBFGS",
    "LSR1",
    "SR1",
    "SSBFGS",
    "ConjugateGradient",
    "Curvature",
    "Exact",
    "Gamma",
    "GaussNewton",
    "Identity",
    "Mix",
    "Mixing",
    "Natural",
    "NewtonCG",
    "SSBroyden",
]
