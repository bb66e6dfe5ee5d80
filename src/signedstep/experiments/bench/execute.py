"""Carries out one run of the benchmark and says how it ended."""

import inspect
import math
import warnings
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from signedstep.experiments.bench import jax_setup, meter, problems
from signedstep.experiments.bench.meter import BudgetSpent, Meter, Objective, TimeSpent
from signedstep.experiments.bench.runs import ABSENT, BUDGET, CRASHED, STOPPED, TIME, BenchOutcome, BenchRun, Fall
from signedstep.experiments.bench.solvers import BenchSolver, Ended, base, missing, solver
from signedstep.experiments.execute import environment
from signedstep.experiments.fingerprint import digest, library, versions
from signedstep.experiments.heartbeat import Hear
from signedstep.experiments.problems import Place
from signedstep.experiments.training import TIME_LIMIT, one_thread
from signedstep.experiments.words import installed_by

DENSE_UP_TO = 500
"""Unknowns up to which solvers with n x n matrices are tried: SciPy's BFGS takes O(n^3) operations an iteration."""


WARM_UP = 4
"""Evaluations of another function that a solver has before its run: loading and compiling is no part of it."""


def execute_bench(run: BenchRun, place: Place, watch: Hear | None = None) -> BenchOutcome:
    """Carry out a run on one thread: its losses are the same whatever runs beside it."""
    problem, chosen = problems.named(run.problem), solver(run.solver)
    refusal = _refusal(chosen, problem.unknowns)
    if refusal is not None:
        nothing = Fall([], [], [])
        return BenchOutcome(run, nothing, refusal, ABSENT, problem.unknowns, 0, None, 0.0, 0.0, environment())
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn of overflow and precision; the outcome says what came of it
        objective = problem.build(place, getattr(torch, run.dtype), run.seed)
        objective.value_and_gradient(objective.start)
        _minimised(chosen, Meter(_bowl(objective.start), WARM_UP), run.memory)
        counted = Meter(objective, run.evals, run.seconds)
        kind, ended = _minimised(chosen, counted, run.memory)
        times = round(counted.seconds, 6), round(counted.inside, 6)
    fall = counted.fall
    made_with = environment() | _versions(problem.family, chosen)
    if watch is not None:
        watch(run.name, counted.evals, fall.f[-1] if fall.f else math.inf)
    return BenchOutcome(run, fall, ended.text, kind, counted.n, counted.evals, ended.iterations, *times, made_with)


def _bowl(start: Tensor) -> Objective:
    return Objective(lambda x: (0.5 * float(x @ x), x.clone()), start, lambda x, v: v.clone())


def _minimised(chosen: BenchSolver, counted: Meter, memory: int) -> tuple[str, Ended]:
    """How it ended. What the meter raised decides, whatever a solver made of it on the way."""
    try:
        ended = chosen.solve(counted, memory)
        kind = STOPPED
    except (Exception, BudgetSpent, TimeSpent) as error:
        text = str(error).strip().partition("\n")[0]
        kind, ended = CRASHED, Ended(f"{type(error).__name__}: {text}")
    if isinstance(counted.spent, TimeSpent):
        return TIME, Ended(TIME_LIMIT.format(counted.limit), ended.iterations)
    if counted.spent is not None or (kind == STOPPED and counted.evals >= counted.budget):
        return BUDGET, Ended(f"The budget of evaluations was used: {counted.budget}.", ended.iterations)
    return kind, ended


def _refusal(chosen: BenchSolver, n: int) -> str | None:
    """Why a solver is not tried."""
    package = missing(chosen)
    if package is not None:
        return f"The package {package} is missing; {installed_by('bench')}."
    if chosen.dense and n > DENSE_UP_TO:
        return f"Matrices of {n} x {n} numbers: dense methods are tried up to n = {DENSE_UP_TO}."
    return None


def _versions(family: str, chosen: BenchSolver) -> dict[str, str]:
    """Those of the packages behind a solver and a family of problems, as far as they are installed."""
    packages = [package for package in (chosen.package, problems.FAMILIES[family].package) if package]
    packages += [below for package in packages for below in jax_setup.BELOW.get(package, ())]
    return versions(_distribution(package) for package in packages if find_spec(package))


@cache
def _distribution(package: str) -> str:
    """The name of what brings a package; looking through all that is installed takes a while."""
    return packages_distributions()[package][0]


@cache
def fingerprint(family: str, solver_name: str) -> str:
    """A hash of what the numbers of a run depend on: code of problem, meter and solver, and versions of packages."""
    chosen = solver(solver_name)
    written = inspect.getfile(getattr(chosen.solve, "func", chosen.solve))
    files = [Path(str(file)) for file in (__file__, meter.__file__, base.__file__, jax_setup.__file__, written)]
    files += [*problems.sources(family), *(library() if chosen.ours else [])]
    return digest(files, _versions(family, chosen), environment())


def expected_seconds(run: BenchRun) -> float:
    """About how long a run takes: it orders the runs and weighs the time left."""
    problem, chosen = problems.named(run.problem), solver(run.solver)
    if _refusal(chosen, problem.unknowns) is not None:
        return 0.01
    outside = 0.5 + 1e-5 * problem.unknowns + (2e-7 * problem.unknowns**3 if chosen.dense else 0.0)
    return min(run.seconds, 1e-3 * run.evals * (problem.work + outside))
