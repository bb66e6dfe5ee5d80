"""Algebra of compact representations: B = gamma I + Psi M^-1 Psi' with tall Psi and small M, all from Gram matrices."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs

# LAPACK itself: at these sizes SciPy's checks would cost more than the algebra.
_sysv, _sycon, _pstrf, _trtrs = get_lapack_funcs(("sysv", "sycon", "pstrf", "trtrs"), dtype=np.float64)

_EPS = float(np.finfo(float).eps)
_RANK = 64 * _EPS
"""Relative size of a squared column of Psi, made orthogonal to the others, below which it is rounding."""


class Eigen(NamedTuple):
    """Eigenvalues of B on the range of Psi; the eigenvectors are Psi @ vectors."""

    w: np.ndarray
    vectors: np.ndarray


def solve_upper(R: np.ndarray, b: np.ndarray, transposed: bool = False) -> np.ndarray:
    """R^-1 b or R^-T b for the upper triangle R of a matrix; the rest of it is not read."""
    return _trtrs(R, b, trans=int(transposed))[0]


def solve_symmetric(M: np.ndarray, b: np.ndarray) -> np.ndarray:
    """M^-1 b for a symmetric, indefinite and perhaps singular M; combinations M cannot see are left out."""
    if not len(M):
        return np.zeros_like(b)
    size = np.sqrt(np.abs(M).max(axis=0))[:, None]
    size[size == 0] = 1.0
    scaled = M / (size * size.T)  # so that "nearly singular" does not mean "badly scaled"
    right = b.reshape(len(M), -1) / size
    factors, pivots, x, info = _sysv(scaled, right, lower=1)
    if info == 0:
        rcond, _ = _sycon(factors, pivots, np.abs(scaled).sum(axis=0).max(), lower=1)
        info = int(rcond < 16 * _EPS)
    if info != 0:
        e, V = np.linalg.eigh(scaled)
        seen = np.abs(e) > _EPS**0.75 * np.abs(e).max()
        x = V[:, seen] @ ((V[:, seen].T @ right) / e[seen, None])
    return (x / size).reshape(b.shape)


def diagonalise(gamma: float, PsiPsi: np.ndarray, M: np.ndarray) -> Eigen:
    """The eigenvalues of B other than gamma (Brust, Erway and Marcia's partial decomposition, from Gram matrices).

    A pivoted Cholesky factorisation Psi'Psi = R'R finds an orthonormal basis Q = Psi R^-1 of the range, and
    Q'B Q = gamma I + R M^-1 R'. Psi may be rank deficient: columns that add nothing new are left out of the basis.
    """
    k = len(PsiPsi)
    norms = np.sqrt(np.maximum(np.diag(PsiPsi), 0.0))
    norms[norms == 0] = 1.0
    U, pivots, rank, _ = _pstrf(PsiPsi / np.outer(norms, norms), tol=_RANK * k, lower=0)
    pivots = pivots - 1
    R = np.zeros((rank, k))
    R[:, pivots] = np.triu(U[:rank])
    R *= norms
    T = R @ solve_symmetric(M, np.ascontiguousarray(R.T))
    w, V = np.linalg.eigh(0.5 * (T + T.T))
    basis = solve_upper(U[:rank, :rank], V)
    vectors = np.zeros((k, rank))
    vectors[pivots[:rank]] = basis / norms[pivots[:rank], None]
    return Eigen(gamma + w, vectors)
