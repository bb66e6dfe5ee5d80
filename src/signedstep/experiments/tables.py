"""Table 1 from outcomes: median and spread over seeds, the paper's value beside ours, the best of a row marked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from signedstep.experiments import paper
from signedstep.experiments.panels import (
    MEASURE_NAMES,
    MEASURES,
    Measure,
    Panel,
    completed,
    label,
    loss,
    shared_columns,
    spent,
)
from signedstep.experiments.stats import median, quantile
from signedstep.experiments.words import counted

DIGITS = 3
"""Decimals of a loss beside the paper's, which has as many; or significant digits where a table is exact."""


@dataclass(frozen=True)
class Entry:
    """One cell: a method on a data set, over its seeds."""

    solver: str
    """What ran; for Adam's best rate it tells which."""
    median: float
    low: float
    """The lower quartile."""
    high: float
    """The upper quartile."""
    seeds: int
    unfinished: int
    """Seeds that hit their time limit or could not run."""
    reason: str
    """Why the first of those did not finish."""
    seconds: float
    """Median wall time of a whole run."""
    printed: float | str | None
    """The paper's value."""
    best: bool = False

    @property
    def dnf(self) -> bool:
        """Most seeds did not finish."""
        return 2 * self.unfinished > self.seeds


@dataclass(frozen=True)
class Line:
    """One row: a data set with the limit at which the methods are compared."""

    data: str
    limit: int
    entries: dict[str, Entry]
    """By column; a column that did not run here is missing."""

    @property
    def ranked(self) -> dict[str, Entry]:
        """The lowest median first, and last what did not finish."""
        return dict(sorted(self.entries.items(), key=lambda item: (item[1].dnf, item[1].median)))


@dataclass(frozen=True)
class Table:
    """The losses at equal iterations or at equal evaluations."""

    measure: Measure
    columns: list[str]
    lines: list[Line]
    exact: bool = False
    """Whether losses have significant digits and only equal ones are a tie; else decimals, and a tie by those."""

    @property
    def beside_paper(self) -> bool:
        """Whether any cell has a value of the paper's."""
        return any(entry.printed is not None for line in self.lines for entry in line.entries.values())

    def number(self, value: float) -> str:
        """A loss as it is printed."""
        return number(value, self.exact)

    @property
    def lowest(self) -> str:
        """Which methods are lowest on the only data set, and their median; empty if none is finite."""
        (line,) = self.lines
        best = {named(column, entry): entry.median for column, entry in line.ranked.items() if entry.best}
        return f"{' and '.join(best)}, {self.number(min(best.values()))}" if best else ""

    @property
    def undecided(self) -> str:
        """A sentence on the methods that these seeds do not tell apart from the lowest one; empty if there are none."""
        (line,) = self.lines
        lowest = [entry for entry in line.entries.values() if entry.best]
        names = [named(column, entry) for column, entry in line.ranked.items() if _beside(entry, lowest)]
        return f"Not told apart from it: {', '.join(names)} (medians within its quartiles)." if names else ""

    @property
    def limits(self) -> str:
        """The limits in words, "50 iterations" or "50 to 100 iterations"."""
        found = sorted({line.limit for line in self.lines})
        least = f"{found[0]} to " if len(found) > 1 else ""
        return least + counted(found[-1], MEASURE_NAMES[self.measure].removesuffix("s"))


def tables(chosen: Sequence[Panel], comparison: bool = False) -> list[Table]:
    """The table by each measure, none without panels; the first is what a page opens with, curves included.

    The paper counts iterations. Who compares methods for data of their own pays for evaluations.
    """
    measures = reversed(MEASURES) if comparison else MEASURES
    return [table(chosen, measure, exact=comparison) for measure in measures] if chosen else []


def table(chosen: Sequence[Panel], measure: Measure, exact: bool = False) -> Table:
    """The table of these panels, one row each."""
    columns = shared_columns(chosen)
    return Table(measure, columns, [line(panel, columns, measure, exact) for panel in chosen], exact)


def line(panel: Panel, columns: Sequence[str], measure: Measure, exact: bool = False) -> Line:
    limit = panel.limit(measure, columns)
    found = {column: entry(panel, column, measure, limit) for column in columns}
    entries = {column: value for column, value in found.items() if value is not None}
    compared = {column: e.median if exact else round(e.median, DIGITS) for column, e in entries.items()}
    lowest = min((compared[column] for column, e in entries.items() if not e.dnf), default=math.inf)
    for column, e in entries.items():
        best = not e.dnf and math.isfinite(lowest) and compared[column] == lowest
        entries[column] = replace(e, best=best)
    return Line(panel.data, limit, entries)


def entry(panel: Panel, column: str, measure: Measure, limit: int) -> Entry | None:
    """One cell, None if nothing ran; an unfinished seed counts with the loss it had."""
    outcomes = panel.outcomes(column, measure, limit)
    if not outcomes:
        return None
    losses = [loss(outcome, measure, limit) for outcome in outcomes]
    unfinished = [outcome for outcome in outcomes if not completed(outcome, measure, limit)]
    row = paper.TABLE.get(panel.data)
    return Entry(
        solver=panel.solver(column, measure, limit),
        median=median(losses),
        low=quantile(losses, 0.25),
        high=quantile(losses, 0.75),
        seeds=len(outcomes),
        unfinished=len(unfinished),
        reason=unfinished[0].ended if unfinished else "",
        seconds=median([spent(outcome) for outcome in outcomes]),
        printed=row.value(column) if row else None,
    )


def _beside(entry: Entry, lowest: Sequence[Entry]) -> bool:
    """Whether a median that is not the lowest is within the quartiles of one that is."""
    return not (entry.best or entry.dnf) and any(best.low <= entry.median <= best.high < math.inf for best in lowest)


def named(column: str, entry: Entry) -> str:
    """The name of a method; for Adam's best rate also which it is."""
    return label(column) if entry.solver == column else f"{label(column)} ({entry.solver.removeprefix('adam-')})"


def number(value: float, exact: bool = False) -> str:
    """A loss as it is printed."""
    if not math.isfinite(value):
        return "diverged"
    return f"{value:.{DIGITS}g}" if exact else f"{value:.{DIGITS}f}"


def spread(entry: Entry, exact: bool = False) -> str:
    """The quartiles as they are printed, or nothing if they say nothing."""
    if entry.seeds < 2 or not math.isfinite(entry.median):
        return ""
    high = number(entry.high, exact) if math.isfinite(entry.high) else "∞"
    return f"{number(entry.low, exact)}–{high}"  # noqa: RUF001


def printed(entry: Entry) -> str:
    """The paper's value as it is printed, or nothing."""
    if entry.printed is None or isinstance(entry.printed, str):
        return entry.printed or ""
    return number(entry.printed)
