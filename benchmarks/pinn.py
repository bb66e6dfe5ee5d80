"""Physics-informed networks: Poisson and viscous Burgers, our dense and limited models next to torch.optim.LBFGS.

    python benchmarks/pinn.py --calls 5000 --seeds 3

Relative L2 error and loss after a number of closure calls, counted from outside. All solvers get the same start, the
same points, a strong Wolfe search and no stopping test; float64, tanh, no Adam before. Boundary and initial values hold
by construction, so the loss is the mean squared residual alone.

- Poisson: -u'' = f on (0, 1) with u = sin(pi x) + sin(4 pi x) / 4, u(0) = u(1) = 0. 2 layers of 20 units.
- Burgers: u_t + u u_x = (0.01 / pi) u_xx on (-1, 1) x (0, 1), u(x, 0) = -sin(pi x), u = 0 at the ends. 3 layers of 20
  units. The reference is the Cole-Hopf solution by Gauss-Hermite quadrature (Basdevant et al. 1986).
"""

import argparse
import math
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import signedstep

VISCOSITY = 0.01 / math.pi
HISTORY = 50
OURS = ["ssbroyden", "ssbfgs", "bfgs", "lsr1", "lbfgs"]
TORCH = "torch LBFGS"


class Problem(NamedTuple):
    """A network, its loss, and its relative L2 error against the known solution."""

    net: nn.Module
    loss: Callable[[], Tensor]
    error: Callable[[], float]


def network(inputs: int, width: int, layers: int) -> nn.Sequential:
    sizes = [inputs, *[width] * layers]
    hidden = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.Tanh())]
    net = nn.Sequential(*hidden, nn.Linear(width, 1)).double()
    for module in net:
        if isinstance(module, nn.Linear):
            nn.init.xavier_normal_(module.weight)
            nn.init.zeros_(module.bias)
    return net


def derivative(u: Tensor, x: Tensor) -> Tensor:
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]


def relative(u: Tensor, exact: Tensor) -> float:
    return float((u - exact).norm() / exact.norm())


def poisson(points: int) -> Problem:
    net = network(1, 20, 2)
    x = torch.linspace(0, 1, points, dtype=torch.float64)[:, None].requires_grad_(True)
    fine = torch.linspace(0, 1, 1001, dtype=torch.float64)[:, None]
    force = (math.pi**2 * (torch.sin(math.pi * x) + 4 * torch.sin(4 * math.pi * x))).detach()

    def solution(x: Tensor) -> Tensor:
        return x * (1 - x) * net(x)

    def loss() -> Tensor:
        u_xx = derivative(derivative(solution(x), x), x)
        return (u_xx + force).square().mean()

    def error() -> float:
        return relative(solution(fine), torch.sin(math.pi * fine) + torch.sin(4 * math.pi * fine) / 4)

    return Problem(net, loss, error)


def cole_hopf(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """u(x, t) for u(x, 0) = -sin(pi x): a quotient of Gaussian integrals, at t > 0."""
    nodes, weights = np.polynomial.hermite.hermgauss(100)
    shifted = x[:, None] - nodes * np.sqrt(4 * VISCOSITY * t)[:, None]
    kernel = weights * np.exp(-(np.cos(math.pi * shifted) + 1) / (2 * math.pi * VISCOSITY))
    return -(np.sin(math.pi * shifted) * kernel).sum(1) / kernel.sum(1)


def burgers(points: int) -> Problem:
    net = network(2, 20, 3)
    sobol = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(points, dtype=torch.float64)
    x, t = ((2 * sobol[:, :1] - 1).requires_grad_(True), sobol[:, 1:].clone().requires_grad_(True))
    grid = np.meshgrid(np.linspace(-1, 1, 201), np.linspace(0.01, 1, 50))
    fine_x, fine_t = (torch.from_numpy(part.reshape(-1, 1)) for part in grid)
    exact = torch.from_numpy(cole_hopf(grid[0].ravel(), grid[1].ravel()))[:, None]

    def solution(x: Tensor, t: Tensor) -> Tensor:
        return -torch.sin(math.pi * x) + t * (1 - x**2) * net(torch.cat((x, 2 * t - 1), dim=1))

    def loss() -> Tensor:
        u = solution(x, t)
        u_x, u_t = derivative(u, x), derivative(u, t)
        return (u_t + u * u_x - VISCOSITY * derivative(u_x, x)).square().mean()

    return Problem(net, loss, lambda: relative(solution(fine_x, fine_t), exact))


PROBLEMS: dict[str, Callable[[int], Problem]] = {"Poisson": poisson, "Burgers": burgers}


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
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(5 * len(results), 4), squeeze=False)
    for axis, (name, traces) in zip(axes[0], results.items(), strict=True):
        for k, (method, runs) in enumerate(traces.items()):
            for run in runs:
                axis.semilogy(*zip(*run.error, strict=True), color=f"C{k}", label=method if run is runs[0] else None)
        axis.set(title=name, xlabel="closure calls", ylabel="relative L2 error")
    axes[0][0].legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"\n{path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000, help="closure calls per run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--points", type=int, nargs=2, default=[101, 2000], help="of Poisson and of Burgers")
    parser.add_argument("--methods", nargs="+", default=[*OURS, TORCH])
    parser.add_argument("--output", type=Path, default=Path("results/pinn.png"))
    parser.add_argument("--quick", action="store_true", help="about a minute: 600 calls, one seed, fewer points")
    args = parser.parse_args()
    if args.quick:
        args.calls, args.seeds, args.points = 600, 1, [51, 1000]
    torch.set_num_threads(1)  # small products: a second thread costs more than it gives
    results: dict[str, dict[str, list[Trace]]] = {}
    print(f"{args.calls} closure calls, {args.seeds} seeds, points {args.points}, m = {HISTORY}, float64")
    for (name, make), points in zip(PROBLEMS.items(), args.points, strict=True):
        results[name] = {method: [] for method in args.methods}
        for method in args.methods:
            for seed in range(args.seeds):
                torch.manual_seed(seed)
                results[name][method].append(train(method, make(points), args.calls))
        table(name, results[name], [args.calls // 4, args.calls // 2, args.calls])
    plot(results, args.output)


if __name__ == "__main__":
    main()
