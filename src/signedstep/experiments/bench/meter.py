"""Counts evaluations from outside: the one objective that every solver of the benchmark gets."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from signedstep.experiments.bench.runs import Fall

ValueAndGradient = Callable[[Tensor], tuple[float, Tensor]]
HessianProduct = Callable[[Tensor, Tensor], Tensor]


class Objective(NamedTuple):
    """A problem ready to be minimised: value and gradient together, where to start, and products with the Hessian."""

    value_and_gradient: ValueAndGradient
    start: Tensor
    hessp: HessianProduct | None = None


class BudgetSpent(BaseException):
    """Ends a solver at its budget; not an Exception, which solvers may take for a failed trial point."""


class TimeSpent(BaseException):
    """Ends a solver at its time limit."""


class Meter:
    """An objective that counts, times and remembers; every way to call it is one evaluation.

    A call beyond the budget is not carried out: it raises `BudgetSpent`, again and again if the solver goes on. Times
    are processor time of this process, which other processes on the machine do not lengthen; the limit is wall time.
    """

    def __init__(self, objective: Objective, budget: int, seconds: float = math.inf):
        self._objective, self.budget, self.limit = objective, budget, seconds
        self.start, self.n, self.dtype = objective.start, objective.start.numel(), objective.start.dtype
        self.evals = 0
        self.inside = 0.0
        self.spent: BudgetSpent | TimeSpent | None = None
        self._lowest = math.inf
        self._fall: list[tuple[float, int, float]] = []
        self._began, self._wall = time.process_time(), time.monotonic()

    def __call__(self, x: Tensor) -> tuple[float, Tensor]:
        """Value and gradient at a tensor; the gradient is the caller's own."""
        began = self._admit()
        f, g = self._objective.value_and_gradient(x)
        now = time.process_time()
        self.inside += now - began
        if f < self._lowest and math.isfinite(f):
            self._lowest = f
            self._fall.append((f, self.evals, round(now - self._began, 6)))
        return f, g

    def array(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at an array, in float64 whatever the precision of the problem: what SciPy works in."""
        f, g = self(torch.tensor(x, dtype=self.dtype))
        return f, g.numpy().astype(np.float64)

    def hessp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The product of the Hessian with a vector, counted as one evaluation: it costs about two."""
        if self._objective.hessp is None:
            raise NotImplementedError("this problem has no Hessian")
        began = self._admit()
        product = self._objective.hessp(torch.tensor(x, dtype=self.dtype), torch.tensor(v, dtype=self.dtype))
        self.inside += time.process_time() - began
        return product.numpy().astype(np.float64)

    @property
    def x0(self) -> np.ndarray:
        """The start as an array of float64."""
        return self.start.numpy().astype(np.float64)

    @property
    def seconds(self) -> float:
        """Processor time since the meter was made."""
        return time.process_time() - self._began

    @property
    def fall(self) -> Fall:
        """How the lowest value fell so far."""
        f, evals, seconds = zip(*self._fall, strict=True) if self._fall else ((), (), ())
        return Fall(list(f), list(evals), list(seconds))

    def _admit(self) -> float:
        """Count one evaluation, or refuse it; the time when it begins."""
        if self.evals >= self.budget:
            self.spent = BudgetSpent()
        elif time.monotonic() - self._wall >= self.limit:
            self.spent = TimeSpent()
        if self.spent is not None:
            raise self.spent
        self.evals += 1
        return time.process_time()


def by_autograd(loss: Callable[[Tensor], Tensor], start: Tensor) -> Objective:
    """The objective of a differentiable function of a flat vector."""

    @torch.enable_grad()
    def value_and_gradient(x: Tensor) -> tuple[float, Tensor]:
        leaf = x.detach().requires_grad_(True)
        value = loss(leaf)
        (g,) = torch.autograd.grad(value, leaf)
        return value.item(), g

    @torch.enable_grad()
    def hessp(x: Tensor, v: Tensor) -> Tensor:
        leaf = x.detach().requires_grad_(True)
        (g,) = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
        return torch.autograd.grad(g, leaf, v)[0]

    return Objective(value_and_gradient, start, hessp)
