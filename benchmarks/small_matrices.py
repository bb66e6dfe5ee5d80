"""Time of an eigenproblem of a small matrix: ours in C next to NumPy's LAPACK and torch's.

Alone, and right after torch has used its threads, as in a run: they go on spinning for a while, and a library that
wakes threads of its own waits for the cores. Microseconds, the median of many calls.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from signedstep.native import small

LONG = torch.ones(400_000)
"""Long enough for torch to share the work among its threads."""


def microseconds(solve: Callable[[], object], after_torch: bool, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        if after_torch:
            LONG.mul(2.0)
        began = time.perf_counter()
        solve()
        times.append(time.perf_counter() - began)
    return 1e6 * float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10, 20, 30, 50, 100])
    parser.add_argument("--repeats", type=int, default=200)
    args = parser.parse_args()
    print(f"{torch.get_num_threads()} threads; microseconds, and right after torch has used its threads")
    print(f"{'rows':>5}" + "".join(f"{name:>20}" for name in ("C", "NumPy", "torch")))
    for k in args.rows:
        A = np.random.default_rng(k).standard_normal((k, k))
        A = A + A.T
        T = torch.from_numpy(A)
        solvers = (lambda: small.eigen(A), lambda: np.linalg.eigh(A), lambda: torch.linalg.eigh(T))  # noqa: B023
        row = [[microseconds(solve, after, args.repeats) for after in (False, True)] for solve in solvers]
        print(f"{k:5}" + "".join(f"{alone:10.0f}{after:10.0f}" for alone, after in row), flush=True)


if __name__ == "__main__":
    main()
