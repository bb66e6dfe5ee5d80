"""The tables of the benchmark, as rows of text: for the terminal, the page and files alike."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from signedstep.experiments.bench.results import ADAM, Results, losses
from signedstep.experiments.bench.runs import BUDGET, KINDS, BenchOutcome
from signedstep.experiments.bench.solved import TAUS, solved
from signedstep.experiments.bench.solvers import PEERS
from signedstep.experiments.bench.wins import CHECKPOINTS, Duel, duel, time_to_match
from signedstep.experiments.stats import median
from signedstep.experiments.words import counted

MATCH_AT = 200


@dataclass(frozen=True)
class Grid:
    """A table of text; the first column names the rows."""

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""


def label(solver: str) -> str:
    """What a reader sees for a solver."""
    return "Adam, best rate" if solver == ADAM else PEERS[solver].label if solver in PEERS else solver


def checkpoints(budget: int) -> list[int]:
    """After how many evaluations solvers are compared."""
    return [*(count for count in CHECKPOINTS if count < budget), budget]


def win_tables(found: Results, first: str) -> list[Grid]:
    """The chosen solver against every other: over all problems, and by family."""
    tables = [_wins(found, first, f"{label(first)} against the others")]
    if len(found.families) > 1:
        tables += [_wins(found.of(family), first, family) for family in found.families]
    return tables


def _wins(found: Results, first: str, title: str) -> Grid:
    counts = checkpoints(found.budget)
    at = min(MATCH_AT, found.budget)
    peers = [solver for solver in found.solvers if solver != first]
    rows = []
    for peer in peers:
        duels = [duel(found, first, peer, count) for count in counts]
        if duels[0].medians:
            rows.append([label(peer), str(len(duels[0].medians)), *map(_won, duels), *map(_runs_won, duels),
                         "/".join(_hundredths(at_count.typical) for at_count in duels),
                         _worst(duel(found, first, peer, at)), _matched(found, first, peer, at)])  # fmt: skip
    head = [
        *("peer", "problems", *(f"lower at {count}" for count in counts), *(f"runs at {count}" for count in counts)),
        *("loss ratio", f"worst at {at}", f"to match {at}"),
    ]
    note = (
        "Lower: share of problems whose median loss over the starts is lower, and how many are won, tied, lost (in "
        "brackets: lower by any amount, ties included); runs: share of runs; with 95% bootstrap intervals over "
        f"problems, a tie is half. Loss ratio: over the peer's at {', '.join(map(str, counts))}, geometric mean over "
        f"problems, each counted between 1/20 and 20. Worst: the largest ratio of losses among problems lost at {at}; "
        "losses below zero have no ratio. "
        f"To match: evaluations to reach the peer's loss at {at}, start by start, relative to the peer's own, the "
        "median over the starts of a problem and then over problems. Never: half of the problems or more are not "
        "matched within the budget, a problem being so where half of its starts or more are not; its median loss may "
        "be lower all the same. These three look at losses as they are, ties or not."
    )
    return Grid(title, head, rows, note)


def _won(found: Duel) -> str:
    won, tied, lost = found.counts
    return f"{percent(found.rate, found.interval)} {won}-{tied}-{lost} ({found.below})" if found.medians else ""


def _runs_won(found: Duel) -> str:
    return percent(found.run_rate, found.run_interval)


def percent(rate: float, interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{rate:.0%} [{100 * low:.0f}, {100 * high:.0f}]" if math.isfinite(rate) else ""


def _hundredths(ratio: float) -> str:
    return f"{ratio:.2f}" if math.isfinite(ratio) else "-"


def _worst(found: Duel) -> str:
    ratio, problem = found.worst
    if problem:
        return f"{ratio:.3g} {problem}"
    return "none has a ratio" if 0.0 in found.medians.values() else "none lost"


def _matched(found: Results, first: str, peer: str, at: int) -> str:
    shares = list(time_to_match(found, first, peer, at).values())
    return f"{median(shares):.0%}" if math.isfinite(median(shares)) else "never"


def endings(everything: Sequence[BenchOutcome]) -> Grid:
    """How runs ended and what an iteration and an evaluation cost, by solver."""
    rows = []
    for solver in dict.fromkeys(outcome.run.solver for outcome in everything):
        runs = [outcome for outcome in everything if outcome.run.solver == solver]
        kinds = Counter(outcome.kind for outcome in runs)
        rows.append([label(solver), str(len(runs)), *(str(kinds[kind] or "") for kind in KINDS),
                     _per_iteration(runs), _outside(runs), _reasons(runs)])  # fmt: skip
    head = ["solver", "runs", *KINDS, "evals / iteration", "ms outside", "most frequent other endings"]
    note = "; ".join(f"{kind}: it {text}" for kind, text in KINDS.items())
    note += ". ms outside: processor time outside the objective for each evaluation, median over runs."
    return Grid("How runs ended", head, rows, note)


def _per_iteration(runs: Sequence[BenchOutcome]) -> str:
    """Over all runs, if all of them tell: those ended from outside mostly do not, and the others are no fair sample.

    The first evaluation of a run belongs to no iteration.
    """
    begun = [run for run in runs if run.evals]
    iterations = sum(run.iterations or 0 for run in begun)
    if not iterations or any(run.iterations is None for run in begun):
        return ""
    return f"{sum(run.evals - 1 for run in begun) / iterations:.3f}"


def _outside(runs: Sequence[BenchOutcome]) -> str:
    told = [1e3 * (run.seconds - run.inside) / run.evals for run in runs if run.evals]
    return f"{median(told):.3f}" if told else ""


def _reasons(runs: Sequence[BenchOutcome]) -> str:
    counts = Counter(run.ended for run in runs if run.kind != BUDGET)
    return "; ".join(f"{count} x {text}" for text, count in counts.most_common(2))


def solved_tables(found: Results) -> list[Grid]:
    """Who solves how much, and in how many evaluations: over all problems, and by family."""
    tables = [_solved(found, "Problems solved")]
    if len(found.families) > 1:
        tables += [_solved(found.of(family), f"Problems solved: {family}") for family in found.families]
    return tables


def _solved(found: Results, title: str) -> Grid:
    by_tau = [solved(found, found.solvers, tau) for tau in TAUS]
    rows = [
        [
            label(solver),
            *(f"{each.shares[place]:.3f} ({_middle(each.evals.evals[:, place], '{:.0f}')})" for each in by_tau),
            *(_middle(each.seconds[:, place], "{:.2g}") for each in by_tau),
        ]
        for place, solver in enumerate(found.solvers)
        if len(by_tau[0].evals.evals)
    ]
    head = ["solver", *(f"to {tau:.0e}" for tau in TAUS), *(f"s to {tau:.0e}" for tau in TAUS)]
    note = (
        f"{counted(len(by_tau[0].evals.evals), 'pair')} of problem and start: share solved (median evaluations), "
        "and median seconds. Solved to tau: f - best <= tau (f(start) - best), where best is the lowest value that "
        "any of these solvers saw. A median is infinite where less than half are solved."
    )
    return Grid(title, head, rows, note)


def _middle(values: np.ndarray, form: str) -> str:
    middle = median(list(values))
    return form.format(middle) if math.isfinite(middle) else "∞"


def problem_table(found: Results, first: str) -> Grid:
    """Every problem: the median loss of the chosen solver over that of each other, on the way and at the end.

    Where there is no other it is the loss itself.
    """
    counts, peers = checkpoints(found.budget), [solver for solver in found.solvers if solver != first]
    if not peers:
        return _alone(found, first, counts)
    duels = {(peer, count): duel(found, first, peer, count) for peer in peers for count in counts}
    rows = [[problem, *(_number(duels[key].ratios.get(problem)) for key in duels)] for problem in found.outcomes]
    head = ["problem", *(f"/ {label(peer)} at {count}" for peer, count in duels)]
    title = f"Median loss of {label(first)} over that of the others, problem by problem"
    return Grid(title, head, rows, f"Below 1 {label(first)} is lower.")


def _alone(found: Results, solver: str, counts: Sequence[int]) -> Grid:
    columns = [_medians(found, solver, count) for count in counts]
    rows = [[problem, *(_number(column[problem]) for column in columns)] for problem in columns[0]]
    head = ["problem", *(f"at {count}" for count in counts)]
    return Grid(f"Median loss of {label(solver)}, problem by problem", head, rows)


def _medians(found: Results, solver: str, evals: int) -> dict[str, float]:
    return {
        problem: median(list(losses(by_solver[solver], evals).values()))
        for problem, by_solver in found.after(evals).items()
        if solver in by_solver
    }


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3g}"
