"""`mix` against dense experts written from their definitions, not from our code."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import signedstep
from conftest import convex, indefinite, path
from signedstep import spectrum as rules
from signedstep.curvature import LSR1, Gamma, Mix, Mixing
from signedstep.curvature.experts import FlippedLSR1
from signedstep.curvature.lowrank import diagonalise, pencil
from signedstep.curvature.symmetric import invert
from signedstep.methods import build
from signedstep.objective import Point
from signedstep.space import Space

MIXING = Mixing()


def bfgs_inverse(pairs: list[tuple[Tensor, Tensor]], n: int, long: bool = False) -> Tensor:
    """Dense BFGS updates of H (Nocedal-Wright 2006, equation 6.17) over the pairs of positive curvature.

    They begin at the scale of the newest pair, or at the longest of all.
    """
    identity = torch.eye(n, dtype=torch.float64)
    positive = [(s, y) for s, y in pairs if s @ y > 1e-10 * s.norm() * y.norm()]
    if not positive:
        s, y = pairs[-1]
        return identity * (s.norm() / y.norm())
    s, y = positive[-1]
    scale = max(float(s @ s / (s @ y)) for s, y in positive) if long else (s @ y) / (y @ y)
    H = identity * scale
    for s, y in positive:
        V = identity - torch.outer(y, s) / (s @ y)
        H = V.T @ H @ V + torch.outer(s, s) / (s @ y)
    return H


def dense_spectrum(pairs: list[tuple[Tensor, Tensor]], n: int) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of dense SR1 updates, within what the pairs have seen."""
    gamma = MIXING.spectrum * size(pairs)
    B = torch.eye(n, dtype=torch.float64) * gamma
    for s, y in pairs:
        v = y - B @ s
        B = B + torch.outer(v, v) / (v @ s)
    Psi = torch.stack([(y - gamma * s) / s.norm() for s, y in pairs], dim=1)
    Q = torch.linalg.svd(Psi, full_matrices=False).U[:, : torch.linalg.matrix_rank(Psi)]
    w, V = torch.linalg.eigh(Q.T @ B @ Q)
    return w, Q @ V


def flipped_inverse(pairs: list[tuple[Tensor, Tensor]], n: int, outside: float, floor: float) -> Tensor:
    """Every eigenvalue by its magnitude, floored; what the pairs have not seen apart."""
    w, V = dense_spectrum(pairs, n)
    largest = max(MIXING.spectrum * size(pairs), float(w.abs().max()))
    inverse = torch.diag(1 / w.abs().clamp_min(floor * largest))
    return V @ inverse @ V.T + (torch.eye(n, dtype=torch.float64) - V @ V.T) / (outside * size(pairs))


def size(pairs: list[tuple[Tensor, Tensor]]) -> float:
    s, y = pairs[-1]
    return float(y.norm() / s.norm())


def inverses(pairs: list[tuple[Tensor, Tensor]], n: int, m: int) -> list[Tensor]:
    """Those of the experts, L-BFGS first: one of it, or two where m pairs can span the space."""
    pairs = pairs[-m:]
    scaled = [bfgs_inverse(pairs, n, long) for long in ((False, True) if n <= m else (False,))]
    return [*scaled, *(flipped_inverse(pairs, n, *flip) for flip in MIXING.flips)]


def error(s: Tensor, said: Tensor) -> float:
    """The relative error of a prediction of s; half of what is too long is forgiven."""
    return float((s - said).norm() / s.norm() / (said.norm() / s.norm()).clamp_min(1) ** MIXING.lenience)


def mixed(points: list[Point], m: int) -> tuple[np.ndarray, Tensor]:
    """Losses of the experts and the mean of their inverses after a path."""
    n = points[0].x.numel()
    scaled = 2 if n <= m else 1
    logs, pairs = [np.zeros(scaled + len(MIXING.flips))], []
    for old, new in pairwise(points):
        s, y = (new.x - old.x).double(), (new.g - old.g).double()
        if pairs:
            logs.append([np.log(error(s, H @ y)) for H in inverses(pairs, n, m)])
        pairs.append((s, y))
    shares = MIXING.decay ** np.arange(len(logs))[::-1]
    shares[0] = float(len(logs) == 1)  # before the first error nothing is known
    losses = np.average(logs, axis=0, weights=shares)
    head = MIXING.convex * bool((dense_spectrum(pairs[-m:], n)[0] > 0).all())
    weights = np.exp(-MIXING.eta * (losses - head * (np.arange(len(losses)) < scaled)))
    weights /= weights.sum()
    return losses, sum(float(w) * H for w, H in zip(weights, inverses(pairs, n, m), strict=True))  # type: ignore[return-value]


def taught(points: list[Point], m: int, mixing: Mixing = MIXING) -> Mix:
    model = Mix(m, mixing, Space())
    model.start(lambda x: points[0], points[0])
    for old, new in pairwise(points):
        assert model.update(old, new)
    return model


def relative(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm())


@pytest.mark.parametrize("function", [convex, indefinite])
@pytest.mark.parametrize(("m", "steps"), [(6, 1), (6, 2), (6, 5), (6, 6), (6, 7), (6, 13), (15, 1), (15, 5), (15, 13)])
def test_experts_losses_and_direction_are_those_of_the_dense_definition(function, m, steps):
    """While the pairs fit and after the ring has wrapped, also where they can span the space; of both signs."""
    points = path(function(15, 0, torch.float64), 15, steps)
    model = taught(points, m)
    losses, H = mixed(points, m)
    g = points[-1].g
    assert model.losses == pytest.approx(losses, abs=1e-8)
    assert relative(model.solve(g), H @ g) < 1e-9
    assert relative(model.matrix() @ H, torch.eye(15)) < 1e-8


@pytest.mark.parametrize(("function", "positive"), [(convex, True), (indefinite, False)])
def test_lbfgs_is_favoured_while_there_is_nothing_to_flip(function, positive):
    points = path(function(15, 0, torch.float64), 15, 7)
    favoured, plain = (taught(points, 6, Mixing(convex=head)).weights for head in (0.5, 0.0))
    ratio = math.exp(MIXING.eta * 0.5) if positive else 1.0
    assert favoured[0] / favoured[1:] == pytest.approx(ratio * plain[0] / plain[1:])


def test_the_reference_sees_pairs_of_negative_curvature():
    points = path(indefinite(15, 0, torch.float64), 15, 13)
    signs = {math.copysign(1, (b.x - a.x) @ (b.g - a.g)) for a, b in pairwise(points)}
    assert signs == {-1.0, 1.0}


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 12), n=st.integers(1, 12))
def test_spectrum_and_direction_agree_and_are_positive(seed, steps, n):
    points = path(indefinite(n, seed, torch.float64), n, steps, seed)
    model = Mix(5, MIXING, Space())
    model.start(lambda x: points[0], points[0])
    for old, new in pairwise(points):
        model.update(old, new)
    g = points[-1].g
    seen = model.spectrum(g)
    assert (seen.w > 0).all()
    p = model.solve(g)
    assert float(p @ g) > 0
    assert relative(seen.lift(seen.c / seen.w), p) < 1e-6


@given(scale=st.floats(1e-6, 1e6), stretch=st.floats(1e-4, 1e4))
@settings(max_examples=25)
def test_units_of_f_and_x_do_not_matter(scale, stretch):
    """For f' = a f and x' = b x the directions are b times as long, and the experts are weighed alike."""
    points = path(indefinite(8, 3, torch.float64), 8, 9)
    other = [Point(stretch * p.x, scale * p.f, scale / stretch * p.g) for p in points]
    one, two = taught(points, 5), taught(other, 5)
    assert two.losses == pytest.approx(one.losses, abs=1e-6)
    assert relative(two.solve(other[-1].g), stretch * one.solve(points[-1].g)) < 1e-6


def test_the_best_predictor_gains_weight():
    """On a convex quadratic whose pairs all fit, SR1 knows everything in the end."""
    n = 6
    A = torch.diag(torch.linspace(1, 2, n, dtype=torch.float64))
    points = path(lambda x: 0.5 * x @ A @ x, n, 14)
    flat = Mixing(flips=((0.3, 1e-8),), decay=0.5)
    model = taught(points, n, flat)
    assert model.weights[-1] > 0.99
    assert relative(model.solve(points[-1].g), torch.linalg.solve(A, points[-1].g)) < 1e-6


def test_eta_zero_is_the_plain_average_and_a_large_eta_follows_the_best():
    points = path(indefinite(10, 1, torch.float64), 10, 9)
    assert taught(points, 5, Mixing(eta=0.0)).weights == pytest.approx(0.25)
    for eta in (1e6, math.inf):
        strict = taught(points, 5, Mixing(eta=eta))
        assert strict.weights.tolist() == (np.arange(4) == np.argmin(strict.losses)).tolist()


@pytest.mark.parametrize("bad", ["zero y", "nan", "huge", "zero s"])
def test_useless_pairs_are_refused_or_harmless(bad):
    points = path(indefinite(6, 0, torch.float64), 6, 5)
    model = taught(points, 4)
    last = points[-1]
    before = model.solve(last.g)
    x = last.x + (0 if bad == "zero s" else 1)
    g = {"zero y": last.g, "nan": last.g * math.nan, "huge": last.g * 1e200, "zero s": last.g + 1}[bad]
    assert not model.update(last, Point(x, 0.0, g.clone()))
    assert relative(model.solve(last.g), before) < 1e-12


def test_repeated_pairs_leave_a_descent_direction():
    """Psi loses rank; a Cholesky factorisation alone would fail."""
    points = path(indefinite(9, 0, torch.float64), 9, 3)
    there_and_back = [points[0], *[points[1], points[2]] * 4]
    model = taught(there_and_back, 6)
    p = model.solve(there_and_back[-1].g)
    assert p.isfinite().all()
    assert float(p @ there_and_back[-1].g) > 0


def test_float32_follows_float64():
    double = path(indefinite(40, 2), 40, 12)
    single = [Point(p.x.float(), p.f, p.g.float()) for p in double]
    a, b = taught(single, 6), taught(double, 6)
    assert relative(a.solve(single[-1].g), b.solve(double[-1].g)) < 1e-3


@given(k=st.integers(1, 8), seed=st.integers(0, 10**6), gamma=st.floats(0.01, 100))
@settings(max_examples=50)
def test_the_pencil_is_the_eigendecomposition(k, seed, gamma):
    """Against B as a dense matrix, and against the way through the inverse of M."""
    random = np.random.default_rng(seed)
    Psi, M = random.standard_normal((12, k)), random.standard_normal((k, k))
    M = M + M.T + 3 * np.diag(np.sign(random.standard_normal(k)))
    w, V = pencil(gamma, Psi.T @ Psi, M, np.zeros(k), len(Psi))
    B = gamma * np.eye(12) + Psi @ np.linalg.inv(M) @ Psi.T
    vectors = Psi @ V
    assert np.abs(vectors.T @ vectors - np.eye(k)).max() < 1e-8
    assert np.abs(B @ vectors - vectors * w).max() < 1e-8 * np.abs(B).max()
    assert np.sort(w) == pytest.approx(np.sort(diagonalise(gamma, Psi.T @ Psi, invert(M)[0]).w), rel=1e-6)


def test_a_singular_m_is_an_infinite_eigenvalue():
    with np.errstate(divide="ignore"):
        w, V = pencil(1.0, np.eye(2), np.diag([0.5, 0.0]), np.zeros(2), 2)
    assert sorted(np.abs(w)) == [3.0, np.inf]
    assert np.abs(V).max() == 1


def test_mixing_is_an_option_of_minimize():
    x0 = torch.linspace(-2, 2, 30, dtype=torch.float64)
    fun = indefinite(30)
    runs = [
        signedstep.minimize(fun, x0, method="mix", options={"mixing": mixing, "maxiter": 15})
        for mixing in (None, Mixing(), Mixing(eta=0.0))
    ]
    assert runs[0].fun == runs[1].fun != runs[2].fun


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("eta", -1.0),
        ("convex", -0.1),
        ("lenience", -0.1),
        ("decay", 1.0),
        ("decay", -0.1),
        ("flips", ((0.0, 0.1),)),
        ("flips", ((1.0, 1.0),)),
    ],
)
def test_senseless_mixing_is_refused(field, value):
    with pytest.raises(ValueError, match=field):
        Mixing(**{field: value})


def test_one_expert_alone_is_allowed_but_not_none():
    points = path(indefinite(10, 1), 10, 9)
    assert taught(points, 5, Mixing(flips=())).weights == pytest.approx([1.0])
    assert taught(points, 5, Mixing(lbfgs=False, flips=((0.1, 1e-3),))).weights == pytest.approx([1.0])
    with pytest.raises(ValueError, match="at least one"):
        Mixing(lbfgs=False, flips=())


def test_mix_of_one_is_lbfgs_and_flip():
    """With a single expert nothing is left but that model's own direction."""
    points = path(indefinite(12, 4), 12, 9)
    g = points[-1].g
    flip = taught(points, 5, Mixing(lbfgs=False, flips=((0.1, 1e-3),), spectrum=0.1))
    lsr1 = LSR1(5, Gamma.parse("0.1*norm"), Space())
    lsr1.start(lambda x: points[0], points[0])
    for old, new in pairwise(points):
        assert lsr1.update(old, new)
    seen = lsr1.spectrum(g)
    assert relative(flip.solve(g), -seen.lift(rules.flip(seen.w, seen.c, 1e-3))) < 1e-8


@pytest.mark.parametrize(("n", "options", "kept"), [(2000, {}, 50), (2001, {}, 20), (2000, {"history_size": 5}, 5)])
def test_small_problems_keep_more_pairs_unless_told_otherwise(n, options, kept):
    x = torch.zeros(n)
    model = build("mix", x, Space(), options).curvature
    model.start(lambda x: Point(x, 0.0, x), Point(x, 0.0, x))
    assert isinstance(model, Mix)
    assert model.pairs.m == kept


def test_eigenvectors_are_orthonormal_with_more_pairs_than_unknowns():
    """Where rounding makes Psi'Psi look regular although it cannot be."""
    learn, seen = FlippedLSR1.learn, []

    def watched(self, grams):
        learn(self, grams)
        SS, lower, upper, YY, _ = grams
        PsiPsi = YY - self.gamma * (lower + upper - self.gamma * SS)
        seen.append(np.abs(self.V.T @ PsiPsi @ self.V - np.eye(self.V.shape[1])).max())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FlippedLSR1, "learn", watched)
        for n in (2, 3, 5, 8, 20):
            A = torch.randn(n, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
            wavy = lambda x, A=A: torch.log(1 + (A @ x) ** 2).sum() + 0.3 * torch.cos(x).sum() + 0.01 * (x**4).sum()  # noqa: E731
            for start in (1.0, 2.0, 3.0):
                x0 = torch.linspace(-start, start, n, dtype=torch.float64)
                signedstep.minimize(wavy, x0, method="mix", options={"gtol": 1e-10, "maxiter": 100})
    assert len(seen) > 200
    assert max(seen) < 1e-6


def test_what_mixing_must_be_is_said():
    with pytest.raises(TypeError, match=r"mixing must be a signedstep.Mixing, got 3"):
        signedstep.minimize(lambda x: (x**2).sum(), [1.0], options={"mixing": 3})
