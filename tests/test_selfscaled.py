"""Self-scaled BFGS and Broyden against the published formulas in their other form, that of B."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import signedstep
from conftest import convex, evaluated, indefinite, network, path
from signedstep.curvature import BFGS, SSBFGS, Gamma, SSBroyden
from signedstep.curvature.dense import Dense
from signedstep.curvature.selfscaled import Scaling, SelfScaled
from signedstep.objective import Point

GAMMA = Gamma("identity", 1.7)
KINDS = [SSBFGS, SSBroyden]


def textbook(kind: type[SelfScaled], pairs: list[tuple[Tensor, Tensor]], gamma: float) -> tuple[Tensor, set[str]]:
    """B after the pairs by Al-Baali and Khalfan's formulas for B, and the cases that they met; the first is BFGS."""
    n = len(pairs[0][0])
    B, met = gamma * torch.eye(n, dtype=torch.float64), set()
    for k, (s, y) in enumerate(pairs):
        sy, Bs, Hy = s @ y, B @ s, torch.linalg.inv(B) @ y
        sBs = s @ Bs
        b, h = float(sBs / sy), float(y @ Hy / sy)
        a, theta, tau = b * h - 1, 0.0, 1.0
        if k and kind is SSBFGS:
            tau = min(1.0, 1 / b)
        elif k:
            rho = min(1.0, h * (1 - math.sqrt(a / (a + 1))))
            low, high = (rho - 1) / a, 1 / rho
            theta = max(low, min(high, (1 - b) / b))
            met.add("low" if theta == low else "high" if theta == high else "between")
            met.add("positive" if theta > 0 else "negative")
            spread = (1 + a * theta) ** (-1 / (n - 1))
            least = min(1.0, 1 / b)
            tau = least * min(spread, 1 / theta) if theta > 0 else min(least * spread, 1 + a * theta)
        w = y / sy - Bs / sBs
        B = tau * (B - torch.outer(Bs, Bs) / sBs + theta * sBs * torch.outer(w, w)) + torch.outer(y, y) / sy
    return B, met


def differences(points: list[Point]) -> list[tuple[Tensor, Tensor]]:
    return [(b.x.double() - a.x.double(), b.g.double() - a.g.double()) for a, b in pairwise(points)]


def taught(model: Dense, points: list[Point]) -> Dense:
    model.start(lambda x: points[0], points[0])
    for old, new in pairwise(points):
        assert model.update(old, new)
    return model


def relative(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm())


def walk(f, n: int, steps: int, model: SelfScaled) -> list[Point]:
    """Points that the model's own directions lead to."""
    points = [evaluated(f, torch.linspace(-1, 1, n, dtype=torch.float64))]
    model.start(lambda x: points[0], points[0])
    for k in range(steps):
        here = points[-1]
        points.append(evaluated(f, here.x - (0.02 if k == 0 else 0.7) * model.solve(here.g)))
        assert model.update(here, points[-1])
    return points


@pytest.mark.parametrize("kind", KINDS)
def test_the_published_formulas(kind):
    """Along random walks, whose steps are no directions of the model, through every branch of theta and tau."""
    met = set()
    for seed, gamma in enumerate((0.1, 1.7, 20, 200)):
        points = path(convex(7, seed), 7, 12, seed)
        model = taught(kind(Gamma("identity", gamma)), points)
        B, branches = textbook(kind, differences(points), gamma)
        assert relative(model.matrix(), B) < 1e-12
        met |= branches
    assert kind is SSBFGS or met == {"low", "between", "high", "positive", "negative"}


@pytest.mark.parametrize("kind", KINDS)
def test_steps_along_its_own_direction_need_no_solution(kind, monkeypatch):
    """There s.B s = -t s.g, and nothing of order n^3 is done."""

    def forbidden(*_):
        raise AssertionError("an O(n^3) solution")

    monkeypatch.setattr(torch.linalg, "solve_ex", forbidden)
    model = kind(GAMMA)
    points = walk(convex(7), 7, 9, model)
    assert relative(model.matrix(), textbook(kind, differences(points), 1.7)[0]) < 1e-8


@pytest.mark.parametrize("kind", KINDS)
def test_secant_equation_and_positive_definiteness(kind, dtype):
    points = path(indefinite(9), 9, 30, dtype=torch.float64)
    points = [Point(p.x.to(dtype), p.f, p.g.to(dtype)) for p in points]
    model = kind(Gamma("yy/sy"))
    model.start(lambda x: points[0], points[0])
    verdicts = set()
    for (old, new), (s, y) in zip(pairwise(points), differences(points), strict=True):
        before = model.H.clone()
        learned = model.update(old, new)
        verdicts.add(learned)
        if learned:
            assert (model.H @ y - s).norm() < 1e-12 * model.H.norm() * y.norm()
        else:
            assert torch.equal(model.H, before)
            assert s @ y <= 8 * model.eps * (old.g.norm() + new.g.norm()) * s.norm()
        assert torch.equal(model.H.T, model.H)
        assert torch.linalg.eigvalsh(model.H).min() > 0
    assert verdicts == {True, False}
    assert model.solve(points[-1].g).dtype == dtype


def test_ssbfgs_is_bfgs_where_the_model_has_too_little_curvature():
    """b = s.B s / s.y <= 1 gives tau = 1: with a tiny gamma that holds for every pair of a walk along the axes."""
    n = 5
    A = torch.diag(torch.arange(1.0, n + 1, dtype=torch.float64))
    x = torch.zeros(n, dtype=torch.float64)
    points = [Point(x, 0.0, A @ x)]
    for axis in torch.eye(n, dtype=torch.float64):
        points.append(Point(points[-1].x + axis, 0.0, A @ (points[-1].x + axis)))
    small, large = Gamma("identity", 1e-3), Gamma("identity", 50.0)
    assert relative(taught(SSBFGS(small), points).H, taught(BFGS(small), points).H) < 1e-12
    assert relative(taught(SSBFGS(large), points).H, taught(BFGS(large), points).H) > 0.1


@given(b=st.floats(1e-3, 1e3), more=st.floats(1e-12, 1e3), n=st.integers(2, 50))
def test_every_scaling_keeps_h_positive_definite(b, more, n):
    """tau > 0 and phi above Broyden's critical value -1/a, and b = 1 means BFGS without scaling (theta = 0)."""
    h = (1 + more) / b
    for kind in KINDS:
        tau, phi = kind(GAMMA).scaling(b, h, n)
        assert 0 < tau <= 1
        assert phi > -1 / (b * h - 1) * (1 + 1e-6) or b * h <= 1
        assert kind(GAMMA).scaling(1.0, 1 + more, n) == Scaling(1.0, 1.0)


@given(scale=st.floats(1e-12, 1e12), seed=st.integers(0, 20))
def test_the_units_of_f_do_not_matter(scale, seed):
    """f -> c f turns H into H / c: b and h have no units, and no guard is absolute."""
    points = path(convex(6), 6, 8, seed)
    scaled = [Point(p.x, scale * p.f, scale * p.g) for p in points]
    for kind in KINDS:
        one, other = kind(Gamma("yy/sy")), kind(Gamma("yy/sy"))
        one.start(lambda x: points[0], points[0])
        other.start(lambda x: scaled[0], scaled[0])
        for k in range(8):
            assert one.update(*points[k : k + 2])
            assert other.update(*scaled[k : k + 2])
        assert relative(scale * other.H, one.H) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_one_dimension(kind):
    """There s and H y are parallel: the pair alone decides, H = s / y."""
    places = torch.tensor([[1.0], [2.0], [4.0], [3.0]], dtype=torch.float64)
    points = [Point(x, 0.0, x**3) for x in places]
    model = taught(kind(GAMMA), points)
    assert model.H.item() == pytest.approx(1 / (64 - 27))


@pytest.mark.parametrize("method", ["ssbfgs", "ssbroyden"])
def test_a_saved_run_goes_on_bit_for_bit(method):
    loss, start = network()

    def optimizer(x: Tensor) -> signedstep.SecondOrder:
        return signedstep.SecondOrder([x], method, max_iter=5)

    def train(x: Tensor, optimizer: signedstep.SecondOrder) -> None:
        def closure():
            optimizer.zero_grad()
            value = loss(x)
            value.backward()
            return value

        optimizer.step(closure)

    a = start.clone().requires_grad_(True)
    first = optimizer(a)
    train(a, first)
    b = a.detach().clone().requires_grad_(True)
    second = optimizer(b)
    second.load_state_dict(first.state_dict())
    for _ in range(3):
        train(a, first)
        train(b, second)
    assert torch.equal(a, b)
    assert loss(a).item() < 0.5 * loss(start).item()


@pytest.mark.parametrize("bad", [Scaling(math.nan, 1.0), Scaling(1.0, math.inf), Scaling(0.0, 1.0)])
def test_a_scaling_that_overflows_is_left_out(bad):
    class Overflown(SSBFGS):
        def scaling(self, b: float, h: float, n: int) -> Scaling:
            return bad

    points = path(convex(5), 5, 6)
    assert relative(taught(Overflown(GAMMA), points).H, taught(BFGS(GAMMA), points).H) < 1e-12


def test_theta_at_its_lower_bound_leaves_sigma_positive():
    """1 + a theta rounds to zero there; it is rho."""
    result = signedstep.minimize(lambda x: x[0] - 2 * x[1] + 3 * x[2], [0.0, 0.0, 0.0], method="ssbroyden")
    assert result.status is signedstep.Status.UNBOUNDED
