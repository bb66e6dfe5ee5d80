"""Trust-region and cubic steps as pure functions: their optimality conditions on every kind of spectrum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signedstep.secular import ball, cubic, decrease

SIZES = st.sampled_from([1e-12, 1e-6, 1e-2, 1.0, 1e3, 1e9])


@st.composite
def spectra(draw):
    """Eigenvalues that are clustered, zero, nearly equal or far apart, in any units; coordinates that may vanish."""
    k = draw(st.integers(1, 10))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    centres = generator.standard_normal(3) * 10.0 ** generator.integers(-6, 7, 3)
    centres[generator.random(3) < 0.3] = 0.0
    w = generator.choice(centres, k) * (
        1 + generator.choice([0.0, 1e-15, 1e-9, 1e-3], k) * generator.standard_normal(k)
    )
    if draw(st.booleans()):
        w = np.abs(w)
    c = generator.standard_normal(k) * 10.0 ** generator.integers(-12, 4, k)
    c[generator.random(k) < draw(st.sampled_from([0.0, 0.5, 1.0]))] = 0.0
    if draw(st.booleans()):
        c[w == w.min()] = draw(st.sampled_from([0.0, 0.0, 1e-18, -1e-200]))  # the hard case, and close to it
    return w * draw(SIZES), c * draw(SIZES)


def assert_optimal(w, c, a, multiplier):
    scale = max(np.abs(c).max(), np.abs((w + multiplier) * a).max(), np.abs(w * a).max())
    assert np.isfinite(a).all()
    assert np.abs((w + multiplier) * a + c).max() <= 1e-10 * scale
    assert multiplier >= 0
    assert (w + multiplier).min() >= -1e-14 * np.abs(w).max()


@settings(max_examples=1500)
@given(spectrum=spectra(), radius=SIZES)
def test_ball_satisfies_the_optimality_conditions(spectrum, radius):
    w, c = spectrum
    a, multiplier = ball(w, c, radius)
    length = np.linalg.norm(a)
    assert_optimal(w, c, a, multiplier)
    assert length <= radius * (1 + 1e-10)
    assert multiplier == 0 or length == pytest.approx(radius, rel=1e-10)


@settings(max_examples=1500)
@given(spectrum=spectra(), sigma=SIZES)
def test_cubic_satisfies_the_optimality_conditions(spectrum, sigma):
    w, c = spectrum
    a, multiplier = cubic(w, c, sigma)
    assert_optimal(w, c, a, multiplier)
    assert multiplier == pytest.approx(sigma * np.linalg.norm(a), rel=1e-10)


@given(spectrum=spectra(), radius=SIZES, seed=st.integers(0, 10**6))
def test_no_random_step_is_lower(spectrum, radius, seed):
    """What the conditions promise: a global minimum, of both models."""
    w, c = spectrum
    others = np.random.default_rng(seed).standard_normal((200, len(w)))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    inside, (free, multiplier) = ball(w, c, radius)[0], cubic(w, c, radius)
    sizes = np.linalg.norm(free) * np.linspace(0.5, 2, 200) ** 3
    slack = 1e-9 * (np.abs(c).max() * radius + np.abs(w).max() * radius**2)
    for other, size in zip(others, sizes, strict=True):
        assert decrease(w, c, radius * other) <= decrease(w, c, inside) + slack
        penalised = decrease(w, c, size * other) - radius * size**3 / 3
        ours = decrease(w, c, free) - multiplier * np.linalg.norm(free) ** 2 / 3
        assert penalised <= ours + 1e-9 * (np.abs(c).max() * size + (np.abs(w).max() + multiplier) * size**2)


def test_hard_case():
    """The gradient does not see the lowest eigenvector; the step must, or it ends at a saddle."""
    w, c = np.array([-2.0, 1.0]), np.array([0.0, 3.0])
    a, multiplier = ball(w, c, 5.0)
    assert multiplier == 2
    assert np.abs(a) == pytest.approx([np.sqrt(24.0), 1.0])
    a, multiplier = cubic(w, c, 0.5)
    assert multiplier == 2
    assert np.abs(a) == pytest.approx([np.sqrt(15.0), 1.0])


def test_inside_the_ball_it_is_newtons_step():
    w, c = np.array([0.5, 2.0]), np.array([1.0, -1.0])
    a, multiplier = ball(w, c, 3.0)
    assert multiplier == 0
    assert a == pytest.approx([-2.0, 0.5], rel=1e-15)


def test_nothing_to_do():
    for rule in (ball, cubic):
        a, multiplier = rule(np.array([0.0, 1.0]), np.zeros(2), 2.0)
        assert not a.any()
        assert multiplier == 0


def test_infinite_eigenvalues_allow_no_step():
    """A singular inverse has them."""
    w, c = np.array([np.inf, -1.0, -np.inf]), np.array([1.0, 1.0, 1.0])
    for rule in (ball, cubic):
        a, _ = rule(w, c, 2.0)
        assert a[[0, 2]].tolist() == [0.0, 0.0]
        assert a[1] < 0
        assert np.isfinite(decrease(w, c, a))


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_extreme_units(unit):
    w, c = np.array([-1.0, 0.0, 2.0]), np.array([0.0, 1.0, -1.0])
    expected, _ = ball(w, c, 3.0)
    assert ball(unit * w, unit * c, 3.0)[0] == pytest.approx(expected)
    assert ball(w, unit * c, unit * 3.0)[0] / unit == pytest.approx(expected)
    expected, _ = cubic(w, c, 3.0)
    assert cubic(unit * w, unit * c, unit * 3.0)[0] == pytest.approx(expected)
    assert cubic(w, unit * c, 3.0 / unit)[0] / unit == pytest.approx(expected)


@pytest.mark.parametrize(("w", "c"), [(np.inf, 1.0), (0.0, 0.0), (np.inf, 0.0), (1.0, 0.0)])
def test_nothing_to_do_within_next_to_nothing(w, c):
    """Scales that underflow were divided by."""
    for step, multiplier in (ball(np.array([w]), np.array([c]), 1e-250), cubic(np.array([w]), np.array([c]), 1e250)):
        assert (step.tolist(), multiplier) == ([0.0], 0.0)
