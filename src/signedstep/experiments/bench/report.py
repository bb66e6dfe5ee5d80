"""What comes of the benchmark's runs: tables on the terminal, and a page, figures and CSV files in a folder."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from signedstep.experiments.bench import figures
from signedstep.experiments.bench.problems import FAMILIES
from signedstep.experiments.bench.results import Results, losses, results
from signedstep.experiments.bench.runs import BenchOutcome
from signedstep.experiments.bench.solvers import solver
from signedstep.experiments.bench.tables import (
    Grid,
    checkpoints,
    endings,
    label,
    problem_table,
    solved_tables,
    win_tables,
)
from signedstep.experiments.output import Draw, pictures, write_text
from signedstep.experiments.page import templates
from signedstep.experiments.style import stroke
from signedstep.experiments.words import listed

TITLE = "Our methods next to their peers"
LONG = 40
"""Characters beyond which a cell is a text, which takes several lines where there is no room."""
BELOW = re.compile(r" (\[\S+ \S+\]|[a-z]+/\S+)(?= |$)")
"""In a cell, what the page puts on a line of its own: an interval, or the name of a problem."""


def show(outcomes: Sequence[BenchOutcome], first: str, details: bool, console: Console) -> None:
    """Print all tables that have rows."""
    found = results(outcomes)
    tables = [*win_tables(found, first), *solved_tables(found), endings(outcomes)]
    for grid in [*tables, problem_table(found, first)] if details else tables:
        for part in _parts(grid, console.width) if grid.rows else ():
            console.print(part)


def write(outcomes: Sequence[BenchOutcome], first: str, folder: Path, command: str) -> Path:
    """Write bench.html, figures/ and tables/ into a folder and return the page."""
    found = results(outcomes)
    shown: dict[str, Draw] = {
        "wins": lambda theme: figures.wins(found, first, theme),
        "profiles": lambda theme: figures.profiles(found, theme),
        "targets": lambda theme: figures.targets(found, theme),
    }
    if len(found.families) > 1:
        for family in found.families:
            shown[f"profiles-{family}"] = partial(figures.profiles, found.of(family))
    grids = {"wins": win_tables(found, first), "solved": solved_tables(found), "endings": [endings(outcomes)]}
    details = problem_table(found, first)
    for name, tables in {**grids, "problems": [details]}.items():
        write_text(folder / "tables" / f"{name}.csv", _csv(tables))
    write_text(folder / "tables" / "losses.csv", _losses(found))
    environment = templates()
    environment.filters["stacked"] = _stacked
    page = environment.get_template("bench.html.jinja").render(
        title=TITLE,
        command=command,
        written=datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC"),
        first=label(first),
        pictures=pictures(shown, folder / "figures"),
        families={name: FAMILIES[name].text for name in found.families},
        grids=grids,
        details=details,
        facts=_facts(outcomes),
        methods=[_method(name) for name in dict.fromkeys(outcome.run.solver for outcome in outcomes)],
    )
    return write_text(folder / "bench.html", page)


def _stacked(cell: str) -> tuple[str, str]:
    """A cell as the page has it, so that columns are narrow: its number, and below it the interval or the problem."""
    below = BELOW.search(cell)
    return (cell.replace(below[0], "", 1), below[1]) if below else (cell, "")


def _method(name: str) -> dict[str, Any]:
    return {"label": label(name), "name": name, "text": solver(name).text, "colour": stroke(name).colour}


def _facts(outcomes: Sequence[BenchOutcome]) -> dict[str, str]:
    """How it was run, in words."""
    runs = [outcome.run for outcome in outcomes]
    versions: dict[str, None] = {}
    for outcome in outcomes:
        versions |= dict.fromkeys(f"{name} {version}" for name, version in outcome.environment.items())
    problems = Counter(name.partition("/")[0] for name in {run.problem for run in runs})
    return {
        "Runs": f"{len(runs)}, of which {sum(not outcome.finished for outcome in outcomes)} did not finish",
        "Problems": ", ".join(f"{family}: {count}" for family, count in sorted(problems.items())),
        "Starts": listed({run.seed for run in runs}),
        "Evaluations": ", ".join(str(evals) for evals in sorted({run.evals for run in runs})),
        "Memory": ", ".join(f"m = {memory}" for memory in sorted({run.memory for run in runs})),
        "Precision": ", ".join(sorted({run.dtype for run in runs})),
        "Versions": ", ".join(versions),
    }


def _csv(tables: Sequence[Grid]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", *tables[0].head])
    for grid in tables:
        writer.writerows([grid.title, *row] for row in grid.rows)
    return out.getvalue()


def _losses(found: Results) -> str:
    """Every run: its loss at the checkpoints, unrounded, and what it took."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    counts = checkpoints(found.budget)
    head = ("problem", "solver", "seed", "unknowns", *(f"f at {count}" for count in counts), "lowest f", "evaluations")
    writer.writerow([*head, "iterations", "seconds", "seconds inside", "kind", "ended"])
    for problem, by_solver in found.outcomes.items():
        for runs in by_solver.values():
            at = [losses(runs, count) for count in [*counts, math.inf]]
            for seed, run in runs.items():
                values = (*(column[seed] for column in at), run.evals, run.iterations, run.seconds, run.inside)
                writer.writerow([problem, run.run.solver, seed, run.unknowns, *values, run.kind, run.ended])
    return out.getvalue()


def _parts(grid: Grid, width: int) -> list[Table]:
    """The table, some columns at a time where a terminal is too narrow for all: a cell that is cut says nothing."""
    columns = zip(grid.head, *grid.rows, strict=True)
    names, *others = (min(max(map(cell_len, column)), LONG) + len("│  ") for column in columns)
    chosen: list[list[int]] = []
    left = 0
    for place, wide in enumerate(others, 1):
        if not chosen or wide > left:
            chosen.append([])
            left = width - 1 - names
        chosen[-1].append(place)
        left -= wide
    parts = [_part(grid, [0, *places]) for places in chosen]
    parts[0].title, parts[-1].caption = grid.title, grid.note or None
    return parts


def _part(grid: Grid, places: Sequence[int]) -> Table:
    table = Table(title_justify="left", caption_justify="left")
    for place in places:
        table.add_column(grid.head[place], justify="right" if place else "left", overflow="fold")
    for row in grid.rows:
        table.add_row(*(row[place] for place in places))
    return table
