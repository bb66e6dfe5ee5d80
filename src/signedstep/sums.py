"""Sums over long vectors: exact enough for every decision, in as few passes as possible.

Partial sums run in the precision of the vectors, and what is added up from them in float64. `native` makes a pass in
one call; where it cannot, torch does it: short vectors take few calls, since a call costs more than they do, and long
ones go by stretches that stay in cache. Products of float32 numbers whose sums may leave their range are formed once
more in float64.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor

from signedstep import native
from signedstep.native import Difference

_SHORT = 12288
"""Up to so many numbers one product of matrices is as exact as several of shorter vectors."""
_BLOCK = 8192
"""Columns per partial sum of longer ones. A batch of them also keeps every thread busy, which torch's plain product of
a wide matrix and a vector does not."""
_LONG = 2**17
"""Vectors longer than this have blocks enough for every thread; then blocks of twice the size are faster."""
_STRETCH = 2**18
"""Columns at a time where rows meet vectors that are made for it, so that these stay small."""
_SUM = 2**18
"""Numbers in one sum of a product of two vectors."""
_LEAST, _MOST = 1e-30, 1e30
"""Between these the products of float32 vectors are safe; beyond, squares of their entries may leave its range."""
_NUMPY = {torch.float32: np.float32}
_LARGEST = {dtype: torch.finfo(dtype).max for dtype in (torch.float32, torch.float64)}


def dots(a: Tensor, B: Sequence[Tensor]) -> list[float]:
    """The inner products of one vector with those of B."""
    values = native.dots(a, B)
    if values is not None:
        return values
    values = _dots(a, B)
    if a.dtype is torch.float32:
        for value in values:
            if not _LEAST < abs(value) < _MOST:
                return [torch.dot(a.double(), b.double()).item() for b in B]
    return values


def grams(A: Tensor, V: Sequence[Difference], count: int) -> tuple[np.ndarray, np.ndarray]:
    """V A' for the first `count` vectors of V, and V V' of all of them."""
    found = native.grams(A, V, count)
    if found is not None:
        return found
    VA, VV = _over_stretches(A, V, count, _STRETCH)
    if A.dtype is torch.float32:
        squares = VV.diagonal().tolist()
        if not (min(squares) > _LEAST and max(squares) < _MOST and math.isfinite(VA.sum())):
            return _over_stretches(A, V, count, _BLOCK, torch.float64)
    return VA, VV


def products(A: Tensor, B: Sequence[Tensor]) -> np.ndarray:
    """The products of the rows of A [r, n] with the vectors of B: [r, s]."""
    alone = [(b, None) for b in B]
    parts = [alone[i : i + native.MOST_VECTORS] for i in range(0, len(B), native.MOST_VECTORS)]
    found = np.concatenate([grams(A, part, len(part))[0] for part in parts])
    if A.dtype is torch.float32 and found.size and not np.abs(found).max(axis=1).min() > _LEAST:  # rows may be tiny
        found, _ = _over_stretches(A, alone, len(B), _BLOCK, torch.float64)
    return found.T


def combination(
    c: np.ndarray, A: Tensor, scale: float, v: Tensor, out: Tensor | None = None
) -> tuple[Tensor, list[float]]:
    """The vector c[0] A[0] + ... + c[r-1] A[r-1] + scale v, in `out` if that is given.

    Its products with v and with itself come along where they cost nothing.
    """
    scale, out = held(scale, A.dtype), torch.empty_like(v) if out is None else out
    products = native.combination(c, A, scale, v, out)
    if products is not None:
        return out, products
    with _whole_precision(A):
        return _combination(c, A, scale, v, out), []


def _combination(c: np.ndarray, A: Tensor, scale: float, v: Tensor, out: Tensor) -> Tensor:
    weights = torch.from_numpy(c.astype(_NUMPY[A.dtype]) if A.dtype in _NUMPY else c).to(A)
    n = A.shape[1]
    if n <= _LONG:
        return torch.addmv(v, A.T, weights, beta=scale, out=out)
    whole, count = _split(n)
    torch.mul(v, scale, out=out)
    out[:whole].view(count, 1, -1).baddbmm_(weights.expand(count, 1, -1), _blocks(A, whole, count))
    if whole < n:
        out[whole:].addmv_(A[:, whole:].T, weights)
    return out


def write_differences(scale: float, triples: Sequence[tuple[Tensor, Tensor, Tensor]]) -> None:
    """For each (plus, minus, out) make scale (plus - minus) where it is to stay."""
    if not native.scaled_differences(scale, triples):
        for plus, minus, out in triples:
            torch.sub(plus, minus, out=out).mul_(scale)


def held(t: float, dtype: torch.dtype) -> float:
    """A number within a precision: torch refuses factors that overflow it."""
    most = _LARGEST[dtype] if dtype in _LARGEST else torch.finfo(dtype).max
    return t if -most <= t <= most else math.copysign(most, t)


def _dots(a: Tensor, B: Sequence[Tensor]) -> list[float]:
    n = a.numel()  # five times as fast as len()
    if n <= _SUM:
        return [torch.dot(a, b).item() for b in B]
    values = [0.0] * len(B)
    for i in range(0, n, _SUM):  # a stretch stays in cache while it meets every vector
        stretch = a[i : i + _SUM]
        for j, b in enumerate(B):
            values[j] += torch.dot(stretch, b[i : i + _SUM]).item()
    return values


def _over_stretches(
    A: Tensor, V: Sequence[Difference], count: int, size: int, dtype: torch.dtype | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What `grams` asks for, from so many numbers of each vector at a time, in another precision if one is given."""
    n = A.shape[1]
    found = []
    for part in [slice(i, i + size) for i in range(0, max(n, 1), size)]:
        made = torch.stack([v[part] if minus is None else v[part] - minus[part] for v, minus in V]).to(dtype or A.dtype)
        found.append((_product(made[:count], A[:, part].to(made.dtype)), _product(made, made)))
    VA, VV = (np.sum(each, axis=0) for each in zip(*found, strict=True))
    return VA, VV


def _product(V: Tensor, A: Tensor) -> np.ndarray:
    """V A' for few long rows."""
    n = A.shape[1]
    with _whole_precision(A):
        if n <= _SHORT:
            return _on_host(torch.mm(V, A.T))
        whole, count = _split(n)
        found = torch.bmm(_blocks(V, whole, count), _blocks(A, whole, count).mT).sum(0, dtype=torch.float64)
        if whole < n:
            found += V[:, whole:] @ A[:, whole:].T
        return _on_host(found)


def _whole_precision(A: Tensor) -> AbstractContextManager:
    """Products of matrices lose half of their digits where somebody works within autocast."""
    kind = A.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def _on_host(found: Tensor) -> np.ndarray:
    """A small matrix in float64, as an array; the usual case costs a third of `double().numpy(force=True)`."""
    array = found.numpy() if found.is_cpu else found.numpy(force=True)
    return array if array.dtype == np.float64 else array.astype(np.float64)


def _split(n: int) -> tuple[int, int]:
    """How many of n columns fall into whole blocks, and how many blocks."""
    count = max(1, round(n / (_BLOCK if n <= _LONG else 2 * _BLOCK)))
    return n - n % count, count


def _blocks(A: Tensor, whole: int, count: int) -> Tensor:
    """The first columns of A [r, n] as a batch of matrices [r, block]; a view."""
    return A[:, :whole].unflatten(1, (count, -1)).transpose(0, 1)
