"""Ten training problems at equal closure calls: signedstep.LBFGS next to torch.optim.LBFGS.

The aim is never to end worse by more than 1%. Five problems meet it here (one of 20 seeds of the digits network misses
it, by 0.1%). The other five do not. The two take different ways there; over all problems each is ahead about as often,
but matrix factorisation is behind more often after 50 calls. On some, torch's own scatters as much when its start is
moved by 1e-6, yet not on matrix factorisation, nor on most after 50 calls (`training_problems.py --control`),
so that is no excuse: the aim stands here as it was set, as an expected failure.
"""

import math
from functools import cache

import pytest
import torch

import signedstep

pytest.importorskip("sklearn")
training_problems = pytest.importorskip("training_problems")
PROBLEMS, trace = training_problems.PROBLEMS, training_problems.trace

CALLS = [50, 100, 200]
MET = ["diabetes, linear", "breast cancer, logistic", "wine, network", "digits, softmax", "digits, network"]
MISSED = [name for name in PROBLEMS if name not in MET]


@cache
def ratios(name: str, seed: int) -> list[float]:
    return training_problems.ratios(name, seed, CALLS)


def mean(columns: list[list[float]]) -> list[float]:
    """The geometric mean over runs, after each number of calls."""
    return [math.exp(sum(map(math.log, column)) / len(column)) for column in zip(*columns, strict=True)]


def test_there_are_ten_problems():
    assert (len(PROBLEMS), len(MISSED)) == (10, 5)


@pytest.mark.parametrize("name", MET)
def test_never_worse_by_more_than_one_percent(name):
    assert max(max(ratios(name, seed)) for seed in range(2)) <= 1.01


@pytest.mark.parametrize("name", MISSED)
@pytest.mark.xfail(reason="the aim is not met: some seeds end more than 1% worse", strict=True)
def test_never_worse_by_more_than_one_percent_where_it_still_is(name):
    assert max(max(ratios(name, seed)) for seed in range(4)) <= 1.01


def test_the_mean_over_the_missed_ones_stays_near_that_of_torch():
    """A guard against getting worse, not a claim: few runs scatter by 10% around 1, a bad method is far off."""
    assert max(mean([ratios(name, seed) for name in MISSED for seed in range(4)])) <= 1.25


def test_a_trace_is_counted_from_outside_and_never_rises():
    for make in (signedstep.LBFGS, torch.optim.LBFGS):
        lowest = trace(PROBLEMS["diabetes, network"](0), make, 30)
        assert len(lowest) == 30
        assert lowest == sorted(lowest, reverse=True)
        assert lowest[0] == PROBLEMS["diabetes, network"](0)[1]().item(), "both start at the same point"
        assert lowest[-1] < 0.6 * lowest[0]
