"""torchzero's L-SR1: under its strong Wolfe search, with positive steps or its `plus_minus`, and in a trust region."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from signedstep.experiments.bench.meter import Meter
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended, differentiable

STALLED = 10
"""Steps without a new point after which a run is over: it would repeat itself for ever."""


def _searching(memory: int, plus_minus: bool) -> list[Any]:
    import torchzero as tz

    return [tz.m.LSR1(history_size=memory), tz.m.StrongWolfe(fallback=True, plus_minus=plus_minus)]


def _in_a_region(memory: int) -> list[Any]:
    import torchzero as tz

    return [tz.m.TrustCG(tz.m.LSR1(history_size=memory))]


class _Remembering:
    """The meter, asked once where torchzero asks twice in a row: it begins a step where the last one has ended."""

    def __init__(self, meter: Meter):
        self.meter = meter
        self.x: Tensor | None = None

    def __call__(self, x: Tensor) -> tuple[float, Tensor]:
        if self.x is None or not torch.equal(self.x, x):
            self.seen = self.meter(x)
            self.x = x.clone()
        return self.seen


def _solve(modules: Callable[[int], list[Any]], meter: Meter, memory: int) -> Ended:
    import torchzero as tz

    x = torch.nn.Parameter(meter.start.clone())
    optimizer = tz.Optimizer([x], *modules(memory))
    remembering = _Remembering(meter)

    def closure(backward: bool = True) -> Tensor:
        loss = differentiable(remembering, x)
        if backward:
            optimizer.zero_grad()
            loss.backward()
        return loss

    steps = still = 0
    while still < STALLED:
        before = x.detach().clone()
        optimizer.step(closure)
        steps += 1
        still = still + 1 if torch.equal(before, x.detach()) else 0
    return Ended(f"{STALLED} steps moved nothing.", steps)


SOLVERS = (
    BenchSolver(
        "torchzero-lsr1",
        "torchzero L-SR1",
        "torchzero's LSR1 with StrongWolfe(fallback=True)",
        partial(_solve, partial(_searching, plus_minus=False)),
        package="torchzero",
    ),
    BenchSolver(
        "torchzero-lsr1-pm",
        "torchzero L-SR1 plus_minus",
        "torchzero's LSR1 with StrongWolfe(fallback=True, plus_minus=True)",
        partial(_solve, partial(_searching, plus_minus=True)),
        package="torchzero",
    ),
    BenchSolver(
        "torchzero-lsr1-trust",
        "torchzero L-SR1 trust region",
        "torchzero's TrustCG(LSR1()), which its documentation recommends",
        partial(_solve, _in_a_region),
        package="torchzero",
    ),
)
