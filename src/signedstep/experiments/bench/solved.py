"""Which problems a solver solves, and what it takes: the form in which CUTEst results are reported, and profiles.

A problem is solved to tau when f - best <= tau (f(start) - best), where best is the lowest value that any of the
solvers saw within the budget. A problem on which nobody makes progress is left out; who was not tried has not solved.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from signedstep.experiments.bench.results import Results
from signedstep.experiments.bench.runs import BenchOutcome
from signedstep.experiments.profiles import Costs, solved_after

TAUS = (1e-1, 1e-3, 1e-5, 1e-7)
PROFILED = (1e-1, 1e-3, 1e-5)


@dataclass(frozen=True)
class Solved:
    """Evaluations and seconds until each problem was solved, infinite where it was not."""

    evals: Costs
    seconds: np.ndarray
    """[problems, solvers]"""

    @property
    def shares(self) -> np.ndarray:
        """The share of problems that each solver solved."""
        return np.isfinite(self.evals.evals).mean(axis=0)


def solved(found: Results, solvers: Sequence[str], tau: float) -> Solved:
    """What it took each solver to solve each problem, every seed of it being one."""
    evals, seconds = [], []
    for by_solver in found.after().values():
        runs = [by_solver.get(solver, {}) for solver in solvers]
        for seed in sorted(set().union(*runs)):
            row = _row([outcomes.get(seed) for outcomes in runs], tau)
            if row is not None:
                evals.append([count for count, _ in row])
                seconds.append([time for _, time in row])
    shape = (len(evals), len(solvers))
    return Solved(Costs(list(solvers), tau, np.array(evals).reshape(shape)), np.array(seconds).reshape(shape))


def _row(outcomes: Sequence[BenchOutcome | None], tau: float) -> list[tuple[float, float]] | None:
    """Evaluations and seconds of every run on one problem; None where no run made progress."""
    tried = [outcome for outcome in outcomes if outcome is not None]
    counts = solved_after(tried, max(outcome.run.evals for outcome in tried), tau)
    if counts is None:
        return None
    found = iter(counts)
    return [_taken(outcome, next(found)) if outcome is not None else (math.inf, math.inf) for outcome in outcomes]


def _taken(outcome: BenchOutcome, evals: float) -> tuple[float, float]:
    if math.isinf(evals):
        return math.inf, math.inf
    return evals, outcome.trace.seconds[list(outcome.trace.evals).index(int(evals))]
