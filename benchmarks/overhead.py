"""Time per iteration outside the objective, and memory, next to torch.optim.LBFGS with the same history size.

All solvers take turns in one process, since a virtual machine can be twice as fast in one second as in the next; a
ratio is the median over rounds of ratios within a round. Times of the objective, measured inside it, are subtracted.
`passes` is the time of reading the stored pairs twice (a product with a vector and a linear combination), the least any
method with these pairs can do. Memory is the growth of the peak resident size, in vectors of n numbers, in a process of
its own.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

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
    time.sleep(0.2)  # NumPy's threads go on spinning for a while, and would slow down whoever comes next
    return min(times), 0.0


def once(solver: str, n: int, dtype: torch.dtype, m: int) -> tuple[float, float]:
    """Seconds outside the objective, and evaluations, per iteration of a solver."""
    if solver == "passes":
        return passes(n, dtype, m)
    objective, iterations = Separable(n, dtype), 100 if n < 10**5 else 20
    if solver == "torch":
        return peer(objective, n, dtype, m, iterations)
    return ours(solver, objective, n, dtype, m, iterations)


def rounds(solvers: list[str], n: int, dtype: torch.dtype, m: int, repeats: int) -> dict[str, np.ndarray]:
    """For each solver a row (seconds, evaluations) of each round, in which all of them take their turn."""
    found = [[once(solver, n, dtype, m) for solver in solvers] for _ in range(repeats)]
    return dict(zip(solvers, np.array(found).transpose(1, 0, 2), strict=True))


def grown(solver: str, n: int, dtype: torch.dtype, m: int) -> float:
    """Vectors of n numbers by which a run makes the peak of memory grow; for a fresh process."""
    objective = Separable(n, dtype)
    objective(torch.zeros(n, dtype=dtype))
    before = _peak()
    ours(solver, objective, n, dtype, m, 20)
    return (_peak() - before) / (n * objective.d.element_size())


def _peak() -> int:
    """The peak of resident memory in bytes; that of `resource` may be inherited from the process that started this."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def memory(solver: str, n: int, dtype: str, m: int) -> float:
    command = [sys.executable, __file__, "--memory-of", solver, str(n), dtype, str(m)]
    return float(subprocess.run(command, check=True, capture_output=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e3, 1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--methods", nargs="+", default=["lbfgs/wolfe", "lsr1/flip", "lsr1/wolfe+-"])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"], choices=["float32", "float64"])
    parser.add_argument("--memory", type=int, default=20, help="history size m")
    parser.add_argument("--repeats", type=int, default=9, help="rounds below n = 1e6; a third of them from there on")
    parser.add_argument("--memory-of", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory_of:
        solver, n, dtype, m = args.memory_of
        print(grown(solver, int(n), getattr(torch, dtype), int(m)))
        return
    m = args.memory
    print(f"m = {m}, {torch.get_num_threads()} threads; milliseconds per iteration outside the objective")
    columns = "".join(f"  {name:>14} /torch /passes evals memory" for name in args.methods)
    print(f"{'':8} {'n':>9} {'torch':>9} {'passes':>9}{columns}")
    for dtype in args.dtypes:
        for n in map(int, args.sizes):
            solvers, repeats = ["torch", "passes", *args.methods], args.repeats if n < 10**6 else -(-args.repeats // 3)
            found = rounds(solvers, n, getattr(torch, dtype), m, repeats)
            seconds = {name: rows[:, 0] for name, rows in found.items()}
            row = f"{dtype:8} {n:9.0e} " + " ".join(f"{np.median(seconds[name]) * 1e3:9.3f}" for name in solvers[:2])
            for name in args.methods:
                over_torch, over_two = (np.median(seconds[name] / seconds[other]) for other in solvers[:2])
                evals = np.median(found[name][:, 1])
                # below 1e7 the cache of the allocator hides it
                peak = f"{memory(name, n, dtype, m):6.1f}" if n >= 10**7 else "     -"
                row += f"  {np.median(seconds[name]) * 1e3:14.3f} {over_torch:6.2f} {over_two:7.2f} {evals:5.2f} {peak}"
            print(row, flush=True)
    print(f"memory in vectors of n numbers; the history of {m} pairs is {2 * m} of them, the bar {2 * m + 8}")


if __name__ == "__main__":
    main()
