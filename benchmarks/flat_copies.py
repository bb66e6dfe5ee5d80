"""Cost of moving parameters to and from the flat vector, per evaluation: `Flat` against a Python loop.

160 parameters hold 1.2 million numbers in all, as in a transformer of moderate size. An evaluation writes the trial
point into the parameters, clears the gradients and reads the new ones; forming the gradients is left out of both.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from signedstep.flat import Flat


def parameters(count: int, total: int) -> list[Tensor]:
    """Weights and biases in turn, so that half of the tensors are short."""
    width = int((2 * total / count) ** 0.5)
    shapes = [(width, width) if i % 2 == 0 else (width,) for i in range(count)]
    return [torch.randn(shape).requires_grad_() for shape in shapes]


def loop_write(params: list[Tensor], x: Tensor) -> None:
    at = 0
    for p in params:
        p.copy_(x[at : at + p.numel()].view_as(p))
        at += p.numel()


def loop_read_grads(params: list[Tensor], n: int) -> Tensor:
    g, at = torch.empty(n), 0
    for p in params:
        if p.grad is None:
            g[at : at + p.numel()].zero_()
        else:
            g[at : at + p.numel()].view_as(p).copy_(p.grad)
        at += p.numel()
    return g


def seconds(work: Callable[[], object], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return sorted(times)[repeats // 2]


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=160, help="parameters (160)")
    parser.add_argument("--total", type=int, default=1_200_000, help="numbers in all (1.2 million)")
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument(
        "--threads", type=int, default=1, help="torch threads (1: what is measured are calls and copies)"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    params = parameters(arguments.count, arguments.total)
    flat = Flat(params)
    x = flat.read()
    for p in params:
        p.grad = torch.randn_like(p)
    rows = {
        "write parameters": (lambda: flat.write(x), lambda: loop_write(params, x)),
        "read gradients": (lambda: flat.read_grads(), lambda: loop_read_grads(params, flat.n)),
    }
    total = [0.0, 0.0]
    print(f"{len(params)} parameters, {flat.n} numbers, median microseconds of {arguments.repeats}")
    print(f"{'':20} {'Flat':>9} {'loop':>9} {'ratio':>7}")
    for name, works in rows.items():
        times = [seconds(work, arguments.repeats) * 1e6 for work in works]
        total = [t + u for t, u in zip(total, times, strict=True)]
        print(f"{name:20} {times[0]:9.0f} {times[1]:9.0f} {times[0] / times[1]:7.2f}")
    print(f"{'an evaluation':20} {total[0]:9.0f} {total[1]:9.0f} {total[0] / total[1]:7.2f}")


if __name__ == "__main__":
    main()
