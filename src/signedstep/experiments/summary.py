"""The result of a study in a few lines of a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from signedstep.experiments.panels import label, main_panels, panels
from signedstep.experiments.runs import Outcome
from signedstep.experiments.tables import Entry, named, table
from signedstep.experiments.tables import Table as Losses
from signedstep.experiments.words import counted

_ACROSS = 4
"""Data sets side by side in a terminal of 80 columns."""


def summary(outcomes: Sequence[Outcome], exact: bool = False) -> Group:
    """Median losses at equal evaluations, as the page has them: of one data set a ranking, of several a table."""
    losses = table(main_panels(panels(outcomes)), "evals", exact)
    seeds = counted(len({outcome.run.seed for outcome in outcomes}), "seed")
    title = f"Training loss after {losses.limits}, median of {seeds}"
    return Group(title, *_ranking(losses)) if len(losses.lines) == 1 else Group(title, *_overview(losses))


def _overview(losses: Losses) -> Iterator[Table]:
    """Methods down, data sets across, the best of each in bold; a few data sets at a time, to fit a terminal."""
    for i in range(0, len(losses.lines), _ACROSS):
        lines = losses.lines[i : i + _ACROSS]
        shown = Table("", *(Column(line.data, justify="right") for line in lines))
        for column in losses.columns:
            shown.add_row(label(column), *(_cell(line.entries.get(column), losses) for line in lines))
        yield shown


def _ranking(found: Losses) -> Iterator[Table | str]:
    """The methods on one data set, the lowest median first, and what follows from that in a sentence or two."""
    (line,) = found.lines
    shown = Table(line.data)
    for heading in ("median", "quartiles", "seconds a run"):
        shown.add_column(heading, justify="right")
    for column, entry in line.ranked.items():
        quartiles = f"{found.number(entry.low)} to {found.number(entry.high)}"
        losses = ["DNF", ""] if entry.dnf else [found.number(entry.median), quartiles]
        shown.add_row(named(column, entry), *losses, f"{entry.seconds:.2f}", style="bold" if entry.best else "")
    yield shown
    yield f"Lowest median: {found.lowest}." if found.lowest else "No method finished with a finite loss."
    if found.undecided:
        yield found.undecided


def _cell(entry: Entry | None, losses: Losses) -> Text | str:
    if entry is None:
        return ""
    text = "DNF" if entry.dnf else losses.number(entry.median)
    return Text(text, style="bold" if entry.best else "")
