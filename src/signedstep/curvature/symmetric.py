"""Algebra on small matrices, most of them symmetric, in float64 on the host."""

from functools import lru_cache

import numpy as np
import torch
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from signedstep.native import small

# What `small` leaves to others: SciPy's BLAS has a thread pool of its own, and a pool that waits for the cores that
# torch's pool is spinning on costs milliseconds a call. Up to ONE_THREAD rows it stays in one thread, and is quicker to
# call than torch; above, torch does the work. trsv stays in one thread at any size.
ONE_THREAD = 30
_sysv, _syevd = get_lapack_funcs(("sysv", "syevd"), dtype=np.float64)
_trsv, _trsm = get_blas_funcs(("trsv", "trsm"), dtype=np.float64)
EPS = float(np.finfo(float).eps)


def solve_upper(R: np.ndarray, b: np.ndarray, transposed: bool = False) -> np.ndarray:
    """R^-1 b or R^-T b, of each row if b is a matrix, for the upper triangle R of one; the rest of R is not read."""
    if b.ndim == 1:
        return _trsv(R.T, b, lower=1, trans=int(not transposed))  # of R.T, which LAPACK can read as it lies
    if len(R) <= ONE_THREAD:
        return _trsm(1.0, R.T, b.T, lower=1, trans_a=int(not transposed)).T
    left, right = torch.from_numpy(R.T if transposed else R), torch.from_numpy(b.T)
    return torch.linalg.solve_triangular(left, right, upper=not transposed).numpy().T


def multiply_below(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """L b for what is below the diagonal of a matrix; the rest of it does not count, but must be finite."""
    return (L * _below(len(L))) @ b


@lru_cache
def _below(k: int) -> np.ndarray:
    """Ones below the diagonal; BLAS would do without, but its product with a triangle starts threads at any size."""
    return np.tril(np.ones((k, k)), -1)


def eigen(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, in their order, and eigenvectors of a symmetric matrix."""
    found = small.eigen(T)
    if found is not None:
        return found
    if len(T) <= ONE_THREAD:
        return _syevd(T)[:2]
    w, V = torch.linalg.eigh(torch.from_numpy(T))
    return w.numpy(), V.numpy()


def invert(M: np.ndarray) -> tuple[np.ndarray, bool]:
    """M^-1 for a symmetric, indefinite M, and whether it is regular; if not, the part that M cannot see is left out."""
    found = small.inverse(M)
    if found is not None:
        return found
    size = np.sqrt(np.abs(M).max(axis=0))
    size[size == 0] = 1.0
    scale = np.outer(size, size)  # so that "nearly singular" does not mean "badly scaled"
    scaled = M / scale
    inverse, info = _inverse(scaled)
    regular = not info and bool(np.abs(inverse).max() < 1 / (64 * EPS))  # the largest entry of `scaled` is 1
    if not regular:
        e, V = eigen(scaled)
        kept = np.abs(e) > EPS**0.75 * np.abs(e).max()
        inverse = product(V[:, kept] / e[kept], V[:, kept].T)
    return inverse / scale, regular


def _inverse(M: np.ndarray) -> tuple[np.ndarray, int]:
    if len(M) <= ONE_THREAD:
        _, _, inverse, info = _sysv(M, np.eye(len(M)), lower=1)
        return inverse, info
    inverse, info = torch.linalg.inv_ex(torch.from_numpy(M))
    return inverse.numpy(), int(info)


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B."""
    if len(A) <= ONE_THREAD:
        return A @ B
    return torch.mm(torch.from_numpy(A), torch.from_numpy(B)).numpy()


def solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A^-1 B."""
    if len(A) <= ONE_THREAD:
        return np.linalg.solve(A, B)
    return torch.linalg.solve(torch.from_numpy(A), torch.from_numpy(B)).numpy()
