"""signedstep: second-order optimizers on PyTorch whose step may have a negative sign."""

from signedstep.curvature import Mixing
from signedstep.history import History, Record
from signedstep.methods import methods
from signedstep.minimize import minimize
from signedstep.module import ModuleLoss
from signedstep.optim import BFGS, LBFGS, LSR1, SR1, Mix, SecondOrder
from signedstep.residuals import LeastSquares
from signedstep.result import Result
from signedstep.scipy_method import method
from signedstep.status import Status

__version__ = "0.1.0.dev0"
__all__ = [
    "BFGS",
    "LBFGS",
    "LSR1",
    "SR1",
    "History",
    "LeastSquares",
    "Mix",
    "Mixing",
    "ModuleLoss",
    "Record",
    "Result",
    "SecondOrder",
    "Status",
    "method",
    "methods",
    "minimize",
]
