"""A run: an honest trace, one thread, a time limit that kills what would not end by itself."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

import signedstep
from signedstep.experiments.execute import execute
from signedstep.experiments.problems import Place, Problem
from signedstep.experiments.runs import Budget, Network, Run
from signedstep.experiments.solvers import BASELINES, SOLVERS, Solver
from signedstep.experiments.training import BUDGET_SPENT, Entry, train

HEART = Run("heart", Network(width=4), "lsr1-flip", 0, Budget(20, 30, 60.0))
LINE_SEARCHES = [name for name, solver in SOLVERS.items() if "/" in solver.method and not solver.dense_in_n]
NUMBERS = ("f", "grad_norm", "evals", "alpha", "cosine")


def numbers(outcome):
    """What has to be the same in every repetition of a run."""
    columns = tuple(tuple(getattr(outcome.trace, name)) for name in NUMBERS)
    return outcome.run, columns, outcome.finished, outcome.ended, outcome.unknowns, outcome.accuracy


@pytest.mark.filterwarnings("ignore:.* does not use history_size")
@pytest.mark.parametrize("solver", LINE_SEARCHES)
def test_line_searches_do_what_minimize_does(solver):
    """Studies give all solvers the same options, of which dense models need no memory."""
    outcome = execute(replace(HEART, solver=solver))
    problem = Problem.of(HEART, Place())
    options = {**SOLVERS[solver].options, "gtol": 0, "maxiter": len(outcome.trace.f) - 1}
    result = signedstep.minimize(problem.loss, problem.start, method=SOLVERS[solver].method, options=options)
    history = result.history
    assert list(outcome.trace.f) == [history.f0, *history.f]
    assert list(outcome.trace.alpha) == [None, *history.alpha]
    assert list(outcome.trace.cosine) == [None, *history.cosine]
    assert list(outcome.trace.evals) == list(1 + np.cumsum([0, *history.evals]))
    assert outcome.accuracy == problem.accuracy(result.x)


@pytest.mark.parametrize("solver", [*LINE_SEARCHES, "adam-0.01", *BASELINES])
def test_a_run_has_its_iterations_and_its_evaluations_or_says_why_not(solver):
    trace, ended = (outcome := execute(replace(HEART, solver=solver))).trace, outcome.ended
    assert outcome.finished
    if ended == BUDGET_SPENT:
        assert len(trace.f) > 20
        assert trace.evals[-1] >= 30
        assert len(trace.f) == 21 or trace.evals[-2] < 30, "no iteration more than the budget asks for"
    else:
        assert solver in ("lsr1", "sr1-p"), "only positive steps on an indefinite model may end early"
        assert ended == signedstep.Status.NOT_DESCENT.value
        assert trace.alpha[-1] == 0
    assert all(a <= b for a, b in zip(trace.seconds, trace.seconds[1:], strict=False))


@pytest.mark.parametrize(
    ("solver", "make"),
    [
        ("adam-0.01", lambda x: torch.optim.Adam([x], lr=0.01)),
        ("momentum-0.01", lambda x: torch.optim.SGD([x], lr=0.01, momentum=0.9)),
        ("rmsprop-0.01", lambda x: torch.optim.RMSprop([x], lr=0.01)),
    ],
)
def test_first_order_methods_are_torch_s(solver, make):
    outcome = execute(replace(HEART, solver=solver))
    problem = Problem.of(HEART, Place())
    x = torch.nn.Parameter(problem.start.clone())
    optimizer = make(x)
    for k, f in enumerate(outcome.trace.f):
        optimizer.zero_grad()
        value = problem.loss(x)
        value.backward()
        assert value.item() == f
        assert outcome.trace.evals[k] == k + 1
        before = x.detach().clone()
        optimizer.step()
        if k + 1 < len(outcome.trace.f):
            step = x.detach() - before
            cosine = -(step @ x.grad) / (step.norm() * x.grad.norm())
            assert outcome.trace.cosine[k + 1] == pytest.approx(cosine.item(), rel=1e-12)
    assert set(outcome.trace.alpha[1:]) == {0.01}


def test_a_diverging_run_ends_with_its_last_finite_entry():
    problem = Problem.of(replace(HEART, network=Network(activation="relu")), Place())
    entries: list[Entry] = []
    ending = train(problem, Solver("", "adam", "", {"lr": 1e120}), Budget(9, 9, 9.0), entries.append)
    assert not ending.finished
    assert ending.text.startswith("Diverged: the loss or its gradient was not finite after iteration 1")
    assert ending.accuracy is None
    assert len(entries) == 1
    assert np.isfinite(entries[0].f)


def test_a_start_that_is_not_finite_is_an_error():
    with pytest.raises(ValueError, match="not finite at the start: give the network a smaller scale"):
        execute(replace(HEART, network=Network(activation="relu", scale=1e120)))


def test_an_unknown_solver_is_an_error():
    with pytest.raises(ValueError, match=r"solver must be one of 'gd', .*, got 'sgd'"):
        execute(replace(HEART, solver="sgd"))


@pytest.mark.parametrize("solver", ["gd", "adam-0.001"])
def test_a_time_limit_ends_a_run_after_an_iteration(solver):
    outcome = execute(replace(HEART, solver=solver, budget=Budget(10**9, 1, 0.2)))
    assert not outcome.finished
    assert outcome.ended == "The time limit of 0.2 s was reached."
    assert outcome.trace.seconds[-2] < 0.2 <= outcome.trace.seconds[-1] < 2


def test_numbers_do_not_depend_on_threads_and_those_are_given_back():
    big = replace(HEART, data="digits", network=Network(width=64), budget=Budget(5, 5, 60.0))
    seen = []

    def watch(name, k, f):
        pools = [pool["num_threads"] for pool in threadpool_info()]
        seen.append({torch.get_num_threads(), *pools})

    torch.set_num_threads(1)
    one = execute(big, Place(), watch)
    torch.set_num_threads(2)
    try:
        assert numbers(execute(big, Place(), watch)) == numbers(one)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert seen == [{1}] * len(seen)


def test_a_dense_solver_in_its_child_computes_what_it_would_here():
    run = replace(HEART, solver="lsr1-damp-dense")
    entries: list[Entry] = []
    ending = train(Problem.of(run, Place()), SOLVERS[run.solver], run.budget, entries.append)
    outcome = execute(run)
    assert list(outcome.trace.f) == [entry.f for entry in entries]
    assert list(outcome.trace.alpha) == [entry.alpha for entry in entries]
    assert (outcome.finished, outcome.ended, outcome.accuracy) == ending


SLOW = Run("heart", Network(width=40), "lsr1-damp-dense", 0, Budget(10**6, 1, 1.5))


def test_a_dense_solver_is_killed_at_its_time_limit_and_keeps_what_it_had():
    began = time.monotonic()
    outcome = execute(SLOW)
    assert not outcome.finished
    assert outcome.ended == "The time limit of 1.5 s was reached."
    assert len(outcome.trace.f) >= 2
    assert outcome.trace.f[-1] < outcome.trace.f[0]
    assert time.monotonic() - began < 60
    assert not children()


def test_one_iteration_that_takes_longer_than_the_limit_is_killed():
    slower = replace(SLOW, network=Network(width=200), budget=Budget(10**6, 1, 0.3))
    outcome = execute(slower)
    assert not outcome.finished
    assert outcome.ended == "The time limit of 0.3 s was reached."
    assert len(outcome.trace.f) == 2  # the start and the first iteration, which needs no matrix
    assert outcome.accuracy is None


def test_a_child_that_is_killed_from_outside_is_told_from_the_time_limit():
    def kill(name, k, f):
        if k == 1:
            os.kill(children()[0], signal.SIGKILL)

    outcome = execute(replace(SLOW, budget=Budget(10**6, 1, 60.0)), Place(), kill)
    assert not outcome.finished
    assert "killed from outside" in outcome.ended
    assert len(outcome.trace.f) >= 2


def test_a_child_that_fails_says_why(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("1,2,1\n3,4,-1\n")
    run = replace(SLOW, data="data.csv", network=Network(activation="relu", scale=1e120))
    with pytest.raises(RuntimeError, match=r"(?s)the process of data.csv/.* failed:.*give the network a smaller scale"):
        execute(run, Place(file=str(file)))


def test_matrices_that_would_not_fit_are_not_tried():
    outcome = execute(replace(SLOW, network=Network(width=50_000)))
    assert not outcome.finished
    assert outcome.ended.startswith("Not tried: 750001 x 750001 matrices need 22500 GB of memory")
    assert len(outcome.trace.f) == 1
    assert outcome.unknowns == 750_001


def children() -> list[int]:
    """The processes that this one has started to train in."""
    own = [pid for path in Path(f"/proc/{os.getpid()}/task").glob("*/children") for pid in path.read_text().split()]
    return [int(pid) for pid in own if "signedstep.experiments.child" in Path(f"/proc/{pid}/cmdline").read_text()]
