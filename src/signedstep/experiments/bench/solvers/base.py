"""What a solver of the benchmark is: one function that minimises through a meter until it is stopped or has enough."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from signedstep.experiments.bench.meter import Meter


class Ended(NamedTuple):
    """What a solver says when it ends by itself."""

    text: str
    iterations: int | None = None


@dataclass(frozen=True)
class BenchSolver:
    """A column of the tables. `solve(meter, memory)` gets no stopping test but the meter's."""

    name: str
    label: str
    text: str
    solve: Callable[[Meter, int], Ended]
    package: str | None = None
    """The package it needs beyond those of the experiments; None: nothing."""
    dense: bool = False
    """Whether it keeps n x n matrices."""
    ours: bool = False
    second: bool = False
    """Whether it needs products with the Hessian."""
