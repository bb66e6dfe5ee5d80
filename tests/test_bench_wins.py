"""The statistics of the benchmark on hand-made outcomes."""

import math

import pytest

from bench_outcomes import at, outcome
from signedstep.experiments.bench.results import ADAM, results
from signedstep.experiments.bench.runs import ABSENT, CRASHED
from signedstep.experiments.bench.solved import solved
from signedstep.experiments.bench.tables import checkpoints, endings, problem_table, win_tables
from signedstep.experiments.bench.wins import bootstrap, duel, result, time_to_match


@pytest.mark.parametrize(
    ("a", "b", "won"),
    [
        (1.0, 2.0, 1.0),
        (2.0, 1.0, 0.0),
        (1.0, 1.0, 0.5),
        (1.0, 1.0 + 1e-7, 0.5),
        (1.0, 1.0 + 1e-5, 1.0),
        (1e-12, 1e-20, 0.5),
        (1e-8, 1e-20, 0.0),
        (math.inf, 1.0, 0.0),
        (1.0, math.inf, 1.0),
        (math.inf, math.inf, 0.5),
        (-2.0, -1.0, 1.0),
    ],
)
def test_who_is_lower(a, b, won):
    assert result(a, b, nothing=1e-9) == won


def test_a_ratio_counts_as_no_more_than_twentyfold_in_the_mean():
    found = results([at("ours", 0.5, 1e-8), at("peer", 0.5, 0.5)])
    assert duel(found, "ours", "peer", 200).typical == pytest.approx(math.exp(-3))
    assert duel(found, "peer", "ours", 200).typical == pytest.approx(math.exp(3))


def test_lower_by_any_amount_is_counted_beside_ties():
    found = results([at("ours", 0.5, 1e-14), at("peer", 0.5, 1e-12)])
    after = duel(found, "ours", "peer", 200)
    assert (after.counts, after.below) == ((0, 1, 0), 1)
    assert duel(found, "peer", "ours", 200).below == duel(found, "ours", "peer", 50).below == 0


def test_medians_over_seeds_decide_problems_and_pairs_decide_runs():
    found = results(
        [at("ours", 0.5, f, seed=seed) for seed, f in enumerate((0.1, 0.2, 0.9))]
        + [at("peer", 0.5, f, seed=seed) for seed, f in enumerate((0.2, 0.3, 0.1))]
        + [at("ours", 0.5, 0.4, problem="networks/b"), at("peer", 0.4, 0.2, problem="networks/b")]
    )
    at_200 = duel(found, "ours", "peer", 200)
    assert at_200.medians == {"networks/a": 0.5, "networks/b": 0.0}  # 0.2 each
    assert at_200.runs == {"networks/a": [1.0, 1.0, 0.0], "networks/b": [0.0]}
    assert (at_200.rate, at_200.run_rate) == (0.25, 0.5)
    assert at_200.ratios["networks/b"] == pytest.approx(2)
    assert at_200.worst == (pytest.approx(2), "networks/b")
    assert at_200.typical == pytest.approx(2**0.5)
    at_50 = duel(found, "ours", "peer", 50)
    assert at_50.medians == {"networks/a": 0.5, "networks/b": 0.0}
    assert duel(found, "peer", "ours", 200).worst == (1.0, "")


@pytest.mark.parametrize("turned", [False, True])
def test_the_worst_ratio_is_one_of_losses_that_are_not_negative(turned):
    negative = [at("ours", -1.0, -1.0, problem="cutest/a"), at("peer", -1.0, -5.0, problem="cutest/a")]
    positive = [at("ours", 0.5, 0.5, problem="cutest/b"), at("peer", 0.5, 0.01, problem="cutest/b")]
    found = results([*positive, *negative] if turned else [*negative, *positive])
    assert duel(found, "ours", "peer", 200).worst == (pytest.approx(50), "cutest/b")
    (table,) = win_tables(results(negative), "ours")
    assert table.rows[0][table.head.index("worst at 200")] == "none has a ratio"


def test_time_to_match_is_relative_to_the_peers_own_evaluations():
    ours = outcome("ours", [(1, 1.0), (30, 0.5), (60, 0.2), (90, 0.1)])
    peer = outcome("peer", [(1, 1.0), (100, 0.5), (120, 0.15), (400, 0.01)])
    found = results([ours, peer])
    assert time_to_match(found, "ours", "peer", 200) == {"networks/a": 90 / 120}
    assert time_to_match(found, "ours", "peer", 110) == {"networks/a": 30 / 100}
    assert time_to_match(found, "ours", "peer", 1000) == {"networks/a": math.inf}


@pytest.mark.parametrize("problems", [1, 2])
def test_never_matched_beside_none_lost_is_told_in_the_note(problems):
    """Half of the starts are not matched, on half of the problems: the median of both is then infinite."""
    losses = {"ours": (0.1, 0.25), "peer": (0.3, 0.2)}
    runs = [at(name, 1.0, f, seed=seed) for name, pair in losses.items() for seed, f in enumerate(pair)]
    if problems == 2:
        matched = [("ours", 0.1), ("peer", 0.2)]
        runs += [at(name, 1.0, f, problem="networks/b", seed=seed) for name, f in matched for seed in (0, 1)]
    table = win_tables(results(runs), "ours")[0]
    cells = dict(zip(table.head, table.rows[0], strict=True))
    assert f"{problems}-0-0" in cells["lower at 200"]
    assert (cells["worst at 200"], cells["to match 200"]) == ("none lost", "never")
    assert "Never: half of the problems or more are not matched within the budget" in table.note
    assert "a problem being so where half of its starts or more are not" in table.note


def test_bootstrap_intervals_hold_the_mean_and_draw_whole_groups():
    assert bootstrap([[1.0]] * 9) == (1.0, 1.0)
    low, high = bootstrap([[1.0]] * 30 + [[0.0]] * 10)
    assert low < 0.75 < high
    assert (low, high) == (pytest.approx(0.61, abs=0.03), pytest.approx(0.88, abs=0.03)), (
        "0.75 +- 1.96 sqrt(.75 .25/40)"
    )
    grouped = bootstrap([[1.0] * 3] * 10 + [[0.0] * 3] * 10)
    alone = bootstrap([[1.0]] * 30 + [[0.0]] * 30)
    assert grouped[1] - grouped[0] > 1.4 * (alone[1] - alone[0]), "runs of one problem are not independent"
    assert all(map(math.isnan, bootstrap([])))


def test_adam_is_its_best_rate_on_each_problem_after_so_many_evaluations():
    rates = [at("adam-0.1", 0.5, 0.4, 0.3), at("adam-0.001", 0.9, 0.8, 0.2)]
    found = results([*rates, at("ours", 0.1, 0.1, 0.1)])
    assert found.solvers == ["ours", ADAM]
    ratios = [duel(found, ADAM, "ours", evals).ratios["networks/a"] for evals in (50, 200, 1000)]
    assert ratios == [pytest.approx(5), pytest.approx(4), pytest.approx(2)]
    assert time_to_match(found, "ours", ADAM, 200) == {"networks/a": 50 / 200}, "that of 0.1, which is at 0.4"
    assert problem_table(results(rates), ADAM).rows == [["networks/a", "0.5", "0.4", "0.2"]]
    assert solved(found, [ADAM], 1e-3).evals.evals.tolist() == [[1000]], "that of 0.001"


def test_tables_say_who_won_who_crashed_and_who_was_not_tried():
    outcomes = [
        at("auto", 0.1, 0.05, 0.01),
        at("torch-lbfgs", 0.2, 0.04, 0.01, kind=CRASHED, ended="IndexError: oops", iterations=None),
        outcome("scipy-bfgs", [], kind=ABSENT, ended="Matrices too large", evals=0, iterations=None, seconds=0.0),
    ]
    found = results(outcomes)
    (wins,) = win_tables(found, "auto")
    (row,) = wins.rows
    cells = dict(zip(wins.head, row, strict=True))
    assert cells["peer"] == "torch L-BFGS"
    assert cells["lower at 50"] == "100% [100, 100] 1-0-0 (1)"
    assert cells["lower at 200"] == "0% [0, 0] 0-0-1 (0)"
    assert cells["lower at 1000"] == "50% [50, 50] 0-1-0 (0)"
    assert cells["loss ratio"] == "0.50/1.25/1.00"
    assert cells["worst at 200"] == "1.25 networks/a"
    assert cells["to match 200"] == "500%"
    table = endings(outcomes)
    crashed, absent = (dict(zip(table.head, row, strict=True)) for row in table.rows[1:])
    assert (crashed["crashed"], crashed["most frequent other endings"]) == ("1", "1 x IndexError: oops")
    assert (absent["not tried"], absent["most frequent other endings"]) == ("1", "1 x Matrices too large")
    first = dict(zip(table.head, table.rows[0], strict=True))
    assert (first["evals / iteration"], first["ms outside"]) == ("1.998", "6.000")
    details = problem_table(found, "auto")
    assert details.rows == [["networks/a", "0.5", "1.25", "1"]]


def test_solvers_are_compared_at_the_budget_too():
    assert checkpoints(1000) == [50, 200, 1000]
    assert checkpoints(500) == [50, 200, 500]
    assert checkpoints(20) == [20]
