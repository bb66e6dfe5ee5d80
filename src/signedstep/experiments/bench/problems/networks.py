"""Training of networks on data sets: classification by one output, by ten, and regression.

The list is made by a rule: every set gets networks with 1, 2 and 3 hidden layers, and activation and loss take turns.
Sets with more than 3000 rows are thinned to every k-th row, so that a run takes seconds; one is kept whole.
"""

import math
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from signedstep.experiments.bench.meter import Objective, by_autograd
from signedstep.experiments.bench.problems.base import BenchProblem, data_set
from signedstep.experiments.bench.problems.layers import Layers
from signedstep.experiments.models import network_loss, start, unknowns
from signedstep.experiments.problems import Place
from signedstep.experiments.runs import Network
from signedstep.experiments.sets import SETS, standardised, stretched

FAMILY = "networks"
ROWS = 3000
NAMES = (
    *("heart", "ionosphere", "splice", "svmguide3", "breast_cancer", "digits", "a1a", "w1a", "mushrooms"),
    *("madelon", "ijcnn1", "a9a", "w8a", "colon-cancer", "leukemia"),
)
ACTIVATIONS, LOSSES = ("tanh", "sigmoid", "relu"), ("mse", "logistic")
WIDTH = 10


def problems() -> list[BenchProblem]:
    """All problems of the family."""
    ruled = [_on_set(name, _network(place, hidden)) for place, name in enumerate(NAMES) for hidden in (1, 2, 3)]
    return [*ruled, _on_set("a9a", Network(1, WIDTH, "sigmoid"), whole=True), *map(_on_table, TABLES)]


def _network(place: int, hidden: int) -> Network:
    turn = place + hidden
    return Network(hidden, WIDTH, ACTIVATIONS[turn % 3], loss=LOSSES[turn % 2])


def _on_set(name: str, network: Network, whole: bool = False) -> BenchProblem:
    every = 1 if whole else math.ceil(SETS[name].rows / ROWS)
    rows, features = SETS[name].rows / every, SETS[name].features
    return BenchProblem(
        family=FAMILY,
        short=f"{name}{'-whole' * whole}-{network.name}",
        build=partial(_trained, name, network, every),
        unknowns=unknowns(network, features),
        work=0.3 + rows * (network.hidden * 1.5e-4 + min(features, 100) * 1e-6) + 1.5e-5 * unknowns(network, features),
        data=name,
    )


def _trained(name: str, network: Network, every: int, place: Place, dtype: torch.dtype, seed: int) -> Objective:
    rows = data_set(name, place, every)
    loss, _ = network_loss(network, rows, dtype)
    return by_autograd(loss, start(network, rows.X.shape[1], seed).to(dtype))


TABLES: tuple[dict[str, Any], ...] = (
    {"table": "digits", "widths": (64, 100, 100, 10), "activation": "tanh", "every": 2},
    {"table": "digits", "widths": (64, 30, 10), "activation": "relu", "every": 3},
    {"table": "wine", "widths": (13, 10, 3), "activation": "sigmoid"},
    {"table": "iris", "widths": (4, 10, 10, 3), "activation": "tanh"},
    {"table": "diabetes", "widths": (10, 10, 1), "activation": "tanh"},
    {"table": "friedman", "widths": (10, 15, 15, 1), "activation": "sigmoid"},
    {"table": "sine", "widths": (1, 20, 20, 1), "activation": "tanh"},
)
"""Multi-class classification (softmax) and regression on what scikit-learn brings along or can make."""
CLASSES = ("digits", "wine", "iris")


def _on_table(row: dict[str, Any]) -> BenchProblem:
    layers = Layers(row["widths"], row["activation"])
    every = row.get("every", 1)
    shape = "x".join(map(str, row["widths"][1:-1]))
    loss = "softmax" if row["table"] in CLASSES else "mse"
    return BenchProblem(
        family=FAMILY,
        short=f"{row['table']}-all-{shape}-{row['activation']}-{loss}",
        build=partial(_fitted, row["table"], layers, every),
        unknowns=layers.unknowns,
        work=0.3 + layers.unknowns * 2.7e-4,
    )


def _fitted(table: str, layers: Layers, every: int, place: Place, dtype: torch.dtype, seed: int) -> Objective:
    X, y = _table(table)
    rows = torch.tensor(X[::every], dtype=dtype)
    if table in CLASSES:
        classes = torch.tensor(y[::every], dtype=torch.int64)
        return by_autograd(
            lambda x: torch.nn.functional.cross_entropy(layers(x, rows), classes), layers.start(seed, dtype)
        )
    target = torch.tensor(standardised(y[::every, None]), dtype=dtype)
    return by_autograd(lambda x: 0.5 * (layers(x, rows) - target).square().mean(), layers.start(seed, dtype))


@cache
def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    if name == "friedman":
        X, y = datasets.make_friedman1(300, noise=0.5, random_state=0)
    elif name == "sine":
        X = np.linspace(-3, 3, 100)[:, None]
        y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 0]
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (stretched(X) if name == "digits" else standardised(X)), y
