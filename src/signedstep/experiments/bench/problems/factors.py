"""Autoencoders, matrix factorisation and logistic regression."""

from collections.abc import Callable
from functools import partial
from typing import Any

import scipy.sparse
import torch
from torch import Tensor

from signedstep.experiments.bench.meter import Objective, by_autograd
from signedstep.experiments.bench.problems.base import BenchProblem, data_set, uniform
from signedstep.experiments.bench.problems.layers import Layers
from signedstep.experiments.models import LOSSES, first_product
from signedstep.experiments.problems import Place
from signedstep.experiments.sets import SETS

CODES: tuple[tuple[str, int, tuple[int, ...], str], ...] = (
    ("digits", 3, (16,), "tanh"),
    ("digits", 3, (32, 8, 32), "sigmoid"),
    ("digits", 4, (120, 30, 8, 30, 120), "tanh"),
    ("digits", 6, (290, 100, 10, 100, 290), "tanh"),
    ("ionosphere", 1, (20, 5, 20), "tanh"),
    ("breast_cancer", 1, (12, 4, 12), "relu"),
    ("splice", 2, (30, 10, 30), "sigmoid"),
    ("a1a", 3, (40, 10, 40), "tanh"),
)
"""Data set, every so many rows of it, widths of the hidden layers, activation."""


def autoencoders() -> list[BenchProblem]:
    """Half the mean squared error of a reconstruction; n from 2e3 to 1e5."""
    return [_autoencoder(*row) for row in CODES]


def _autoencoder(name: str, every: int, hidden: tuple[int, ...], activation: str) -> BenchProblem:
    features = SETS[name].features
    layers = Layers((features, *hidden, features), activation)
    return BenchProblem(
        family="autoencoders",
        short=f"{name}-{'x'.join(map(str, hidden))}-{activation}",
        build=partial(_reconstructed, name, every, layers),
        unknowns=layers.unknowns,
        work=0.4 + SETS[name].rows / every * layers.unknowns * 2.5e-7,
        data=name,
    )


def _reconstructed(name: str, every: int, layers: Layers, place: Place, dtype: torch.dtype, seed: int) -> Objective:
    X = data_set(name, place, every).X
    rows = torch.tensor(X.toarray() if scipy.sparse.issparse(X) else X, dtype=dtype)
    return by_autograd(lambda x: 0.5 * (layers(x, rows) - rows).square().mean(), layers.start(seed, dtype))


MATRICES: tuple[dict[str, Any], ...] = (
    {"rows": 40, "columns": 30, "rank": 5, "seen": 0.5},
    {"rows": 100, "columns": 80, "rank": 10, "seen": 1.0},
    {"rows": 200, "columns": 150, "rank": 5, "seen": 0.2},
    {"rows": 60, "columns": 60, "rank": 20, "seen": 0.6},
    {"rows": 80, "columns": 60, "rank": 8, "seen": 1.0, "start": 1e-3},
    {"rows": 150, "columns": 100, "rank": 10, "seen": 0.4, "ridge": 0.0},
)
"""Shape, rank, share of entries that are seen, size of the start (small: near the saddle at 0), weight of the norms."""


def factorisations() -> list[BenchProblem]:
    """U V against a matrix of that rank plus noise, in mean square over the entries that are seen."""
    return [_factorisation(**row) for row in MATRICES]


def _factorisation(rows: int, columns: int, rank: int, seen: float, start: float = 0.3, ridge: float = 1e-3):
    label = f"{rows}x{columns}-rank{rank}-seen{seen:g}" + (f"-start{start:g}" if start != 0.3 else "")
    return BenchProblem(
        family="factorisation",
        short=label + ("" if ridge else "-plain"),
        build=partial(_factored, rows, columns, rank, seen, start, ridge),
        unknowns=rank * (rows + columns),
        work=0.3 + rows * columns * 2e-5,
    )


def _factored(
    rows: int, columns: int, rank: int, seen: float, size: float, ridge: float,
    place: Place, dtype: torch.dtype, seed: int,
) -> Objective:  # fmt: skip
    generator = torch.Generator().manual_seed(1000 + seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    A = normal(rows, rank) @ normal(rank, columns) + 0.1 * normal(rows, columns)
    mask = (torch.rand(rows, columns, generator=generator, dtype=torch.float64) < seen).double()
    weights, A = (mask / mask.sum()).to(dtype), A.to(dtype)
    sizes = [rows * rank, rank * columns]

    def loss(x: Tensor) -> Tensor:
        U, V = x.split(sizes)
        E = U.view(rows, rank) @ V.view(rank, columns) - A
        return 0.5 * (weights * E.square()).sum() + ridge * x.square().mean()

    return by_autograd(loss, (size * normal(sum(sizes))).to(dtype))


REGRESSIONS = ("heart", "breast_cancer", "splice", "a1a", "w1a", "madelon", "mushrooms", "colon-cancer", "svmguide3")
RIDGES = (1e-2, 1e-4, 1e-6)


def regressions() -> list[BenchProblem]:
    """Logistic regression with a squared norm, whose weight takes turns over the sets."""
    return [_regression(name, RIDGES[place % len(RIDGES)]) for place, name in enumerate(REGRESSIONS)]


def _regression(name: str, ridge: float) -> BenchProblem:
    return BenchProblem(
        family="logistic",
        short=f"{name}-ridge{ridge:g}",
        build=partial(_classified, name, ridge),
        unknowns=SETS[name].features + 1,
        work=0.2 + SETS[name].rows * SETS[name].features * 1e-6,
        data=name,
    )


def _classified(name: str, ridge: float, place: Place, dtype: torch.dtype, seed: int) -> Objective:
    X, y = data_set(name, place)
    product: Callable[[Tensor], Tensor] = first_product(X, dtype)
    labels = torch.tensor(y, dtype=dtype)

    def loss(x: Tensor) -> Tensor:
        output = product(x[:-1, None])[:, 0] + x[-1]
        return LOSSES["logistic"](output, labels) + ridge / 2 * x.square().sum()

    n = X.shape[1] + 1
    return by_autograd(loss, uniform([(n, n**-0.5)], seed).to(dtype))
