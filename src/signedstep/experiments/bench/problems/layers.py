"""Networks as functions of a flat vector, for problems with several outputs or with derivatives of the network."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from signedstep.experiments.bench.problems.base import uniform
from signedstep.experiments.models import ACTIVATIONS


class Layers:
    """Fully connected layers of these widths; the last one is linear."""

    def __init__(self, widths: Sequence[int], activation: str = "tanh"):
        self.shapes = list(pairwise(widths))
        self.sizes = [size for i, o in self.shapes for size in (i * o, o)]
        self.activation = ACTIVATIONS[activation]

    @property
    def unknowns(self) -> int:
        return sum(self.sizes)

    def start(self, seed: int, dtype: torch.dtype) -> Tensor:
        """Uniform in +-1/sqrt(fan-in), weights and biases, as torch.nn.Linear has them."""
        return uniform([((i + 1) * o, 1 / math.sqrt(i)) for i, o in self.shapes], seed).to(dtype)

    def glorot(self, seed: int, dtype: torch.dtype) -> Tensor:
        """Weights uniform in +-sqrt(6/(fan-in + fan-out)), biases 0: the habit of physics-informed networks."""
        parts = [part for i, o in self.shapes for part in ((i * o, math.sqrt(6 / (i + o))), (o, 0.0))]
        return uniform(parts, seed).to(dtype)

    def parts(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Weights [inputs, outputs] and biases of each layer."""
        flat = iter(x.split(self.sizes))
        return [(next(flat).view(i, o), next(flat)) for i, o in self.shapes]

    def __call__(self, x: Tensor, X: Tensor) -> Tensor:
        """The outputs for rows X."""
        parts = self.parts(x)
        for W, b in parts[:-1]:
            X = self.activation(torch.addmm(b, X, W))
        W, b = parts[-1]
        return torch.addmm(b, X, W)

    def jets(self, x: Tensor, X: Tensor, directions: Sequence[int], second: Sequence[int]) -> list[Tensor]:
        """Outputs of a tanh network, then first derivatives by these inputs, then second ones by those.

        Derivatives are carried forward through the layers with the values, so that one backward pass gives gradients.
        `second` must be among `directions`.
        """
        parts = self.parts(x)
        W, b = parts[0]
        values = torch.addmm(b, X, W)
        first = [W[i].expand_as(values) for i in directions]
        curved = [torch.zeros_like(values) for _ in second]
        for W, b in parts[1:]:
            a = torch.tanh(values)
            slope = 1 - a.square()
            bend = -2 * a * slope
            curved = [
                slope * c + bend * first[list(directions).index(i)].square()
                for i, c in zip(second, curved, strict=True)
            ]
            first = [slope * d for d in first]
            stacked = torch.cat([a, *first, *curved]) @ W
            values, *rest = stacked.chunk(1 + len(directions) + len(second))
            values = values + b
            first, curved = rest[: len(directions)], rest[len(directions) :]
        return [values, *first, *curved]
