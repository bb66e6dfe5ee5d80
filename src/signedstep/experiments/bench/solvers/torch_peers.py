"""torch.optim's solvers: L-BFGS and Adam, on one flat parameter."""

from functools import partial

import torch

from signedstep.experiments.bench.meter import Meter
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended
from signedstep.experiments.solvers import ADAM_RATES


def _lbfgs(meter: Meter, memory: int) -> Ended:
    """One call of `step` after another until one of them moves nothing; each has all the iterations it wants."""
    x = torch.nn.Parameter(meter.start.clone())
    no_tests = {"tolerance_grad": 0.0, "tolerance_change": 0.0}
    optimizer = torch.optim.LBFGS(
        [x],
        max_iter=meter.budget,
        max_eval=meter.budget,
        history_size=memory,
        line_search_fn="strong_wolfe",
        **no_tests,
    )

    def closure() -> float:
        f, x.grad = meter(x.detach())
        return f

    while True:
        before = meter.evals
        optimizer.step(closure)
        if meter.evals <= before + 1:  # it only looks at the point where it is
            return Ended("A step moved nothing.", optimizer.state[x]["n_iter"])


def _adam(rate: float, meter: Meter, memory: int) -> Ended:
    x = torch.nn.Parameter(meter.start.clone())
    optimizer = torch.optim.Adam([x], lr=rate)
    while True:
        _, x.grad = meter(x.detach())
        optimizer.step()


SOLVERS = (
    BenchSolver("torch-lbfgs", "torch L-BFGS", "torch.optim.LBFGS with line_search_fn='strong_wolfe', lr = 1", _lbfgs),
    *(
        BenchSolver(f"adam-{rate:g}", f"Adam {rate:g}", f"torch.optim.Adam, lr = {rate:g}", partial(_adam, rate))
        for rate in ADAM_RATES
    ),
)
