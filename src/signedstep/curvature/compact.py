"""Algebra of compact representations: B = gamma I + Psi M^-1 Psi' with tall Psi and small M, all from Gram matrices."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import get_blas_funcs, get_lapack_funcs

# NumPy's and SciPy's BLAS has a thread pool of its own, and a pool that waits for the cores that torch's pool is
# spinning on costs milliseconds a call. Up to _ONE_THREAD rows it stays in one thread, and is quicker to call than
# torch; above, torch does the work. pstrf and trsv stay in one thread at any size.
_sysv, _syevd, _sygvd, _potrf, _pstrf = get_lapack_funcs(("sysv", "syevd", "sygvd", "potrf", "pstrf"), dtype=np.float64)
(_trsv,) = get_blas_funcs(("trsv",), dtype=np.float64)
_ONE_THREAD = 32

_EPS = float(np.finfo(float).eps)
RANK = 64 * _EPS
"""Relative size of a squared column of Psi, made orthogonal to the others, below which it is rounding."""


class Eigen(NamedTuple):
    """Eigenvalues of B on the range of Psi; the eigenvectors are Psi @ vectors."""

    w: np.ndarray
    vectors: np.ndarray


def solve_upper(R: np.ndarray, b: np.ndarray, transposed: bool = False) -> np.ndarray:
    """R^-1 b or R^-T b for the upper triangle R of a matrix; the rest of it is not read."""
    return _trsv(R.T, b, lower=1, trans=int(not transposed))  # of R.T, which LAPACK can read as it lies


def multiply_below(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """L b for what is below the diagonal of a matrix; the rest of it does not count, but must be finite."""
    return (L * _below(len(L))) @ b


@lru_cache
def _below(k: int) -> np.ndarray:
    """Ones below the diagonal; BLAS would do without, but its product with a triangle starts threads at any size."""
    return np.tril(np.ones((k, k)), -1)


def eigen(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    if len(T) <= _ONE_THREAD:
        return _syevd(T)[:2]
    w, V = torch.linalg.eigh(torch.from_numpy(T))
    return w.numpy(), V.numpy()


def invert(M: np.ndarray) -> tuple[np.ndarray, bool]:
    """M^-1 for a symmetric, indefinite M, and whether it is regular; if not, the part that M cannot see is left out."""
    size = np.sqrt(np.abs(M).max(axis=0))
    size[size == 0] = 1.0
    scale = np.outer(size, size)  # so that "nearly singular" does not mean "badly scaled"
    scaled = M / scale
    inverse, info = _inverse(scaled)
    regular = not info and bool(np.abs(inverse).max() < 1 / (64 * _EPS))  # the largest entry of `scaled` is 1
    if not regular:
        e, V = eigen(scaled)
        seen = np.abs(e) > _EPS**0.75 * np.abs(e).max()
        inverse = _product(V[:, seen] / e[seen], V[:, seen].T)
    return inverse / scale, regular


def _inverse(M: np.ndarray) -> tuple[np.ndarray, int]:
    if len(M) <= _ONE_THREAD:
        _, _, inverse, info = _sysv(M, np.eye(len(M)), lower=1)
        return inverse, info
    inverse, info = torch.linalg.inv_ex(torch.from_numpy(M))
    return inverse.numpy(), int(info)


def positive(eigen: Eigen, gamma: float) -> Eigen:
    """Eigen of a positive definite matrix, the rest of which is gamma: what is less than rounding came out of it."""
    return eigen._replace(w=np.maximum(eigen.w, _EPS * eigen.w.max(initial=gamma)))


def diagonalise(gamma: float, PsiPsi: np.ndarray, M_inverse: np.ndarray, least: float = RANK) -> Eigen:
    """The eigenvalues of B other than gamma (Brust, Erway and Marcia's partial decomposition, from Gram matrices).

    A pivoted Cholesky factorisation Psi'Psi = R'R finds an orthonormal basis Q = Psi R^-1 of the range, and
    Q'B Q = gamma I + R M^-1 R'. Psi may be rank deficient: columns that add nothing new, less than `least` times their
    number of their square, are left out of the basis.
    """
    k = len(PsiPsi)
    norms = np.sqrt(PsiPsi.diagonal())
    norms[~(norms > 0)] = 1.0
    scale = np.outer(norms, norms)
    U, pivots, rank, _ = _pstrf(PsiPsi / scale, tol=least * k)
    pivots = pivots - 1
    R = np.triu(U[:rank])
    w, V = eigen(_product(_product(R, (M_inverse * scale)[pivots[:, None], pivots]), R.T))
    vectors = np.zeros((k, rank))
    vectors[pivots[:rank]] = _solve(R[:, :rank], V)
    return Eigen(gamma + w, vectors / norms[:, None])


def pencil(gamma: float, PsiPsi: np.ndarray, M: np.ndarray, noise: np.ndarray, n: int) -> Eigen:
    """The same from M itself, which may be singular: if M z = mu Psi'Psi z, Psi z is an eigenvector to gamma + 1/mu.

    A quarter of the work, but Psi must have full rank: no more columns than n rows, and each column, made orthogonal
    to those before it, must have a square above its `noise`, what rounding leaves in the diagonal of Psi'Psi. Nor is it
    for L-BFGS, many of whose eigenvalues are next to gamma: their mu are so large that others drown in their rounding.
    """
    if len(M) <= min(n, _ONE_THREAD):
        R, info = _potrf(PsiPsi)
        if not info and (R.diagonal() ** 2 > noise).all():
            mu, vectors, info = _sygvd(M, PsiPsi)
            if not info:
                return Eigen(gamma + 1 / mu, vectors)
    squares = PsiPsi.diagonal()
    seen = squares > noise
    least = float((noise[seen] / squares[seen]).max(initial=RANK))
    return diagonalise(gamma, PsiPsi * np.outer(seen, seen), invert(M)[0], least)


def _product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    if len(A) <= _ONE_THREAD:
        return A @ B
    return torch.mm(torch.from_numpy(A), torch.from_numpy(B)).numpy()


def _solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    if len(A) <= _ONE_THREAD:
        return np.linalg.solve(A, B)
    return torch.linalg.solve(torch.from_numpy(A), torch.from_numpy(B)).numpy()
