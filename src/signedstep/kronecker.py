"""Block-diagonal matrices of Kronecker products G x A, by their eigenvectors: as cheap as their factors."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Eigensystem(NamedTuple):
    """Eigenvalues, and the way from a flat vector to its coordinates in the eigenvectors and back."""

    w: np.ndarray
    coordinates: Callable[[Tensor], np.ndarray]
    lift: Callable[[np.ndarray], Tensor]


class Block(NamedTuple):
    """G x A on the parameters at these positions: a weight as a matrix [out, in], with the bias as its last column."""

    positions: list[int]
    A: Tensor | None
    """The covariance of the inputs; None for a bias alone."""
    G: Tensor


class Eigenbasis:
    """The eigenvectors of such a matrix, as a change of coordinates for tensors like the parameters."""

    def __init__(self, blocks: Sequence[Block]):
        self._blocks = [(block.positions, _eigen(block.G), _eigen(_or_one(block.A, block.G))) for block in blocks]
        self._sizes = [(len(g), len(a)) for _, (g, _), (a, _) in self._blocks]
        self.w = np.concatenate([torch.outer(g, a).reshape(-1).numpy(force=True) for _, (g, _), (a, _) in self._blocks])

    def coordinates(self, tensors: Sequence[Tensor]) -> np.ndarray:
        parts = [Q.T @ _joined(tensors, at).double() @ P for at, (_, Q), (_, P) in self._blocks]
        return torch.cat([part.reshape(-1) for part in parts]).numpy(force=True)

    def lift(self, a: np.ndarray, like: Sequence[Tensor]) -> list[Tensor]:
        """Tensors like these from coordinates."""
        found = [torch.zeros_like(t) for t in like]
        parts = torch.from_numpy(a).split([rows * columns for rows, columns in self._sizes])
        for (at, (_, Q), (_, P)), size, part in zip(self._blocks, self._sizes, parts, strict=True):
            M = Q @ part.to(Q).view(size) @ P.T
            columns = [like[i].numel() // len(M) for i in at]
            for i, piece in zip(at, M.split(columns, dim=1), strict=True):
                found[i].copy_(piece.reshape(like[i].shape))
        return found


def _joined(tensors: Sequence[Tensor], at: Sequence[int]) -> Tensor:
    return torch.cat([tensors[i].reshape(len(tensors[i]), -1) for i in at], dim=1)


def _or_one(factor: Tensor | None, like: Tensor) -> Tensor:
    return like.new_ones(1, 1) if factor is None else factor


def _eigen(factor: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, zero where they are below the rounding of the factor, and eigenvectors."""
    w, Q = torch.linalg.eigh(factor.detach().double())
    noise = len(w) * torch.finfo(factor.dtype).eps * w.abs().amax()
    return w.where(w > noise, torch.zeros_like(w)), Q
