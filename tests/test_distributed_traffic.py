"""What ranks say to each other in an iteration: how often, and how many bytes beside gradient and parameters."""

from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

import signedstep
from parallel import fully_sharded, regression, trained, uneven
from ranks import on_ranks
from signedstep.catalogue import GLOBALIZATIONS
from signedstep.distributed import Parallel, link
from signedstep.distributed.link import Link
from signedstep.engine import Engine
from signedstep.history import Record

M = 6
"""Pairs that are kept; `mix` keeps 50 of so few unknowns."""
REGIONS = ("trust", "dogleg", "subspace", "steihaug", "cubic")
LIMITED = {
    "cg": ["wolfe", "wolfe+-"],
    **{name: [how for how in GLOBALIZATIONS if how != "damp-dense"] for name in ("gd", "lbfgs", "lsr1", "mix")},
}
"""All methods without an n x n matrix that learn from gradients."""


class Iteration(NamedTuple):
    """A record, and what the collectives of the package have carried for it, in bytes."""

    record: Record
    sums: list[int]
    scatters: list[int]
    gathers: list[int]


class Traffic:
    """Notes the traffic of every iteration from now on, in this process."""

    def __init__(self):
        self.iterations: list[Iteration] = []
        now: dict[str, list[int]] = {}
        run, step = Link._run, Engine.step
        kinds = {dist.all_reduce: "sums", link._scatter_sums: "scatters", link._collect: "gathers"}

        def noted(this, collective, first, *args, **options):
            now.setdefault(kinds[collective], []).append(max(t.nbytes for t in (first, *args)))
            run(this, collective, first, *args, **options)

        def counted(engine, *args):
            now.clear()
            record = step(engine, *args)
            traffic = (list(now.get(kind, [])) for kind in ("sums", "scatters", "gathers"))
            self.iterations.append(Iteration(record._replace(seconds=0.0), *traffic))
            return record

        Link._run, Engine.step = noted, counted


class Ripples(nn.Module):
    """Robust regression among ripples that no model foresees, so that trials are refused."""

    def __init__(self):
        super().__init__()
        x = 2 * regression.start()
        self.first, self.second = nn.Parameter(x[:8].clone()), nn.Parameter(x[8:].clone().view(-1, 2))

    def forward(self, rows: Tensor) -> Tensor:
        x = torch.cat((self.first, self.second.view(-1)))
        r = rows @ x - 1
        return (r * r / (1 + r * r) - torch.cos(20 * r)).mean() + 0.05 * x @ x


def train(method: str, rows: Tensor, net: nn.Module, parallel: Parallel | None = None) -> list[float]:
    """The losses of two steps of some iterations; one trial meets NaN, three in a row are too high to be taken."""
    options = {"history_size": M, "max_iter": 20, "max_eval": 999, "on_failure": "restart"}
    optimizer, calls = signedstep.SecondOrder(net.parameters(), method, parallel=parallel, **options), [0]

    def closure() -> Tensor:
        calls[0] += 1
        return net(rows) + {3: torch.nan, 5: 5.0, 6: 5.0, 7: 5.0}.get(calls[0], 0.0)

    for _ in range(2):
        optimizer.step(closure)
    return [record.f for record in optimizer.history]


def traffic(rank: int, kind: str, methods: list[str]) -> list[list[Iteration]]:
    """The iterations of each method, with vectors in slices of one of four kinds."""
    size = dist.get_world_size()
    seen, found = Traffic(), []
    for method in methods:
        rows, parallel, net = regression.A[rank::size], None, Ripples()
        if kind == "local":
            which = uneven(rank, size)
            rows, parallel = regression.A[which], Parallel(shard=True, count=which.stop - which.start)
        elif kind == "averaged":  # as they would be if each rank had a part
            rows, parallel = regression.A, Parallel(shard=True, gradients="averaged")
        else:
            net = fully_sharded(net, *((2, 2) if kind == "copies" else ()))
        train(method, rows, net, parallel)
        found.append(seen.iterations)
        seen.iterations = []
    return found


@pytest.mark.parametrize(
    ("kind", "curvature"),
    [*((kind, name) for kind in ("local", "averaged", "fsdp") for name in LIMITED), ("copies", "lsr1")],
)
def test_reductions_and_bytes_of_an_iteration(kind, curvature):
    """At most 2 reductions an iteration and one an evaluation, of O(m) numbers for each pair that is measured.

    A third comes once, when L-BFGS, which does without products with s, first wants a spectrum.
    """
    methods = [f"{curvature}/{how}" for how in LIMITED[curvature]]
    size = 4 if kind == "copies" else 2
    first, *others = on_ranks(size, traffic, kind, methods)
    assert all(other == first for other in others), "all ranks have the same numbers and say as much"
    m = 50 if curvature == "mix" else M
    for method, iterations in zip(methods, first, strict=True):
        records, region = [iteration.record for iteration in iterations], method.endswith(REGIONS)
        alone = train(method, regression.A, Ripples())
        assert [r.f for r in records[:4]] == pytest.approx(alone[:4], rel=1e-6), method
        assert max(r.evals for r in records) >= 4, "trials are refused, three in a row at least"
        assert sum(r.evals > 1 for r in records) >= 2, method
        for record, sums, _, _ in iterations:
            measured = record.evals + 1 if region else 1
            assert len(sums) <= 3 + record.evals, method
            assert sum(sums) <= 8 * measured * (6 * (m + 1) + 16) + (16 + 24 * size) * record.evals, method
        third = [len(sums) > 2 + record.evals for record, sums, _, _ in iterations]
        assert sum(third) == (method in ("lbfgs/flip", "lbfgs/clip", "lbfgs/damp")), method


@pytest.mark.parametrize("shard", [True, False], ids=["sharded", "whole"])
def test_gradients_and_parameters(shard):
    """Sharded, they are scattered and collected; whole, loss and gradient are one reduction, and the only one."""
    size = 2
    first, _ = on_ranks(size, plain, shard)
    n, reports = len(regression.start()), 8 * 3 * size
    assert len(first) > 40
    for record, sums, scatters, gathers in first:
        assert scatters == [8 * n + size * reports] * record.evals * shard
        assert gathers == [8 * n] * record.evals * shard
        assert shard or sums == [8 * n + reports] * record.evals


def plain(rank: int, shard: bool) -> list[Iteration]:
    seen, which = Traffic(), uneven(rank, dist.get_world_size())
    trained(which, "lsr1/flip", {}, parallel=Parallel(count=which.stop - which.start, shard=shard))
    return seen.iterations
