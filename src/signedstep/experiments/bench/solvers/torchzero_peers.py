"""torchzero's L-SR1 under its strong Wolfe search, with positive steps and with its `plus_minus`."""

from functools import partial

import torch
from torch import Tensor

from signedstep.experiments.bench.meter import Meter
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended, differentiable

STALLED = 10
"""Steps without a new point after which a run is over: it would repeat itself for ever."""


def _solve(plus_minus: bool, meter: Meter, memory: int) -> Ended:
    import torchzero as tz

    x = torch.nn.Parameter(meter.start.clone())
    search = tz.m.StrongWolfe(fallback=True, plus_minus=plus_minus)
    optimizer = tz.Optimizer([x], tz.m.LSR1(history_size=memory), search)

    def closure(backward: bool = True) -> Tensor:
        loss = differentiable(meter, x)
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
        partial(_solve, False),
        package="torchzero",
    ),
    BenchSolver(
        "torchzero-lsr1-pm",
        "torchzero L-SR1 plus_minus",
        "torchzero's LSR1 with StrongWolfe(fallback=True, plus_minus=True)",
        partial(_solve, True),
        package="torchzero",
    ),
)
