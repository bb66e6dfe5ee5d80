"""Curvature models: what is known about the Hessian."""

from signedstep.curvature.base import Curvature
from signedstep.curvature.dense import BFGS, SR1
from signedstep.curvature.exact import Exact
from signedstep.curvature.gamma import Gamma
from signedstep.curvature.identity import Identity
from signedstep.curvature.limited import LBFGS, LSR1

__all__ = ["BFGS", "LBFGS", "LSR1", "SR1", "Curvature", "Exact", "Gamma", "Identity"]
