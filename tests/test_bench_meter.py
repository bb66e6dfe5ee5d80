"""Evaluations are counted from outside: exactly, for every solver alike, and never more than the budget."""

import math
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from conftest import network
from signedstep.catalogue import CURVATURES, Settings
from signedstep.curvature import Mixing
from signedstep.effects import PROBES
from signedstep.experiments.bench.execute import _minimised
from signedstep.experiments.bench.meter import BudgetSpent, Meter, Objective, TimeSpent, by_autograd
from signedstep.experiments.bench.runs import BUDGET, CRASHED, STOPPED, TIME
from signedstep.experiments.bench.solvers import PEERS, BenchSolver, Ended, missing, solver
from signedstep.experiments.bench.solvers.ours import _options
from signedstep.methods import model_of

OURS = ("auto", "lbfgs", "lsr1/wolfe+-", "lsr1/flip:floor=1e-8,c2=0.5", "bfgs", "cg")
INSTALLED = [*OURS, *(name for name, peer in PEERS.items() if missing(peer) is None)]


class Counted:
    """An objective that counts by itself, beside the meter."""

    def __init__(self, objective: Objective):
        self.calls, self._objective = 0, objective
        self.lowest: list[float] = []

    @property
    def objective(self) -> Objective:
        inner = self._objective

        def value_and_gradient(x):
            self.calls += 1
            f, g = inner.value_and_gradient(x)
            self.lowest.append(min([f, *self.lowest[-1:]]) if math.isfinite(f) else self.lowest[-1])
            return f, g

        def hessp(x, v):
            self.calls += 1
            self.lowest.append(self.lowest[-1])
            assert inner.hessp is not None
            return inner.hessp(x, v)

        return Objective(value_and_gradient, inner.start, hessp)


def bowl(n: int = 3) -> Objective:
    return by_autograd(lambda x: (x**2).sum(), torch.ones(n, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("name", INSTALLED)
@pytest.mark.filterwarnings("ignore")  # peers warn of many things
def test_what_the_objective_saw_is_what_is_recorded_and_never_more_than_the_budget(name, dtype):
    loss, x0 = network()
    counted = Counted(by_autograd(loss64(loss, dtype), x0.to(dtype)))
    meter = Meter(counted.objective, budget=37)
    kind, _ = _minimised(solver(name), meter, memory=5)
    assert kind in (BUDGET, STOPPED), "nobody crashes here"
    assert counted.calls == meter.evals
    assert 30 <= counted.calls <= 37, "there is enough to do"
    fall = meter.fall
    assert [fall.at_evals(count) for count in range(1, counted.calls + 1)] == counted.lowest
    assert fall.evals[0] == 1
    assert fall.f[0] == loss64(loss, dtype)(x0.to(dtype)).item(), "all start at the same point"
    assert fall.f[-1] < 0.9 * fall.f[0]
    assert list(fall.seconds) == sorted(fall.seconds)
    assert 0 < meter.inside <= meter.seconds


def loss64(loss, dtype):
    """The loss in a precision: its data are float64."""
    return lambda x: loss(x.double()).to(dtype)


def test_a_call_beyond_the_budget_is_refused_again_and_again():
    meter = Meter(bowl(), budget=2)
    meter(meter.start)
    meter.array(np.zeros(3))
    for _ in range(2):
        with pytest.raises(BudgetSpent):
            meter(meter.start)
        with pytest.raises(BudgetSpent):
            meter.hessp(np.ones(3), np.ones(3))
    assert meter.evals == 2
    assert (meter.fall.f, meter.fall.evals) == ([3.0, 0.0], [1, 2])


def test_hessian_products_are_evaluations_and_right():
    meter = Meter(by_autograd(lambda x: (x**3).sum(), torch.ones(2, dtype=torch.float64)), budget=5)
    np.testing.assert_allclose(meter.hessp(np.array([1.0, 2.0]), np.array([1.0, -1.0])), [6.0, -12.0])
    assert (meter.evals, meter.fall.f) == (1, [])


def test_values_that_are_not_finite_are_no_progress():
    values = iter([math.inf, 2.0, math.nan, -math.inf, 1.0, 3.0])
    objective = Objective(lambda x: (next(values), x), torch.zeros(1))
    meter = Meter(objective, budget=6)
    for _ in range(6):
        meter(meter.start)
    assert (meter.fall.f, meter.fall.evals) == ([2.0, 1.0], [2, 5])
    assert meter.fall.at_evals(1) == math.inf


def test_the_time_limit_ends_a_run():
    meter = Meter(bowl(), budget=10, seconds=0.0)
    with pytest.raises(TimeSpent):
        meter(meter.start)
    assert _minimised(PEERS["torch-lbfgs"], meter, 5)[0] == TIME
    assert meter.evals == 0


def made(solve) -> BenchSolver:
    return BenchSolver("made", "made", "", solve)


def test_a_crash_is_caught_and_keeps_what_was_reached():
    def crash(meter, memory):
        meter(0.5 * meter.start)
        raise IndexError("list index out of range\nmore")

    meter = Meter(bowl(), budget=10)
    assert _minimised(made(crash), meter, 5) == (CRASHED, Ended("IndexError: list index out of range"))
    assert meter.fall.f == [0.75]


def test_a_solver_that_swallows_the_budget_or_wraps_it_is_ended_by_the_budget():
    def swallow(meter, memory):
        try:
            for _ in range(99):
                meter(meter.start)
        except BaseException as error:
            raise ValueError("a trial failed") from error

    meter = Meter(bowl(), budget=3)
    assert _minimised(made(swallow), meter, 5)[0] == BUDGET


def test_torchs_own_crash_is_shown():
    """f = -log x0 + 10 x0^2 + (x1 - 1)^2: a trial beyond the wall is not finite, and its search raises."""

    def wall(x):
        return -torch.log(x[0]) + 10 * x[0] ** 2 + (x[1] - 1) ** 2

    meter = Meter(by_autograd(wall, torch.tensor([1e-3, 5.0], dtype=torch.float64)), budget=100)
    kind, ended = _minimised(PEERS["torch-lbfgs"], meter, 5)
    assert kind == CRASHED
    assert ended.text.startswith("IndexError")
    meter = Meter(by_autograd(wall, torch.tensor([1e-3, 5.0], dtype=torch.float64)), budget=100)
    assert _minimised(solver("auto"), meter, 5)[0] != CRASHED


def test_an_option_that_a_method_would_not_look_at_is_none_of_it():
    assert PROBES.keys() == {field.name for field in fields(Settings)}
    for taken in (
        "lsr1/flip:floor=0.1",
        "lbfgs:gamma=2",
        "cg:beta=fr",
        "mix:eta=1",
        "lbfgs/trust:c1=0.1",
        "bfgs:c2=0.5",
    ):
        assert solver(taken).name == taken
    for ignored in (
        "lbfgs:floor=0.1",
        "mix:gamma=2",
        "lbfgs:beta=fr",
        "lbfgs:eta=1",
        "lbfgs/trust:c2=0.5",
        "bfgs:history_size=3",
    ):
        with pytest.raises(
            ValueError, match=f"options of .* are .*, got {ignored[ignored.index(':') + 1 : ignored.index('=')]!r}"
        ):
            solver(ignored)


def test_ours_takes_options_and_refuses_what_does_not_exist():
    assert solver("lsr1/flip:floor=1e-8").name == "lsr1/flip:floor=1e-8"
    assert _options("lsr1/flip", "floor=1e-8,gamma=sy/ss,condition=weak") == {
        "floor": 1e-8,
        "gamma": "sy/ss",
        "condition": "weak",
    }
    assert _options("mix/wolfe", "eta=4,flips=((1,0.1),)") == {"mixing": Mixing(eta=4, flips=((1, 0.1),))}
    for wrong in ("", "eta", "eta=", "3", "**all"):
        with pytest.raises(ValueError, match="name=value"):
            solver(f"mix:{wrong}")
    assert solver("bfgs").dense
    assert not solver("lsr1").dense
    with pytest.raises(ValueError, match="nosuchmethod"):
        solver("nosuchmethod")
    for name in CURVATURES:
        if model_of(name).needs_hessian or model_of(name).needs_products or model_of(name).needs_parts:
            with pytest.raises(ValueError, match=f"{name!r} needs .*values and gradients"):
                solver(name)
        else:
            assert solver(name).ours


def test_torchzero_does_not_pay_twice_for_a_point():
    """It asks again for the point where a step has ended; the meter sees every point once."""
    peers = [peer for name, peer in PEERS.items() if name.startswith("torchzero")]
    if missing(peers[0]):
        pytest.skip("torchzero is not installed")
    for peer in peers:
        asked: list[Tensor] = []
        objective = by_autograd(lambda x: torch.logsumexp(x, 0) + 0.5 * x @ x, torch.linspace(-1, 2, 5).double())

        def recorded(x: Tensor, asked: list[Tensor] = asked, objective: Objective = objective):
            asked.append(x.clone())
            return objective.value_and_gradient(x)

        _minimised(peer, Meter(objective._replace(value_and_gradient=recorded), budget=30), 5)
        assert len(asked) > 5
        assert not any(torch.equal(x, y) for x, y in pairwise(asked))
