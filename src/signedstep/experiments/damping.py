"""What an iteration of damping costs, in the paper's O(n³) form and in the O(mn) one, as a function of n."""

from collections.abc import Sequence
from dataclasses import dataclass

from signedstep.experiments.panels import Panel, reached, spent, timed_out
from signedstep.experiments.runs import Outcome
from signedstep.experiments.stats import median, power

CLOCK = 1e-9
"""Seconds that no run is faster than, so that times have ratios."""


@dataclass(frozen=True)
class DampingCost:
    """Median seconds per iteration on one data set."""

    data: str
    unknowns: int
    signed: float
    """l-SR1 with Wolfe±."""
    cheap: float
    """Damping on the m x m spectrum."""
    dense: float | None
    """Damping by an n x n eigendecomposition; None where it was not run, or could not."""
    unfinished: bool
    """Whether most runs of the dense form did not finish."""
    bound: bool
    """Whether the time of the dense form is only a lower bound: that of iterations which the time limit cut off."""

    @property
    def costly(self) -> bool:
        """Whether the dense form did not finish, or an iteration of it takes 5 times that of l-SR1 with Wolfe±."""
        return self.unfinished or (self.dense or 0) >= 5 * self.signed


def damping_costs(chosen: Sequence[Panel]) -> tuple[list[DampingCost], float | None]:
    """A row per data set, by rising n, and the exponent a in dense ~ n^a."""
    rows = [row for row in map(_row, chosen) if row is not None]
    rows.sort(key=lambda row: row.unknowns)
    timed = [(row.unknowns, row.dense) for row in rows if row.dense]
    return rows, power([n for n, _ in timed], [seconds for _, seconds in timed])


def per_iteration(outcome: Outcome) -> float:
    """Seconds per iteration. One that the time limit cut off counts where it had been longer than the others took.

    The first iteration of any model is one down the gradient, and cheap.
    """
    return max(_mean(outcome), _cut_off(outcome), CLOCK)


def _mean(outcome: Outcome) -> float:
    """Seconds per iteration among those that came to an end."""
    iterations = reached(outcome, "iterations")
    return outcome.trace.seconds[-1] / iterations if iterations > 0 else 0.0


def _cut_off(outcome: Outcome) -> float:
    """How long the iteration had taken that a time limit cut off."""
    return spent(outcome) - outcome.trace.seconds[-1] if timed_out(outcome) else 0.0


def _row(panel: Panel) -> DampingCost | None:
    if not {"lsr1-wolfe+-", "lsr1-damp"} <= panel.runs.keys():
        return None
    dense = panel.runs.get("lsr1-damp-dense", ())
    tried = [outcome for outcome in dense if reached(outcome, "iterations") > 0 or timed_out(outcome)]
    return DampingCost(
        panel.data,
        panel.unknowns,
        median([per_iteration(outcome) for outcome in panel.runs["lsr1-wolfe+-"]]),
        median([per_iteration(outcome) for outcome in panel.runs["lsr1-damp"]]),
        median([per_iteration(outcome) for outcome in tried]) if tried else None,
        2 * sum(not outcome.finished for outcome in dense) > len(dense),
        2 * sum(_cut_off(outcome) > _mean(outcome) for outcome in tried) > len(tried),
    )
