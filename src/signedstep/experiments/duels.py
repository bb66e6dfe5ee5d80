"""Two methods against each other: pairs of runs that share data set, network and seed, and medians by data set."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from signedstep.experiments.panels import MEASURES, Measure, Panel, completed, loss
from signedstep.experiments.runs import Outcome
from signedstep.experiments.stats import median, sign_test
from signedstep.experiments.words import counted

TIE = 1e-3
"""Losses that differ by less than this share of the larger one are a tie."""
MOST_SETS = 2 / 3
CHANCE = 0.05
ENOUGH_PAIRS = 5
"""With fewer pairs no result of a sign test is below `CHANCE`."""


@dataclass(frozen=True)
class Duel:
    """How often the first method ended below the second: pairs of runs, and medians by panel."""

    wins: int
    losses: int
    ties: int
    sets_won: float
    """Panels where its median is lower; a tie counts half."""
    sets_tied: int
    sets: int

    @property
    def pairs(self) -> int:
        return self.wins + self.losses + self.ties

    @property
    def chance(self) -> float:
        """The p-value of a one-sided sign test on the pairs."""
        return sign_test(self.wins, self.losses)

    @property
    def beats(self) -> bool:
        """A lower median on two thirds of the panels, and more pairs won than chance would explain."""
        return self.sets_won >= MOST_SETS * self.sets and self.chance < CHANCE

    @property
    def evidence(self) -> dict[str, Any]:
        return {**asdict(self), "chance": self.chance}

    def __add__(self, other: "Duel") -> "Duel":
        return Duel(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        medians, runs = counted(self.sets, "median"), counted(self.pairs, "run")
        return f"{self.sets_won:g} of {medians}, {self.wins} of {runs} (p = {self.chance:.2g})"


Duels = dict[Measure, Duel]
"""A duel by each measure."""


def duel(chosen: Sequence[Panel], first: str, second: str, measure: Measure) -> Duel:
    """The duel of two columns over these panels; who does not finish loses to who does."""
    runs: list[int] = []
    medians: list[int] = []
    for panel in chosen:
        pairs = paired(panel, first, second, measure)
        if pairs:
            runs += [_result(a, b) for a, b in pairs]
            a, b = zip(*pairs, strict=True)
            medians.append(_result(median(a), median(b)))
    tied = medians.count(0)
    return Duel(runs.count(1), runs.count(-1), runs.count(0), medians.count(1) + tied / 2, tied, len(medians))


def duels(chosen: Sequence[Panel], first: str, second: str) -> Duels:
    """The duel of two columns by each measure."""
    return {measure: duel(chosen, first, second, measure) for measure in MEASURES}


def paired(panel: Panel, first: str, second: str, measure: Measure) -> list[tuple[float, float]]:
    """The losses of both, seed by seed, at the same limit; infinite for a run that did not finish."""
    limit = panel.limit(measure, [first, second])
    ours = {outcome.run.seed: outcome for outcome in panel.outcomes(first, measure, limit)}
    theirs = {outcome.run.seed: outcome for outcome in panel.outcomes(second, measure, limit)}

    def final(outcome: Outcome) -> float:
        return loss(outcome, measure, limit) if completed(outcome, measure, limit) else float("inf")

    return [(final(ours[seed]), final(theirs[seed])) for seed in sorted(ours.keys() & theirs.keys())]


def _result(a: float, b: float) -> int:
    """1: the first is lower, -1: the second, 0: a tie."""
    if a == b or abs(a - b) <= TIE * max(a, b) < float("inf"):
        return 0
    return 1 if a < b else -1
