"""Losses of a method along iterations, evaluations or seconds: median and quartiles over the seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from signedstep.experiments.panels import Measure, Panel, diverged, spent
from signedstep.experiments.runs import Outcome
from signedstep.experiments.stats import median, quantile

Axis = Literal["iterations", "evals", "seconds"]
AXES: tuple[Axis, ...] = ("iterations", "evals", "seconds")
POINTS = 121


@dataclass(frozen=True)
class Curve:
    """One line with its band; NaN where a run has no finite loss."""

    x: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


def curve(panel: Panel, column: str, axis: Axis, last: int | None = None) -> Curve | None:
    """The curve of a column, None if nothing ran; `last` cuts the axis of iterations or evaluations."""
    measure: Measure = "iterations" if axis == "iterations" else "evals"
    limit = panel.limit(measure, [column])
    outcomes = [outcome for outcome in panel.outcomes(column, measure, limit) if outcome.trace.f]
    if not outcomes:
        return None
    x = _grid(outcomes, axis, min(limit, last or limit))
    losses = np.array([_along(outcome, axis, x) for outcome in outcomes])
    bands = [np.array([quantile(list(at), q) for at in losses.T]) for q in (0.5, 0.25, 0.75)]
    return Curve(x, *(np.where(np.isfinite(band), band, np.nan) for band in bands))


def position(outcome: Outcome, axis: Axis) -> np.ndarray:
    """Where the entries of a trace lie on an axis."""
    trace = outcome.trace
    return np.array({"iterations": range(len(trace.f)), "evals": trace.evals, "seconds": trace.seconds}[axis], float)


def _grid(outcomes: Sequence[Outcome], axis: Axis, limit: int) -> np.ndarray:
    """Where a curve is drawn: to its limit, but not beyond what half of the runs that did not finish have seen."""
    if axis == "seconds":
        return np.linspace(0, max(median([spent(outcome) for outcome in outcomes]), 1e-9), POINTS)
    unfinished = 2 * sum(not outcome.finished and not diverged(outcome) for outcome in outcomes) > len(outcomes)
    seen = median([position(outcome, axis)[-1] for outcome in outcomes]) if unfinished else limit
    first = 0 if axis == "iterations" else 1
    last = max(first, math.floor(min(seen, limit)))
    return np.unique(np.linspace(first, last, POINTS).round())


def _along(outcome: Outcome, axis: Axis, x: np.ndarray) -> np.ndarray:
    """The loss at each place; a run that ended stays where it was, a diverged one is infinite from there on."""
    at = position(outcome, axis)
    f = np.array(outcome.trace.f, dtype=float)
    f[~np.isfinite(f)] = np.inf
    found = f[np.maximum(np.searchsorted(at, x, side="right") - 1, 0)]
    return np.where(x > at[-1], np.inf, found) if diverged(outcome) else found
