"""The rules of `spectrum` as pure functions of eigenvalues and coordinates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from signedstep.spectrum import clip, damp, flip, newton

numbers = st.floats(-1e6, 1e6).map(lambda x: 0.0 if abs(x) < 1e-30 else x)
spectra = st.integers(1, 8).flatmap(
    lambda k: st.tuples(arrays(float, k, elements=numbers), arrays(float, k, elements=numbers))
)
floors = st.sampled_from([1e-3, 1e-8, 1e-14])


@pytest.mark.parametrize("rule", [flip, clip, damp])
@given(spectrum=spectra, floor=floors)
def test_modified_directions_point_downhill(rule, spectrum, floor):
    """Even for singular, negative and zero spectra; only a vanishing gradient gives no descent."""
    w, c = spectrum
    a = rule(w, c, floor)
    assert np.isfinite(a).all()
    assert c @ a <= 0
    assert (c @ a < 0) == (np.abs(c * a).max() > 0)


@pytest.mark.parametrize("rule", [flip, clip, damp])
def test_positive_definite_spectra_are_left_alone(rule):
    w, c = np.array([0.5, 1.0, 40.0]), np.array([1.0, -2.0, 3.0])
    assert rule(w, c, 1e-3) == pytest.approx(newton(w, c))


def test_each_rule_on_a_negative_eigenvalue():
    w, c = np.array([-2.0, 4.0]), np.array([1.0, 1.0])
    assert newton(w, c) == pytest.approx([0.5, -0.25])
    assert flip(w, c, 1e-3) == pytest.approx([-0.5, -0.25])
    assert clip(w, c, 0.01) == pytest.approx([-25.0, -0.25])
    assert damp(w, c, 0.01) == pytest.approx([-25.0, -1 / 6.04])


@given(spectrum=spectra, floor=st.sampled_from([1e-2, 1e-5]), scale=st.sampled_from([1e-20, 1e-3, 1e15]))
def test_rules_do_not_care_for_units(spectrum, floor, scale):
    w, c = spectrum
    for rule in (flip, clip, damp):
        expected = rule(w, c, floor) if w.any() else rule(w, scale * c, floor)
        assert rule(scale * w, scale * c, floor) == pytest.approx(expected, rel=1e-6, abs=0)


def test_damping_without_a_floor_divides_by_no_zero():
    with np.errstate(all="raise"):
        a = damp(np.array([-3.0, 1.0]), np.array([1e-300, 1.0]), 0.0)
    assert np.isfinite(a).all()
