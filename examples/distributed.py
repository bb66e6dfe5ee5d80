"""Data-parallel training on several ranks, with vectors in slices and checkpoints: restart it and it goes on.

torchrun --nproc-per-node 2 examples/distributed.py [--steps 20] [--folder checkpoints] [--whole]
"""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn

import signedstep
from signedstep.distributed import Parallel, load


def samples(count: int = 1000) -> tuple[torch.Tensor, torch.Tensor]:
    """Two spirals, told apart by their sign."""
    generator = torch.Generator().manual_seed(0)
    sign = torch.randint(0, 2, (count, 1), generator=generator) * 2.0 - 1
    turn = 3 * torch.rand(count, 1, generator=generator).sqrt()
    noise = 0.05 * torch.randn(count, 2, generator=generator)
    return sign * turn * torch.cat((turn.cos(), turn.sin()), dim=1) + noise, sign


def newest(folder: Path) -> int:
    """The number of the last checkpoint that is complete: its metadata is written at the very end."""
    return max((int(path.parent.name) for path in folder.glob("*/.metadata")), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="steps in all, of five iterations each (20)")
    parser.add_argument("--folder", type=Path, help="keep a checkpoint after each step here, and start from the last")
    parser.add_argument("--whole", action="store_true", help="keep whole vectors on every rank")
    arguments = parser.parse_args()
    dist.init_process_group("gloo")  # on GPUs: "nccl", with model and data on each rank's own device
    rank, ranks = dist.get_rank(), dist.get_world_size()

    X, y = samples()
    mine = slice(rank, None, ranks)  # this rank's samples
    torch.manual_seed(0)  # the same start on all ranks
    model = nn.Sequential(nn.Linear(2, 30), nn.Tanh(), nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, 1))
    parallel = Parallel(count=len(X[mine]), shard=not arguments.whole)
    optimizer = signedstep.LSR1(model.parameters(), max_iter=5, parallel=parallel)

    first = newest(arguments.folder) if arguments.folder else 0
    if first:
        state = {"model": model.state_dict()}
        dcp.load(state, checkpoint_id=arguments.folder / str(first))
        model.load_state_dict(state["model"])
        load(optimizer, arguments.folder / str(first))

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.softplus(-y[mine] * model(X[mine])).mean()  # of this rank's samples
        loss.backward()
        return loss

    for step in range(first, arguments.steps):
        loss = optimizer.step(closure)  # of all samples
        if rank == 0:
            print(f"step {step + 1:3}  loss {loss:.6f}  {optimizer.n_evals} evaluations  {optimizer.status.value}")
        if arguments.folder:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            dcp.save(state, checkpoint_id=arguments.folder / str(step + 1))
    dist.barrier()  # no rank leaves while another still talks to it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
