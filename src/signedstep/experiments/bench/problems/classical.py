"""The classical functions as problems: the standard sizes, and those that can grow with n up to 1e4."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from signedstep.experiments.bench.meter import Objective, by_autograd
from signedstep.experiments.bench.problems import classical_functions as functions
from signedstep.experiments.bench.problems.base import BenchProblem
from signedstep.experiments.problems import Place

Residuals = Callable[[Tensor], Tensor]


def _chained_rosenbrock(x: Tensor) -> Tensor:
    """Rosenbrock's valley, every variable coupled with the next."""
    return torch.cat([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])


def _dixon_price(x: Tensor) -> Tensor:
    """Dixon and Price's function: a chain whose weights grow with the index."""
    i = torch.arange(2, len(x) + 1, dtype=x.dtype)
    return torch.cat([x[:1] - 1, i.sqrt() * (2 * x[1:] ** 2 - x[:-1])])


def _ring(x: Tensor) -> Tensor:
    """Phases on a ring of coupled oscillators, with many saddles."""
    return torch.cat([torch.sin(x - x.roll(1)), 0.1 * torch.cos(x)])


def _boundary(n: int) -> Tensor:
    t = torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)
    return t * (t - 1)


def _repeated(*values: float) -> Callable[[int], Tensor]:
    return lambda n: torch.tensor(values, dtype=torch.float64).repeat(n // len(values))


GROWING: dict[str, tuple[Residuals, Callable[[int], Tensor], tuple[int, ...]]] = {
    "extended-rosenbrock": (functions.rosenbrock, _repeated(-1.2, 1.0), (100, 1000, 10_000)),
    "chained-rosenbrock": (_chained_rosenbrock, _repeated(-1.2, 1.0), (20, 100, 1000, 10_000)),
    "extended-powell": (functions.powell_singular, _repeated(3.0, -1.0, 0.0, 1.0), (100, 1000, 10_000)),
    "penalty-1": (functions.penalty_1, lambda n: torch.arange(1, n + 1, dtype=torch.float64) / n, (100, 1000)),
    "variably-dimensioned": (
        functions.variably_dimensioned,
        lambda n: 1 - torch.arange(1, n + 1, dtype=torch.float64) / n,
        (50, 200),
    ),
    "trigonometric": (functions.trigonometric, lambda n: torch.full((n,), 1 / n, dtype=torch.float64), (100, 1000)),
    "discrete-boundary-value": (functions.discrete_boundary_value, _boundary, (100, 1000, 10_000)),
    "broyden-tridiagonal": (functions.broyden_tridiagonal, _repeated(-1.0), (100, 1000, 10_000)),
    "dixon-price": (_dixon_price, _repeated(1.0), (20, 200, 2000)),
    "ring": (_ring, lambda n: torch.sin(torch.arange(1, n + 1, dtype=torch.float64)) * 3, (50, 1000, 10_000)),
}
"""Residuals, start and sizes."""


def problems() -> list[BenchProblem]:
    """The set of Moré, Garbow and Hillstrom, and functions of many variables."""
    standard = [
        _problem(f"mgh{p.number:02}-{p.name}", p.residuals, torch.tensor(p.start, dtype=torch.float64))
        for p in functions.problems()
    ]
    grown = [
        _problem(f"{name}-n{n}", residuals, start(n)) for name, (residuals, start, ns) in GROWING.items() for n in ns
    ]
    return standard + grown


def _problem(short: str, residuals: Residuals, start: Tensor) -> BenchProblem:
    return BenchProblem(
        family="classical",
        short=short,
        build=partial(_summed, residuals, start),
        unknowns=len(start),
        work=0.2 + 3e-5 * len(start),
        seeded=False,
    )


def _summed(residuals: Residuals, start: Tensor, place: Place, dtype: torch.dtype, seed: int) -> Objective:
    return by_autograd(lambda x: residuals(x).square().sum(), start.to(dtype))
