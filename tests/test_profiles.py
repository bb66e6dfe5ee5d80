"""Performance and data profiles against a brute force over the traces."""

import math

import numpy as np
import pytest

from made_outcomes import falling, outcome
from signedstep.experiments.panels import panels
from signedstep.experiments.profiles import costs, data_profile, performance, solved_after
from signedstep.experiments.runs import Budget

SOLVERS = ["gd", "lbfgs", "lsr1", "lsr1-wolfe+-"]
BUDGET = Budget(iterations=20, evals=30, seconds=60.0)


def made(seed):
    """Runs on three data sets and two seeds with random, mostly falling losses of random length."""
    random = np.random.default_rng(seed)
    found = []
    for data in ("heart", "splice", "a1a"):
        for run_seed in range(2):
            start = random.uniform(0.5, 1)
            for solver in SOLVERS:
                steps = random.uniform(0.6, 1.05, size=random.integers(1, 20))
                losses = list(start * np.cumprod([1.0, *steps]))
                per_iteration = int(random.integers(1, 4))
                found.append(outcome(solver, losses, data, run_seed, per_iteration, budget=BUDGET))
    return found


def brute_force(outcomes, tau):
    """The cost of each problem for each solver, entry by entry of the traces."""
    table = []
    for data in ("a1a", "heart", "splice"):
        for seed in range(2):
            runs = [o for s in SOLVERS for o in outcomes if (o.run.solver, o.run.data, o.run.seed) == (s, data, seed)]
            seen = [f for o in runs for f, e in zip(o.trace.f, o.trace.evals, strict=True) if e <= BUDGET.evals]
            target = min(seen) + tau * (runs[0].trace.f[0] - min(seen))
            row = []
            for o in runs:
                hits = [e for f, e in zip(o.trace.f, o.trace.evals, strict=True) if f <= target and e <= BUDGET.evals]
                row.append(min(hits, default=math.inf))
            table.append(row)
    return table


@pytest.mark.parametrize("tau", [0.3, 0.1, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_profiles_are_those_of_a_brute_force(seed, tau):
    outcomes = made(seed)
    expected = brute_force(outcomes, tau)
    found = costs(panels(outcomes), SOLVERS, tau)
    np.testing.assert_array_equal(found.evals, expected)
    ratios, budgets = np.array([1.0, 1.5, 2, 4, 32]), np.arange(1, 31)
    relative = performance(found, ratios)
    solved = data_profile(found, budgets)
    for column in range(len(SOLVERS)):
        for place, ratio in enumerate(ratios):
            wins = [row[column] <= ratio * min(row) and row[column] < math.inf for row in expected]
            assert relative[column, place] == pytest.approx(np.mean(wins))
        for place, budget in enumerate(budgets):
            assert solved[column, place] == pytest.approx(np.mean([row[column] <= budget for row in expected]))
    assert relative[:, 0].sum() > 0.999  # somebody is the fastest on every problem


def test_nobody_solves_a_problem_on_which_nobody_gets_below_the_start():
    flat = [outcome(solver, [1.0, 1.0, 1.0]) for solver in ("gd", "lsr1")]
    assert solved_after(flat, 8, 0.1) is None
    assert costs(panels(flat), ["gd", "lsr1"], 0.1).evals.shape == (0, 2)


def test_a_loss_that_is_not_finite_solves_nothing():
    runs = [outcome("gd", [1.0, math.nan, math.nan]), outcome("lsr1", falling(0.5))]
    assert solved_after(runs, 8, 0.5) == [math.inf, 5.0]
