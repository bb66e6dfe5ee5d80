"""Ranks that raise, return NaN, are slow, stop or are killed: one decision on all of them, and never a hang."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import signedstep
from parallel import joined, parameters, regression, uneven
from ranks import Raised, Ranks, on_ranks
from signedstep.distributed import LostRankError, Parallel, RankError, load
from signedstep.space import Space

REPETITIONS = int(os.environ.get("SIGNEDSTEP_FAULTS", "1"))
FAULTS = ("raise", "memory", "nan", "slow")
SHORT = 6.0
"""Seconds that ranks wait for one that is silent: long enough for a machine with too much to do."""
AT = (3, 4, 9)
"""The evaluations at which something happens."""

every_sharding = pytest.mark.parametrize("shard", [False, True], ids=["whole", "sharded"])


def happens(fault: str, loss: torch.Tensor) -> torch.Tensor:
    if fault == "raise":
        raise ArithmeticError("no luck")
    if fault == "memory":
        raise torch.OutOfMemoryError("out of memory")
    if fault == "slow":
        time.sleep(0.3)
    return loss * torch.nan if fault == "nan" else loss


def losses(which: slice, fault: str | None, parallel: Parallel | None) -> tuple[list[float], list[str]]:
    """Losses of some steps, and the names of what trials raised."""
    params, calls, raised = parameters(), [0], []
    optimizer = signedstep.LSR1(params, max_iter=1, max_eval=99, history_size=5, reuse=True, parallel=parallel)

    def closure():
        calls[0] += 1
        loss = regression(joined(params), which)
        return happens(fault, loss) if fault and calls[0] in AT else loss

    found = []
    for _ in range(12):
        found.append(optimizer.step(closure).item())
        raised.append(type(optimizer.error).__name__)
    assert calls[0] > max(AT)
    return found, raised


def faulty(rank: int, shard: bool, repetitions: int) -> list:
    size = dist.get_world_size()
    which = uneven(rank, size)
    return [
        losses(which, fault if rank == i % size else None, Parallel(count=which.stop - which.start, shard=shard))
        for i in range(repetitions)
        for fault in FAULTS
    ]


@every_sharding
def test_a_fault_on_one_rank_is_one_decision_on_all(shard):
    """The losses are those of one process that has the same fault at the same evaluations."""
    alone = [losses(slice(None), fault, None) for fault in FAULTS]
    runs = on_ranks(3, faulty, shard, REPETITIONS)
    for i, found in enumerate(zip(*runs, strict=True)):
        fault, (expected, raised) = FAULTS[i % len(FAULTS)], alone[i % len(FAULTS)]
        for rank, (mine, errors) in enumerate(found):
            assert mine == found[0][0]
            assert mine == pytest.approx(expected, rel=1e-9), fault
            broke = rank == i // len(FAULTS) % 3
            assert errors == (raised if broke else ["RankError" if e != "NoneType" else e for e in raised])


def fails_at_the_start(rank: int, shard: bool) -> tuple[str, list[float], float]:
    params = parameters()
    before = joined(params).tolist()
    optimizer = signedstep.LSR1(params, parallel=Parallel(shard=shard))

    def closure(broken: bool = True):
        loss = regression(joined(params), slice(None))
        return happens("raise", loss) if broken and rank == 1 else loss

    with pytest.raises(ArithmeticError if rank == 1 else RankError) as caught:
        optimizer.step(closure)
    assert joined(params).tolist() == before
    return str(caught.value), before, optimizer.step(lambda: closure(broken=False)).item()


@every_sharding
def test_a_failure_at_the_start_comes_through_on_all_ranks(shard):
    runs = on_ranks(2, fails_at_the_start, shard)
    assert [said for said, _, _ in runs] == ["rank 1: ArithmeticError: no luck", "no luck"]
    assert runs[0][2] == runs[1][2] < 0.5


def interrupted(rank: int) -> str:
    """Sharded, so that leaving the parameters at the best point would need the others."""
    params, calls = parameters(), [0]
    optimizer = signedstep.LSR1(params, parallel=Parallel(shard=True))

    def closure():
        calls[0] += 1
        if rank == 1 and calls[0] == 5:
            raise KeyboardInterrupt
        return regression(joined(params), slice(None))

    with pytest.raises((KeyboardInterrupt, LostRankError)) as caught:
        optimizer.step(closure)
    with pytest.raises(LostRankError):
        optimizer.step(closure)
    return type(caught.value).__name__


def test_an_interrupt_of_one_rank_comes_through_and_ends_the_others():
    assert Ranks(2, interrupted, timeout=SHORT).join() == ["LostRankError", "KeyboardInterrupt"]


def fails_outside(rank: int, name: str, error: BaseException) -> list[str]:
    """What two steps raise if something happens to the optimizer itself on rank 1, in a method of `Space`."""
    params, said = parameters(), []
    optimizer = signedstep.LSR1(params, parallel=Parallel(shard=True))
    if rank == 1:
        calls, method = [0], getattr(Space, name)

        def fails(self, *args):
            calls[0] += 1
            if calls[0] == 4:
                raise error
            return method(self, *args)

        setattr(Space, name, fails)
    for _ in range(2):
        with pytest.raises((LostRankError, KeyboardInterrupt)) as caught:
            optimizer.step(lambda: regression(joined(params), slice(None)))
        said.append(f"{caught.typename}: {caught.value}")
    return said


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("moved", MemoryError("no room for a trial point")),
        ("moved", KeyboardInterrupt()),
        ("combine", MemoryError("no room for a direction")),
    ],
)
def test_a_rank_that_fails_outside_its_closure_takes_no_further_part(name, error):
    """It would go on with other trials than the others, or with other sums than those that they wait for."""
    first, second = Ranks(2, fails_outside, name, error, timeout=SHORT).join()
    assert all("LostRankError: lost another rank" in said for said in first)
    expected = "KeyboardInterrupt" if isinstance(error, KeyboardInterrupt) else "LostRankError: this rank failed"
    assert second[0].startswith(expected)
    assert f"LostRankError: this rank failed outside its closure: {type(error).__name__}: {error}" in second[1]


def killed(rank: int, folder: str, shard: bool, how: int, after: int) -> tuple[float, list[float], str]:
    """Train with a checkpoint after each step; rank 1 dies in its evaluation `after`."""
    params, calls = parameters(), [0]
    optimizer = signedstep.LSR1(params, max_iter=2, max_eval=99, history_size=5, parallel=Parallel(shard=shard))

    def closure():
        calls[0] += 1
        if rank == 1 and calls[0] == after:
            os.kill(os.getpid(), how)
        return regression(joined(params), uneven(rank, dist.get_world_size()))

    found, last = [], time.monotonic()
    try:
        while True:
            last = time.monotonic()
            found.append(optimizer.step(closure).item())
            save(Path(folder) / str(len(found)), params, optimizer)
    except LostRankError as error:
        said, seconds = str(error), time.monotonic() - last
    with pytest.raises(LostRankError):  # at once: nobody is waited for a second time
        optimizer.step(closure)
    assert time.monotonic() - last - seconds < 1
    return seconds, found, said


def save(folder: Path, params: list, optimizer: torch.optim.Optimizer) -> None:
    dcp.save({"x": params, "optimizer": optimizer.state_dict()}, checkpoint_id=folder)


def resumed(rank: int, folder: str, shard: bool, steps: int) -> list[float]:
    """Go on from the newest complete checkpoint, if there is one."""
    params = parameters()
    optimizer = signedstep.LSR1(params, max_iter=2, max_eval=99, history_size=5, parallel=Parallel(shard=shard))
    done = [int(path.parent.name) for path in Path(folder).glob("*/.metadata")]
    if done:
        newest = Path(folder) / str(max(done))
        dcp.load({"x": [p.detach() for p in params]}, checkpoint_id=newest)
        load(optimizer, newest)
    which = uneven(rank, dist.get_world_size())
    return [
        optimizer.step(lambda: regression(joined(params), which)).item() for _ in range(steps - max(done, default=0))
    ]


@pytest.mark.parametrize(
    ("how", "timeout"), [(signal.SIGKILL, 60.0), (signal.SIGSTOP, SHORT)], ids=["killed", "stopped"]
)
@every_sharding
def test_a_lost_rank_ends_the_others_in_time_and_a_checkpoint_goes_on(tmp_path, how, timeout, shard):
    undisturbed = on_ranks(3, resumed, str(tmp_path / "none"), shard, 6)
    for i in range(REPETITIONS):
        folder = tmp_path / str(i)
        ranks = Ranks(3, killed, str(folder), shard, how, 14 + i % 7, timeout=timeout)
        first, lost, third = ranks.join() if how == signal.SIGKILL else waited(ranks, timeout)
        assert lost is None
        for result in (first, third):
            assert not isinstance(result, Raised), result
            seconds, found, said = result
            assert seconds < (20 if how == signal.SIGKILL else 2 * timeout + 3)
            assert len(found) >= 2
            assert "lost another rank" in said
        assert len(list(folder.glob("*/.metadata"))) >= len(first[1]) - 1, "nothing but the last save may be missing"
        again = on_ranks(3, resumed, str(folder), shard, 6)
        assert [run[-1] for run in again] == [run[-1] for run in undisturbed], "bit for bit"


def waited(ranks: Ranks, timeout: float) -> list:
    """The results, once the rank that stopped cannot have kept the others waiting any longer."""
    ends: Callable[[], bool] = lambda: all(pipe.poll() for i, pipe in enumerate(ranks._pipes) if i != 1)  # noqa: E731
    patience = time.monotonic() + 60 + timeout
    while not ends() and time.monotonic() < patience:
        time.sleep(0.05)
    ranks.processes[1].kill()
    return ranks.join()


def _differs(rank, how):
    """What the ranks say of a step before which something was different on rank 1."""
    settings, parallel, start = {"max_iter": 3}, {}, torch.arange(1.0, 6.0, dtype=torch.float64)
    changed = {
        "method": {"globalization": "wolfe+-"},
        "lr": {"lr": 0.5},
        "history_size": {"history_size": 3},
        "max_iter": {"max_iter": 2},
    }
    if rank == 1:
        settings |= changed.get(how, {})
        parallel = {"loss": {"loss": "sum"}, "shard": {"shard": True}}.get(how, {})
        start = start.flip(0) if how == "order" else start
    p, q = start.requires_grad_(), torch.ones(2, dtype=torch.float64, requires_grad=True)
    labelled = [{"params": [p, q], "name": f"of rank {rank}"}]  # labels may differ
    optimizer = signedstep.LSR1(labelled, parallel=Parallel(**parallel), **settings)
    said = []
    for _ in range(2):
        try:
            said.append(float(optimizer.step(lambda: ((p - rank) ** 4).sum() + (q**2).sum())))
        except ValueError as error:
            said.append(str(error))
        if rank == 1 and how == "between":
            with torch.no_grad():
                p.mul_(1.5)
        if rank == 1 and how == "scheduler":
            optimizer.param_groups[0]["lr"] = 0.25
        if rank == 1 and how == "freeze":
            q.requires_grad_(False)
        if rank == 1 and how == "loaded":
            optimizer.load_state_dict(optimizer.state_dict())
        if rank == 1 and how == "forgotten":
            optimizer = signedstep.LSR1(labelled, parallel=Parallel(), **settings)
    return said


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("method", "rank 0 has method = 'lsr1'; rank 1 has method = 'lsr1/wolfe+-'"),
        ("lr", "rank 0 has lr = 1.0; rank 1 has lr = 0.5"),
        ("history_size", "rank 0 has history_size = None; rank 1 has history_size = 3"),
        ("max_iter", "max_eval = 4, max_iter = 3; rank 1 has max_eval = 3, max_iter = 2"),
        ("loss", "loss = 'mean'"),
        ("shard", "shard = False"),
        ("order", "parameters are not the same on all ranks"),
        ("between", "parameters are not the same on all ranks"),
        ("scheduler", "rank 0 has lr = 1.0; rank 1 has lr = 0.25"),
        ("freeze", "rank 0 has Summed parameters"),
        ("loaded", "rank 1 has a loaded curvature model after 3 iterations"),
        ("forgotten", "rank 1 has no curvature model"),
    ],
)
def test_ranks_that_differ_are_told_before_they_part(how, words):
    later = how in ("between", "scheduler", "freeze", "loaded", "forgotten")
    first, second = on_ranks(2, _differs, how)
    assert first == second, "all ranks say the same"
    assert words in first[1 if later else 0]
    assert isinstance(first[0], float) == later


def _mended(rank: int, shard: bool) -> tuple[str, list[float]]:
    """What is said of a step before which rank 1 has another option, and the losses once it is set back."""
    params = parameters()
    optimizer = signedstep.LSR1(params, max_iter=3, history_size=5, parallel=Parallel(shard=shard))
    options, closure = optimizer.param_groups[0], lambda: regression(joined(params), slice(None))
    losses = [optimizer.step(closure).item()]
    options["history_size"] = 5 + rank
    with pytest.raises(ValueError, match="do not agree") as caught:
        optimizer.step(closure)
    options["history_size"] = 5
    return str(caught.value), losses + [optimizer.step(closure).item() for _ in range(2)]


@every_sharding
def test_ranks_that_were_told_go_on_once_they_agree(shard):
    """As if nothing had been: the rank that differed has kept its curvature model."""
    params = parameters()
    optimizer = signedstep.LSR1(params, max_iter=3, history_size=5)
    alone = [optimizer.step(lambda: regression(joined(params), slice(None))).item() for _ in range(3)]
    for said, losses in on_ranks(2, _mended, shard):
        assert "rank 1 has history_size = 6" in said
        assert losses == pytest.approx(alone, rel=1e-9)


def _refuses(rank: int) -> list[str]:
    """What is said of steps that rank 1 alone must refuse, and of one that all must; then they go on."""
    params, said = parameters(), []
    optimizer = signedstep.LSR1([{"params": [p]} for p in params], max_iter=3, parallel=Parallel())
    first, second = optimizer.param_groups
    closure = lambda: regression(joined(params), slice(None))  # noqa: E731
    before = optimizer.step(closure)
    for group, name, value in [(second, "lr", 0.5), (first, "lr", torch.nan), (first, "method", "newtonian")]:
        kept, group[name] = group[name], value if rank == 1 else group[name]
        with pytest.raises(ValueError, match="do not agree") as caught:
            optimizer.step(closure)
        said.append(str(caught.value))
        group[name] = kept
    with pytest.raises(ValueError, match="do not agree") as caught:
        optimizer.step(closure if rank == 0 else None)
    said.append(str(caught.value))
    with pytest.raises(TypeError, match="needs a closure"):
        optimizer.step(None)
    assert optimizer.step(closure) < before
    return said


def test_a_step_that_one_rank_must_refuse_is_refused_by_all():
    reasons = ["lr must be the same in each", "finite", "newtonian", "needs a closure"]
    first, second = on_ranks(2, _refuses)
    assert first == second, "all ranks say the same"
    for said, reason in zip(first, reasons, strict=True):
        assert reason in said.partition("rank 1 has")[2]


def _fails_to_speak(rank):
    class SilentError(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    p = torch.ones(3, dtype=torch.float64, requires_grad=True)

    def closure():
        if rank == 1:
            raise SilentError
        return (p**2).sum()

    try:
        signedstep.LSR1([p], parallel=Parallel()).step(closure)
    except Exception as error:
        return type(error).__name__, "" if rank == 1 else str(error)


def test_an_exception_that_has_no_words_is_told_all_the_same():
    assert on_ranks(2, _fails_to_speak) == [("RankError", "rank 1: SilentError"), ("SilentError", "")]
