"""Performance profiles (Dolan and Moré 2002) and data profiles (Moré and Wild 2009) from the traces of runs.

A problem is one data set with one seed. A method solves it to tau when its loss comes below best + tau (start - best),
where best is the lowest loss that any method saw there within the budget.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from signedstep.experiments.panels import Panel

TAUS = (1e-1, 1e-2)


@dataclass(frozen=True)
class Costs:
    """Evaluations until a problem was solved, infinite where it was not."""

    columns: list[str]
    tau: float
    evals: np.ndarray
    """[problems, columns]"""


def costs(chosen: Sequence[Panel], columns: Sequence[str], tau: float) -> Costs:
    """What it cost each column to solve each problem that all of them tried, and that any of them made progress on."""
    rows = []
    for panel in chosen:
        limit = panel.limit("evals", columns)
        by_seed = [
            {outcome.run.seed: outcome for outcome in panel.outcomes(column, "evals", limit)} for column in columns
        ]
        for seed in sorted(set.intersection(*(set(seeds) for seeds in by_seed)) if by_seed else ()):
            row = solved_after([seeds[seed] for seeds in by_seed], limit, tau)
            if row is not None:
                rows.append(row)
    return Costs(list(columns), tau, np.array(rows).reshape(len(rows), len(columns)))


class Traced(Protocol):
    """A run whose trace has columns `f` and `evals`."""

    @property
    def trace(self) -> Any: ...


def solved_after(outcomes: Sequence[Traced], limit: int, tau: float) -> list[float] | None:
    """Evaluations each run needed to solve one problem; None where no run got below the start."""
    falls = [_within(outcome, limit) for outcome in outcomes]
    lows = [f.min() for f, _ in falls if len(f)]
    starts = [f[0] for f, _ in falls if len(f) and math.isfinite(f[0])]
    if not starts or not min(lows) < max(starts):
        return None
    target = min(lows) + tau * (max(starts) - min(lows))
    return [_first(f, evals, target) for f, evals in falls]


def _within(outcome: Traced, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Losses and evaluations of a trace up to a limit; a loss that is not finite counts as infinite."""
    evals = np.array(outcome.trace.evals, dtype=float)
    f = np.array(outcome.trace.f, dtype=float)  # None becomes NaN
    f[~np.isfinite(f)] = np.inf
    return f[evals <= limit], evals[evals <= limit]


def _first(f: np.ndarray, evals: np.ndarray, target: float) -> float:
    hits = np.flatnonzero(f <= target)
    return float(evals[hits[0]]) if len(hits) else math.inf


def performance(found: Costs, ratios: np.ndarray) -> np.ndarray:
    """[columns, ratios]: the share of problems solved within so many times the cost of the best method."""
    best = found.evals.min(axis=1, keepdims=True)
    relative = np.divide(found.evals, best, out=np.full_like(found.evals, np.inf), where=np.isfinite(best))
    return (relative[:, :, None] <= ratios).mean(axis=0)


def data_profile(found: Costs, budgets: np.ndarray) -> np.ndarray:
    """[columns, budgets]: the share of problems solved within so many evaluations."""
    return (found.evals[:, :, None] <= budgets).mean(axis=0)
