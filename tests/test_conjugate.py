"""Nonlinear conjugate gradients against the textbook, and what they promise on the engine."""

import math
import statistics
from itertools import pairwise

import numpy as np
import pytest
import scipy.optimize
import torch
from torch import Tensor

import signedstep
from conftest import evaluated, network, path, rosenbrock
from signedstep.alongline import Raw
from signedstep.catalogue import GLOBALIZATIONS
from signedstep.curvature import BETAS, ConjugateGradient
from signedstep.engine import Engine, Tolerances
from signedstep.linesearch import Signed, Wolfe
from signedstep.methods import build
from signedstep.objective import Point
from signedstep.space import Space
from signedstep.status import Status

ALL = sorted(BETAS)


def quadratic(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    Q, _ = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))
    A = (Q * torch.linspace(1, 10, n, dtype=torch.float64)) @ Q.T
    return A, torch.randn(n, generator=generator, dtype=torch.float64)


def weight(beta: str, g: Tensor, o: Tensor, p: Tensor) -> float:
    """Nocedal-Wright 2006, section 5.2, in plain vectors."""
    y = g - o
    ratios = {"fr": (g @ g, o @ o), "pr+": (g @ y, o @ o), "hs": (g @ y, p @ y), "dy": (g @ g, p @ y)}
    above, below = ratios[beta]
    return max(0.0, float(above / below)) if beta == "pr+" else float(above / below)


def line_minimum(A: Tensor, x: Tensor, g: Tensor, p: Tensor, share: float) -> Tensor:
    return x - share * float(g @ p) / float(p @ (A @ p)) * p


@pytest.mark.parametrize("share", [1.0, 0.99, 1.01])
@pytest.mark.parametrize("beta", ALL)
def test_directions_of_the_textbook(beta, share):
    """With line searches that are exact and that are not, on a quadratic, where the four differ only in the latter."""
    A, b = quadratic(12)
    x = torch.zeros(12, dtype=torch.float64)
    model = ConjugateGradient(beta, Space())
    here = Point(x, 0.0, -b)
    model.start(lambda _: here, here)
    p, learned, most = b.clone(), 0, 0
    for _ in range(9):
        assert torch.allclose(model.solve(here.g), -p, rtol=1e-10, atol=1e-12)
        x = line_minimum(A, here.x, here.g, p, share)
        there = Point(x, 0.0, A @ x - b)
        restarts = beta in ("fr", "dy") and abs(float(there.g @ here.g)) >= 0.2 * float(there.g @ there.g)
        assert model.update(here, there) == (not restarts)
        p = -there.g if restarts else -there.g + weight(beta, there.g, here.g, p) * p
        learned = 0 if restarts else learned + 1
        assert model.learned == learned
        most, here = max(most, learned), there
    assert most > 2


@pytest.mark.parametrize("beta", ALL)
def test_exact_searches_end_on_a_quadratic_after_n_steps(beta):
    n = 10
    A, b = quadratic(n, seed=1)
    here = Point(torch.zeros(n, dtype=torch.float64), 0.0, -b)
    model = ConjugateGradient(beta, Space())
    model.start(lambda _: here, here)
    for _ in range(n):
        p = -model.solve(here.g)
        x = line_minimum(A, here.x, here.g, p, 1.0)
        there = Point(x, 0.0, A @ x - b)
        model.update(here, there)
        here = there
    assert float(here.g.norm()) < 1e-8 * float(b.norm())


@pytest.mark.parametrize("beta", ["fr", "dy"])
def test_it_starts_again_where_powell_says_so(beta):
    here = Point(torch.zeros(2, dtype=torch.float64), 0.0, torch.tensor([1.0, 0.0], dtype=torch.float64))
    step = torch.tensor([-1.0, 0.0], dtype=torch.float64)
    for parallel, kept in [(0.1, True), (0.3, False), (-0.3, False)]:
        model = ConjugateGradient(beta, Space())
        model.start(lambda _: here, here)
        there = Point(step, 0.0, torch.tensor([parallel, 1.0], dtype=torch.float64))
        assert model.update(here, there) == kept
        assert torch.equal(model.solve(there.g), there.g) != kept


def test_it_starts_again_after_a_step_that_was_not_its_own():
    """The globalization took another direction, as it does for one nearly orthogonal to the gradient."""
    here = Point(torch.zeros(2, dtype=torch.float64), 0.0, torch.tensor([1.0, 0.0], dtype=torch.float64))
    there = Point(torch.tensor([0.0, 1.0], dtype=torch.float64), 0.0, torch.tensor([0.0, 1.0], dtype=torch.float64))
    model = ConjugateGradient("fr", Space())
    model.start(lambda _: here, here)
    assert not model.update(here, there)
    assert torch.equal(model.solve(there.g), there.g)


def test_the_sign_of_a_step_does_not_turn_the_direction():
    """p stays p after a step backwards along it (Dai 1999): beta weighs the direction, not the step."""
    here = Point(torch.zeros(2, dtype=torch.float64), 0.0, torch.tensor([1.0, 0.0], dtype=torch.float64))
    g = torch.tensor([0.0, 1.0], dtype=torch.float64)
    ways = []
    for t in (-0.5, 0.5):
        model = ConjugateGradient("fr", Space())
        model.start(lambda _: here, here)
        assert model.update(here, Point(-t * here.g, 0.0, g))
        ways.append(model.solve(g))
    assert torch.equal(*ways)


@pytest.mark.parametrize("beta", ALL)
@pytest.mark.parametrize("how", ["wolfe", "wolfe+-"])
def test_it_converges(how, beta, dtype):
    x0 = torch.tensor([-1.2, 1.0], dtype=dtype)
    options = {"beta": beta, "gtol": 1e-3, "maxiter": 3000}
    result = signedstep.minimize(rosenbrock, x0, method=f"cg/{how}", options=options)
    assert result.success
    assert result.fun < 2e-4
    assert result.x.dtype == dtype


def test_no_worse_than_scipy():
    """Evaluations on the chained Rosenbrock function, next to SciPy's Polak-Ribiere+ with the same c2 = 0.1 to 0.4.

    The median of many starts: a single run can take twice as long for a last digit that another processor rounds
    differently.
    """

    def fun(x):
        point = evaluated(rosenbrock, torch.from_numpy(x))
        return point.f, point.g.numpy()

    starts = torch.tensor([-1.2, 1.0] * 5, dtype=torch.float64) + 0.1 * torch.randn(
        60, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    ratios = []
    for x0 in starts:
        ours = signedstep.minimize(rosenbrock, x0, method="cg")
        theirs = scipy.optimize.minimize(fun, x0.numpy(), jac=True, method="CG")
        assert ours.success
        ratios.append(ours.nfev / theirs.nfev)
    assert statistics.median(ratios) <= 1.5


class Uphill(ConjugateGradient):
    """Every second direction points uphill, as Fletcher-Reeves may after a poor search."""

    def solve(self, g: Tensor) -> Tensor:
        return super().solve(g).neg_() if self.learned % 2 else super().solve(g)


@pytest.mark.parametrize("signed", [True, False])
def test_uphill_directions_are_stepped_back_along_or_replaced(signed):
    loss, start = network()
    objective = lambda x: evaluated(loss, x)  # noqa: E731
    space = Space()
    search = Wolfe(c2=0.1)
    how = Raw(Signed(search) if signed else search, 1e-12, space)
    engine = Engine(objective, objective(start), Uphill("fr", space), how, space, Tolerances())
    records = [engine.step() for _ in range(30)]
    assert engine.at.f < 0.5 * objective(start).f
    assert any(r.alpha < 0 for r in records) == signed
    assert all(r.status is not Status.NOT_DESCENT for r in records)


def test_a_loose_search_leads_uphill_and_a_negative_step_back():
    loss, start = network()
    loose, tight = (signedstep.minimize(loss, start, method="cg/wolfe+-", options={"c2": c2}) for c2 in (0.9, 0.1))
    assert (loose.history.alpha < 0).any()
    assert (tight.history.alpha > 0).all()


def test_first_trial_expects_the_change_of_the_last_step():
    """t0 slope = t_last slope_last, whatever the lengths of the directions."""
    loss, x0 = network()
    space, trials = Space(), []

    def objective(x: Tensor) -> Point:
        trials.append(x)
        return evaluated(loss, x)

    parts = build("cg", x0, space, {})
    engine = Engine(objective, objective(x0.clone()), parts.curvature, parts.globalization, space, Tolerances())
    last = math.nan
    for k in range(12):
        at, count = engine.at, len(trials)
        engine.step()
        if k:
            assert float(at.g @ (trials[count] - at.x)) == pytest.approx(last, rel=1e-9)
        last = float(at.g @ (engine.at.x - at.x))


def test_its_search_is_tighter_by_default_and_an_option_decides():
    loss, x0 = network()
    slopes = {}
    for c2 in (None, 0.5):
        options = {"maxiter": 25, "return_all": True} | ({"c2": c2} if c2 else {})
        result = signedstep.minimize(loss, x0, method="cg", options=options)
        ratios = [
            float(evaluated(loss, y).g @ (y - x)) / float(evaluated(loss, x).g @ (y - x))
            for x, y in pairwise(result.allvecs)
        ]
        slopes[c2] = max(map(abs, ratios))
    assert slopes[None] <= 0.1 + 1e-9 < slopes[0.5] <= 0.5 + 1e-9


def test_refused_pairs_say_why_and_are_not_listed():
    names = [name for name in signedstep.methods() if name.startswith("cg")]
    assert names == ["cg", "cg/wolfe", "cg/wolfe+-"]
    for how in GLOBALIZATIONS:
        if f"cg/{how}" not in names:
            with pytest.raises(ValueError, match=f"cg has no curvature model, only a direction, and '{how}' needs"):
                signedstep.minimize(rosenbrock, torch.ones(2), method=f"cg/{how}")
            with pytest.raises(ValueError, match="valid are cg/wolfe, cg/wolfe"):
                signedstep.SecondOrder([torch.ones(2, requires_grad=True)], "cg", globalization=how)


def test_unknown_beta_is_named():
    with pytest.raises(ValueError, match=r"beta must be one of 'fr', 'pr\+', 'hs', 'dy', got 'gd'"):
        signedstep.minimize(rosenbrock, np.ones(2), method="cg", options={"beta": "gd"})


@pytest.mark.parametrize("beta", ALL)
def test_a_saved_run_goes_on_bit_for_bit(beta, dtype):
    loss, start = network()
    start = start.to(dtype)

    def train(x: Tensor, optimizer: signedstep.SecondOrder) -> None:
        def closure():
            optimizer.zero_grad()
            value = loss(x.double())
            value.backward()
            return value

        optimizer.step(closure)

    a = start.clone().requires_grad_(True)
    first = signedstep.SecondOrder([a], "cg/wolfe+-", max_iter=6, beta=beta)
    train(a, first)
    b = a.detach().clone().requires_grad_(True)
    second = signedstep.SecondOrder([b], "cg/wolfe+-", max_iter=6, beta=beta)
    second.load_state_dict(first.state_dict())
    for _ in range(3):
        train(a, first)
        train(b, second)
    assert torch.equal(a, b)
    assert loss(a.double()).item() < 0.7 * loss(start.double()).item()


def test_it_keeps_one_vector():
    """Memory does not grow with the iterations: the state is one vector and a count."""
    points = path(rosenbrock, 50, 5)
    model = ConjugateGradient("fr", Space())
    model.start(lambda _: points[0], points[0])
    for old, new in pairwise(points):
        model.update(old, new)
        state = model.state(new)
        assert sum(v.numel() for v in state.values() if isinstance(v, Tensor)) <= 50


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_bad_gradients_start_it_again(bad):
    here = Point(torch.zeros(2, dtype=torch.float64), 0.0, torch.ones(2, dtype=torch.float64))
    for beta in ALL:
        model = ConjugateGradient(beta, Space())
        model.start(lambda _: here, here)
        assert not model.update(here, Point(-here.g, 0.0, here.g * bad))
        assert torch.equal(model.solve(here.g), here.g)


def test_the_first_trial_after_a_cliff_is_not_beyond_what_a_search_can_mend():
    """f falls by 1e86 in a step; a next one with that change in first order would be 1e70 times as long."""
    with np.errstate(over="ignore"):
        fun = lambda x: (float(np.cosh(x).sum()), np.sinh(x))  # noqa: E731
        assert signedstep.minimize(fun, np.array([200.0, -3.0]), jac=True, method="cg").success
    steep = lambda x: (((1e10 * x - 1) ** 2).sum(), 2e10 * (1e10 * x - 1))  # noqa: E731
    assert signedstep.minimize(steep, np.ones(2), jac=True, method="cg").success
