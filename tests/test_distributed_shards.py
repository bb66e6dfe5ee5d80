"""FSDP2 and DTensor parameters, and checkpoints that other numbers of ranks can load."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn

import signedstep
from parallel import fully_sharded, joined, parameters, regression
from ranks import on_ranks
from signedstep.distributed import Parallel, load
from training import batch, fit, model

KINDS = ["whole", "sliced", "fsdp"]


def prepared(kind: str, options: dict) -> tuple[nn.Module, signedstep.SecondOrder]:
    net = fully_sharded(model()) if kind == "fsdp" else model()
    parallel = None if kind in ("fsdp", "alone") else Parallel(shard=kind == "sliced")
    return net, signedstep.SecondOrder(net.parameters(), **{"max_iter": 3, "parallel": parallel, **options})


def steps(net: nn.Module, optimizer: signedstep.SecondOrder, count: int) -> list[float]:
    """Losses on this rank's part of the data: 40 samples, or 12 of which all numbers of ranks have equal parts."""
    X, y = batch(size=12)
    rank, size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    return [optimizer.step(fit(net, (X[rank::size], y[rank::size]))).item() for _ in range(count)]


METHODS = {"lsr1": {"method": "lsr1"}, "cg": {"method": "cg"}}


def saves(rank: int, folder: str) -> dict:
    """Checkpoints after four steps; the losses of four more, and those of an optimizer that loads and goes on."""
    found = {}
    for kind in KINDS:
        for name, options in METHODS.items():
            net, optimizer = prepared(kind, options)
            before = steps(net, optimizer, 4)
            path = Path(folder) / kind / name
            dcp.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint_id=path)
            copied = prepared(kind, options)
            copied[0].load_state_dict(net.state_dict())
            copied[1].load_state_dict(optimizer.state_dict())
            after = steps(net, optimizer, 4)
            assert steps(*copied, 4) == after, "a state dict in memory does it too"
            found[kind, name] = before, after, loads(rank, folder, kind, kind, name)
    return found


def loads(rank: int, folder: str, saved: str, kind: str, name: str) -> list[float]:
    net, optimizer = prepared(kind, METHODS[name])
    path = Path(folder) / saved / name
    state = {"model": net.state_dict()}
    dcp.load(state, checkpoint_id=path, no_dist=not dist.is_initialized())
    net.load_state_dict(state["model"])
    load(optimizer, path)
    assert optimizer.state_dict()["state"][0]["n_iter"] > 0
    return steps(net, optimizer, 4)


def loads_all(rank: int, folder: str) -> dict:
    pairs = [(kind, kind) for kind in KINDS] + [("whole", "sliced"), ("sliced", "whole"), ("fsdp", "sliced")]
    return {(*pair, name): loads(rank, folder, *pair, name) for pair in pairs for name in METHODS}


alone = pytest.mark.filterwarnings(
    "ignore:torch.distributed is disabled"
)  # torch says so of checkpoints in one process


@alone
def test_checkpoints_of_the_same_and_of_other_numbers_of_ranks(tmp_path):
    folder = str(tmp_path)
    for found in on_ranks(2, saves, folder):
        for before, after, resumed in found.values():
            assert resumed == after, "bit for bit"
            assert after[-1] < before[-1]
    for loaded in on_ranks(3, loads_all, folder):
        for (saved, _, name), losses in loaded.items():
            assert losses == pytest.approx(found[saved, name][1], rel=1e-8), (saved, name)
    for kind in KINDS:  # and in one process without any group
        assert loads(0, folder, kind, "alone", "lsr1") == pytest.approx(found[kind, "lsr1"][1], rel=1e-8)


@alone
def test_a_checkpoint_without_an_optimizer(tmp_path):
    net, optimizer = prepared("alone", {})
    dcp.save({"model": net.state_dict()}, checkpoint_id=tmp_path / "c", no_dist=True)
    with pytest.raises(KeyError, match="no 'optimizer'"):
        load(optimizer, tmp_path / "c")


def without_pairs(rank: int, folder: str) -> list[tuple[list[float], list[float]]]:
    """Losses of optimizers that have not moved, so that they know no pairs, or have a tensor as their rate."""
    found = []
    for kind in KINDS:
        for i, lr in enumerate((0.0, torch.tensor(0.7))):
            for before in (0, 1):
                net, optimizer = prepared(kind, {"method": "lsr1", "lr": lr})
                steps(net, optimizer, before)
                path = Path(folder) / f"{kind}-{i}-{before}"
                dcp.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint_id=path)
                other, again = prepared(kind, {"method": "lsr1", "lr": lr})
                other.load_state_dict(net.state_dict())
                load(again, path)
                found.append((steps(net, optimizer, 2), steps(other, again, 2)))
    return found


def test_checkpoints_without_pairs_or_with_tensors_as_rates_go_on(tmp_path):
    for found in on_ranks(2, without_pairs, str(tmp_path)):
        for losses, resumed in found:
            assert resumed == losses


def exchanged(rank: int) -> dict[tuple[str, str], str | bool]:
    """Whether a state dict in memory of one kind goes on in another, or what is said instead."""
    found = {}
    for kind in KINDS:
        trained = prepared(kind, {})
        steps(*trained, 2)
        for other in (*KINDS, "alone"):
            try:
                net, optimizer = prepared(other, {})
                optimizer.load_state_dict(trained[1].state_dict())
                found[kind, other] = steps(net, optimizer, 2)[-1] > 0
            except ValueError as error:
                found[kind, other] = str(error)
    return found


def test_a_state_dict_in_other_pieces_is_refused():
    taken = {("whole", "sliced"), ("whole", "alone"), *((kind, kind) for kind in KINDS)}
    for found in on_ranks(2, exchanged):
        for pair, said in found.items():
            assert said is True if pair in taken else "other pieces" in str(said), pair


class Transformer(nn.Module):
    """A small language model: two blocks of attention, trained to continue a text of eight letters."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.embed = nn.Embedding(8, width)
        block = {"dim_feedforward": 2 * width, "dropout": 0.0, "batch_first": True}
        self.first = nn.TransformerEncoderLayer(width, 2, **block)
        self.second = nn.TransformerEncoderLayer(width, 2, **block)
        self.head = nn.Linear(width, 8)

    def forward(self, text: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(text.shape[1], dtype=torch.float64)
        return self.head(self.second(self.first(self.embed(text), mask), mask))


def transformer(rank: int, size: int, sharded: bool) -> tuple[list[float], int, int]:
    """The losses, the largest vector kept on a rank, and how many parameters there are."""
    torch.manual_seed(0)
    net = Transformer().double()
    n = sum(p.numel() for p in net.parameters())
    text = torch.randint(0, 8, (6, 12), generator=torch.Generator().manual_seed(0))[rank::size]
    net = fully_sharded(net) if sharded else net
    optimizer = signedstep.LSR1(net.parameters(), max_iter=4, max_eval=99)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(4)]
    assert all(p.grad is not None for p in net.parameters())
    engine = optimizer._engine
    assert engine is not None
    return losses, engine.at.x.numel(), n


def test_fsdp_trains_a_transformer_as_one_process_does():
    expected, whole, n = transformer(0, 1, False)
    assert whole == n
    runs = on_ranks(2, transformer, 2, True)
    assert expected[-1] < 0.75 * expected[0]
    for losses, part, _ in runs:
        assert losses == runs[0][0]
        assert losses == pytest.approx(expected, rel=1e-7)
        assert part < 0.6 * n
    assert sum(part for _, part, _ in runs) == n


class Raises(torch.autograd.Function):
    """Nothing, but raises in its forward or backward pass if told so."""

    @staticmethod
    def forward(ctx, x: Tensor, where: str | None) -> Tensor:  # type: ignore[override]
        ctx.where = where
        if where == "forward":
            raise ArithmeticError(where)
        return x.clone()

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        if ctx.where == "backward":
            raise ArithmeticError(ctx.where)
        return g, None


class Troubled(nn.Sequential):
    """A network that raises in the middle of a pass if `where` says so."""

    where: str | None = None

    def forward(self, x: Tensor) -> Tensor:
        first, bend, second = self
        return second(bend(Raises.apply(first(x), self.where)))


UNFINISHED = ["forward", "between", "backward", "nothing", "validation"]


def unfinished_passes(rank: int, size: int, sharded: bool) -> list[list[float]]:
    """Losses of runs in which some passes do not end with backward(); a root of FSDP2 keeps what it gathers."""
    from torch.distributed.fsdp import fully_shard

    X, y = batch(size=12)
    data, found = (X[rank::size], y[rank::size]), []
    for fault in UNFINISHED:
        net = Troubled(*model())
        net = fully_shard(net) if sharded else net
        optimizer, calls = signedstep.LSR1(net.parameters(), max_iter=1, max_eval=99, reuse=True), [0]

        def closure(net=net, fault=fault, calls=calls) -> Tensor | float:
            calls[0] += 1
            net.where = fault if calls[0] in (3, 4, 7) else None
            loss = fit(net, data)()
            if net.where == "between":
                raise ArithmeticError(net.where)
            if net.where == "nothing":
                return torch.nan
            loss.backward()
            return loss

        found.append([])
        for _ in range(5):
            found[-1].append(float(optimizer.step(closure)))
            if fault == "validation":
                with torch.no_grad():
                    net(X)
        assert calls[0] >= 7
    return found


def test_passes_of_fsdp_that_do_not_end_leave_nothing_to_the_next():
    """FSDP2 keeps whole parameters, and gradients of some layers, for a backward pass that does not come."""
    expected = unfinished_passes(0, 1, False)
    for found in on_ranks(2, unfinished_passes, 2, True):
        for fault, losses, alone in zip(UNFINISHED, found, expected, strict=True):
            assert losses == pytest.approx(alone, rel=1e-9), fault


def hybrid_and_plain(rank: int) -> tuple[list[float], list[float], float, list[str]]:
    """FSDP2 over a mesh of two by two ranks, DTensors without FSDP, and what is refused."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    net = fully_sharded(model(), 2, 2)
    optimizer = signedstep.LSR1(net.parameters(), max_iter=3)
    X, y = batch(size=12)
    hybrid = [optimizer.step(fit(net, (X[rank::4], y[rank::4]))).item() for _ in range(4)]

    apart = model()
    with torch.no_grad():
        next(apart.parameters()).add_(rank // 2)  # the copies differ, the shards of a copy fit
    apart = fully_sharded(apart, 2, 2)
    with pytest.raises(ValueError, match="not the same on all ranks"):
        signedstep.LSR1(apart.parameters()).step(fit(apart))

    mesh = init_device_mesh("cpu", (4,))
    params = [distribute_tensor(p.detach(), mesh, [Shard(0)]).requires_grad_() for p in parameters()]
    optimizer = signedstep.LSR1(params, max_iter=20, max_eval=999, tolerance_change=0)
    loss = optimizer.step(lambda: regression(joined([p.full_tensor() for p in params]), slice(None)))
    x = torch.cat([p.full_tensor().detach().view(-1) for p in params])  # type: ignore[attr-defined]

    said = []
    copies = [DTensor.from_local(torch.ones(2), mesh, [Replicate()], run_check=False).requires_grad_()]
    for attempt in (
        lambda: signedstep.LSR1([*params, torch.ones(2, requires_grad=True)]),
        lambda: signedstep.LSR1([*params, *copies]),
        lambda: signedstep.LSR1(params, parallel=Parallel(count=3)),
        lambda: signedstep.SR1(params),
    ):
        with pytest.raises(ValueError, match=r".") as caught:
            attempt()
        said.append(str(caught.value))
    return hybrid, x.tolist(), loss.item(), said


def test_hybrid_sharding_and_plain_dtensors():
    net = model()
    optimizer = signedstep.LSR1(net.parameters(), max_iter=3)
    expected = [optimizer.step(fit(net, batch(size=12))).item() for _ in range(4)]
    params = parameters()
    optimizer = signedstep.LSR1(params, max_iter=20, max_eval=999, tolerance_change=0)
    loss = optimizer.step(lambda: regression(joined(params), slice(None))).item()
    runs = on_ranks(4, hybrid_and_plain)
    for hybrid, x, reached, said in runs:
        assert (hybrid, x, reached) == runs[0][:3]
        assert hybrid == pytest.approx(expected, rel=1e-8)
        assert reached == pytest.approx(loss, rel=1e-8)
        np.testing.assert_allclose(x, joined(params).tolist(), atol=1e-5)
        for text, reason in zip(said, ["root module", "root module", "count cannot weight", "n x n"], strict=True):
            assert reason in text
