"""Hand-made outcomes of the benchmark: every number in them is chosen, none is computed."""

from collections.abc import Sequence
from typing import Any

import signedstep
from signedstep.experiments.bench.runs import BUDGET, CRASHED, BenchOutcome, BenchRun, Fall


def outcome(
    solver: str, falls: Sequence[tuple[int, float]], problem: str = "networks/a", seed: int = 0, **changes: Any
) -> BenchOutcome:
    """A run whose lowest value fell to these values after so many evaluations, a hundredth of a second each."""
    evals, f = zip(*falls, strict=True) if falls else ((), ())
    run = BenchRun(problem, solver, seed, changes.pop("budget", 1000), 60.0, 20, "float64", "code")
    given = {"ended": "The budget of evaluations was used: 1000.", "kind": BUDGET, "unknowns": 10, "evals": 1000}
    given |= {"iterations": 500, "seconds": 10.0, "inside": 4.0, "environment": {"signedstep": signedstep.__version__}}
    return BenchOutcome(run, Fall(list(f), list(evals), [count / 100 for count in evals]), **{**given, **changes})


def at(solver: str, *losses: float, problem: str = "networks/a", seed: int = 0, **changes: Any) -> BenchOutcome:
    """A run from 1 with these losses after 50, 200 and 1000 evaluations, as far as they are given."""
    return outcome(solver, [(1, 1.0), *zip((50, 200, 1000), losses, strict=False)], problem, seed, **changes)


def made() -> list[BenchOutcome]:
    """Two families, three solvers of which one crashes on a problem, two starts."""
    falls = {"auto": (0.1, 0.01, 0.001), "torch-lbfgs": (0.2, 0.02, 0.0005), "scipy-bfgs": (0.3, 0.2, 0.1)}
    found = [
        at(name, *(f * (1 + 0.1 * seed) for f in losses), problem=problem, seed=seed)
        for name, losses in falls.items()
        for problem in ("networks/a", "networks/b", "pinns/c")
        for seed in (0, 1)
    ]
    crashed = at("torch-lbfgs", 0.9, problem="pinns/d", kind=CRASHED, ended="IndexError: <x> & more")
    return [*found, crashed, at("auto", 0.5, problem="pinns/d")]
