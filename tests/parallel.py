"""What the tests of several ranks share: a problem along whose paths rounding does not grow much, and its training."""

import warnings
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

import signedstep
from signedstep.distributed import Parallel
from signedstep.history import Record

SAMPLES = 60

slow_to_diverge = [
    ("lsr1/wolfe+-", {"gamma": 1.0}),
    ("lsr1/flip", {"history_size": 5}),
    ("lsr1/trust", {}),
    ("lbfgs/wolfe", {}),
    ("lbfgs/wolfe", {"line_search_fn": "strong_wolfe"}),
    ("gd", {}),
]
"""Methods that bring two orders of the same samples to the same losses; others magnify rounding on this problem."""


class Regression:
    """Robust regression, a mean of r^2/(1 + r^2): not convex."""

    def __init__(self, n: int = 30):
        generator = torch.Generator().manual_seed(0)
        self.A = torch.randn(SAMPLES, n, generator=generator, dtype=torch.float64)
        self._start = 0.5 * torch.randn(n, generator=generator, dtype=torch.float64)

    def start(self) -> Tensor:
        return self._start.clone()

    def __call__(self, x: Tensor, which: slice) -> Tensor:
        r = self.A[which] @ x - 1
        return (r * r / (1 + r * r)).mean() + 0.05 * x @ x


regression = Regression()


class Trained(NamedTuple):
    """What a run has to show, clocks apart."""

    records: list[Record]
    x: list[float]
    grads: list


def parameters() -> list[Tensor]:
    """The start in two parameters."""
    x = regression.start()
    return [x[:7].clone().requires_grad_(), x[7:].clone().view(-1, 1).requires_grad_()]


def joined(params: list[Tensor]) -> Tensor:
    return torch.cat([p.view(-1) for p in params])


def trained(
    which: slice, method: str, options: dict, iterations: int = 50, parallel: Parallel | None = None
) -> Trained:
    """Some iterations on some of the samples."""
    params = parameters()
    options = {"tolerance_grad": 0, "tolerance_change": 0, **options}
    optimizer = signedstep.SecondOrder(
        params, method, max_iter=iterations, max_eval=10**6, parallel=parallel, **options
    )
    optimizer.step(lambda: regression(joined(params), which))
    records = [record._replace(seconds=0.0) for record in optimizer.history]
    grads = [None if p.grad is None else p.grad.numpy() for p in params]
    return Trained(records, joined(params).tolist(), grads)


def uneven(rank: int, size: int) -> slice:
    """A rank's samples; the last rank has the most."""
    return slice(SAMPLES * rank * rank // size**2, SAMPLES * (rank + 1) * (rank + 1) // size**2)


def every_method(rank: int, methods: list) -> list[Trained]:
    """Each method with whole and with sharded vectors."""
    which = uneven(rank, dist.get_world_size())
    count = which.stop - which.start
    return [
        trained(which, method, options, parallel=Parallel(count=count, shard=shard))
        for method, options in methods
        for shard in (False, True)
    ]


def fully_sharded(net: nn.Module, *shape: int) -> nn.Module:
    """FSDP2 over all ranks; with a shape of two numbers, copies of shards."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    names = ("copies", "shards")[-max(len(shape), 1) :]
    mesh = init_device_mesh("cpu", shape or (dist.get_world_size(),), mesh_dim_names=names)
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")  # torch advises against writing into outputs
    for child in net.children():
        if next(child.parameters(), None) is not None:
            fully_shard(child, mesh=mesh)
    return fully_shard(net, mesh=mesh)
