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
    """Limited-memory SR1, by default with a sign for each eigendirection: for large, non-convex problems.

    `globalization="wolfe+-"` makes it the method of the paper: the raw direction, and negative steps where it points
    uphill. The arguments are those of `torch.optim.LBFGS` in their order, then `globalization` and by name what
    `SecondOrder` takes beside them; see there, also for the attributes.
    """

    curvature = "lsr1"


class LBFGS(_OneModel):
    """Limited-memory BFGS, for `torch.optim.LBFGS` by a change of the class name.

    With `line_search_fn="strong_wolfe"` it takes the steps of torch's own, to rounding. There is a line search in any
    case, and `history_size` is 20 by default, where torch's is 100. The arguments are torch's in their order, then
    `globalization` and by name what `SecondOrder` takes beside them; see there, also for the attributes.
    """

    curvature = "lbfgs"


class SR1(_OneModel):
    """Dense SR1 with the paper's Wolfe±: negative steps where the direction points uphill.

    It keeps a matrix of n x n numbers: for up to a few thousand parameters.

    The arguments are those of `torch.optim.LBFGS` in their order, then `globalization` and by name what `SecondOrder`
    takes beside them; see there, also for the attributes. `history_size` has no effect.
    """

    curvature = "sr1"


class BFGS(_OneModel):
    """Dense BFGS. It keeps a matrix of n x n numbers: for up to a few thousand parameters.

    The arguments are those of `torch.optim.LBFGS` in their order, then `globalization` and by name what `SecondOrder`
    takes beside them; see there, also for the attributes. `history_size` has no effect.
    """

    curvature = "bfgs"


class Mix(_OneModel):
    """Our default for training: L-BFGS and several L-SR1 models of the same pairs, weighted by hindsight.

    The L-SR1 models have a sign for each eigendirection, so that every one of them points downhill; the better a model
    has predicted the last steps, the more it has to say about the next. An iteration costs about as much as that of
    L-BFGS. docs/research.md explains it.

    The arguments are those of `torch.optim.LBFGS` in their order, then `globalization` and by name what `SecondOrder`
    takes beside them; see there, also for the attributes.

    >>> import torch, signedstep
    >>> x = torch.nn.Parameter(torch.zeros(3))
    >>> optimizer = signedstep.Mix([x])
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)  # up to max_iter = 20 iterations
    >>> x.tolist(), optimizer.status.converged
    ([1.0, 1.0, 1.0], True)
    """

    curvature = "mix"
