"""Which outcomes belong together: a panel is one data set with one network, solver by solver, seed by seed."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from signedstep.experiments import paper
from signedstep.experiments.runs import Network, Outcome
from signedstep.experiments.solvers import SOLVERS
from signedstep.experiments.stats import median

Measure = Literal["iterations", "evals"]
MEASURES: tuple[Measure, ...] = ("iterations", "evals")
MEASURE_NAMES = {"iterations": "iterations", "evals": "evaluations", "seconds": "seconds"}

ADAM_DEFAULT = "adam-0.001"
ADAM_BEST = "adam-best"
"""The column of Adam with the learning rate of its grid that is best on the data set."""


def label(column: str) -> str:
    """What a reader sees for a column."""
    if column == ADAM_BEST:
        return "Adam, best rate"
    if column == ADAM_DEFAULT:
        return "Adam"
    return SOLVERS[column].label if column in SOLVERS else column


def diverged(outcome: Outcome) -> bool:
    """Whether a run ended because its loss was no longer finite; its trace may end before that."""
    return outcome.ended.startswith("Diverged")


def timed_out(outcome: Outcome) -> bool:
    """Whether a run ended at its time limit; others did not finish because they diverged or could not run at all."""
    return not outcome.finished and "time limit" in outcome.ended


def spent(outcome: Outcome) -> float:
    """Wall time of a run; one that was killed at its time limit took that long, whatever its trace holds."""
    last = outcome.trace.seconds[-1] if outcome.trace.seconds else 0.0
    return max(last, outcome.run.budget.seconds) if timed_out(outcome) else last


def loss(outcome: Outcome, measure: Measure, limit: int) -> float:
    """The loss of a run at a limit; infinite where the run had diverged or never started."""
    trace = outcome.trace
    if not trace.f or (diverged(outcome) and reached(outcome, measure) < limit):
        return math.inf
    value = trace.at_iteration(limit) if measure == "iterations" else trace.at_evals(limit)
    return value if value is not None and math.isfinite(value) else math.inf


def completed(outcome: Outcome, measure: Measure, limit: int) -> bool:
    """Whether a run had its share: it ended by itself, or its time limit came only after that."""
    return outcome.finished or diverged(outcome) or reached(outcome, measure) >= limit


def reached(outcome: Outcome, measure: Measure) -> int:
    """How many iterations or evaluations a run had; -1 if it never started."""
    trace = outcome.trace
    if not trace.f:
        return -1
    return len(trace.f) - 1 if measure == "iterations" else trace.evals[-1]


@dataclass(frozen=True)
class Panel:
    """The outcomes of one data set with one network."""

    data: str
    network: Network
    runs: Mapping[str, Sequence[Outcome]]
    """By solver, in the order of the seeds."""

    @property
    def unknowns(self) -> int:
        return max(outcome.unknowns for outcomes in self.runs.values() for outcome in outcomes)

    @property
    def columns(self) -> list[str]:
        """The paper's columns in its order, then the rest; Adam's rates appear as its default and its best."""
        found = [solver for solver in self.runs if solver not in self.rates or solver == ADAM_DEFAULT]
        if len(self.rates) > 1 or (self.rates and ADAM_DEFAULT not in self.rates):
            found.append(ADAM_BEST)
        return in_order(found)

    @property
    def rates(self) -> list[str]:
        """Adam with its learning rates."""
        return [solver for solver in self.runs if solver.startswith("adam-")]

    def limit(self, measure: Measure, columns: Sequence[str]) -> int:
        """The largest number of iterations or evaluations that the budget of every run of these columns allows."""
        solvers = [solver for column in columns for solver in (self.rates if column == ADAM_BEST else [column])]
        outcomes = [outcome for solver in solvers for outcome in self.runs.get(solver, ())]
        return min((getattr(outcome.run.budget, measure) for outcome in outcomes), default=0)

    def solver(self, column: str, measure: Measure, limit: int) -> str:
        """The solver behind a column: Adam's best rate is the one with the lowest median loss on this data set."""
        if column != ADAM_BEST:
            return column
        losses = {rate: [loss(outcome, measure, limit) for outcome in self.runs[rate]] for rate in self.rates}
        return min(losses, key=lambda rate: median(losses[rate]))

    def outcomes(self, column: str, measure: Measure, limit: int) -> Sequence[Outcome]:
        if column == ADAM_BEST and ADAM_BEST not in self.columns:
            return ()
        return self.runs.get(self.solver(column, measure, limit), ())


def in_order(columns: Sequence[str]) -> list[str]:
    """Columns in the order of the paper's table, each followed by its twin, then Adam's best, then the others."""
    known = [*paper.COLUMNS, ADAM_BEST, *SOLVERS]
    for twin, column in paper.TWINS.items():
        known.insert(known.index(column) + 1, twin)
    return sorted(columns, key=lambda column: (known.index(column) if column in known else len(known), column))


def panels(outcomes: Sequence[Outcome]) -> list[Panel]:
    """All outcomes in panels, in the order of Table 1; of a run made with two budgets the larger one counts."""
    kept: dict[tuple[str, Network, str, int], Outcome] = {}
    for outcome in outcomes:
        run = outcome.run
        key = (run.data, run.network, run.solver, run.seed)
        if key not in kept or _size(kept[key]) < _size(outcome):
            kept[key] = outcome
    grouped: dict[tuple[str, Network], dict[str, list[Outcome]]] = {}
    for data, network, solver, seed in sorted(kept, key=lambda key: key[3]):
        outcome = kept[data, network, solver, seed]
        grouped.setdefault((data, network), {}).setdefault(solver, []).append(outcome)
    names = paper.order(list(dict.fromkeys(outcome.run.data for outcome in outcomes)))
    keys = sorted(grouped, key=lambda key: (names.index(key[0]), key[1].hidden, key[1].name))
    return [Panel(data, network, grouped[data, network]) for data, network in keys]


def main_panels(everything: Sequence[Panel]) -> list[Panel]:
    """The panels of Table 1: those of the network that most data sets have; of several, the one with most runs."""
    if not everything:
        return []
    sets = Counter(panel.network for panel in everything)
    runs = Counter()
    for panel in everything:
        runs[panel.network] += sum(len(outcomes) for outcomes in panel.runs.values())
    chosen = max(sets, key=lambda network: (sets[network], runs[network], -network.hidden))
    return [panel for panel in everything if panel.network == chosen]


def shared_columns(chosen: Sequence[Panel]) -> list[str]:
    """The columns that at least half of the panels have: methods run on one data set only would leave a table empty."""
    counts = Counter(column for panel in chosen for column in panel.columns)
    return in_order([column for column, count in counts.items() if 2 * count >= len(chosen)])


def _size(outcome: Outcome) -> tuple[int, int, float]:
    budget = outcome.run.budget
    return budget.iterations, budget.evals, budget.seconds
