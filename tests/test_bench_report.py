"""What the benchmark writes: profiles and solved problems on hand-made outcomes, figures, tables and the page."""

import csv
import io
import math
import re

import numpy as np

from bench_outcomes import at, made, outcome
from signedstep.experiments.bench.report import show, write
from signedstep.experiments.bench.results import results
from signedstep.experiments.bench.runs import ABSENT, CRASHED
from signedstep.experiments.bench.solved import solved
from signedstep.experiments.bench.tables import solved_tables, win_tables
from signedstep.experiments.profiles import data_profile, performance
from signedstep.experiments.terminal import terminal


def test_solved_is_relative_to_the_best_that_anyone_saw():
    quick = outcome("auto", [(1, 100.0), (10, 20.0), (20, 1.0)])
    slow = outcome("torch-lbfgs", [(1, 100.0), (40, 9.0), (80, 0.0)])
    found = results([quick, slow])
    one = solved(found, ["auto", "torch-lbfgs"], 1e-1)
    assert one.evals.evals.tolist() == [[20, 40]], "to reach 10"
    assert one.seconds.tolist() == [[0.2, 0.4]]
    other = solved(found, ["auto", "torch-lbfgs"], 1e-3)
    assert other.evals.evals.tolist() == [[math.inf, 80]]
    assert other.shares.tolist() == [0, 1]


def test_who_was_not_tried_has_not_solved_and_who_saw_nothing_finite_neither():
    tried = outcome("auto", [(1, 1.0), (5, 0.0)])
    absent = outcome("scipy-bfgs", [], kind=ABSENT)
    broken = outcome("torch-lbfgs", [], kind=CRASHED, evals=1)
    found = solved(results([tried, absent, broken]), ["auto", "scipy-bfgs", "torch-lbfgs"], 1e-1)
    assert found.evals.evals.tolist() == [[5, math.inf, math.inf]]
    flat = results([outcome("auto", [(1, 1.0)]), outcome("torch-lbfgs", [(1, 1.0)])])
    assert solved(flat, flat.solvers, 1e-1).evals.evals.shape == (0, 2), "a problem without progress is none"


def test_every_start_is_a_problem_of_its_own():
    runs = [
        outcome(name, [(1, 1.0), (10 * (seed + 1), 0.0)], seed=seed)
        for name in ("auto", "torch-lbfgs")
        for seed in (0, 1)
    ]
    found = solved(results(runs), ["auto", "torch-lbfgs"], 1e-5)
    assert found.evals.evals.tolist() == [[10, 10], [20, 20]]
    assert data_profile(found.evals, np.array([9, 10, 20])).tolist() == [[0, 0.5, 1], [0, 0.5, 1]]
    assert performance(found.evals, np.array([1.0])).tolist() == [[1], [1]]


def test_the_table_of_solved_problems():
    (table,) = solved_tables(results([at("auto", 0.5, 0.0), at("torch-lbfgs", 0.0005, 0.0005)]))
    cells = {row[0]: dict(zip(table.head, row, strict=True)) for row in table.rows}
    assert cells["auto"]["to 1e-03"] == "1.000 (200)"
    assert cells["torch L-BFGS"]["to 1e-03"] == "1.000 (50)"
    assert cells["torch L-BFGS"]["to 1e-05"] == "0.000 (∞)"
    assert cells["torch L-BFGS"]["s to 1e-03"] == "0.5"


def test_the_report_has_figures_tables_and_a_page_that_says_everything(tmp_path):
    outcomes = made()
    page = write(outcomes, "auto", tmp_path, "signedstep bench --half all")
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    for name in ("wins", "profiles", "targets", "profiles-networks", "profiles-pinns"):
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 10_000
        assert f'id="{name}"' in text
    for words in (
        "signedstep bench --half all",
        "IndexError: &lt;x&gt; &amp; more",
        "pinns/d",
        "torch L-BFGS",
        "m = 20",
    ):
        assert words in text
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", text), "nothing is loaded from elsewhere"
    assert "<td>50% 1-0-1 (1)<small>[0, 100]</small></td>" in text, "columns are narrow where intervals stand below"
    with (tmp_path / "tables" / "losses.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(outcomes)
    ours = [row for row in rows if row["solver"] == "auto" and row["problem"] == "networks/a"]
    assert [float(row["f at 200"]) for row in ours] == [0.01, 0.01 * 1.1], "unrounded"
    with (tmp_path / "tables" / "wins.csv").open() as file:
        wins = list(csv.DictReader(file))
    assert {row["table"] for row in wins} == {"auto against the others", "networks", "pinns"}


def test_a_narrow_terminal_cuts_no_cell():
    text = io.StringIO()
    show(made(), "auto", True, terminal(file=text, width=80))
    said = text.getvalue()
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= 80
    tables = win_tables(results(made()), "auto")
    assert len(tables) == 3
    assert all(cell in said for grid in tables for row in (grid.head, *grid.rows) for cell in row)
    assert said.count("auto against the others") == 1


def test_one_solver_alone_has_a_report_too(tmp_path):
    starts = [at("auto", *losses, seed=seed) for seed, losses in enumerate([(0.5, 0.4, 0.3), (0.7, 0.4, 1 / 3)])]
    text = write(starts, "auto", tmp_path, "signedstep bench").read_text()
    assert "these runs do not hold what it needs" in text
    assert "against the others" not in text
    assert "is lower." not in text
    with (tmp_path / "tables" / "problems.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row.pop("table") == "Median loss of auto, problem by problem"
    assert row == {"problem": "networks/a", "at 50": "0.6", "at 200": "0.4", "at 1000": "0.317"}
