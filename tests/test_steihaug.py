"""Steihaug's conjugate gradients on a spectrum, next to SciPy's with a matrix and to the exact solution."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize._trustregion_ncg import CGSteihaugSubproblem

import signedstep
from signedstep.secular import ball, decrease
from signedstep.steihaug import steihaug

EIGENVALUES = st.lists(
    st.sampled_from([-5.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 1.0, 3.0, 100.0]), min_size=1, max_size=10
).map(np.array)


@given(w=EIGENVALUES, seed=st.integers(0, 10**6), radius=st.sampled_from([1e-6, 0.1, 1.0, 1e3]))
def test_between_the_cauchy_point_and_the_exact_solution(w, seed, radius):
    c = np.random.default_rng(seed).normal(size=len(w))
    a = steihaug(w, c, radius)
    assert np.linalg.norm(a) <= radius * (1 + 1e-12)
    curvature, size = float(c @ (w * c)), float(np.linalg.norm(c))
    t = min(size**2 / curvature, radius / size) if curvature > 0 else radius / size
    cauchy, exact = decrease(w, c, -t * c), decrease(w, c, ball(w, c, radius)[0])
    assert cauchy * (1 - 1e-9) <= decrease(w, c, a) <= exact * (1 + 1e-9)


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 8), radius=st.sampled_from([0.1, 1.0, 10.0]), shift=st.floats(-2, 6)
)
def test_it_is_scipys_in_the_coordinates_of_the_spectrum(seed, n, radius, shift):
    """SciPy's stops at a looser residual within the radius, so those that end there are compared elsewhere."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    B, g = A + A.T + shift * np.eye(n), rng.normal(size=n)
    model = CGSteihaugSubproblem(np.zeros(n), lambda x: 0.0, lambda x: g, lambda x: B)
    p, at_the_boundary = model.solve(radius)
    w, V = np.linalg.eigh(B)
    ours = V @ steihaug(w, V.T @ g, radius)
    if at_the_boundary:
        assert ours == pytest.approx(p, rel=1e-5, abs=1e-6 * radius)


@pytest.mark.parametrize("unit", [1e-150, 1e-8, 1.0, 1e8, 1e150])
def test_inside_the_radius_it_is_newtons_step_in_any_units(unit):
    w, c = np.array([0.5, 2.0, 30.0]), np.array([1.0, -2.0, 0.3])
    assert steihaug(w, unit * c, 100 * unit) == pytest.approx(-unit * c / w, rel=1e-7)
    assert steihaug(unit * w, c, 100 / unit) == pytest.approx(-c / w / unit, rel=1e-7)


def test_the_boundary_is_reached_though_the_gradient_is_tiny():
    a = steihaug(np.array([-1.0, 2.0]), np.array([1e-200, -1e-200]), 3.0)
    assert np.linalg.norm(a) == pytest.approx(3.0)
    assert a[0] < 0


def test_infinite_and_zero_eigenvalues_and_no_gradient():
    assert steihaug(np.array([math.inf, 2.0]), np.array([1.0, 1.0]), 10.0).tolist() == pytest.approx([0.0, -0.5])
    assert steihaug(np.zeros(2), np.array([3.0, 4.0]), 10.0).tolist() == pytest.approx([-6.0, -8.0])
    assert steihaug(np.array([1.0, -1.0]), np.zeros(2), 1.0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("model", ["newton", "newton-cg", "sr1", "lsr1", "bfgs"])
def test_it_solves_with_every_model(model):
    fun = lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()  # noqa: E731
    x0 = torch.tensor([-1.2, 1.0] * 3, dtype=torch.float64)
    result = signedstep.minimize(fun, x0, method=f"{model}/steihaug", options={"maxiter": 300})
    assert result.success
