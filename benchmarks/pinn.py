"""Physics-informed networks: `auto` and self-scaled models next to BFGS and torch.optim.LBFGS.

    python benchmarks/pinn.py

Relative L2 error and loss after a number of closure calls, counted from outside. All solvers get the same start, the
same points, a strong Wolfe search and no stopping test; no Adam before. The problems are in `pinn_problems`.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import signedstep
from pinn_problems import PROBLEMS, Problem

HISTORY = 50
TORCH = "torch LBFGS"
METHODS = ["auto", "ssbroyden", "ssbfgs", "bfgs", TORCH]


class Trace(NamedTuple):
    """The lowest loss up to each closure call, the error at some of them, and the time it all took."""

    loss: list[float]
    error: list[tuple[int, float]]
    seconds: float


def optimizer(name: str, net: nn.Module, calls: int) -> torch.optim.Optimizer:
    limits: dict[str, Any] = {
        "max_iter": 25,
        "max_eval": calls,
        "tolerance_grad": 0,
        "tolerance_change": 0,
        "history_size": HISTORY,
        "line_search_fn": "strong_wolfe",
    }
    if name == TORCH:
        return torch.optim.LBFGS(net.parameters(), **limits)
    return signedstep.SecondOrder(net.parameters(), name, reuse=True, **limits)


def train(name: str, problem: Problem, calls: int) -> Trace:
    """Steps of 25 iterations until the calls are spent, or until one moves nothing; the error after each."""
    method = optimizer(name, problem.net, calls)
    losses: list[float] = []

    def closure() -> Tensor:
        method.zero_grad()
        value = problem.loss()
        value.backward()
        losses.append(min([value.item(), *losses[-1:]]))
        return value

    began, errors = time.perf_counter(), []
    while len(losses) < calls:
        before = len(losses)
        method.step(closure)  # pyright: ignore[reportArgumentType, reportCallIssue]
        with torch.no_grad():
            errors.append((len(losses), problem.error()))
        if len(losses) <= before + 1:
            break
    return Trace(losses, errors, time.perf_counter() - began)


def table(name: str, traces: dict[str, list[Trace]], at: list[int]) -> None:
    """Geometric means over the seeds."""
    print(f"\n{name}: relative L2 error and loss after closure calls (geometric mean of seeds)")
    print(f"{'':12}" + "".join(f"{count:>20d}" for count in at) + f"{'seconds':>10}")
    for method, runs in traces.items():
        cells = [
            f"{mean([_error(run, count) for run in runs]):>10.1e}{mean([_loss(run, count) for run in runs]):>10.1e}"
            for count in at
        ]
        print(f"{method:12}" + "".join(cells) + f"{np.mean([run.seconds for run in runs]):10.1f}", flush=True)


def mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _loss(run: Trace, count: int) -> float:
    return run.loss[min(count, len(run.loss)) - 1]


def _error(run: Trace, count: int) -> float:
    """The error where the run stood within so many calls."""
    known = [error for calls, error in run.error if calls <= count]
    return known[-1] if known else run.error[0][1]


def plot(results: dict[str, dict[str, list[Trace]]], path: Path) -> None:
    """The error against closure calls: a thin line for each seed, a thick one for their geometric mean."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(5 * len(results), 4), squeeze=False, layout="constrained")
    for axis, (name, traces) in zip(axes[0], results.items(), strict=True):
        for k, (method, runs) in enumerate(traces.items()):
            counts = np.linspace(50, max(len(run.loss) for run in runs), 200)
            curves = [[_error(run, int(count)) for count in counts] for run in runs]
            axis.semilogy(counts, np.transpose(curves), color=f"C{k}", alpha=0.35, linewidth=0.8)
            axis.semilogy(counts, [mean(list(column)) for column in zip(*curves, strict=True)], f"C{k}", label=method)
        axis.set(title=name, xlabel="closure calls", ylabel="relative L2 error")
        axis.grid(alpha=0.3)
    axes[0][0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"\n{path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, nargs=2, default=[2000, 4000], help="a run, on Poisson and on Burgers")
    parser.add_argument("--points", type=int, nargs=2, default=[101, 1500], help="of Poisson and of Burgers")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=METHODS, help=f"ours by name, or {TORCH!r}")
    parser.add_argument("--output", type=Path, default=Path("results/pinn.png"))
    parser.add_argument(
        "--quick", action="store_true", help="about a minute: 400 and 600 calls, one seed, fewer points"
    )
    args = parser.parse_args()
    if args.quick:
        args.calls, args.points, args.seeds = [400, 600], [51, 600], 1
    torch.set_num_threads(1)  # small products: a second thread costs more than it gives
    results: dict[str, dict[str, list[Trace]]] = {}
    print(f"{args.calls} closure calls, {args.seeds} seeds, points {args.points}, m = {HISTORY}, float64")
    for (name, make), points, calls in zip(PROBLEMS.items(), args.points, args.calls, strict=True):
        results[name] = {method: [] for method in args.methods}
        for method in args.methods:
            for seed in range(args.seeds):
                torch.manual_seed(seed)
                results[name][method].append(train(method, make(points), calls))
        table(name, results[name], [calls // 4, calls // 2, calls])
    plot(results, args.output)


if __name__ == "__main__":
    main()
