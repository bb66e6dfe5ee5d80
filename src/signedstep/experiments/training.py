"""Trains a network with a solver: a loop around the engine, or around one of torch, that reports every iteration."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch
from threadpoolctl import threadpool_limits

from signedstep.engine import Engine, Tolerances
from signedstep.experiments.problems import Problem
from signedstep.experiments.runs import Budget
from signedstep.experiments.solvers import FIRST_ORDER, Solver
from signedstep.methods import build
from signedstep.space import Space
from signedstep.status import Status
from signedstep.tensors import TorchObjective

BUDGET_SPENT = "The budget of iterations and evaluations was used up."
TIME_LIMIT = "The time limit of {:g} s was reached."
DIVERGED = "Diverged: the loss or its gradient was not finite after iteration {}; the trace ends before it."


class BadStartError(ValueError):
    """The loss of a network cannot be computed at its initial parameters."""


class Entry(NamedTuple):
    """One row of a trace."""

    f: float
    grad_norm: float
    evals: int
    seconds: float
    alpha: float | None = None
    cosine: float | None = None


class Ending(NamedTuple):
    """How a training ended: whether by itself or its budget, why, and the share of rows classified rightly then."""

    finished: bool
    text: str
    accuracy: float | None = None


Report = Callable[[Entry], None]


def train(problem: Problem, solver: Solver, budget: Budget, report: Report) -> Ending:
    """Train from the problem's start until the budget is spent, the solver stops by itself, or time is up."""
    with one_thread():
        if solver.method in FIRST_ORDER:
            _load_optimizers()
            return _first_order(problem, solver, _Meter(budget, report))
        return _engine(problem, solver, _Meter(budget, report))


_ALONE = threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch and BLAS, and one training at a time in a process: sums then have one order, always."""
    with _ALONE:
        before = torch.get_num_threads()
        try:
            torch.set_num_threads(1)
            with threadpool_limits(1):
                yield
        finally:
            torch.set_num_threads(before)


class _Meter:
    """Reports entries with their time and tells when the budget or the time is spent."""

    def __init__(self, budget: Budget, report: Report):
        self.budget, self._report = budget, report
        self.k, self._began = 0, time.perf_counter()

    def begin(self, f: float, grad_norm: float) -> None:
        if not (math.isfinite(f) and math.isfinite(grad_norm)):
            raise BadStartError("the loss or its gradient is not finite at the start: give the network a smaller scale")
        self._report(Entry(f, grad_norm, 1, self._seconds))

    def iteration(self, f: float, grad_norm: float, evals: int, alpha: float, cosine: float) -> Ending | None:
        """Report an iteration; an ending if there must be no other."""
        self.k += 1
        if not (math.isfinite(f) and math.isfinite(grad_norm)):
            return Ending(False, DIVERGED.format(self.k))
        seconds = self._seconds
        self._report(Entry(f, grad_norm, evals, seconds, alpha, cosine if math.isfinite(cosine) else None))
        if self.k >= self.budget.iterations and evals >= self.budget.evals:
            return Ending(True, BUDGET_SPENT)
        return Ending(False, TIME_LIMIT.format(self.budget.seconds)) if seconds >= self.budget.seconds else None

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._began


def _engine(problem: Problem, solver: Solver, meter: _Meter) -> Ending:
    """A line-search method without convergence tests; it may still say that it can go no further."""
    space, x0 = Space(), problem.start
    parts = build(solver.method, x0, space, solver.options)
    objective = TorchObjective(problem.loss, None, (), tuple(x0.shape))
    no_tests = Tolerances(gtol=0)
    engine = Engine(objective, objective(x0), parts.curvature, parts.globalization, space, no_tests, parts.on_failure)
    meter.begin(engine.at.f, engine.grad_norm)
    ending = None
    while engine.status is Status.RUNNING and ending is None:
        record = engine.step()
        ending = meter.iteration(record.f, record.grad_norm, engine.evals, record.alpha, record.cosine)
    if engine.status is not Status.RUNNING and (ending is None or ending.finished):
        ending = Ending(True, engine.status.value)
    assert ending is not None
    return ending._replace(accuracy=problem.accuracy(engine.at.x))


@cache
def _load_optimizers() -> None:
    """Make torch load what its optimizers need at their first step: a second that is no part of a run."""
    x = torch.nn.Parameter(torch.zeros(1))
    x.grad = torch.ones(1)
    torch.optim.Adam([x]).step()


def _first_order(problem: Problem, solver: Solver, meter: _Meter) -> Ending:
    """One of torch's optimizers on the flat vector: one evaluation an iteration; alpha is the learning rate."""
    x = torch.nn.Parameter(problem.start.clone())
    optimizer = FIRST_ORDER[solver.method]([x], **solver.options)
    f, g = problem.evaluated(x)
    meter.begin(f, g.norm().item())
    ending = None
    while ending is None:
        old, old_g = x.detach().clone(), g
        x.grad = g
        optimizer.step()
        f, g = problem.evaluated(x)
        cosine = -torch.nn.functional.cosine_similarity(x.detach() - old, old_g, dim=0, eps=0).item()
        ending = meter.iteration(f, g.norm().item(), meter.k + 2, solver.options["lr"], cosine)
    return ending._replace(accuracy=problem.accuracy(x.detach())) if math.isfinite(f) else ending
