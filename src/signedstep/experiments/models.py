"""Multilayer perceptrons as functions of one flat vector, the form that every solver of the studies trains."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from signedstep.checks import check_choice, check_count, check_positive
from signedstep.experiments.runs import Network

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
}

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": lambda output, y: 0.5 * (output - y).square().mean(),
    "logistic": lambda output, y: torch.nn.functional.softplus(-y * output).mean(),
}

SPARSE_BELOW = 0.5
"""Share of entries that are not zero, below which the first layer multiplies sparsely: benchmarks/first_layer.py."""


class Labelled(Protocol):
    """What a model needs of a data set."""

    @property
    def X(self) -> Any:
        """Rows of features: a NumPy array or a scipy.sparse array."""

    @property
    def y(self) -> np.ndarray:
        """A label +-1 for each row."""
        ...


class Layer(NamedTuple):
    """The shape of one layer, as in torch.nn.Linear: weights [outputs, inputs], then biases."""

    inputs: int
    outputs: int
    bias: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """Parameters in its weights and, if it has them, its biases."""
        weights = self.inputs * self.outputs
        return (weights, self.outputs) if self.bias else (weights,)


def layers(network: Network, n_features: int) -> list[Layer]:
    """The layers of a network for data with so many features."""
    check_count("hidden", network.hidden, least=1)
    check_count("width", network.width, least=1)
    widths = [n_features, *[network.width] * network.hidden, 1]
    return [Layer(inputs, outputs, network.bias) for inputs, outputs in pairwise(widths)]


def unknowns(network: Network, n_features: int) -> int:
    """The number of parameters."""
    return sum(sum(layer.sizes) for layer in layers(network, n_features))


def start(network: Network, n_features: int, seed: int) -> Tensor:
    """The initial parameters: uniform in +-scale/sqrt(fan-in), a function of the seed alone."""
    check_positive("scale", network.scale)
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for layer in layers(network, n_features):
        uniform = torch.rand(sum(layer.sizes), generator=generator, dtype=torch.float64)
        parts.append((2 * uniform - 1) * (network.scale / math.sqrt(layer.inputs)))
    return torch.cat(parts)


def network_loss(
    network: Network, data: Labelled, dtype: torch.dtype = torch.float64
) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """The training loss of the parameters, and the network's output for every row: its sign is the prediction."""
    check_choice("activation", network.activation, ACTIVATIONS)
    check_choice("loss", network.loss, LOSSES)
    shape = layers(network, data.X.shape[1])
    sizes = [size for layer in shape for size in layer.sizes]
    first, activation, loss = first_product(data.X, dtype), ACTIVATIONS[network.activation], LOSSES[network.loss]
    y = torch.tensor(data.y, dtype=dtype)

    def predict(x: Tensor) -> Tensor:
        parts = iter(x.split(sizes))
        out = None
        for layer in shape:
            W = next(parts).view(layer.outputs, layer.inputs).T
            out = first(W) if out is None else activation(out) @ W
            if layer.bias:
                out = out + next(parts)
        assert out is not None
        return out[:, 0]

    return lambda x: loss(predict(x), y), predict


def first_product(X: Any, dtype: torch.dtype = torch.float64) -> Callable[[Tensor], Tensor]:
    """The product of the data with a dense matrix, sparse where that is faster; differentiable in the matrix."""
    cells = max(1, X.shape[0] * X.shape[1])
    filled = X.nnz if scipy.sparse.issparse(X) else np.count_nonzero(X)
    if filled < SPARSE_BELOW * cells:
        return sparse_product(scipy.sparse.csr_array(X, dtype=torch.empty(0, dtype=dtype).numpy().dtype))
    # A copy that torch allocates: it is aligned, and products may round differently on memory that is not.
    dense = torch.tensor(X.toarray() if scipy.sparse.issparse(X) else X, dtype=dtype)
    return lambda W: dense @ W


def sparse_product(X: scipy.sparse.csr_array) -> Callable[[Tensor], Tensor]:
    """X @ W by SciPy, which sums in a fixed order: torch's sparse matrices are "in beta state", and no faster."""
    return _product(X, X.T)


def _product(X: Any, XT: Any) -> Callable[[Tensor], Tensor]:
    """X @ W; its derivative is the product with the transpose, which is made the same way: any order will do."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, W: Tensor) -> Tensor:
            return torch.from_numpy(X @ W.numpy())

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Tensor:
            if not torch.is_grad_enabled():
                return torch.from_numpy(XT @ grads[0].numpy())
            return _product(XT, X)(grads[0])

    return Product.apply  # type: ignore[return-value]
