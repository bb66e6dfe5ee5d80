"""The vector space R^n: the only place where n numbers are summed.

Scalars and small matrices are float64 on the host, whatever the precision and device of the vectors, so that every
decision is made in double precision. A distributed space only has to reduce what these methods return.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

_BLOCK = 16384
"""Columns per partial product: the rows of a block stay in cache while they meet every vector."""


class Space:
    """Euclidean inner products and linear combinations of long vectors."""

    def inner(self, A: Tensor, B: Sequence[Tensor]) -> np.ndarray:
        """All inner products of the rows of A [r, n] with the vectors of B: [r, s] in float64.

        Partial products run in the precision of the vectors over blocks of columns and are added up in float64.
        On the CPU they go through NumPy: its matrix-vector product is threaded, where torch's is not.
        """
        if A.device.type != "cpu":
            return (A @ torch.stack(tuple(B)).T).double().cpu().numpy()
        rows, vectors = A.numpy(), [v.numpy() for v in B]
        n = rows.shape[1]
        out = np.zeros((len(rows), len(vectors)))
        with np.errstate(all="ignore"):  # overflow is data for the search, not a warning
            for start in range(0, n, _BLOCK):
                block = rows[:, start : start + _BLOCK]
                for j, v in enumerate(vectors):
                    out[:, j] += block @ v[start : start + _BLOCK]
        return out

    def dot(self, a: Tensor, b: Tensor) -> float:
        """The inner product of two vectors."""
        return float(self.inner(a[None], (b,))[0, 0])

    def combine(self, c: np.ndarray, A: Tensor, scale: float, v: Tensor) -> Tensor:
        """The vector c[0] A[0] + ... + c[r-1] A[r-1] + scale v."""
        if A.device.type != "cpu":
            return torch.addmv(v, A.T, torch.as_tensor(c, dtype=A.dtype, device=A.device), beta=scale)
        rows = A.numpy()
        with np.errstate(all="ignore"):
            p = torch.from_numpy(c.astype(rows.dtype) @ rows)
        return p.add_(v, alpha=scale)

    def largest(self, v: Tensor) -> float:
        """The largest magnitude in v; NaN if v holds one."""
        return float(torch.linalg.vector_norm(v, ord=float("inf"))) if v.numel() else 0.0
