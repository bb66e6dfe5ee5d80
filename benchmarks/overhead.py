"""Time per iteration outside the objective, and memory, next to torch.optim.LBFGS with the same history size.

Every figure is taken in a process of its own; times of the objective, measured inside it, are subtracted. `passes` is
the time of reading the stored pairs twice (a product with a vector and a linear combination), the least any method
with these pairs can do. Memory is the growth of the peak resident size, in vectors of n numbers.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import signedstep

WARM_UP = 30
"""Iterations before the clock starts: the history is full by then."""


class Separable:
    """A cheap ill-conditioned objective that knows how long it has taken."""

    def __init__(self, n: int, dtype: torch.dtype):
        self.d = torch.logspace(0, 4, n, dtype=dtype)
        self.b = torch.randn(n, dtype=dtype, generator=torch.Generator().manual_seed(0))
        self.seconds: list[float] = []

    def __call__(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        began = time.perf_counter()
        g = torch.mul(self.d, x).sub_(self.b)
        value = 0.5 * (torch.dot(g, x) - torch.dot(self.b, x))
        self.seconds.append(time.perf_counter() - began)
        return value, g


def ours(method: str, objective: Separable, n: int, dtype: torch.dtype, m: int, iterations: int) -> tuple[float, float]:
    """Seconds outside the objective, and evaluations, per iteration."""
    options = {"maxiter": WARM_UP + iterations, "gtol": 0, "history_size": m}
    result = signedstep.minimize(objective, torch.zeros(n, dtype=dtype), method=method, jac=True, options=options)
    assert result.nit == WARM_UP + iterations, result.message
    evals = int(result.history.evals[-iterations:].sum())
    outside = result.history.seconds[-iterations:].sum() - sum(objective.seconds[-evals:])
    return outside / iterations, evals / iterations


def peer(objective: Separable, n: int, dtype: torch.dtype, m: int, iterations: int) -> tuple[float, float]:
    """The same for torch.optim.LBFGS."""
    x = torch.nn.Parameter(torch.zeros(n, dtype=dtype))
    optimizer = torch.optim.LBFGS(
        [x], max_iter=WARM_UP, max_eval=10**9, history_size=m, tolerance_grad=0, tolerance_change=0,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure() -> torch.Tensor:
        value, x.grad = objective(x.detach())
        return value

    optimizer.step(closure)  # type: ignore[arg-type]
    optimizer.param_groups[0]["max_iter"] = iterations
    objective.seconds.clear()
    began = time.perf_counter()
    optimizer.step(closure)  # type: ignore[arg-type]
    outside = time.perf_counter() - began - sum(objective.seconds)
    return outside / iterations, len(objective.seconds) / iterations


def passes(n: int, dtype: torch.dtype, m: int) -> tuple[float, float]:
    """Seconds to read the stored pairs twice."""
    rows = torch.randn(2 * m, n, dtype=dtype).numpy()
    g, c = np.ones(n, rows.dtype), np.ones(2 * m, rows.dtype)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        np.dot(rows, g)
        np.dot(c, rows)
        times.append(time.perf_counter() - began)
    return min(times), 0.0


def one(solver: str, n: int, dtype_name: str, m: int, iterations: int) -> dict[str, float]:
    dtype = getattr(torch, dtype_name)
    objective = Separable(n, dtype)
    objective(torch.zeros(n, dtype=dtype))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    run: dict[str, Callable[[], tuple[float, float]]] = {
        "torch": lambda: peer(objective, n, dtype, m, iterations),
        "passes": lambda: passes(n, dtype, m),
    }
    seconds, evals = run.get(solver, lambda: ours(solver, objective, n, dtype, m, iterations))()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    return {"seconds": seconds, "evals": evals, "vectors": grown / (n * objective.d.element_size())}


def measured(solver: str, n: int, dtype: str, m: int, repeats: int) -> dict[str, float]:
    iterations = 100 if n < 10**5 else 20
    command = [sys.executable, __file__, "--one", solver, str(n), dtype, str(m), str(iterations)]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(repeats)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e3, 1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--methods", nargs="+", default=["lbfgs/wolfe", "lsr1/flip", "lsr1/wolfe+-"])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"], choices=["float32", "float64"])
    parser.add_argument("--memory", type=int, default=20, help="history size m")
    parser.add_argument("--repeats", type=int, default=3, help="processes per figure; the fastest counts")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        solver, n, dtype, m, iterations = args.one
        print(json.dumps(one(solver, int(n), dtype, int(m), int(iterations))))
        return
    m = args.memory
    print(f"m = {m}, {torch.get_num_threads()} threads; milliseconds per iteration outside the objective")
    columns = "".join(f"{name:>14} /torch /passes evals memory" for name in args.methods)
    print(f"{'':8} {'n':>9} {'torch':>9} {'passes':>9}  {columns}")
    for dtype in args.dtypes:
        for n in map(int, args.sizes):
            torch_, two = (measured(name, n, dtype, m, args.repeats)["seconds"] for name in ("torch", "passes"))
            row = f"{dtype:8} {n:9.0e} {torch_ * 1e3:9.3f} {two * 1e3:9.3f}  "
            for name in args.methods:
                seconds, evals, vectors = measured(name, n, dtype, m, args.repeats).values()
                memory = f"{vectors:6.1f}" if n >= 10**7 else "     -"  # below, the allocator's cache hides it
                row += f"{seconds * 1e3:14.3f} {seconds / torch_:6.2f} {seconds / two:7.2f} {evals:5.2f} {memory}"
            print(row, flush=True)
    print(f"memory in vectors of n numbers; the history of {m} pairs is {2 * m} of them, the bar {2 * m + 8}")


if __name__ == "__main__":
    main()
