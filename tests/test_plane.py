"""Dogleg and plane as pure functions: within the radius, at least as low as Cauchy's point, exact where they say so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signedstep.plane import dogleg, subspace
from signedstep.secular import ball, decrease
from test_secular import SIZES, spectra

RULES = pytest.mark.parametrize("rule", [dogleg, subspace])


def cauchy(w, c, radius):
    """How far the model falls along the gradient within the radius."""
    length, curvature = np.linalg.norm(c), float(w @ c**2)
    if length == 0:
        return 0.0
    t = radius / length
    return decrease(w, c, -c * (min(t, length**2 / curvature) if curvature > 0 else t))


def brute(w, c, radius, first, second, count=20001):
    """The most that the model falls over a plane: over a circle finely, and at the free minimum if it is inside."""
    Q, _ = np.linalg.qr(np.stack((first, second), axis=1))
    B, b = Q.T @ np.diag(w) @ Q, Q.T @ c
    angle = np.linspace(0, 2 * np.pi, count)
    circle = radius * np.stack((np.cos(angle), np.sin(angle)))
    found = -(b @ circle) - 0.5 * (circle * (B @ circle)).sum(0)
    if np.linalg.eigvalsh(B)[0] > 0:
        z = -np.linalg.solve(B, b)
        if np.linalg.norm(z) <= radius:
            return max(found.max(), -(b @ z) - 0.5 * z @ B @ z)
    return found.max()


@RULES
@settings(max_examples=800)
@given(spectrum=spectra(), radius=SIZES)
def test_within_the_radius_and_no_higher_than_cauchys_point(rule, spectrum, radius):
    w, c = spectrum
    a = rule(w, c, radius)
    assert np.isfinite(a).all()
    assert np.linalg.norm(a) <= radius * (1 + 1e-14)
    size = np.abs(c).max() * radius + np.abs(w).max() * radius**2
    assert decrease(w, c, a) >= cauchy(w, c, radius) - 1e-14 * size
    assert decrease(w, c, a) <= decrease(w, c, ball(w, c, radius)[0]) + 1e-9 * size


@settings(max_examples=400)
@given(spectrum=spectra(), radius=SIZES)
def test_the_path_only_falls(spectrum, radius):
    """Along the dogleg the model falls from point to point: a larger radius is never worse."""
    w, c = spectrum
    radii = radius * np.linspace(0.05, 3, 40)
    falls = np.array([decrease(w, c, dogleg(w, c, r)) for r in radii])
    size = np.abs(c).max() * radii + np.abs(w).max() * radii**2
    assert (np.diff(falls) >= -1e-14 * size[1:]).all()


@RULES
@given(seed=st.integers(0, 10**6), k=st.integers(2, 8))
def test_newtons_point_where_it_is_inside(rule, seed, k):
    generator = np.random.default_rng(seed)
    w, c = generator.uniform(0.1, 5, k), generator.standard_normal(k)
    far = float(np.linalg.norm(c / w))
    assert rule(w, c, 1.01 * far) == pytest.approx(-c / w, rel=1e-12)
    assert np.linalg.norm(rule(w, c, 0.7 * far)) == pytest.approx(0.7 * far)


@given(seed=st.integers(0, 10**6), k=st.integers(2, 8), radius=st.sampled_from([0.01, 0.3, 1.0, 10.0]))
def test_the_plane_is_exact(seed, k, radius):
    """Against a search over the circle, for positive and for indefinite models."""
    generator = np.random.default_rng(seed)
    w, c = generator.standard_normal(k), generator.standard_normal(k)
    a, lowest = subspace(w, c, radius), w.min()
    s = c / (w + (1.5 * -lowest if lowest < 0 else 0.0))
    expected = brute(w, c, radius, c, s)
    if lowest < 0:
        expected = max(expected, brute(w, c, radius, s, np.eye(k)[int(np.argmin(w))]))
    assert decrease(w, c, a) >= expected * (1 - 1e-12)
    assert decrease(w, c, a) >= decrease(w, c, dogleg(w, c, radius))
    definite = np.abs(w)
    a = subspace(definite, c, radius)
    assert decrease(definite, c, a) == pytest.approx(brute(definite, c, radius, c, c / definite), rel=1e-6)
    basis = np.stack((c, c / definite), axis=1)
    assert np.linalg.norm(a - basis @ np.linalg.lstsq(basis, a)[0]) <= 1e-8 * radius


@RULES
def test_the_hard_case(rule):
    """The gradient does not see the negative eigenvector; the step does, and goes to the boundary."""
    w, c = np.array([-2.0, 1.0]), np.array([0.0, 3.0])
    a = rule(w, c, 5.0)
    assert np.abs(a) == pytest.approx([np.sqrt(16.0), 3.0] if rule is dogleg else [np.sqrt(24.0), 1.0])
    assert rule(w, np.zeros(2), 5.0).tolist() == [5.0, 0.0]


@RULES
def test_a_flat_direction(rule):
    """A zero eigenvalue is a slope without end where the gradient meets it, and nothing where it does not."""
    w = np.array([0.0, 2.0])
    c = np.array([1.0, 1.0])
    expected = [-np.sqrt(100 - 0.25), -0.5] if rule is dogleg else ball(w, c, 10.0)[0]
    assert rule(w, c, 10.0) == pytest.approx(expected)
    assert rule(w, np.array([0.0, 1.0]), 10.0) == pytest.approx([0.0, -0.5])
    assert rule(np.zeros(2), np.array([3.0, 4.0]), 10.0) == pytest.approx([-6.0, -8.0])
    assert not rule(w, np.zeros(2), 10.0).any()
    assert not rule(np.zeros(2), np.zeros(2), 10.0).any()


@RULES
def test_infinite_eigenvalues_allow_no_step(rule):
    a = rule(np.array([np.inf, -1.0, -np.inf]), np.ones(3), 2.0)
    assert a.tolist() == [0.0, -2.0, 0.0]


@RULES
@pytest.mark.parametrize("unit", [1e-150, 1e150])
@pytest.mark.parametrize("w", [[-1.0, 0.5, 2.0], [0.3, 0.5, 2.0]])
def test_extreme_units(rule, unit, w):
    w, c = np.array(w), np.array([0.1, 1.0, -1.0])
    expected = rule(w, c, 1.5)
    assert rule(unit * w, unit * c, 1.5) == pytest.approx(expected)
    assert rule(w, unit * c, unit * 1.5) / unit == pytest.approx(expected)
