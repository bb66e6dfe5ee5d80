"""Training on several ranks: the losses of one process and the same numbers everywhere."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn

import signedstep
from parallel import SAMPLES, every_method, slow_to_diverge, trained, uneven
from ranks import on_ranks
from signedstep.distributed import LostRankError, Parallel, load
from signedstep.distributed.reports import Report, Slots
from signedstep.distributed.shared import _checksum
from training import batch, bowl, fit, model


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_losses_of_one_process(size):
    methods = slow_to_diverge if size == 2 else slow_to_diverge[:2]
    alone = [trained(slice(None), *method) for method in methods]
    runs = on_ranks(size, every_method, methods)
    for i, (method, _) in enumerate(methods):
        for j, shard in enumerate((False, True)):
            first, *others = (run[2 * i + j] for run in runs)
            assert all(other.records == first.records and other.x == first.x for other in others), "to the last bit"
            assert len(first.records) == 50
            assert [r.f for r in first.records] == pytest.approx([r.f for r in alone[i].records], rel=1e-10), method
            assert first.x == pytest.approx(alone[i].x, abs=1e-6)
            if method == "lsr1/wolfe+-":
                assert sum(r.alpha < 0 for r in first.records) >= 5
            for mine, grad in zip(first.grads, alone[i].grads, strict=True):
                assert mine is None if shard else np.allclose(mine, grad, atol=1e-6)


def test_mix_stays_together_on_two_ranks():
    """It magnifies rounding, so that losses agree to fewer digits with one process; the ranks agree to the last bit."""
    methods = [("mix/wolfe", {})]
    (alone,) = [trained(slice(None), *method) for method in methods]
    first, second = on_ranks(2, every_method, methods)
    for mine, other in zip(first, second, strict=True):
        assert mine.records == other.records
        assert [r.f for r in mine.records] == pytest.approx([r.f for r in alone.records], rel=1e-4)


def kinds_of_loss(rank: int) -> list[list[float]]:
    """A sum, a mean with counts one of which is 0, DDP declared and not, DDP's average made a sum."""
    X, y = batch()
    size = dist.get_world_size()
    mine = slice(10 * rank, None if rank == size - 1 else 10 * (rank + 1))
    data, count = (X[mine], y[mine]), len(X[mine])
    equal = (X[rank::size], y[rank::size])

    def losses(parallel: Parallel, loss: Callable[[nn.Module], Any], ddp: bool = False) -> list[float]:
        net = model()
        net = nn.parallel.DistributedDataParallel(net) if ddp else net
        optimizer = signedstep.LSR1(net.parameters(), max_iter=4, parallel=parallel)
        return [optimizer.step(lambda: loss(net)).item() for _ in range(3)]

    def empty_elsewhere(net):
        return (net(X) - y).square().mean() if rank == 0 else torch.tensor(torch.nan)

    return [
        losses(Parallel(loss="sum"), lambda net: (net(data[0]) - data[1]).square().sum() / len(X)),
        losses(Parallel(loss="sum", shard=True), lambda net: (net(data[0]) - data[1]).square().sum() / len(X)),
        losses(Parallel(count=lambda: count), lambda net: fit(net, data)()),
        losses(Parallel(count=40 if rank == 0 else 0), empty_elsewhere),
        losses(Parallel(count=40 if rank == 0 else 0, shard=True), empty_elsewhere),
        losses(Parallel(gradients="averaged"), lambda net: fit(net, equal)(), ddp=True),
        losses(Parallel(gradients="averaged", shard=True), lambda net: fit(net, equal)(), ddp=True),
        losses(Parallel(gradients="averaged", loss="sum"), lambda net: fit(net, equal)() / size, ddp=True),
        losses(Parallel(), lambda net: fit(net, equal)(), ddp=True),
    ]


def test_sums_means_counts_and_ddp():
    net = model()
    optimizer = signedstep.LSR1(net.parameters(), max_iter=4)
    expected = [optimizer.step(fit(net)).item() for _ in range(3)]
    for kinds in on_ranks(2, kinds_of_loss):
        for i, losses in enumerate(kinds):
            assert losses == pytest.approx(expected, rel=1e-9), i


def limited(rank: int, shard: bool) -> tuple[int, str]:
    """Steps that end by `max_eval`, where one rank has no samples and calls no closure."""
    net = model()
    parallel = Parallel(count=40 if rank == 0 else 0, shard=shard)
    optimizer = signedstep.LSR1(net.parameters(), max_iter=9, max_eval=3, parallel=parallel)
    for _ in range(3):
        optimizer.step(fit(net))
    return optimizer.n_evals, optimizer.status.name


@pytest.mark.parametrize("shard", [False, True])
def test_ranks_without_samples_count_evaluations_too(shard):
    first, second = on_ranks(2, limited, shard)
    assert first == second
    assert first[1] == "MAXFUN"


def odd_parameters(rank: int, shard: bool) -> tuple[list, list]:
    """Complex, half-precision, frozen and unused parameters in two groups, maximised, in more slices than some fit."""
    torch.manual_seed(3)
    parts = [
        torch.randn(2, 3, dtype=torch.complex128),
        torch.randn(5, dtype=torch.float32),
        torch.randn((), dtype=torch.float64),
        torch.randn(4, dtype=torch.bfloat16),
        torch.randn(2, dtype=torch.float64),
    ]
    params = [part.requires_grad_() for part in parts]
    unused = torch.ones(3, requires_grad=True)
    groups = [{"params": [*params[:2], torch.ones(7)]}, {"params": [*params[2:], unused]}]
    optimizer = signedstep.LSR1(groups, max_iter=3, maximize=True, parallel=Parallel(shard=shard))
    losses = [optimizer.step(lambda: -bowl(*params)).item() for _ in range(4)]
    return losses, [p.detach().abs().double().tolist() for p in (*params, unused)]


def test_parameters_of_any_kind():
    whole, sharded = (on_ranks(3, odd_parameters, shard)[1] for shard in (False, True))
    assert whole[0] == sorted(whole[0])
    assert whole[0] == pytest.approx(sharded[0], rel=1e-6)
    for a, b in zip(whole[1], sharded[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def buckets(rank: int) -> tuple[list, list]:
    """A bucket smaller than a slice, so that there are several, the last of them shorter."""
    from signedstep.distributed import sliced

    which = uneven(rank, dist.get_world_size())
    parallel = Parallel(count=which.stop - which.start, shard=True)
    one = trained(which, "lsr1/flip", {}, 10, parallel)
    sliced._LEAST = 4  # slices of 15 numbers in buckets of 4, 4, 4 and 3
    return one.records, trained(which, "lsr1/flip", {}, 10, parallel).records


def test_buckets_change_nothing():
    for one, several in on_ranks(2, buckets):
        assert one == several


def within_autocast(rank: int, shard: bool, outside: bool) -> list[float]:
    """Losses of steps within autocast, or with a closure that is."""
    net, (X, y) = model(dtype=torch.float32), batch(dtype=torch.float32)
    optimizer = signedstep.LSR1(net.parameters(), max_iter=5, parallel=Parallel(shard=shard))

    def closure():
        with torch.autocast("cpu", torch.bfloat16):
            return (net(X).float() - y).square().mean()

    with torch.autocast("cpu", torch.bfloat16, enabled=outside):
        return [optimizer.step(closure).item() for _ in range(2)]


def every_autocast(rank: int) -> list[list[float]]:
    return [within_autocast(rank, shard, outside) for shard in (False, True) for outside in (False, True)]


def test_steps_within_autocast():
    """Casts of weights that autocast keeps are those of the last point."""
    for whole, whole_within, sharded, sharded_within in on_ranks(2, every_autocast):
        assert whole_within == whole
        assert sharded_within == sharded
        assert whole[1] < whole[0]
        assert sharded[1] < sharded[0]


class FakeLink:
    """Ranks in one process: the sum of their buffers is the test's."""

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size


@pytest.mark.parametrize("losses", [[1 / 3, -1e-20, 7e12], [np.nan, 1.0, np.inf], [1e-30, 0.0, -(2.0**-40) - 1]])
def test_reports_travel_exactly(dtype, losses):
    given = [Report(loss, 10 + rank, float(rank == 1)) for rank, loss in enumerate(losses)]
    slots = [Slots(FakeLink(rank, 3), dtype) for rank in range(3)]  # type: ignore[arg-type]
    total = torch.zeros(slots[0].length, dtype=dtype)
    for each, report in zip(slots, given, strict=True):
        buffer = torch.empty_like(total)
        each.write(report, buffer)
        total += buffer
    reports = slots[2].read(total)
    np.testing.assert_array_equal(reports.loss, losses)
    np.testing.assert_array_equal(reports.count, [10, 11, 12])
    np.testing.assert_array_equal(reports.failed, [0, 1, 0])


def some_of_the_ranks(rank: int, folder: str) -> list[list[float]] | None:
    """Losses of a group without rank 0, whose closures return plain numbers, and those after its checkpoints."""
    group = dist.new_group([1, 2])
    if rank == 0:
        return None
    found = []
    for shard in (False, True):
        net, parallel = model(), Parallel(group, shard=shard)
        optimizer, again = (signedstep.LSR1(net.parameters(), max_iter=3, parallel=parallel) for _ in range(2))

        def closure(net=net) -> float:
            net.zero_grad()
            loss = fit(net)()
            loss.backward()
            return loss.item()

        found.append([optimizer.step(closure)])
        assert isinstance(found[-1][0], float), "what the closure returns"
        path = Path(folder) / str(shard)
        dcp.save({"optimizer": optimizer.state_dict()}, checkpoint_id=path, process_group=group)
        load(again, path)
        found[-1].append(again.step(closure))
        optimizer._parameters().link.leave("another rank is lost")  # type: ignore[attr-defined]
        again._engine.space._squares.clear()  # type: ignore[union-attr]
        if shard:
            with pytest.raises(LostRankError, match="another rank is lost"):
                again.state_dict()
    return found


def test_a_group_of_some_of_the_ranks(tmp_path):
    net = model()
    optimizer = signedstep.LSR1(net.parameters(), max_iter=3)
    expected = [optimizer.step(fit(net)).item() for _ in range(2)]
    for found in on_ranks(3, some_of_the_ranks, str(tmp_path))[1:]:
        for losses in found:
            assert losses == pytest.approx(expected, rel=1e-9)


def refusals(rank: int) -> list[str]:
    """What users are told."""
    net = model()
    alike = [p.detach().clone().requires_grad_() for p in net.parameters()]
    differ = [p.detach().add(rank).requires_grad_() for p in net.parameters()]
    said = []
    for attempt in (
        lambda: signedstep.SR1(alike, parallel=Parallel(shard=True)),
        lambda: signedstep.LSR1(alike, globalization="damp-dense", parallel=Parallel(shard=True)),
        lambda: signedstep.LSR1(differ, parallel=Parallel()).step(lambda: bowl(*differ)),
        lambda: signedstep.LSR1([torch.ones(3, 2).T.requires_grad_()], parallel=Parallel(shard=True)),
        lambda: Parallel(count=3, gradients="averaged"),
        lambda: Parallel(loss="median"),
        lambda: signedstep.LSR1(alike, parallel=Parallel(count=0)).step(lambda: bowl(*alike)),
        lambda: signedstep.LSR1(alike, parallel=Parallel(count=-1)).step(lambda: bowl(*alike)),
        lambda: signedstep.LSR1(alike, parallel=Parallel(count=np.inf)).step(lambda: bowl(*alike)),
        lambda: signedstep.LSR1(alike, parallel=Parallel()).__getstate__(),
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            attempt()
        said.append(str(caught.value))
    dense = signedstep.SR1(alike, parallel=Parallel(), max_iter=3)  # whole vectors: every method works
    assert dense.step(lambda: bowl(*alike)) < bowl(*net.parameters())
    return said


def test_refusals_give_reasons():
    reasons = ["n x n matrix", "n x n matrix", "same on all ranks", "contiguous", "ranks * count / total", "'median'"]
    reasons += ["all counts are 0", "not negative", "at most 2**53", "state_dict()"]
    for said in on_ranks(2, refusals):
        for text, reason in zip(said, reasons, strict=True):
            assert reason in text


def test_without_a_process_group():
    with pytest.raises(RuntimeError, match="init_process_group"):
        Parallel()


def test_samples_are_all_used():
    for size in (1, 2, 3, 4):
        parts = [uneven(rank, size) for rank in range(size)]
        assert sum(part.stop - part.start for part in parts) == SAMPLES
        assert all(part.stop > part.start for part in parts)


THREADS_LEFT = """
import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp, signedstep
from signedstep.distributed import Parallel, load
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
x = torch.zeros(5, requires_grad=True)
optimizer = signedstep.LSR1([x], parallel=Parallel(shard=True))
optimizer.step(lambda: (x - 1).square().sum())
dcp.save({"optimizer": optimizer.state_dict()}, checkpoint_id=sys.argv[2])
load(optimizer, sys.argv[2])
optimizer.step(lambda: (x - 1).square().sum())
dist.destroy_process_group()
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
print(sum("gloo" in name for name in names))
try:
    optimizer.step(lambda: (x - 1).square().sum())
except ConnectionError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at threads in /proc")
def test_an_optimizer_does_not_keep_a_destroyed_process_group(tmp_path):
    """Its threads could free a tensor while Python shuts down, which aborts a process that has done all its work.

    A step without it is refused.
    """
    command = [sys.executable, "-c", THREADS_LEFT, str(tmp_path / "meeting"), str(tmp_path / "checkpoint")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    refused = "the process group that this optimizer was made for has been destroyed"
    assert (ran.stdout.splitlines(), ran.returncode) == (["0", refused], 0), ran.stderr


@pytest.mark.parametrize("n", [1, 1020, 1021, 5000, 1_200_000])
def test_parameters_with_other_contents_have_other_checksums(n, dtype):
    p = torch.randn(n, dtype=dtype, generator=torch.Generator().manual_seed(0))
    q = p.clone()
    assert _checksum(p) == _checksum(q)
    q[n // 2] = -q[n // 2]
    assert _checksum(p) != _checksum(q)
    if n > 1:
        assert _checksum(p) != _checksum(torch.cat((p[1:2], p[:1], p[2:]))), "two have changed places"
