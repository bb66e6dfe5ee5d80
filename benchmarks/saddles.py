"""Which methods leave a saddle, and in how many evaluations: twenty strict saddles, our methods and peers side by side.

Two starts. `near`: normal noise of size 1e-3 around the saddle. `valley`: 0.1 up the slopes of positive curvature, and
1e-6 of noise, so that the way down the valley leads to the saddle. A run has left when f is lower than at the saddle by
a tenth of the depth of the nearer minimum beside it. Evaluations of value and gradient are counted outside the solvers;
Hessians, which come from autograd on both sides, are not. All stop where the gradient is below 1e-9.
"""

import argparse
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch

from classical import Counted, Solver, lowest_values, ours, scipys, scipys_second_order
from saddle_problems import Saddle, problems

GTOL = 1e-9
INDEFINITE = ("wolfe", "wolfe+-", "flip", "clip", "damp", "trust", "cubic")
OURS = [
    *("gd", "cg", "lbfgs", "bfgs"),
    *(f"sr1/{how}" for how in INDEFINITE),
    *(f"lsr1/{how}" for how in INDEFINITE),
    *(f"newton/{how}" for how in (*INDEFINITE, "dogleg", "subspace")),
]
PEERS: dict[str, Solver] = {
    "SciPy BFGS": scipys("BFGS", gtol=GTOL),
    "SciPy L-BFGS-B": scipys("L-BFGS-B", gtol=GTOL, ftol=0, maxfun=10**9),
    "SciPy Newton-CG": scipys_second_order("Newton-CG", xtol=GTOL),
    "SciPy trust-exact": scipys_second_order("trust-exact", gtol=GTOL),
    "SciPy trust-krylov": scipys_second_order("trust-krylov", gtol=GTOL),
}


def torchs(fun: Counted, x0: np.ndarray) -> None:
    """torch.optim.LBFGS with its Wolfe search, step after step until one moves nothing."""
    x = torch.nn.Parameter(torch.from_numpy(x0.copy()))
    limits = {"max_iter": fun.budget, "max_eval": fun.budget, "tolerance_grad": GTOL, "tolerance_change": 0}
    method = torch.optim.LBFGS([x], line_search_fn="strong_wolfe", **limits)  # type: ignore[arg-type]

    def closure() -> float:
        f, g = fun(x.detach().numpy())
        x.grad = torch.from_numpy(g)
        return f

    evals = 2
    while evals > 1:
        before = len(fun.lowest)
        method.step(closure)
        evals = len(fun.lowest) - before


def near(saddle: Saddle, seed: int) -> torch.Tensor:
    return saddle.point + 1e-3 * _noise(saddle, seed)


def valley(saddle: Saddle, seed: int) -> torch.Tensor:
    w, V = saddle.eigen
    up = torch.where(w > 1e-9 * w.abs().max(), V.T @ _noise(saddle, seed), 0.0)
    return saddle.point + V @ (0.1 * up / up.norm().clamp_min(1e-9)) + 1e-6 * _noise(saddle, seed + 1000)


def _noise(saddle: Saddle, seed: int) -> torch.Tensor:
    return torch.randn(len(saddle.point), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


STARTS: dict[str, Callable[[Saddle, int], torch.Tensor]] = {"near": near, "valley": valley}


def evaluations_to_leave(solver: Solver, saddle: Saddle, start: torch.Tensor, budget: int) -> float:
    """How many evaluations until f is clearly lower than at the saddle; infinite if it never is."""
    left = saddle.f - 0.1 * saddle.depth
    lowest = lowest_values(solver, saddle.name, saddle.fun, start.numpy(), budget, enough=left)
    return len(lowest) if lowest[-1] <= left else math.inf


def costs(solver: Solver, saddles: list[Saddle], seeds: int, budget: int) -> Iterator[np.ndarray]:
    """For each kind of start the evaluations of each run, [saddle, seed]."""
    for start in STARTS.values():
        yield np.array(
            [
                [evaluations_to_leave(solver, saddle, start(saddle, seed), budget) for seed in range(seeds)]
                for saddle in saddles
            ]
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=300, help="evaluations per run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=OURS)
    parser.add_argument("--stuck", action="store_true", help="also name the saddles that some run did not leave")
    args = parser.parse_args()
    torch.set_num_threads(1)

    saddles = problems()
    print(f"{len(saddles)} saddles, {args.seeds} seeds, {args.budget} evaluations, float64")
    print(f"{'runs that left, evaluations':28}" + "".join(f"{name:>8}  median" for name in STARTS))
    solvers = {name: ours(name, gtol=GTOL) for name in args.methods} | PEERS | {"torch LBFGS": torchs}
    for name, solver in solvers.items():
        found = list(costs(solver, saddles, args.seeds, args.budget))
        cells = (f"{np.isfinite(cost).mean():8.0%}{np.median(cost):8.0f}" for cost in found)
        print(f"{name:28}" + "".join(cells), flush=True)
        for start, cost in zip(STARTS, found, strict=True):
            stuck = [saddle.name for saddle, row in zip(saddles, cost, strict=True) if not np.isfinite(row).all()]
            if args.stuck and stuck:
                print(f"    {start}: {', '.join(stuck)}")


if __name__ == "__main__":
    main()
