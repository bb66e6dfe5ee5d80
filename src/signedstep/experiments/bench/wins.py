"""One solver against another: who is lower after so many evaluations, by how much, and who gets there first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from signedstep.experiments.bench.results import BySeed, Results, losses, start
from signedstep.experiments.stats import median

CHECKPOINTS = (50, 200, 1000)
SAME = 1e-6
"""Losses that differ by less than this share of the larger one are a tie, which is half a win."""
NOTHING = 1e-9
"""So are losses that differ by less than this share of the loss at the start: both are solved."""
RESAMPLES = 4000
_FAR = math.exp(3)
"""A ratio of losses counts as no more than this, or one over it, in a mean of ratios."""


@dataclass(frozen=True)
class Duel:
    """Two solvers after so many evaluations, over the problems that both of them tried."""

    medians: dict[str, float]
    """By problem: 1 where the median over the seeds is lower, 0 where it is higher, 1/2 for a tie."""
    runs: dict[str, list[float]]
    """By problem: the same for every pair of runs with one seed."""
    ratios: dict[str, float]
    """By problem: the median loss of the first over that of the second, both plus `NOTHING` of the start's.

    NaN where one of them is negative."""
    below: int
    """Problems whose median is lower by any amount, also where both are next to nothing and the duel is a tie."""

    @property
    def rate(self) -> float:
        """The share of problems won."""
        return _mean(list(self.medians.values()))

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many problems are won, tied and lost."""
        results = list(self.medians.values())
        return results.count(1.0), results.count(0.5), results.count(0.0)

    @property
    def run_rate(self) -> float:
        """The share of runs won."""
        return _mean([won for runs in self.runs.values() for won in runs])

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% bootstrap interval of `rate`, problems drawn with replacement."""
        return bootstrap([[won] for won in self.medians.values()])

    @property
    def run_interval(self) -> tuple[float, float]:
        """The same for `run_rate`; problems are drawn, not runs: runs of one problem are alike."""
        return bootstrap(list(self.runs.values()))

    @property
    def typical(self) -> float:
        """The geometric mean of the ratios, none of them counted as more than twentyfold."""
        logs = [math.log(min(max(ratio, 1 / _FAR), _FAR)) for ratio in self.ratios.values() if not math.isnan(ratio)]
        return math.exp(_mean(logs)) if logs else math.nan

    @property
    def worst(self) -> tuple[float, str]:
        """The largest ratio among the problems lost, and the problem; 1 and none where no problem lost has a ratio."""
        lost = [(ratio, name) for name, ratio in self.ratios.items() if self.medians[name] == 0]
        return max((found for found in lost if not math.isnan(found[0])), default=(1.0, ""))


def duel(found: Results, first: str, second: str, evals: int) -> Duel:
    """The duel of two solvers."""
    medians, runs, ratios, below = {}, {}, {}, 0
    for problem, by_solver in found.after(evals).items():
        if first not in by_solver or second not in by_solver:
            continue
        a, b = losses(by_solver[first], evals), losses(by_solver[second], evals)
        nothing = NOTHING * abs(start(by_solver))
        seeds = sorted(a.keys() & b.keys())
        middle = median([a[seed] for seed in seeds]), median([b[seed] for seed in seeds])
        medians[problem] = result(*middle, nothing)
        runs[problem] = [result(a[seed], b[seed], nothing) for seed in seeds]
        ratios[problem] = _ratio(*middle, nothing)
        below += middle[0] < middle[1]
    return Duel(medians, runs, ratios, below)


def result(a: float, b: float, nothing: float) -> float:
    """1: the first is lower; 0: the second; 1/2: a tie."""
    if a == b or (math.isfinite(a + b) and abs(a - b) <= max(SAME * max(abs(a), abs(b)), nothing)):
        return 0.5
    return 1.0 if a < b else 0.0


def _ratio(a: float, b: float, nothing: float) -> float:
    """a over b where both are losses, that is not negative."""
    if math.isinf(a) and math.isinf(b):
        return 1.0
    return (a + nothing) / (b + nothing) if a + nothing > 0 and b + nothing > 0 else math.nan


def time_to_match(found: Results, first: str, second: str, evals: int) -> dict[str, float]:
    """By problem: evaluations the first took to be as low as the second after `evals`, over those the second took.

    A median over the seeds; infinite where it never was as low within its budget.
    """
    shares = {}
    for problem, by_solver in found.after(evals).items():
        if first in by_solver and second in by_solver:
            ours, theirs = by_solver[first], by_solver[second]
            shares[problem] = median(
                [_share(ours, theirs, seed, evals) for seed in sorted(ours.keys() & theirs.keys())]
            )
    return shares


def _share(ours: BySeed, theirs: BySeed, seed: int, evals: int) -> float:
    target = theirs[seed].trace.at_evals(evals)
    mine, other = (runs[seed].trace for runs in (ours, theirs))
    here, there = mine.first_below(target), other.first_below(target)
    if here is None or there is None:
        return math.inf
    return mine.evals[here] / other.evals[there]


def bootstrap(groups: Sequence[Sequence[float]], seed: int = 0) -> tuple[float, float]:
    """The 95% percentile interval of the mean over all numbers, whole groups drawn with replacement."""
    if not groups:
        return math.nan, math.nan
    sums = np.array([sum(group) for group in groups])
    sizes = np.array([len(group) for group in groups])
    drawn = np.random.default_rng(seed).integers(len(groups), size=(RESAMPLES, len(groups)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
