"""What the command prints after its runs."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from signedstep.experiments.bench.results import results
from signedstep.experiments.bench.runs import BenchOutcome
from signedstep.experiments.bench.tables import Grid, endings, problem_table, win_tables


def show(outcomes: Sequence[BenchOutcome], first: str, details: bool, console: Console) -> None:
    """Print all tables."""
    found = results(outcomes)
    budget = max(outcome.run.evals for outcome in outcomes)
    tables = [*win_tables(found, first, budget), endings(found, outcomes)]
    if details:
        tables.append(problem_table(found, first, budget))
    for grid in tables:
        console.print(_table(grid))


def _table(grid: Grid) -> Table:
    table = Table(title=grid.title, caption=grid.note or None, title_justify="left", caption_justify="left")
    for place, head in enumerate(grid.head):
        table.add_column(head, justify="left" if place == 0 else "right")
    for row in grid.rows:
        table.add_row(*row)
    return table
