"""The solvers of the studies: the paper's, with its choices, and our additions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

WOLFE: Mapping[str, Any] = {"c1": 1e-4, "c2": 0.9, "history_size": 10}
"""What all line-search methods share; the paper does not print its values, these are Nocedal and Wright's.

They are the same for everyone, so that a column differs by its method alone; `mix` has another c2 and more pairs where
nobody says otherwise, and its column says so. The curvature condition is each method's own: weak for mix, else strong.
"""

ADAM_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)

MOMENTUM_RATES = (1e-2, 1e-1)
RMSPROP_RATES = (1e-3, 1e-2)

FIRST_ORDER: Mapping[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
}
"""Methods that are torch's own, by the name that a solver gives instead of one of `minimize`."""


@dataclass(frozen=True)
class Solver:
    """One column of a table: a method of `minimize`, or one of torch's own with a learning rate, and its options."""

    label: str
    method: str
    text: str
    options: Mapping[str, Any] = field(default_factory=dict)
    paper: bool = True
    """Whether the paper has it; else it is our addition."""
    dense_in_n: bool = False
    """Whether one iteration is O(n^3), so that a time limit must be able to kill it."""


_IDENTITY = {**WOLFE, "gamma": "identity"}  # "QN methods are initialized with the identity matrix"

SOLVERS: dict[str, Solver] = {
    "gd": Solver("GD", "gd/wolfe", "gradient descent with a Wolfe search", _IDENTITY),
    **{
        f"adam-{rate:g}": Solver(f"Adam {rate:g}", "adam", f"Adam, learning rate {rate:g}", {"lr": rate}, rate == 1e-3)
        for rate in ADAM_RATES
    },
    "bfgs": Solver("BFGS", "bfgs/wolfe", "dense BFGS", _IDENTITY),
    "sr1-p": Solver("SR1 (p)", "sr1/wolfe", "dense SR1, positive steps only", _IDENTITY),
    "sr1-pn": Solver("SR1 (p+n)", "sr1/wolfe+-", "dense SR1 with Wolfe±", _IDENTITY),
    "lbfgs": Solver("l-BFGS", "lbfgs/wolfe", "l-BFGS from the identity", _IDENTITY),
    "lsr1": Solver("l-SR1", "lsr1/wolfe", "l-SR1, positive steps only", _IDENTITY),
    "lsr1-damp": Solver("l-SR1+damp", "lsr1/damp", "damping on the m x m spectrum, O(mn)", _IDENTITY),
    "lsr1-damp-dense": Solver(
        "l-SR1+damp O(n³)", "lsr1/damp-dense", "damping as the paper did it", _IDENTITY, dense_in_n=True
    ),
    "lsr1-wolfe+-": Solver("l-SR1+Wolfe±", "lsr1/wolfe+-", "the paper's method", _IDENTITY),
    "lsr1-flip": Solver("l-SR1+flip", "lsr1/flip", "a sign for each eigendirection", WOLFE, paper=False),
    "mix": Solver(
        "mix (auto)",
        "mix",
        "L-BFGS and flipped L-SR1, weighted by hindsight; our default with c2 and m of this study, where its own are "
        "c2 = 0.999 and m = 50 (20 above 2000 unknowns); its curvature condition is the weak one, not the strong",
        WOLFE,
        paper=False,
    ),
    "lbfgs-scaled": Solver(
        "l-BFGS scaled", "lbfgs/wolfe", "l-BFGS as everyone runs it, gamma = yy/sy", WOLFE, paper=False
    ),
    **{
        f"momentum-{rate:g}": Solver(
            f"GD+momentum {rate:g}",
            "sgd",
            f"gradient descent with momentum 0.9, learning rate {rate:g}",
            {"lr": rate, "momentum": 0.9},
            paper=False,
        )
        for rate in MOMENTUM_RATES
    },
    **{
        f"rmsprop-{rate:g}": Solver(
            f"RMSprop {rate:g}", "rmsprop", f"RMSprop, learning rate {rate:g}", {"lr": rate}, paper=False
        )
        for rate in RMSPROP_RATES
    },
}

BASELINES = tuple(name for name, solver in SOLVERS.items() if solver.method in ("sgd", "rmsprop"))
"""What `compare` offers beside the solvers of the reproduction."""
