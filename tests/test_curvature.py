"""Curvature models against dense references written from the textbook, not from our code."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from conftest import convex, evaluated, indefinite, path, rosenbrock
from signedstep.curvature import BFGS, LBFGS, LSR1, SR1, SSBFGS, Curvature, Gamma, Identity, Mix, Mixing, SSBroyden
from signedstep.curvature.base import refusal_threshold
from signedstep.curvature.lowrank import diagonalise
from signedstep.curvature.symmetric import invert
from signedstep.engine import Engine, Tolerances
from signedstep.methods import build
from signedstep.objective import Point
from signedstep.space import Space
from signedstep.status import Status
from signedstep.tensors import TorchObjective

GAMMA = Gamma("identity", 1.7)


def textbook(kind: str, pairs: list[tuple[Tensor, Tensor]], gamma: float) -> Tensor:
    """B after the pairs by Nocedal-Wright 2006, equations 6.19 (BFGS) and 6.24 (SR1)."""
    B = gamma * torch.eye(len(pairs[0][0]), dtype=torch.float64)
    for s, y in pairs:
        s, y = s.double(), y.double()
        if kind == "sr1":
            v = y - B @ s
            B = B + torch.outer(v, v) / (v @ s)
        else:
            Bs = B @ s
            B = B - torch.outer(Bs, Bs) / (s @ Bs) + torch.outer(y, y) / (s @ y)
    return B


def differences(points: list[Point]) -> list[tuple[Tensor, Tensor]]:
    return [(b.x - a.x, b.g - a.g) for a, b in pairwise(points)]


def taught(model: Curvature, points: list[Point]) -> Curvature:
    """The model after all steps of a path, every one of which it must accept."""
    model.start(lambda x: points[0], points[0])
    for old, new in pairwise(points):
        assert model.update(old, new)
    return model


def function(kind: str, n: int, seed: int = 0, dtype: torch.dtype = torch.float64):
    return (indefinite if kind == "sr1" else convex)(n, seed, dtype)


def relative(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm())


LIMITED = {"sr1": LSR1, "bfgs": LBFGS}
DENSE = {"sr1": SR1, "bfgs": BFGS}


@pytest.mark.parametrize("kind", ["sr1", "bfgs"])
def test_dense_is_the_textbook(kind):
    points = path(function(kind, 9), 9, 12)
    model = taught(DENSE[kind](GAMMA), points)
    B = textbook(kind, differences(points), 1.7)
    g = points[-1].g
    assert relative(model.matrix(), B) < 1e-10
    assert relative(B @ model.solve(g), g) < 1e-10


@pytest.mark.parametrize("kind", ["sr1", "bfgs"])
@pytest.mark.parametrize("steps", [1, 4, 5, 6, 7, 13, 23])
def test_limited_is_the_textbook_with_the_last_pairs(kind, steps):
    """While the pairs fit and after the ring has wrapped once, twice and several times."""
    m = 6
    points = path(function(kind, 15), 15, steps)
    model = taught(LIMITED[kind](m, GAMMA, Space()), points)
    B = textbook(kind, differences(points)[-m:], 1.7)
    g = points[-1].g
    assert relative(model.matrix(), B) < 1e-10
    assert relative(B @ model.solve(g), g) < 1e-10
    assert model.learned == min(m, steps)


@pytest.mark.parametrize("kind", ["sr1", "bfgs"])
def test_limited_equals_dense_while_the_pairs_fit(kind):
    points = path(function(kind, 20), 20, 12)
    limited = taught(LIMITED[kind](12, GAMMA, Space()), points)
    dense = taught(DENSE[kind](GAMMA), points)
    assert relative(limited.solve(points[-1].g), dense.solve(points[-1].g)) < 1e-10
    assert relative(limited.matrix(), dense.matrix()) < 1e-10


def models(kind: str, n: int) -> list[Curvature]:
    return [DENSE[kind](GAMMA), LIMITED[kind](5, GAMMA, Space()), LIMITED[kind](30, GAMMA, Space())]


@pytest.mark.parametrize("kind", ["sr1", "bfgs"])
@pytest.mark.parametrize("which", [0, 1, 2], ids=["dense", "m=5", "m=30"])
def test_spectrum_is_the_eigendecomposition(kind, which):
    points = path(function(kind, 12), 12, 11)
    model = taught(models(kind, 12)[which], points)
    g = points[-1].g
    check_spectrum(model, g)


def check_spectrum(model: Curvature, g: Tensor, tolerance: float = 1e-10) -> None:
    """w are eigenvalues of B, c has the length of g, and lifting c/w and c gives B^-1 g and g."""
    B = model.matrix()
    w, c, lift = model.spectrum(g)
    exact = torch.linalg.eigvalsh(B).numpy()
    scale = np.abs(exact).max()
    assert max(np.abs(exact - value).min() for value in w) < tolerance * scale
    assert c @ c == pytest.approx(float(g.double() @ g.double()), rel=tolerance)
    assert relative(lift(c), g) < tolerance
    assert relative(B @ lift(c / w).double(), g) < tolerance * scale / np.abs(exact).min()


def test_spectrum_with_rank_deficient_psi():
    """Pairs in a plane, many more than it has dimensions: Psi has rank two and M is singular but for rounding."""
    n, A = 8, torch.diag(torch.arange(1.0, 9.0, dtype=torch.float64) - 4.5)
    model = LSR1(6, GAMMA, Space())
    here = Point(torch.zeros(n, dtype=torch.float64), 0.0, torch.zeros(n, dtype=torch.float64))
    model.start(lambda x: here, here)
    generator = torch.Generator().manual_seed(0)
    accepted = []
    for _ in range(6):
        x = here.x.clone()
        x[:2] += torch.randn(2, generator=generator, dtype=torch.float64)
        there = Point(x, 0.0, A @ x)
        accepted.append(model.update(here, there))
        here = there
    assert accepted[:2] == [True, True]
    assert not any(accepted[2:]), "a quadratic of two dimensions is known after two pairs"
    w, c, _ = model.spectrum(torch.ones(n, dtype=torch.float64))
    assert sorted(w) == pytest.approx(sorted([-3.5, -2.5, 1.7]), abs=1e-10)
    assert c @ c == pytest.approx(n)


def test_rank_deficient_psi_with_regular_m():
    """Two pairs with the same psi = y - gamma s: the newer one decides (rank one, worked out by hand)."""
    gamma, psi = 2.0, torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64)
    s1, s2 = torch.eye(3, dtype=torch.float64)[:2]
    S = torch.stack((s1, s2), dim=1)
    Psi = torch.stack((psi, psi), dim=1)
    Y = Psi + gamma * S
    SY = (S.T @ Y).numpy()
    M = np.tril(SY) + np.tril(SY, -1).T - gamma * (S.T @ S).numpy()
    w, vectors = diagonalise(gamma, (Psi.T @ Psi).numpy(), invert(M)[0])
    b = float(psi @ s2)
    assert w == pytest.approx([gamma + 5.0 / b])
    direction = Psi.numpy() @ vectors
    assert np.abs(direction[:, 0]) == pytest.approx(np.abs(psi.numpy()) / 5**0.5)


@pytest.mark.parametrize("kind", ["sr1", "bfgs"])
@pytest.mark.parametrize("make", [lambda k: DENSE[k](GAMMA), lambda k: LIMITED[k](9, GAMMA, Space())])
def test_newest_pair_is_satisfied(kind, make):
    points = path(function(kind, 11), 11, 8)
    model = taught(make(kind), points)
    s, y = differences(points)[-1]
    assert relative(model.matrix() @ s, y) < 1e-10
    assert relative(model.solve(y), s) < 1e-10


@given(scale=st.floats(1e-12, 1e12), seed=st.integers(0, 50))
def test_models_do_not_care_for_the_units_of_f(scale, seed):
    """f -> c f with gamma -> c gamma turns B into c B, over 24 decades: no guard is absolute."""
    f = indefinite(7, seed)
    points = path(f, 7, 6, seed)
    scaled = [Point(p.x, scale * p.f, scale * p.g) for p in points]
    for make in (lambda gamma: LSR1(5, gamma, Space()), SR1):
        one, other = make(Gamma("norm")), make(Gamma("norm"))
        one.start(lambda x: points[0], points[0])
        other.start(lambda x: scaled[0], scaled[0])
        for k in range(len(points) - 1):
            assert one.update(points[k], points[k + 1]) == other.update(scaled[k], scaled[k + 1])
        g = points[-1].g
        assert relative(other.solve(scale * g), one.solve(g)) < 1e-6


def test_limited_models_do_not_care_for_the_length_of_a_pair():
    points = path(indefinite(9), 9, 5)
    model = taught(LSR1(6, GAMMA, Space()), points)
    stretched = LSR1(6, GAMMA, Space())
    stretched.start(lambda x: points[0], points[0])
    for (s, y), factor in zip(differences(points), [1e-3, 7.0, -2.0, 1e4, 0.5], strict=True):
        zero = Point(torch.zeros_like(s), 0.0, torch.zeros_like(s))
        assert stretched.update(zero, Point(factor * s, 0.0, factor * y))
    g = points[-1].g
    assert relative(stretched.solve(g), model.solve(g)) < 1e-10


def test_limited_sr1_refuses_a_vanishing_denominator():
    """s.(y - B s) = 0 with y != B s: the update does not exist, and the model must not change."""
    model = LSR1(5, GAMMA, Space())
    zero = Point(torch.zeros(3, dtype=torch.float64), 0.0, torch.zeros(3, dtype=torch.float64))
    model.start(lambda x: zero, zero)
    s = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    orthogonal = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    before = model.matrix()
    assert not model.update(zero, Point(s, 0.0, (1.7 + 1e-9) * s + orthogonal))
    assert torch.equal(model.matrix(), before)
    assert model.learned == 0
    assert model.update(zero, Point(s, 0.0, (1.7 + 1e-6) * s + orthogonal)), "small, but above rounding"


def test_dense_sr1_refuses_where_its_inverse_would_not_exist():
    """y.(s - H y) = 0 with s != H y: B would become singular."""
    model = SR1(Gamma("identity"))
    zero = Point(torch.zeros(2, dtype=torch.float64), 0.0, torch.zeros(2, dtype=torch.float64))
    model.start(lambda x: zero, zero)
    y = torch.tensor([1.0, 0.0], dtype=torch.float64)
    s = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert not model.update(zero, Point(s, 0.0, y))
    assert torch.equal(model.matrix(), torch.eye(2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("make", "vanishing"), [(lambda: LBFGS(5, GAMMA, Space()), 1e-12), (lambda: BFGS(GAMMA), 1e-15)]
)
@pytest.mark.parametrize("curvature", [-1.0, 0.0, None])
def test_bfgs_refuses_negative_and_vanishing_curvature(make, vanishing, curvature):
    curvature = vanishing if curvature is None else curvature
    model = make()
    zero = Point(torch.zeros(3, dtype=torch.float64), 0.0, torch.zeros(3, dtype=torch.float64))
    model.start(lambda x: zero, zero)
    s = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    y = torch.tensor([curvature, 1.0, 0.0], dtype=torch.float64)
    assert not model.update(zero, Point(s, 0.0, y))
    assert model.learned == 0


@pytest.mark.parametrize(
    "make", [lambda: LBFGS(3, GAMMA, Space()), lambda: LSR1(3, GAMMA, Space()), lambda: BFGS(GAMMA), lambda: SR1(GAMMA)]
)
def test_useless_pairs_are_refused_and_do_no_harm(make):
    """No step, NaN and infinity in the gradient: also in a ring that is full."""
    points = path(convex(6), 6, 5)
    model = taught(make(), points)
    last, before = points[-1], model.solve(points[-1].g)
    nan = last.g.clone()
    nan[0] = float("nan")
    assert not model.update(last, last)
    assert not model.update(last, Point(last.x + 1, 0.0, nan))
    assert not model.update(last, Point(last.x + 1, 0.0, last.g * float("inf")))
    assert relative(model.solve(last.g.clone()), before) < 1e-12
    assert model.update(points[0], points[2])


def test_float32_models_follow_float64_ones():
    """The algebra is float64: only the rounding of the vectors is left."""
    for kind in ("sr1", "bfgs"):
        points = path(function(kind, 40), 40, 9)
        single = [Point(p.x.float(), p.f, p.g.float()) for p in points]
        exact = taught(LIMITED[kind](6, GAMMA, Space()), points)
        rough = taught(LIMITED[kind](6, GAMMA, Space()), single)
        assert rough.solve(single[-1].g).dtype == torch.float32
        assert relative(rough.solve(single[-1].g), exact.solve(points[-1].g)) < 1e-4


def test_products_stay_those_of_the_stored_vectors():
    """Kept from step to step while the ring turns, they are what the vectors in it give."""
    model = taught(LSR1(5, GAMMA, Space()), path(indefinite(30), 30, 12))
    S, Y = model.pairs.vectors()
    SS, lower, upper, YY, _ = model.pairs.grams
    SY = np.triu(upper) + np.tril(lower, -1)
    for kept, exact in ((SS, S @ S.T), (SY, S @ Y.T), (YY, Y @ Y.T)):
        assert np.abs(kept - exact).max() < 1e-13 * np.abs(exact).max()


def test_lbfgs_can_be_diagonalised_late():
    """Products with s are only kept once a spectrum was wanted; it must be right from then on."""
    points = path(convex(10), 10, 9)
    model = LBFGS(4, GAMMA, Space())
    model.start(lambda x: points[0], points[0])
    for k in range(9):
        assert model.update(points[k], points[k + 1])
        if k >= 5:
            check_spectrum(model, points[k + 1].g)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["sr1", "bfgs"])
def test_more_memory_than_dimensions(kind, n):
    points = path(function(kind, n, seed=3), n, 12)
    model = LIMITED[kind](20, Gamma("norm"), Space())
    model.start(lambda x: points[0], points[0])
    for old, new in pairwise(points):
        model.update(old, new)
    assert model.learned > 0
    assert torch.isfinite(model.solve(points[-1].g)).all()
    w, c, lift = model.spectrum(points[-1].g)
    assert torch.isfinite(lift(c / np.maximum(np.abs(w), 1e-3))).all()


@pytest.mark.parametrize("n", [2, 3, 8])
def test_limited_sr1_learns_no_rounding(n):
    """n pairs are all of a quadratic; later ones showed it their rounding where s was a long sum of those before."""
    for seed in range(30):
        generator = torch.Generator().manual_seed(seed)
        A = torch.randn(n, n, generator=generator, dtype=torch.float64)
        A = A + A.T
        x = torch.zeros(n, dtype=torch.float64)
        points = [Point(x, 0.0, A @ x)]
        for _ in range(30):
            length = 10.0 ** torch.randint(-3, 3, (1,), generator=generator)
            x = x + length * torch.randn(n, generator=generator, dtype=torch.float64)
            points.append(Point(x, 0.0, A @ x))
        model = LSR1(14, Gamma("norm", 0.1), Space())
        model.start(lambda x, start=points[0]: start, points[0])
        for old, new in pairwise(points):
            model.update(old, new)
            assert model.learned < n or relative(model.matrix(), A) < 1e-6


def test_bfgs_stays_positive_definite():
    """Pairs of a non-convex function: the refused ones keep it so."""
    points = path(indefinite(8), 8, 20)
    for model in (LBFGS(6, Gamma("yy/sy"), Space()), BFGS(Gamma("yy/sy"))):
        model.start(lambda x: points[0], points[0])
        verdicts = {model.update(old, new) for old, new in pairwise(points)}
        assert verdicts == {True, False}
        assert torch.linalg.eigvalsh(model.matrix()).min() > 0


def test_a_definite_model_that_rounding_made_indefinite_starts_again():
    """Else it would refuse every pair along which H is negative, for ever; one that may be indefinite just learns."""
    points = path(convex(4), 4, 3)
    for kind in (BFGS, SSBFGS, SSBroyden, SR1):
        model = taught(kind(Gamma("norm")), points[:-1])
        s, y = points[-1].x - points[-2].x, points[-1].g - points[-2].g
        model.H -= 2 * float(y @ model.H @ y) / float(y @ y) ** 2 * torch.outer(y, y)
        assert model.update(points[-2], points[-1])
        assert model.learned == (3 if kind is SR1 else 1)
        assert torch.allclose(model.solve(y), s)
        assert kind is SR1 or torch.linalg.eigvalsh(model.H).min() > 0


def test_fresh_models_are_the_identity():
    here = evaluated(convex(5), torch.ones(5, dtype=torch.float64))
    for model in (LBFGS(3, GAMMA, Space()), LSR1(3, GAMMA, Space()), BFGS(GAMMA), SR1(GAMMA), Identity(GAMMA, Space())):
        model.start(lambda x: here, here)
        assert model.learned == 0
        assert torch.equal(model.solve(here.g), here.g)
        assert torch.equal(model.matrix(), torch.eye(5, dtype=torch.float64))
        w, c, lift = model.spectrum(here.g)
        assert set(w) == {1.0}
        assert relative(lift(c), here.g) < 1e-14


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("identity", 1.0), ("norm", 3.0), ("0.1*norm", 0.3), ("yy/sy", 4.5), ("sy/ss", 2.0), (7, 7.0), (0.5, 0.5)],
)
def test_gamma_policies(policy, expected):
    assert Gamma.parse(policy)(ss=4.0, sy=8.0, yy=36.0, previous=5.0) == pytest.approx(expected)


@pytest.mark.parametrize("policy", ["yy/sy", "sy/ss"])
def test_gamma_keeps_its_value_at_negative_curvature(policy):
    assert Gamma.parse(policy)(ss=1.0, sy=-1.0, yy=4.0, previous=5.0) == 5.0
    assert Gamma.parse(policy)(ss=1.0, sy=0.0, yy=0.0, previous=5.0) == 5.0


@pytest.mark.parametrize("bad", ["normal", "x*norm", -1, 0, float("nan"), "0*norm"])
def test_bad_gamma_is_named(bad):
    with pytest.raises(ValueError, match="gamma"):
        Gamma.parse(bad)


def test_gamma_of_a_wrong_type():
    with pytest.raises(TypeError, match="gamma"):
        Gamma.parse([1])  # type: ignore[arg-type]


def test_gradient_descent_takes_the_barzilai_borwein_step():
    f = convex(4)
    a, b = path(f, 4, 1)
    model = Identity(Gamma("sy/ss"), Space())
    model.start(lambda x: a, a)
    assert model.update(a, b)
    s, y = differences([a, b])[0]
    assert relative(model.solve(b.g), b.g * float(s @ s) / float(s @ y)) < 1e-12


def test_refusal_threshold_depends_on_the_precision():
    assert refusal_threshold(torch.float64) == pytest.approx(1.5e-8, rel=0.01)
    assert refusal_threshold(torch.float32) == pytest.approx(3.5e-4, rel=0.02)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6])
def test_the_spectrum_of_lbfgs_where_gamma_is_far_too_large(scale):
    """Most of its eigenvalues are then next to gamma, the others as small as the curvatures, and all are positive."""
    n, rng = 30, torch.Generator().manual_seed(0)
    d = scale * torch.logspace(-3, 0, n, dtype=torch.float64)
    points = [Point(x, 0.0, d * x) for x in torch.randn(9, n, dtype=torch.float64, generator=rng)]
    model = taught(LBFGS(8, Gamma("identity"), Space()), points)
    w = np.sort(model.spectrum(points[-1].g).w)
    exact = torch.linalg.eigvalsh(textbook("bfgs", differences(points), 1.0)).numpy()
    assert (w > 0).all()
    np.testing.assert_allclose(w[:8], exact[:8], rtol=1e-3)


@pytest.mark.parametrize(
    "make", [lambda: LBFGS(8, Gamma("yy/sy"), Space()), lambda: Mix(8, Mixing(), Space())], ids=["lbfgs", "mix"]
)
def test_the_spectrum_of_a_definite_model_is_positive_whatever_rounding_does(make):
    """Steps along a flat valley with steep walls: the least eigenvalues are below the rounding of the others."""
    n, rng = 3, torch.Generator().manual_seed(0)
    d = torch.logspace(-14, 0, n, dtype=torch.float64)
    for _ in range(200):
        along = torch.randn(n, dtype=torch.float64, generator=rng) * (d < 1)
        aside = 1e-6 * torch.randn(9, n, dtype=torch.float64, generator=rng)
        points = [Point(k * along + x, 0.0, d * (k * along + x)) for k, x in enumerate(aside)]
        model = make()
        model.start(None, points[0])
        verdicts = [model.update(old, new) for old, new in pairwise(points)]
        assert any(verdicts)
        assert (model.spectrum(points[-1].g).w > 0).all()


@pytest.mark.parametrize("kind", ["lbfgs", "lsr1", "mix"])
def test_spectra_of_float32_hold_no_rounding(kind):
    """More pairs than dimensions: what products in float32 leave of the rest is no eigenvector."""
    x = -torch.ones(2)
    parts = build(kind, x, space := Space(), {"history_size": 20})
    objective = TorchObjective(rosenbrock, None, (), (2,))
    at = objective(x)
    engine = Engine(objective, at, parts.curvature, parts.globalization, space, Tolerances(gtol=0.0))
    for _ in range(25):
        engine.step()
        if engine.status is not Status.RUNNING:
            break
        w, c, lift = parts.curvature.spectrum(engine.at.g)
        assert len(w) <= 3  # and what is left of the gradient
        assert relative(lift(c), engine.at.g) < 1e-2
    assert engine.k > 10
