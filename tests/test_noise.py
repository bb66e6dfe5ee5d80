"""Noise in values of f: it is as large as rounding until it shows, and then the slopes are believed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signedstep import minimize
from signedstep.linesearch import Wolfe
from signedstep.noise import Noise

EPS = 2.0**-52


def test_differences_above_rounding_are_believed():
    assert Noise(1.0, 8 * EPS).change(1.0 - 1e-9, -2e-9, 0.0) == (pytest.approx(-1e-9), False)


def test_differences_below_rounding_are_taken_from_the_slopes():
    assert Noise(1.0, 8 * EPS).change(1.0 + EPS, -2e-16, 0.0) == (-1e-16, True)


def test_a_rise_along_a_straight_descent_is_noise():
    noise = Noise(7.3, 8 * EPS)
    assert noise.change(7.3 + 4e-13, -2e-14, -2e-14) == (-2e-14, True)
    assert noise.level == pytest.approx(8.4e-13, rel=1e-2)
    assert noise.change(7.3 + 6e-13, -1e-13, 0.0) == (-5e-14, True), "what has shown is remembered"


def test_a_rise_that_the_slopes_explain_is_no_noise():
    noise = Noise(7.3, 8 * EPS)
    change, drowned = noise.change(7.3 + 4e-13, -2e-14, 8e-13)
    assert change == pytest.approx(4e-13, rel=1e-2)
    assert not drowned


def test_a_large_rise_is_believed_whatever_the_slopes_say():
    """As where a user's gradient is wrong: then values count."""
    assert Noise(7.3, 8 * EPS).change(8.3, -1.0, -1.0) == (pytest.approx(1.0), False)


@given(
    f0=st.floats(-1e6, 1e6),
    slope=st.floats(-1e6, -1e-6),
    bend=st.floats(0, 1e6),
    t=st.floats(1e-6, 10),
)
def test_the_change_of_a_parabola_is_right_to_rounding(f0, slope, bend, t):
    """Whether it is believed or taken from the slopes, for which parabolas have the right difference."""
    change = t * (slope + 0.5 * bend * t)
    found, _ = Noise(f0, 8 * EPS).change(f0 + change, t * slope, t * (slope + bend * t))
    assert found == pytest.approx(change, rel=1e-9, abs=64 * EPS * (abs(f0) + abs(change)))


def noisy(t: float) -> tuple[float, float]:
    """A descent of 1e-14 a unit, up to a minimum at 1e6, under noise of some hundred units in the last place."""
    return 7.3 + 1e-14 * t * (t / 2e6 - 1) + 5e-13 * (1 + math.sin(1e5 * t)), 1e-14 * (t / 1e6 - 1)


@pytest.mark.parametrize("t0", [1e-3, 1.0, 1e3])
def test_a_search_goes_down_a_slope_below_the_noise(t0):
    f0, slope0 = 7.3, -1e-14
    found = Wolfe()(noisy, f0, slope0, t0)
    assert found.ok
    assert found.t > 1e5
    assert found.evals <= 16


@pytest.mark.parametrize("method", ["mix", "lbfgs", "bfgs"])
def test_a_fit_is_not_stopped_by_the_noise_of_its_sum(method):
    """NIST's Misra1b from its first start, with its certified sum of squares.

    The steep direction is found at once. Along the flat one f falls by less than the noise of the sum at first.
    """
    y = np.array([10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78])
    x = np.array([77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0])

    def fun(b: np.ndarray) -> tuple[float, np.ndarray]:
        base = 1 + b[1] * x / 2
        left = b[0] * (1 - base**-2) - y
        return left @ left, 2 * np.array([left @ (1 - base**-2), left @ (b[0] * x * base**-3)])

    result = minimize(fun, np.array([500.0, 1e-4]), jac=True, method=method, options={"maxfun": 300, "gtol": 0})
    assert result.fun == pytest.approx(7.5464681533e-02, rel=1e-6)


def test_a_difference_that_slopes_predict_to_be_large_shows_no_noise():
    """As between two crests of a wave, where slopes are alike and f is too."""
    noise = Noise(1.0, 8 * 2.0**-23)
    before = noise.level
    assert noise.change(1.0005, -5.0, -5.0) == (pytest.approx(5e-4), False)
    assert noise.level == before
    assert noise.change(1.9, -1.0, -0.5) == (pytest.approx(0.9), False)


def test_a_value_of_zero_that_stays_is_no_rise():
    """Losses underflow: then there is no difference to measure noise by."""
    assert Noise(0.0, 8 * EPS).change(0.0, -1e-44, -1e-44) == (-1e-44, True)
    assert Noise(0.0, 8 * EPS).change(1e-44, -1e-44, -1e-44) == (1e-44, False)


@given(
    f0=st.floats(0.1, 1e6),
    steps=st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=5),
)
def test_the_noise_is_never_more_than_the_root_of_rounding(f0, steps):
    noise = Noise(f0, 8 * EPS)
    for change, start, end in steps:
        noise.change(f0 + change * f0 * 1e-7, start * f0 * 1e-7, end * f0 * 1e-7)
    assert noise.level <= math.sqrt(8 * EPS) * f0


@pytest.mark.parametrize("method", ["auto", "lbfgs", "lsr1", "bfgs", "gd"])
def test_no_wave_is_taken_for_noise(method):
    def wave(x):
        return 1.5 + np.sin(2 * np.pi * x).sum(), 2 * np.pi * np.cos(2 * np.pi * x)

    result = minimize(wave, np.array([0.6]), jac=True, method=method)
    assert result.success
    assert (np.diff([result.history.f0, *result.history.f]) < 1e-12).all()
    assert result.fun == pytest.approx(0.5)
