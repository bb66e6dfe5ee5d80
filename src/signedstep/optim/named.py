"""Optimizers with the curvature model in their name and the positional arguments of `torch.optim.LBFGS`."""

from typing import Any

import torch
from torch.optim.optimizer import ParamsT

from signedstep.optim.second_order import SecondOrder


class _OneModel(SecondOrder):
    """`SecondOrder` with the curvature model in its name and the positional arguments of `torch.optim.LBFGS`."""

    curvature: str

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int | None = None,
        line_search_fn: str | None = None,
        globalization: str | None = None,
        **more: Any,
    ):
        if "method" in more:
            name = type(self).__name__
            raise TypeError(f"{name} has its method in its name; others: signedstep.SecondOrder(params, method=...)")
        super().__init__(
            params,
            self.curvature,
            lr,
            max_iter,
            max_eval,
            tolerance_grad,
            tolerance_change,
            history_size,
            line_search_fn,
            globalization,
            **more,
        )


class LSR1(_OneModel):
    """Limited-memory SR1, by default with a sign for each eigendirection; see `SecondOrder` for the arguments."""

    curvature = "lsr1"


class LBFGS(_OneModel):
    """Limited-memory BFGS; with line_search_fn="strong_wolfe" by the steps of torch's own. See `SecondOrder`."""

    curvature = "lbfgs"


class SR1(_OneModel):
    """Dense SR1 with the paper's Wolfe±, for up to a few thousand parameters; see `SecondOrder` for the arguments."""

    curvature = "sr1"


class BFGS(_OneModel):
    """Dense BFGS, for up to a few thousand parameters; see `SecondOrder` for the arguments."""

    curvature = "bfgs"


class Mix(_OneModel):
    """L-BFGS and sign-corrected L-SR1 models of the same pairs, weighted by hindsight; see `SecondOrder`."""

    curvature = "mix"
