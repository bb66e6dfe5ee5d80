"""Memory and time of `LSR1` with its vectors in slices: n = 1e7 float32 parameters, m = 5, on 1, 2 and 4 ranks.

Every rank holds all parameters and its own gradient, as in data-parallel training; what is measured is what the
optimizer adds: peak resident memory less that before its first step, in vectors of n numbers. The C library keeps freed
blocks of up to 32 MiB for later, in pieces; a threshold makes it give them back, so that what is in use can be seen.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

import signedstep
from large import resident, separable
from signedstep.distributed import Parallel


def train(rank: int, ranks: int, meeting: str, n: int, m: int, steps: int, whole: bool) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    x = torch.empty(n).uniform_(-0.5, 1.5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    optimizer = signedstep.LSR1(
        [x],
        max_iter=1,
        history_size=m,
        reuse=True,
        tolerance_grad=0,
        tolerance_change=0,
        parallel=Parallel(shard=not whole),
    )

    def closure() -> float:
        with torch.no_grad():
            x.grad = torch.empty_like(x)
            loss = separable(x, x.grad)
            x.grad /= n
        return loss

    closure()
    dist.all_reduce(torch.ones(1))  # buffers of the connection are not the optimizer's
    before, began = resident(), time.perf_counter()
    for _ in range(steps):
        loss = optimizer.step(closure)
    seconds = (time.perf_counter() - began) / steps
    own = torch.tensor([(resident() - before) / (4 * n)])
    dist.all_reduce(own, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(f"{ranks:5}  {own.item():6.2f} n  {own.item() * ranks:10.2f} n  {seconds:8.2f} s  loss {loss:.6f}")
        sys.stdout.flush()
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=1e7, help="parameters (1e7)")
    parser.add_argument("--memory", type=int, default=5, help="pairs kept (5)")
    parser.add_argument("--steps", type=int, default=8, help="iterations (8)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4], help="numbers of ranks (1 2 4)")
    parser.add_argument("--whole", action="store_true", help="whole vectors on every rank, for comparison")
    arguments = parser.parse_args()
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(2**20))  # for the ranks, which are new processes
    n, m = int(arguments.n), arguments.memory
    print(f"n = {n:.0e}, m = {m}; (2 m + 8) n / ranks is the promise: {2 * m + 8} n in all")
    print("ranks  a rank's   all ranks'   a step")
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as folder:
            meeting = str(Path(folder) / "meeting")
            spawn(train, (ranks, meeting, n, m, arguments.steps, arguments.whole), nprocs=ranks)


if __name__ == "__main__":
    main()
