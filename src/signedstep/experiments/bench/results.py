"""Outcomes of the benchmark in order: by problem, solver and seed; after so many evaluations Adam has its best rate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from signedstep.experiments.bench.runs import ABSENT, BenchOutcome
from signedstep.experiments.stats import median

ADAM = "adam-best"
"""The column of Adam with the rate that is best on the problem: the lowest median loss after so many evaluations."""

BySeed = dict[int, BenchOutcome]


def column(solver: str) -> str:
    """The column in which the runs of a solver are shown."""
    return ADAM if solver.startswith("adam-") else solver


@dataclass(frozen=True)
class Results:
    """What every solver made of every problem."""

    outcomes: dict[str, dict[str, BySeed]]
    """By problem, then by solver, each rate of Adam being one; runs that were not tried are not in it."""

    def after(self, evals: float = math.inf) -> dict[str, dict[str, BySeed]]:
        """By problem, then by column: Adam has the rate that is best after so many evaluations, or at the end."""
        return {problem: _with_best_adam(by_solver, evals) for problem, by_solver in self.outcomes.items()}

    @property
    def solvers(self) -> list[str]:
        """The columns of all solvers that were tried anywhere."""
        return list(dict.fromkeys(solver for found in self.after().values() for solver in found))

    @property
    def families(self) -> list[str]:
        return list(dict.fromkeys(name.partition("/")[0] for name in self.outcomes))

    @property
    def budget(self) -> int:
        """Evaluations that every run was allowed."""
        runs = [runs for found in self.outcomes.values() for runs in found.values()]
        return min((outcome.run.evals for by_seed in runs for outcome in by_seed.values()), default=0)

    def of(self, family: str) -> "Results":
        """Those of one family."""
        return Results({name: found for name, found in self.outcomes.items() if name.partition("/")[0] == family})

    def runs(self, solver: str) -> list[BenchOutcome]:
        """All runs of one solver."""
        return [outcome for found in self.outcomes.values() for outcome in found.get(solver, {}).values()]


def results(outcomes: Sequence[BenchOutcome]) -> Results:
    """Put outcomes in order."""
    found: dict[str, dict[str, BySeed]] = {}
    for outcome in outcomes:
        by_solver = found.setdefault(outcome.run.problem, {})
        if outcome.kind != ABSENT:
            by_solver.setdefault(outcome.run.solver, {})[outcome.run.seed] = outcome
    return Results(found)


def losses(runs: BySeed, evals: float) -> dict[int, float]:
    """The lowest value of each seed after so many evaluations."""
    return {seed: outcome.trace.at_evals(evals) for seed, outcome in runs.items()}


def start(by_solver: dict[str, BySeed]) -> float:
    """The value at the start of a problem, the same for all solvers; of several seeds the median."""
    return median([outcome.trace.f[0] for outcome in next(iter(by_solver.values())).values() if outcome.trace.f])


def _with_best_adam(by_solver: dict[str, BySeed], evals: float) -> dict[str, BySeed]:
    rates = {name: runs for name, runs in by_solver.items() if column(name) == ADAM}
    others = {name: runs for name, runs in by_solver.items() if name not in rates}
    if not rates:
        return others
    best = min(rates, key=lambda name: median(list(losses(rates[name], evals).values())))
    return {**others, ADAM: rates[best]}
