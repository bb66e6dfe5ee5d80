"""Passes over long vectors in C, several times as fast as calls of torch: one call each, and every number is read once.

They are built when the package is installed, if there is a compiler. `sums` asks here first; where None comes back,
because nothing was built, vectors are not in plain memory or sums have left the range of float32, torch does the same.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

try:
    from signedstep.native import _native  # pyright: ignore[reportAttributeAccessIssue]
except ImportError:
    _native = None

MOST_VECTORS, MOST_DIFFERENCES = 4, 2
"""How many vectors one pass takes, and how many of them may have to be made."""
_BYTES = {torch.float32: 4, torch.float64: 8}

Difference = tuple[Tensor, Tensor | None]
"""A vector as the difference of two, which is not made; or just the first."""


def available() -> bool:
    """Whether the passes were built."""
    return _native is not None


def dots(a: Tensor, B: Sequence[Tensor]) -> list[float] | None:
    """The inner products of one vector with those of B."""
    if _native is None or len(B) > MOST_VECTORS or not _readable(a.dtype, a.numel(), (a, *B)):
        return None
    return _native.dots(*_kind(a), a.data_ptr(), *[b.data_ptr() for b in B])


def grams(A: Tensor, V: Sequence[Difference], count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """V A' for the first `count` vectors of V, and V V'."""
    r, n = A.shape
    ends = [end for difference in V for end in difference if end is not None]
    fits = count <= len(V) <= MOST_VECTORS and len(ends) - len(V) <= MOST_DIFFERENCES
    if _native is None or not (fits and _readable(A.dtype, A.numel(), (A,)) and _readable(A.dtype, n, ends)):
        return None
    addresses = tuple([0 if end is None else end.data_ptr() for difference in V for end in difference])
    sums = np.empty(count * r + len(V) ** 2)
    if not _native.products(*_kind(V[0][0]), A.data_ptr(), n * _BYTES[A.dtype], r, addresses, count, sums):
        return None
    return sums[: count * r].reshape(count, r), sums[count * r :].reshape(len(V), len(V))


def combination(c: np.ndarray, A: Tensor, scale: float, v: Tensor, out: Tensor | None = None) -> Tensor | None:
    """The vector c[0] A[0] + ... + c[r-1] A[r-1] + scale v, in `out` if that is given."""
    r, n = A.shape
    vectors = (v,) if out is None else (v, out)
    if _native is None or not (_readable(A.dtype, A.numel(), (A,)) and _readable(A.dtype, n, vectors)):
        return None
    if c.shape != (r,) or c.dtype != np.float64 or not c.flags.c_contiguous:
        return None
    if out is None:
        out = torch.empty_like(v)
    _native.combine(*_kind(v), A.data_ptr(), n * _BYTES[A.dtype], r, c, scale, v.data_ptr(), out.data_ptr())
    return out


def scaled_difference(plus: Tensor, minus: Tensor, scale: float, out: Tensor) -> Tensor | None:
    """Write scale (plus - minus)."""
    if _native is None or not _readable(out.dtype, out.numel(), (plus, minus, out)):
        return None
    _native.difference(*_kind(out), plus.data_ptr(), minus.data_ptr(), scale, out.data_ptr())
    return out


def prefer_large_pages(new: Tensor) -> Tensor:
    """Memory that nobody has written into yet, now with the wish for large pages."""
    if _native is not None:
        _native.prefer_large_pages(new.data_ptr(), new.numel() * new.element_size())
    return new


def _readable(dtype: torch.dtype, n: int, vectors: Sequence[Tensor]) -> bool:
    """Whether these are n numbers each, one after the other in memory, in a precision that was compiled.

    Zeros that autograd has not made yet have no memory.
    """
    if dtype not in _BYTES:
        return False
    for v in vectors:  # half the time of `all`
        if v.dtype is not dtype or v.numel() != n or not (v.is_cpu and v.is_contiguous()):
            return False
        if v.is_neg() or v._is_zerotensor():
            return False
    return True


def _kind(v: Tensor) -> tuple[bool, int, int]:
    """What every pass is told first: the precision, how long vectors are and how many threads may share the work."""
    return v.dtype is torch.float32, v.numel(), torch.get_num_threads()
