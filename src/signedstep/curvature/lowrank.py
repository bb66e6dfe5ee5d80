"""B = gamma I + Psi M^-1 Psi', a multiple of the identity and a matrix of low rank, diagonalised from Gram matrices."""

from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import get_lapack_funcs

from signedstep.curvature.symmetric import EPS, ONE_THREAD, eigen, invert, product, solve
from signedstep.native import small
from signedstep.rounding import UNITS

_sygvd, _potrf, _pstrf = get_lapack_funcs(("sygvd", "potrf", "pstrf"), dtype=np.float64)  # pstrf has no threads

RANK = 64 * EPS
"""Relative size of a squared column of Psi, made orthogonal to the others, below which it is rounding in float64."""


def rank_threshold(dtype: torch.dtype) -> float:
    """`RANK` for Gram matrices of vectors in some precision, whose products carry its rounding."""
    return RANK if dtype == torch.float64 else UNITS * torch.finfo(dtype).eps


class Eigen(NamedTuple):
    """Eigenvalues of B on the range of Psi; the eigenvectors are Psi @ vectors."""

    w: np.ndarray
    vectors: np.ndarray


def positive(known: Eigen, gamma: float) -> Eigen:
    """Eigen of a positive definite matrix, the rest of which is gamma: what is less than rounding came out of it."""
    return known._replace(w=np.maximum(known.w, EPS * known.w.max(initial=gamma)))


def diagonalise(gamma: float, PsiPsi: np.ndarray, M_inverse: np.ndarray, least: float = RANK) -> Eigen:
    """The eigenvalues of B other than gamma (Brust, Erway and Marcia's partial decomposition, from Gram matrices).

    A pivoted Cholesky factorisation Psi'Psi = R'R finds an orthonormal basis Q = Psi R^-1 of the range, and
    Q'B Q = gamma I + R M^-1 R'. Psi may be rank deficient: columns that add nothing new, less than `least` times their
    number of their square, are left out of the basis.
    """
    found = small.within(PsiPsi, M_inverse, least)
    if found is not None:
        return Eigen(gamma + found[0], found[1])
    k = len(PsiPsi)
    norms = np.sqrt(PsiPsi.diagonal())
    norms[~(norms > 0)] = 1.0
    scale = np.outer(norms, norms)
    U, pivots, rank, _ = _pstrf(PsiPsi / scale, tol=least * k)
    pivots = pivots - 1
    R = np.triu(U[:rank])
    w, V = eigen(product(product(R, (M_inverse * scale)[pivots[:, None], pivots]), R.T))
    vectors = np.zeros((k, rank))
    vectors[pivots[:rank]] = solve(R[:, :rank], V)
    return Eigen(gamma + w, vectors / norms[:, None])


def pencil(gamma: float, PsiPsi: np.ndarray, M: np.ndarray, noise: np.ndarray, n: int) -> Eigen:
    """`diagonalise` from M itself, which may be singular: M z = mu Psi'Psi z makes Psi z an eigenvector.

    Its eigenvalue is gamma + 1/mu. A quarter of the work, but Psi must have full rank: no more columns than n rows, and
    each column, made orthogonal to those before it, must have a square above its `noise`, what rounding leaves in the
    diagonal of Psi'Psi. Nor is it for L-BFGS, many of whose eigenvalues are next to gamma: their mu are so large that
    others drown in their rounding.
    """
    found = small.pencil(PsiPsi, M, noise) if len(M) <= n else None
    if found is not None:
        return Eigen(gamma + 1 / found[0], found[1])
    if len(M) <= min(n, ONE_THREAD):
        R, info = _potrf(PsiPsi)
        if not info and (R.diagonal() ** 2 > noise).all():
            mu, vectors, info = _sygvd(M, PsiPsi)
            if not info:
                return Eigen(gamma + 1 / mu, vectors)
    squares = PsiPsi.diagonal()
    seen = squares > noise
    least = float((noise[seen] / squares[seen]).max(initial=RANK))
    return diagonalise(gamma, PsiPsi * np.outer(seen, seen), invert(M)[0], least)
