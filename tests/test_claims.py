"""The verdicts: each criterion with runs that meet it and runs that do not."""

import math

import pytest

from made_outcomes import ending_at, falling, only, outcome
from signedstep.experiments.claims import (
    beats_others,
    beats_scaled,
    below_bfgs,
    claims,
    damping_expensive,
    gave_up,
    positive_stalls,
    signed_converges,
)
from signedstep.experiments.damping import damping_costs
from signedstep.experiments.duels import duel, paired
from signedstep.experiments.panels import main_panels, panels
from signedstep.experiments.runs import Network
from signedstep.experiments.verdicts import FEW, HELD, NOT, PARTLY
from signedstep.status import Status

UPHILL = {"ended": Status.NOT_DESCENT.value}
TIME_LIMIT = {"finished": False, "ended": "The time limit of 60 s was reached."}
LOW, HIGH = [0.1] * 5, [0.2] * 5


def stalled(solver, count, **changes):
    return [outcome(solver, [1.0, 0.9], seed=seed, **UPHILL, **changes) for seed in range(count)]


def judged(claim, outcomes):
    everything = panels(outcomes)
    return claim(everything if claim in (positive_stalls, signed_converges, below_bfgs) else main_panels(everything))


def test_a_duel_counts_pairs_medians_and_ties():
    outcomes = [
        *ending_at("gd", [0.1, 0.3, 0.20001, 0.2]),
        *ending_at("lsr1", [0.2, 0.2, 0.2, math.nan]),
        *ending_at("gd", [0.5], data="splice"),
        *ending_at("lsr1", [0.4], data="splice"),
    ]
    found = duel(panels(outcomes), "gd", "lsr1", "iterations")
    assert (found.wins, found.losses, found.ties) == (2, 2, 1)
    assert (found.sets_won, found.sets_tied, found.sets) == (0.5, 1, 2)  # a tie of the medians counts half
    assert found.chance == pytest.approx(11 / 16)


def test_who_does_not_finish_loses():
    slow = [outcome("lsr1-damp", [1.0, 0.01], seed=seed, **TIME_LIMIT) for seed in range(5)]
    panel = only([*ending_at("gd", HIGH), *slow])
    assert paired(panel, "gd", "lsr1-damp", "iterations") == [(pytest.approx(0.2), math.inf)] * 5
    assert duel([panel], "gd", "lsr1-damp", "iterations").beats


def test_beating_needs_both_most_data_sets_and_more_than_chance():
    four = [*ending_at("gd", LOW[:4]), *ending_at("lsr1", HIGH[:4])]
    assert not duel(panels(four), "gd", "lsr1", "iterations").beats  # 1/16 is not below 5 %
    assert duel(panels([*ending_at("gd", LOW), *ending_at("lsr1", HIGH)]), "gd", "lsr1", "iterations").beats
    lopsided = [*ending_at("gd", [0.1] * 20), *ending_at("lsr1", [0.2] * 20)]
    for data in ("splice", "a1a"):
        lopsided += [*ending_at("gd", [0.3], data=data), *ending_at("lsr1", [0.2], data=data)]
    found = duel(panels(lopsided), "gd", "lsr1", "iterations")
    assert found.chance < 0.05
    assert not found.beats  # one data set of three


@pytest.mark.parametrize(("stalls", "verdict"), [(4, HELD), (2, PARTLY), (1, NOT)])
def test_a_positive_only_runs_stall(stalls, verdict):
    outcomes = [*stalled("lsr1", stalls), *ending_at("lsr1", [0.1] * 5)[stalls:]]
    claim = judged(positive_stalls, outcomes)
    assert claim.verdict == verdict
    assert claim.numbers["stalled"] == claim.numbers["uphill"] == stalls
    assert claim.sentence.startswith(f"{stalls} of 5 positive-only runs stopped")


def test_a_run_that_arrived_or_was_cut_off_did_not_give_up():
    assert gave_up(outcome("lsr1", [1.0, 0.9], **UPHILL))
    assert not gave_up(outcome("lsr1", [1.0, 0.9], ended=Status.GRADIENT.value))
    assert not gave_up(outcome("lsr1", [1.0, 0.9], ended=Status.STALLED.value))
    assert not gave_up(outcome("lsr1", [1.0, 0.9], **TIME_LIMIT))
    assert not gave_up(outcome("lsr1", falling(0.1), **UPHILL))  # after its last iteration


def test_b_signed_steps_converge():
    positive = stalled("sr1-p", 5)
    assert judged(signed_converges, [*positive, *ending_at("sr1-pn", LOW)]).verdict == HELD
    assert judged(signed_converges, [*positive, *ending_at("sr1-pn", [0.95] * 5)]).verdict == PARTLY
    assert judged(signed_converges, [*ending_at("sr1-p", LOW), *stalled("sr1-pn", 5)]).verdict == NOT
    assert judged(signed_converges, [*positive[:4], *ending_at("sr1-pn", LOW)]).verdict == FEW


def by_depth(solver, lasts):
    return [run for d, last in lasts.items() for run in ending_at(solver, [last] * 5, network=Network(hidden=d))]


@pytest.mark.parametrize(
    ("bfgs", "verdict", "ratios"),
    [
        ({1: 0.2, 2: 0.3, 3: 0.4}, HELD, [2, 3, 4]),
        ({1: 0.4, 2: 0.3, 3: 0.2}, PARTLY, [4, 3, 2]),  # below, but less so with depth
        ({1: 0.03, 2: 0.04, 3: 0.05}, PARTLY, [0.3, 0.4, 0.5]),  # more so with depth, but above
        ({1: 0.05, 2: 0.04, 3: 0.03}, NOT, [0.5, 0.4, 0.3]),
        ({1: 0.2}, FEW, [2]),
    ],
)
def test_c_signed_sr1_against_bfgs(bfgs, verdict, ratios):
    claim = judged(below_bfgs, [*by_depth("bfgs", bfgs), *by_depth("sr1-pn", dict.fromkeys(bfgs, 0.1))])
    assert claim.verdict == verdict
    assert claim.numbers["ratios"]["iterations"] == pytest.approx(ratios)


def damped(dense, cheap, **changes):
    """Runs with these seconds per iteration; l-SR1 with Wolfe± has 0.1."""
    times = {"lsr1-wolfe+-": 0.1, "lsr1-damp": cheap}
    runs = [outcome(solver, falling(0.1), seconds=seconds) for solver, seconds in times.items()]
    return [*runs, outcome("lsr1-damp-dense", changes.pop("losses", falling(0.1)), seconds=dense, **changes)]


def test_d_damping_is_expensive():
    assert judged(damping_expensive, damped(dense=1.0, cheap=0.3)).verdict == HELD
    assert judged(damping_expensive, damped(dense=1.0, cheap=0.1)).verdict == PARTLY
    assert judged(damping_expensive, damped(dense=0.2, cheap=0.1)).verdict == NOT
    assert judged(damping_expensive, damped(dense=1.0, cheap=0.1)[:2]).verdict == FEW


def test_d_a_run_killed_in_its_first_long_iteration_bounds_the_time():
    claim = judged(damping_expensive, damped(dense=0.0, cheap=0.1, losses=[1.0], **TIME_LIMIT))
    assert claim.verdict == PARTLY
    assert "at least 60 s" in claim.sentence
    later = judged(damping_expensive, damped(dense=0.01, cheap=0.1, losses=[1.0, 0.9], **TIME_LIMIT))
    assert "at least 60 s" in later.sentence, "the first iteration is cheap"
    refused = damped(dense=0.0, cheap=0.1, losses=[1.0], finished=False, ended="Not tried: it needs 40 GB.")
    (row,), _ = damping_costs(panels(refused))
    assert (row.dense, row.unfinished, row.costly) == (None, True, True)
    assert "not run" in judged(damping_expensive, refused).evidence[1]


def test_d_the_exponent_of_n_is_found():
    outcomes = []
    for data, n in (("heart", 100), ("splice", 200), ("a1a", 400)):
        times = {"lsr1-wolfe+-": 1e-3, "lsr1-damp": 1e-3, "lsr1-damp-dense": 1e-8 * n**3}
        for solver, seconds in times.items():
            outcomes.append(outcome(solver, falling(0.1), data, seconds=seconds, unknowns=n))
    rows, exponent = damping_costs(panels(outcomes))
    assert [row.unknowns for row in rows] == [100, 200, 400]
    assert [row.dense for row in rows] == pytest.approx([0.01, 0.08, 0.64])
    assert exponent == pytest.approx(3)


RIVALS = ("gd", "lbfgs", "lsr1-damp", "adam-0.001")


def against(rivals):
    ours = ending_at("lsr1-wolfe+-", [0.15] * 5)
    return [*ours, *(run for rival, lasts in rivals.items() for run in ending_at(rival, lasts))]


def test_e_it_beats_the_others():
    assert judged(beats_others, against(dict.fromkeys(RIVALS, HIGH))).verdict == HELD
    assert judged(beats_others, against(dict.fromkeys(RIVALS, LOW))).verdict == NOT
    mixed = {**dict.fromkeys(RIVALS, HIGH), "lbfgs": LOW}
    claim = judged(beats_others, against(mixed))
    assert claim.verdict == PARTLY
    assert claim.numbers["parts"] == {"gd": HELD, "lbfgs": NOT, "lsr1-damp": HELD, "adam-0.001": HELD}
    assert judged(beats_others, against({rival: HIGH for rival in RIVALS if rival != "gd"})).verdict == FEW


def test_e_adams_best_rate_counts_too():
    claim = judged(beats_others, against({**dict.fromkeys(RIVALS, HIGH), "adam-0.1": LOW}))
    assert claim.numbers["parts"]["adam-0.001"] == HELD
    assert claim.numbers["parts"]["adam-best"] == NOT
    assert claim.verdict == PARTLY


@pytest.mark.parametrize(("tied", "verdict"), [(2, HELD), (1, NOT)])
def test_e_a_tie_with_adam_keeps_up(tied, verdict):
    outcomes = []
    for place, data in enumerate(("heart", "splice", "a1a")):
        outcomes += ending_at("lsr1-wolfe+-", HIGH, data=data)
        outcomes += ending_at("adam-0.001", HIGH if place < tied else LOW, data=data)
    assert judged(beats_others, outcomes).numbers["parts"] == {"adam-0.001": verdict}


def test_e_what_holds_at_equal_iterations_only_held_partly():
    ours = [outcome("lsr1-wolfe+-", falling(0.1), seed=seed, per_iteration=6) for seed in range(5)]
    theirs = [run for rival in RIVALS for run in ending_at(rival, HIGH)]
    claim = judged(beats_others, [*ours, *theirs])
    assert claim.verdict == PARTLY
    assert claim.numbers["gd"]["iterations"]["wins"] == 5
    assert claim.numbers["gd"]["evaluations"]["losses"] == 5


def test_our_own_question():
    for lasts, verdict in ((HIGH, HELD), (LOW, NOT)):
        assert judged(beats_scaled, against({"lbfgs-scaled": lasts})).verdict == verdict
    assert judged(beats_scaled, against({"lbfgs-scaled": [0.2, 0.2, 0.2, 0.1, 0.1]})).verdict == PARTLY
    assert judged(beats_scaled, against({})).verdict == FEW


def test_without_runs_nothing_is_claimed():
    assert {claim.verdict for claim in claims([], [])} == {FEW}
