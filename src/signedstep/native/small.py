"""Algebra on small matrices in C: one call each, and one thread.

The BLAS of NumPy and SciPy has threads of its own, which wait for the cores that torch's are spinning on, and LAPACK is
made for larger matrices. It is built as the passes are. Where None comes back, because nothing was built, a matrix is
large or something is not finite, `curvature.symmetric` and `curvature.lowrank` do the same with LAPACK.
"""

import numpy as np

try:
    from signedstep.native import _small  # pyright: ignore[reportAttributeAccessIssue]
except ImportError:
    _small = None

MOST_ROWS = 128


def available() -> bool:
    """Whether it was built."""
    return _small is not None


def eigen(A: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenvalues, in their order, and eigenvectors of a symmetric matrix."""
    if _small is None or not _fits(A):
        return None
    w, V = _like(A)
    return (w, V.T) if _small.eigen(_laid(A), w, V) else None


def pencil(P: np.ndarray, M: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """mu and z, in columns, with M z = mu P z and z'P z = 1, if every pivot of P is above its noise."""
    if _small is None or not _fits(P):
        return None
    mu, Z = _like(P)
    return (mu, Z.T) if _small.pencil(_laid(P), _laid(M), _laid(noise), mu, Z) else None


def within(P: np.ndarray, N: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray] | None:
    """The eigenvalues of Psi N Psi' on the range of Psi, from P = Psi'Psi, and z, in columns: eigenvectors are Psi z.

    Columns of Psi that add less than `least` times their number of their square to the others are left out.
    """
    if _small is None or not _fits(P):
        return None
    w, Z = _like(P)
    rank = _small.within(_laid(P), _laid(N), least, w, Z)
    return (w[:rank], Z[:rank].T) if rank >= 0 else None


def inverse(M: np.ndarray) -> tuple[np.ndarray, bool] | None:
    """M^-1 for a symmetric M, and whether it is regular; if not, the part that M cannot see is left out."""
    if _small is None or not _fits(M):
        return None
    _, found = _like(M)
    regular = _small.inverse(_laid(M), found)
    return None if regular is None else (found, regular)


def _fits(A: np.ndarray) -> bool:
    return 0 < len(A) <= MOST_ROWS


def _like(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A vector and a matrix to write into."""
    k = len(A)
    return np.empty(k), np.empty((k, k))


def _laid(A: np.ndarray) -> np.ndarray:
    """The array as C reads it, row after row."""
    return np.ascontiguousarray(A, dtype=np.float64)
