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

Difference = tuple[Tensor, Tensor | None]
"""A vector as the difference of two, which is not made; or just the first."""


def available() -> bool:
    """Whether the passes were built."""
    return _native is not None


def dots(a: Tensor, B: Sequence[Tensor]) -> list[float] | None:
    """The inner products of one vector with those of B."""
    return _native and _native.dots(torch.get_num_threads(), a, B)


def grams(A: Tensor, V: Sequence[Difference], count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """V A' for the first `count` vectors of V, and V V'."""
    r, s = A.shape[0], len(V)
    sums = np.empty(count * r + s * s)
    if _native is None or not _native.products(torch.get_num_threads(), A, V, count, sums):
        return None
    return sums[: count * r].reshape(count, r), sums[count * r :].reshape(s, s)


def combination(c: np.ndarray, A: Tensor, scale: float, v: Tensor, out: Tensor) -> list[float] | None:
    """Write c[0] A[0] + ... + c[r-1] A[r-1] + scale v. The products of that with v and with itself come for nothing.

    The list is empty if they cannot be trusted.
    """
    return _native and _native.combine(torch.get_num_threads(), A, c, scale, v, out)


def scaled_differences(scale: float, triples: Sequence[tuple[Tensor, Tensor, Tensor]]) -> bool | None:
    """Write scale (plus - minus) for each (plus, minus, out)."""
    return _native and _native.differences(torch.get_num_threads(), scale, triples)


def gather(v: Tensor, parts: Sequence[Tensor]) -> bool | None:
    """Write tensors into a vector, one after the other."""
    return _native and _native.gather(torch.get_num_threads(), v, parts)


def scatter(v: Tensor, parts: Sequence[Tensor]) -> bool | None:
    """Write a vector into tensors, one after the other; autograd is not told."""
    return _native and _native.scatter(torch.get_num_threads(), v, parts)


def prefer_large_pages(new: Tensor) -> Tensor:
    """Memory that nobody has written into yet, now with the wish for large pages."""
    if _native is not None:
        _native.prefer_large_pages(new.data_ptr(), new.numel() * new.element_size())
    return new
