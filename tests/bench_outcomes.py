"""Hand-made outcomes of the benchmark: every number in them is chosen, none is computed."""

from collections.abc import Sequence
from typing import Any

import signedstep
from signedstep.experiments.bench.runs import BUDGET, BenchOutcome, BenchRun, Fall


def outcome(
    solver: str, falls: Sequence[tuple[int, float]], problem: str = "networks/a", seed: int = 0, **changes: Any
) -> BenchOutcome:
    """A run whose lowest value fell to these values after so many evaluations, a hundredth of a second each."""
    evals, f = zip(*falls, strict=True) if falls else ((), ())
    run = BenchRun(problem, solver, seed, changes.pop("budget", 1000), 60.0, 20, "float64", "code")
    given = {"ended": "All 1000 evaluations were used.", "kind": BUDGET, "unknowns": 10, "evals": 1000}
    given |= {"iterations": 500, "seconds": 10.0, "inside": 4.0, "environment": {"signedstep": signedstep.__version__}}
    return BenchOutcome(run, Fall(list(f), list(evals), [count / 100 for count in evals]), **{**given, **changes})


def at(solver: str, *losses: float, problem: str = "networks/a", seed: int = 0, **changes: Any) -> BenchOutcome:
    """A run from 1 with these losses after 50, 200 and 1000 evaluations, as far as they are given."""
    return outcome(solver, [(1, 1.0), *zip((50, 200, 1000), losses, strict=False)], problem, seed, **changes)
