"""Algebra on small matrices, in C and with LAPACK, against NumPy's dense matrices."""

import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from signedstep.curvature.lowrank import RANK, diagonalise, pencil
from signedstep.curvature.symmetric import eigen, invert, solve_upper
from signedstep.native import small

EPS = np.finfo(float).eps
SIZES = [1, 2, 3, 7, 8, 9, 20, 30, 31, 50, 100, 128, 140]
built = pytest.mark.skipif(not small.available(), reason="it was not built: is there a C compiler?")


@pytest.fixture(params=[pytest.param("c", marks=built), "lapack"])
def implementation(request, monkeypatch):
    """What was built, or what is used without it."""
    if request.param == "lapack":
        monkeypatch.setattr(small, "_small", None)


both = pytest.mark.usefixtures("implementation")


def symmetric(k: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).standard_normal((k, k))
    return A + A.T


def graded(k: int, decades: float) -> np.ndarray:
    """Entries that grow by this many powers of ten from corner to corner."""
    size = 10 ** np.linspace(0, decades / 2, k)
    return symmetric(k) * np.outer(size, size)


def assert_eigen(A: np.ndarray, w: np.ndarray, V: np.ndarray) -> None:
    """As exact as rounding allows, for matrices of any scale."""
    k, size = len(A), np.abs(A).max() or 1.0
    assert np.abs(V.T @ V - np.eye(k)).max() <= 20 * k * EPS
    assert np.abs(A / size @ V - V * (w / size)).max() <= 20 * k * EPS
    assert (np.diff(w) >= 0).all()


@both
@pytest.mark.parametrize("k", SIZES)
def test_eigen(k):
    A = symmetric(k)
    assert_eigen(A, *eigen(A))


@both
@pytest.mark.parametrize(
    "A",
    [
        np.zeros((5, 5)),
        np.eye(6),
        np.diag([3.0, -1.0, 2.0, 0.0]),
        np.ones((9, 9)),
        np.kron(np.eye(4), [[0.0, 1.0], [1.0, 0.0]]),
        np.diag(np.ones(20), 1) + np.diag(np.ones(20), -1),  # Wilkinson's: pairs of eigenvalues that nearly agree
        np.diag(np.abs(np.arange(-10.0, 11))) + np.diag(np.ones(20), 1) + np.diag(np.ones(20), -1),
        symmetric(12) * 1e300,
        symmetric(12) * 1e-300,
        graded(20, 30),
        graded(20, 30)[::-1, ::-1],
        graded(20, -30),
    ],
    ids=lambda A: f"{len(A)}",
)
def test_eigen_of_strange_matrices(A):
    assert_eigen(A, *eigen(A))


@both
@given(k=st.integers(1, 40), rank=st.integers(0, 40), seed=st.integers(0, 10**6), decades=st.floats(-20, 20))
@settings(max_examples=100)
def test_eigen_of_what_has_no_full_rank(k, rank, seed, decades):
    random = np.random.default_rng(seed)
    half = random.standard_normal((k, rank)) * 10 ** np.linspace(0, decades, rank)
    A = half * random.choice([-1.0, 1.0], rank) @ half.T
    A = A + A.T
    assert_eigen(A, *eigen(A))


@built
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_not_answered(bad):
    for place in ((0, 0), (1, 3), (3, 1)):
        A = symmetric(4)
        A[place] = bad
        assert small.eigen(A) is None
        assert small.inverse(A) is None
        assert small.within(np.eye(4), A, RANK) is None
        assert small.pencil(np.eye(4), A, np.zeros(4)) is None
    A = np.eye(4)
    A[2, 2] = bad
    assert small.pencil(A, np.eye(4), np.zeros(4)) is None


@both
@pytest.mark.parametrize("k", SIZES)
def test_inverse(k):
    A = symmetric(k) + 3 * k**0.5 * np.diag((-1.0) ** np.arange(k))
    inverse, regular = invert(A)
    assert regular
    assert np.abs(inverse @ A - np.eye(k)).max() < 1e-12 * k
    assert inverse == pytest.approx(inverse.T, rel=1e-10)


@both
def test_bad_scales_do_not_make_a_matrix_singular():
    blocks = [10.0**power * symmetric(3, seed) for seed, power in enumerate((-90, -9, 0, 60))]
    inverse, regular = invert(scipy.linalg.block_diag(*blocks))
    assert regular
    exact = scipy.linalg.block_diag(*[np.linalg.inv(block) for block in blocks])
    assert inverse == pytest.approx(exact, rel=1e-10, abs=0)


@both
@pytest.mark.parametrize("k", [1, 2, 4, 16, 32])
def test_what_a_singular_matrix_cannot_see_is_left_out(k):
    """M = V D V' with a zero in D; with Hadamard's V all rows of M have the same size."""
    V, d = scipy.linalg.hadamard(k) / k**0.5, np.linspace(0, 2, k) * (-1.0) ** np.arange(k)
    inverse, regular = invert((V * d) @ V.T)
    assert not regular
    assert inverse == pytest.approx((V[:, 1:] / d[1:]) @ V[:, 1:].T, abs=1e-10)


@both
@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("gamma", [0.1, 5.0])
def test_the_pencil_and_the_range_are_the_dense_matrix(k, gamma):
    random = np.random.default_rng(k)
    Psi, M = random.standard_normal((150, k)), symmetric(k) + 3 * k**0.5 * np.diag((-1.0) ** np.arange(k))
    B = gamma * np.eye(150) + Psi @ np.linalg.inv(M) @ Psi.T
    for w, Z in (pencil(gamma, Psi.T @ Psi, M, np.zeros(k), 150), diagonalise(gamma, Psi.T @ Psi, invert(M)[0])):
        vectors = Psi @ Z
        assert np.abs(vectors.T @ vectors - np.eye(k)).max() < 1e-10
        assert np.abs(B @ vectors - vectors * w).max() < 1e-10 * np.abs(B).max()


@both
@given(k=st.integers(1, 12), rank=st.integers(0, 12), seed=st.integers(0, 10**6), decades=st.floats(0, 8))
@settings(max_examples=100)
def test_columns_that_add_nothing_are_left_out(k, rank, seed, decades):
    """Psi of any rank, its columns of different sizes."""
    random = np.random.default_rng(seed)
    Psi = random.standard_normal((15, rank)) @ random.standard_normal((rank, k)) * 10 ** np.linspace(0, decades, k)
    N = symmetric(k, seed) / 10 ** np.add.outer(np.linspace(0, decades, k), np.linspace(0, decades, k))
    w, Z = diagonalise(1.0, Psi.T @ Psi, N, 1e-9)
    B, vectors = np.eye(15) + Psi @ N @ Psi.T, Psi @ Z
    assert Z.shape == (k, min(k, rank))
    assert np.abs(vectors.T @ vectors - np.eye(len(w))).max(initial=0) < 1e-6
    assert np.abs(B @ vectors - vectors * w).max(initial=0) < 1e-6 * np.abs(B).max()


@both
def test_a_pivot_below_its_noise_is_no_part_of_the_range():
    """The second column is the first and 1e-9 of something new, which noise of 1e-12 in squares hides."""
    P, M = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-18]]), np.diag([1.0, 2.0])
    w, Z = pencil(1.0, P, M, np.full(2, 1e-12), 5)
    assert w == pytest.approx([2.5])
    assert Z.shape == (2, 1)


@built
def test_sizes_that_are_left_to_others():
    for k in (0, small.MOST_ROWS + 1):
        A = np.eye(k)
        assert small.eigen(A) is small.inverse(A) is small.within(A, A, RANK) is small.pencil(A, A, np.ones(k)) is None


@built
def test_arrays_that_do_not_fit_are_refused():
    """The C looks at lengths; what it is handed by `small` always fits."""
    A, w, V = np.eye(3), np.empty(3), np.empty((3, 3))
    for args in [(A, w), (A, w, w), (A, V, V), (A[:2], w, V), (np.eye(3, dtype=np.float32), w, V), (3, w, V), ()]:
        with pytest.raises((ValueError, TypeError)):
            small._small.eigen(*args)
    with pytest.raises((BufferError, ValueError)):
        small._small.eigen(np.eye(6)[::2, ::2], w, V)
    with pytest.raises(TypeError):
        small._small.within(A, A, "least", w, V)
    V.flags.writeable = False
    with pytest.raises((BufferError, ValueError)):
        small._small.eigen(A, w, V)


@both
def test_a_matrix_need_not_lie_row_after_row():
    A = symmetric(8)
    w, V = eigen(A)
    for laid in (np.asfortranarray(A), np.kron(A, np.ones((2, 2)))[::2, ::2]):
        found, vectors = eigen(laid)
        assert found == pytest.approx(w)
        assert np.abs(vectors) == pytest.approx(np.abs(V), abs=1e-12)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("k", [1, 2, 20, 30, 31, 60])
def test_triangles_are_solved_for_one_vector_and_for_rows_of_them(k, transposed):
    rng = np.random.default_rng(k)
    R = rng.standard_normal((k, k)) / k + 2 * np.eye(k)  # what is below the diagonal must not be read
    b = rng.standard_normal((2 * k, k))
    expected = scipy.linalg.solve_triangular(R, b.T, trans=int(transposed)).T
    np.testing.assert_allclose(solve_upper(R, b, transposed), expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(solve_upper(R, b[0], transposed), expected[0], rtol=0, atol=1e-13)
