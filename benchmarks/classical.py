"""Problems solved on the classical set of More, Garbow and Hillstrom, our methods and SciPy's side by side.

A problem is solved when f - f* <= tau (f(x0) - f*) for a published local minimum f*. Evaluations of value and gradient
are counted outside the solvers, which all get the same budget and no stopping test of their own.
"""

import argparse
import math
import warnings
from collections.abc import Callable

import numpy as np
import scipy.optimize
import torch

import signedstep
from signedstep.effects import shaping
from signedstep.experiments.bench.problems.classical_functions import Problem, problems
from signedstep.methods import full_name, model_of


class EnoughError(BaseException):
    """Raised by the counted objective to end a solver; no Exception, which ours would take for a wall."""


class Counted:
    """Value and gradient of a function as NumPy sees them; keeps the lowest finite value seen.

    It ends the solver where the budget is spent or f is as low as `enough`.
    """

    def __init__(self, fun: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype, budget: int, enough: float):
        self.fun, self.dtype, self.budget, self.enough = fun, dtype, budget, enough
        self.lowest: list[float] = []

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        if len(self.lowest) >= self.budget:
            raise EnoughError
        leaf = torch.tensor(x, dtype=self.dtype, requires_grad=True)
        value = self.fun(leaf)
        (g,) = torch.autograd.grad(value, leaf)
        f = value.item()
        best = self.lowest[-1] if self.lowest else math.inf
        self.lowest.append(min(best, f) if math.isfinite(f) else best)
        if self.lowest[-1] <= self.enough:
            raise EnoughError
        return f, g.numpy().astype(x.dtype)

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """By autograd, for our methods and for SciPy's alike; not counted, since all that use it need one a step."""
        leaf = torch.tensor(x, dtype=self.dtype)
        H = torch.autograd.functional.hessian(self.fun, leaf)
        return H.numpy().astype(x.dtype)  # type: ignore[union-attr]

    def product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The Hessian times a vector, for the methods that want no more of it."""
        leaf, weights = torch.tensor(x, dtype=self.dtype), torch.tensor(v, dtype=self.dtype)
        _, Hv = torch.autograd.functional.hvp(self.fun, leaf, weights)
        return Hv.numpy().astype(x.dtype)  # type: ignore[union-attr]


Solver = Callable[[Counted, np.ndarray], None]


def ours(method: str, **options) -> Solver:
    options = {name: value for name, value in options.items() if name in shaping(full_name(method))}

    def run(fun: Counted, x0: np.ndarray) -> None:
        options_ = {"gtol": 0, "maxfun": fun.budget, "maxiter": fun.budget, **options}
        curvature = method.partition("/")[0]
        second = {"newton": {"hess": fun.hessian}, "newton-cg": {"hessp": fun.product}}.get(curvature, {})
        signedstep.minimize(fun, x0, method=method, jac=True, options=options_, **second)

    return run


def scipys(method: str, **options) -> Solver:
    def run(fun: Counted, x0: np.ndarray) -> None:
        scipy.optimize.minimize(fun, x0, jac=True, method=method, options={"gtol": 0, "maxiter": fun.budget, **options})

    return run


def scipys_second_order(method: str, source: str = "hess", **options) -> Solver:
    """SciPy's methods that want a Hessian: the exact one, its products, or SciPy's own SR1."""

    def run(fun: Counted, x0: np.ndarray) -> None:
        given = {"hess": {"hess": fun.hessian}, "hessp": {"hessp": fun.product}, "SR1": {"hess": scipy.optimize.SR1()}}
        options_ = {"maxiter": fun.budget, **options}
        scipy.optimize.minimize(fun, x0, jac=True, method=method, options=options_, **given[source])

    return run


def solvers(memory: int, floor: float | None, beta: str, names: list[str]) -> dict[str, Solver]:
    table = {name: ours(name, history_size=memory, floor=floor, beta=beta) for name in names}
    table["SciPy BFGS"] = scipys("BFGS")
    table["SciPy L-BFGS-B"] = scipys("L-BFGS-B", maxcor=memory, ftol=0, maxfun=10**9)
    table["SciPy trust-exact"] = scipys_second_order("trust-exact", gtol=0)
    table["SciPy trust-krylov"] = scipys_second_order("trust-krylov", "hessp", gtol=0)
    table["SciPy Newton-CG"] = scipys_second_order("Newton-CG", "hessp", xtol=0)
    table["SciPy trust-ncg SR1"] = scipys_second_order("trust-ncg", "SR1", gtol=0)
    return table


def lowest_values(
    solver: Solver, name: str, function: Callable, x0: np.ndarray, budget: int, enough: float = -math.inf
) -> list[float]:
    """The lowest value after each evaluation, of which there may be fewer than the budget."""
    fun = Counted(function, torch.float32 if x0.dtype == np.float32 else torch.float64, budget, enough)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            solver(fun, x0)
        except EnoughError:
            pass
        except Exception as error:  # a peer that crashes keeps what it reached, and is shown
            print(f"  {name}: {type(error).__name__}: {error}")
    return fun.lowest


def evaluations_to_solve(problem: Problem, lowest: list[float], tau: float) -> float:
    """How many evaluations it took to solve a problem; infinite if it was not."""
    targets = [best + tau * max(lowest[0] - best, 0.0) for best in (problem.minimum, *problem.minima)]
    return next((count for count, f in enumerate(lowest, start=1) if f <= max(targets)), math.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=1000, help="evaluations per problem")
    parser.add_argument("--tau", type=float, nargs="+", default=[1e-3, 1e-6, 1e-10])
    parser.add_argument("--memory", type=int, default=10, help="history size of limited-memory methods")
    parser.add_argument("--floor", type=float, help="of flip, clip and damp; each model has its own default")
    parser.add_argument("--beta", default="pr+", choices=["fr", "pr+", "hs", "dy"], help="of cg")
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    default = [name for name in signedstep.methods() if "/" in name and not name.startswith("gd/")]
    default = [name for name in default if not model_of(name).needs_parts]
    parser.add_argument("--methods", nargs="+", default=["auto", "gd", *default])
    args = parser.parse_args()

    chosen = problems()
    print(f"{len(chosen)} problems, {args.budget} evaluations, m = {args.memory}, {args.dtype}")
    print(f"{'solved to':20} " + " ".join(f"{tau:>8.0e}" for tau in args.tau) + "   median evaluations to each")
    for name, solver in solvers(args.memory, args.floor, args.beta, args.methods).items():
        runs = [
            (
                problem,
                lowest_values(solver, problem.name, problem.fun, np.array(problem.start, args.dtype), args.budget),
            )
            for problem in chosen
        ]
        costs = [[evaluations_to_solve(*run, tau=tau) for run in runs] for tau in args.tau]
        solved = " ".join(f"{sum(map(math.isfinite, cost)):8d}" for cost in costs)
        print(f"{name:20} {solved}   " + " ".join(f"{np.median(cost):7.0f}" for cost in costs), flush=True)


if __name__ == "__main__":
    main()
