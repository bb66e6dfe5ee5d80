"""Ten iterations of `LSR1` over n = 1e8 float32 parameters with m = 5: time and peak memory of the optimizer.

The objective is separable, sum of c_i (x_i^4/4 - x_i^2/2), non-convex around 0, and works in place by chunks, so that
what is measured is the optimizer: peak resident memory less that of the parameters and their gradient.
"""

import argparse
import resource
import time

import torch
from torch import Tensor

import signedstep

_CHUNK = 2**20


def separable(x: Tensor, g: Tensor) -> float:
    """The value; the gradient goes into g."""
    value = 0.0
    for i in range(0, len(x), _CHUNK):
        part, out = x[i : i + _CHUNK], g[i : i + _CHUNK]
        curvature = torch.linspace(1, 2, len(part))
        square = part * part
        value += float((curvature * square * (square / 4 - 0.5)).sum())
        torch.mul(curvature * part, square - 1, out=out)
    return value / len(x)


def resident() -> float:
    """Peak resident memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=1e8, help="parameters (1e8)")
    parser.add_argument("--memory", type=int, default=5, help="pairs kept (5)")
    parser.add_argument("--steps", type=int, default=10, help="iterations (10)")
    arguments = parser.parse_args()
    n, m = int(arguments.n), arguments.memory
    x = torch.empty(n).uniform_(-0.5, 1.5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    optimizer = signedstep.LSR1([x], max_iter=1, history_size=m, reuse=True, tolerance_grad=0, tolerance_change=0)

    def closure() -> float:
        with torch.no_grad():
            x.grad = torch.empty_like(x)
            loss = separable(x, x.grad)
            x.grad /= n
        return loss

    closure()
    before = resident()
    print(f"n = {n:.0e}, m = {m}: {before / 2**30:.2f} GiB for Python, torch, the parameters and their gradient")
    for k in range(arguments.steps):
        began = time.perf_counter()
        loss = optimizer.step(closure)
        seconds, peak = time.perf_counter() - began, resident()
        own = (peak - before) / (4 * n)
        print(f"{k + 1:3}  loss {loss:.6f}  {seconds:6.2f} s  peak {peak / 2**30:6.2f} GiB  optimizer {own:5.2f} n")
    print(f"the optimizer took {own:.2f} n numbers at its peak; bar: 2 m + 8 = {2 * m + 8}")


if __name__ == "__main__":
    main()
