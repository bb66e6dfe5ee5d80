"""What a solver of the benchmark is: one function that minimises through a meter until it is stopped or has enough."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from signedstep.experiments.bench.meter import Meter, ValueAndGradient


class Ended(NamedTuple):
    """What a solver says when it ends by itself."""

    text: str
    iterations: int | None = None


@dataclass(frozen=True)
class BenchSolver:
    """A column of the tables. `solve(meter, memory)` gets no stopping test but the meter's."""

    name: str
    label: str
    text: str
    solve: Callable[[Meter, int], Ended]
    package: str | None = None
    """The package it needs beyond those of the experiments; None: nothing."""
    dense: bool = False
    """Whether it keeps n x n matrices."""
    ours: bool = False


class _Value(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, evaluated: ValueAndGradient) -> Tensor:
        f, g = evaluated(x.detach())
        ctx.save_for_backward(g)
        return x.new_tensor(f)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0] * ctx.saved_tensors[0], None


def differentiable(evaluated: ValueAndGradient, x: Tensor) -> Tensor:
    """The value as a tensor that knows its gradient, for solvers that call autograd themselves: one evaluation."""
    return _Value.apply(x, evaluated)  # type: ignore[return-value]
