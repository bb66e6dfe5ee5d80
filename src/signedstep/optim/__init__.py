"""The torch.optim front: drop-in replacements for `torch.optim.LBFGS` on the same engine as `minimize`."""

from signedstep.optim.named import BFGS, LBFGS, LSR1, SR1, Mix
from signedstep.optim.second_order import SecondOrder

__all__ = ["BFGS", "LBFGS", "LSR1", "SR1", "Mix", "SecondOrder"]
