"""Table 1: every number against one worked out by hand, and its files."""

import csv
import io
import math

import numpy as np
import pytest

from made_outcomes import ending_at, falling, only, outcome
from signedstep.experiments import paper
from signedstep.experiments.exports import FIELDS, duration, to_csv, to_latex, to_markdown
from signedstep.experiments.panels import ADAM_BEST, main_panels, panels, shared_columns
from signedstep.experiments.runs import Budget, Network
from signedstep.experiments.stats import median, power, quantile, sign_test
from signedstep.experiments.tables import entry, line, table

TIME_LIMIT = {"finished": False, "ended": "The time limit of 60 s was reached."}


@pytest.mark.parametrize("q", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("size", [1, 2, 4, 5, 8])
def test_quantiles_are_numpys(q, size):
    values = np.random.default_rng(size).normal(size=size)
    assert quantile(list(values), q) == pytest.approx(np.quantile(values, q), rel=1e-12)


def test_quantiles_of_infinite_values():
    assert quantile([0.1, 0.2, 0.3, 0.4, math.inf], 0.75) == 0.4
    assert median([math.inf, 0.2, 0.1]) == 0.2
    assert median([0.1, math.inf]) == math.inf
    assert median([math.inf, math.inf]) == math.inf
    assert math.isnan(median([]))


def test_sign_test_counts_outcomes_of_fair_coins():
    assert sign_test(5, 0) == 1 / 32
    assert sign_test(4, 1) == 6 / 32
    assert sign_test(0, 5) == 1
    assert sign_test(0, 0) == 1


def test_power_recovers_an_exponent():
    assert power([10, 20, 40], [3e-6 * n**3 for n in (10, 20, 40)]) == pytest.approx(3)
    assert power([10, 10], [1, 2]) is None


def test_an_entry_is_median_and_quartiles_over_the_seeds():
    panel = only(ending_at("gd", [0.5, 0.1, 0.3, 0.2, 0.4]))
    found = entry(panel, "gd", "iterations", 4)
    assert found is not None
    assert (found.median, found.low, found.high) == pytest.approx((0.3, 0.2, 0.4))
    assert (found.seeds, found.unfinished, found.dnf, found.seconds, found.printed) == (5, 0, False, 2.0, 0.455)
    assert entry(panel, "lsr1", "iterations", 4) is None


def test_equal_iterations_and_equal_evaluations_differ():
    cheap = outcome("adam-0.001", falling(0.2, 7), per_iteration=1)  # 8 evaluations are 7 iterations
    dear = outcome("gd", falling(0.2, 4), per_iteration=3)  # 8 evaluations are 2 iterations
    by_iterations = line(only([cheap, dear]), ["gd", "adam-0.001"], "iterations")
    by_evals = line(only([cheap, dear]), ["gd", "adam-0.001"], "evals")
    assert by_iterations.limit == 4
    assert by_iterations.entries["gd"].median == pytest.approx(0.2)
    assert by_iterations.entries["adam-0.001"].median == pytest.approx(1 - 0.8 * 4 / 7)
    assert by_iterations.entries["gd"].best
    assert by_evals.limit == 8
    assert by_evals.entries["gd"].median == pytest.approx(0.6)
    assert by_evals.entries["adam-0.001"].median == pytest.approx(0.2)
    assert by_evals.entries["adam-0.001"].best
    assert not by_evals.entries["gd"].best


def test_the_best_is_tied_within_rounding():
    outcomes = [
        *ending_at("gd", [0.1004]),
        *ending_at("lbfgs", [0.0996]),
        *ending_at("lsr1", [0.1006]),
        *ending_at("lsr1-flip", [math.nan]),
    ]
    entries = line(only(outcomes), ["gd", "lbfgs", "lsr1", "lsr1-flip"], "iterations").entries
    assert [entries[column].best for column in entries] == [True, True, False, False]
    assert entries["lsr1-flip"].median == math.inf


def test_an_exact_table_has_digits_and_ties_by_the_numbers_alone():
    lasts = {"gd": 6e-13, "lbfgs": 0.0, "lsr1": 0.0, "lsr1-flip": 0.1}
    outcomes = [run for solver, last in lasts.items() for run in ending_at(solver, [last], data="mine")]
    exact, decimal = (table([only(outcomes)], "iterations", exact) for exact in (True, False))
    assert [entry.best for entry in exact.lines[0].entries.values()] == [False, True, True, False]
    assert [entry.best for entry in decimal.lines[0].entries.values()] == [True, True, True, False]
    assert "| mine | 6e-13 | **0** | **0** | 0.1 |" in to_markdown(exact)
    assert r"mine & 6e-13 & \textbf{0} & \textbf{0} & 0.1 \\" in to_latex(exact)
    assert "paper" not in to_markdown(exact) + to_latex(exact), "it has no value for this data set"


def test_adams_best_rate_is_chosen_by_its_median_on_each_data_set():
    outcomes = [
        *ending_at("adam-0.001", [0.5, 0.5, 0.5]),
        *ending_at("adam-0.01", [0.1, 0.4, 0.4]),
        *ending_at("adam-0.1", [0.9, 0.3, 0.3]),
        *ending_at("adam-0.001", [0.2], data="splice"),
        *ending_at("adam-0.01", [0.3], data="splice"),
    ]
    heart, splice = panels(outcomes)
    assert heart.columns == ["adam-0.001", ADAM_BEST]
    found = table([heart, splice], "iterations")
    first, second = (row.entries[ADAM_BEST] for row in found.lines)
    assert (first.solver, first.median) == ("adam-0.1", pytest.approx(0.3))
    assert (second.solver, second.median) == ("adam-0.001", pytest.approx(0.2))
    assert found.lines[0].entries["adam-0.001"].median == pytest.approx(0.5)
    assert only(ending_at("adam-0.001", [0.1])).columns == ["adam-0.001"]


def test_dnf_where_most_seeds_did_not_finish():
    slow = [outcome("lsr1-damp-dense", [1.0, 0.9], seed=seed, **TIME_LIMIT) for seed in range(3)]
    done = ending_at("lsr1-damp-dense", [0.1, 0.1, 0.1, 0.1, 0.1])[3:]
    found = line(only([*slow, *done]), ["lsr1-damp-dense"], "iterations").entries["lsr1-damp-dense"]
    assert (found.unfinished, found.seeds, found.dnf, found.best, found.seconds) == (3, 5, True, False, 60.0)
    two = line(only([*slow[1:], *done]), ["lsr1-damp-dense"], "iterations").entries["lsr1-damp-dense"]
    assert (two.unfinished, two.dnf) == (2, False)


def test_a_time_limit_after_the_compared_iterations_does_not_matter():
    late = outcome("lsr1-damp-dense", falling(0.1), **TIME_LIMIT)  # 4 iterations, 9 evaluations
    assert not line(only([late]), ["lsr1-damp-dense"], "iterations").entries["lsr1-damp-dense"].dnf


def test_a_diverged_run_is_infinitely_high_from_there_on():
    ended = "Diverged: the loss or its gradient was not finite after iteration 3; the trace ends before it."
    lost = outcome("adam-0.1", [1.0, 0.5, 0.4], finished=False, ended=ended)
    found = entry(only([lost]), "adam-0.1", "iterations", 4)
    before = entry(only([lost]), "adam-0.1", "iterations", 2)
    assert found is not None
    assert before is not None
    assert (found.median, found.dnf, before.median) == (math.inf, False, 0.4)


def test_columns_stand_in_the_papers_order_and_sparse_ones_are_left_out():
    names = ("lbfgs-scaled", "lsr1-wolfe+-", "bfgs", "lsr1-damp-dense", "gd", "lsr1-damp")
    heart = [outcome(name, falling(0.1)) for name in names]
    others = [outcome(name, falling(0.1), data) for data in ("zoo", "a1a") for name in names if name != "bfgs"]
    found = main_panels(panels([*heart, *others]))
    assert [panel.data for panel in found] == ["a1a", "heart", "zoo"]
    assert shared_columns(found) == ["gd", "lsr1-damp", "lsr1-damp-dense", "lsr1-wolfe+-", "lbfgs-scaled"]


def test_the_main_network_is_the_one_most_data_sets_have():
    deep = [outcome("gd", falling(0.1), network=Network(hidden=hidden)) for hidden in (2, 3)]
    common = [outcome("gd", falling(0.1), data) for data in ("heart", "splice")]
    assert [panel.network.hidden for panel in main_panels(panels([*deep, *common]))] == [1, 1]


def test_of_a_run_with_two_budgets_the_larger_counts():
    short = outcome("gd", falling(0.5))
    long = outcome("gd", falling(0.1, 8), budget=Budget(8, 16, 60.0))
    for pair in ([short, long], [long, short]):
        assert only(pair).runs["gd"] == [long]


def test_the_papers_table_is_complete():
    assert len(paper.TABLE) == 14
    assert all(len(row.values) == len(paper.COLUMNS) for row in paper.TABLE.values())
    bold = {name: [column for column in paper.COLUMNS if row.bold(column)] for name, row in paper.TABLE.items()}
    assert sum("lsr1-wolfe+-" in columns for columns in bold.values()) == 9
    assert bold["heart"] == ["lsr1", "lsr1-wolfe+-"]
    assert bold["madelon"] == ["lsr1-damp"]
    assert paper.TABLE["gisette"].value("lsr1-damp-dense") == paper.DNF
    assert paper.TABLE["w8a"].value("lsr1-flip") is None


def made_table():
    slow = [outcome("lsr1-damp", [1.0], seed=seed, **TIME_LIMIT) for seed in range(2)]
    odd = ending_at("gd", [0.25], data="50% of a|b_c")
    return table(panels([*ending_at("gd", [0.2, 0.4]), *slow, *odd]), "iterations")


def test_csv_has_every_number_unrounded():
    rows = list(csv.DictReader(io.StringIO(to_csv([made_table()]))))
    assert tuple(rows[0]) == FIELDS
    first, slow, odd = rows
    assert (first["data"], first["method"], first["limit"], first["measure"]) == ("heart", "GD", "4", "iterations")
    assert float(first["median"]) == pytest.approx(0.3)
    assert float(first["lower_quartile"]) == pytest.approx(0.25)
    assert (first["best"], first["paper"], first["dnf"]) == ("1", "0.455", "0")
    assert (slow["dnf"], slow["seconds"], slow["reason"]) == ("1", "60.0", TIME_LIMIT["ended"])
    assert odd["paper"] == ""


def test_markdown_shows_ours_and_the_papers():
    lines = to_markdown(made_table()).splitlines()
    assert lines[0] == "| data set | GD | l-SR1+damp |"
    assert lines[2] == "| heart | **0.300** (0.250–0.350) [0.455] | DNF (60 s) [0.239] |"  # noqa: RUF001
    assert lines[3] == r"| 50% of a\|b_c | **0.250** | – |"  # noqa: RUF001


def test_latex_is_escaped_and_balanced():
    text = to_latex(made_table())
    assert r"50\% of a|b\_c & \textbf{0.250} &" in text
    assert r"heart & \textbf{0.300} & DNF (60 s) \\" in text
    assert r"{\scriptsize 0.250--0.350}" in text
    assert text.count("{") == text.count("}")
    body = [row for row in text.splitlines() if row.endswith((r"\\", r"\addlinespace"))]
    assert {row.count("&") for row in body} == {2}


def test_a_run_that_was_refused_is_not_given_a_time():
    refused = outcome("lsr1-damp-dense", [1.0], finished=False, ended="Not tried: it needs 40 GB.")
    assert "DNF (not run)" in to_markdown(table([only([refused])], "iterations"))


def test_durations():
    assert [duration(s) for s in (0.0012, 0.5, 9.96, 59.7)] == ["1.2 ms", "0.5 s", "10 s", "60 s"]
