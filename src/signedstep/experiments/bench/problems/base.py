"""What a problem of the benchmark is, and what a family of them must tell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from signedstep.experiments.bench.meter import Objective
from signedstep.experiments.problems import Place


@dataclass(frozen=True)
class BenchProblem:
    """A function to minimise; `build` makes it, wherever the data are, in a precision and from the start of a seed."""

    family: str
    short: str
    build: Callable[[Place, torch.dtype, int], Objective]
    unknowns: int
    work: float
    """Rough milliseconds of an evaluation: the longest runs are begun first."""
    data: str | None = None
    """The data set it needs, one of `signedstep.experiments.sets.SETS`."""
    seeded: bool = True
    """Whether its start depends on the seed; if not, one run says all."""
    function: str = ""
    """What it has in common with the same function in another size."""
    hollow: bool = False
    """It is not run, and only keeps its place, so that the halves stay as they are."""

    @property
    def name(self) -> str:
        return f"{self.family}/{self.short}"


@dataclass(frozen=True)
class Family:
    """Problems of one kind."""

    name: str
    text: str
    problems: Callable[[], Sequence[BenchProblem]]
    package: str | None = None
    """The package it needs beyond those of the experiments."""
    memory: int = 20
    """Pairs that limited-memory methods keep, unless told otherwise."""
    evals: int = 1000
    """Evaluations of a run, unless told otherwise."""


class Rows(NamedTuple):
    """Features, a NumPy array or a scipy.sparse one, and labels +-1."""

    X: Any
    y: np.ndarray


def data_set(name: str, place: Place, every: int = 1) -> Rows:
    """Every so many rows of a known set."""
    X, y = _loaded(name, place)
    return Rows(X[::every], y[::every])


@lru_cache(maxsize=2)
def _loaded(name: str, place: Place) -> Rows:
    from signedstep.experiments.data import load

    found = load(name, Path(place.data_dir) if place.data_dir else None)
    return Rows(found.X, found.y)


def uniform(sizes: Sequence[tuple[int, float]], seed: int) -> Tensor:
    """Start values uniform in +-bound for each part of so many numbers, in float64, a function of the seed alone."""
    generator = torch.Generator().manual_seed(seed)
    parts = [(2 * torch.rand(size, generator=generator, dtype=torch.float64) - 1) * bound for size, bound in sizes]
    return torch.cat(parts)
