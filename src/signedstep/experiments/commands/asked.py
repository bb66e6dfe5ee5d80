"""What `signedstep bench` is asked to run, checked before anything runs: a ValueError says what is wrong with it."""

import argparse
from collections.abc import Callable, Sequence

from signedstep.experiments.bench.problems import (
    FAMILIES,
    HALVES,
    BenchProblem,
    chosen,
    package_missing,
    unavailable,
)
from signedstep.experiments.bench.results import column
from signedstep.experiments.bench.runs import BenchRun
from signedstep.experiments.bench.solvers import BenchSolver, missing, solver
from signedstep.experiments.problems import Place
from signedstep.experiments.words import counted, installed_by

BRINGS = installed_by("bench")


def solvers_of(arguments: argparse.Namespace) -> list[BenchSolver]:
    """The solvers of the question, each once."""
    return [_solver(name) for name in dict.fromkeys(arguments.solvers)]


def _solver(name: str) -> BenchSolver:
    try:
        return solver(name)
    except ValueError as error:
        raise ValueError(f"--solvers {name}: {error}") from None


def first_of(arguments: argparse.Namespace, solvers: Sequence[BenchSolver]) -> str:
    """The column that is compared with the others; Adam's rates are one column, its best."""
    columns = list(dict.fromkeys(column(found.name) for found in solvers))
    asked = columns[0] if arguments.first is None else column(arguments.first)
    if asked not in columns:
        raise ValueError(f"--first must be one of the solvers, {', '.join(columns)}, got {arguments.first!r}")
    return asked


def problems_of(arguments: argparse.Namespace, place: Place, say: Callable[[str], None]) -> list[BenchProblem]:
    """The problems that can be run here; `say` is told which are left out, and why."""
    families = list(dict.fromkeys(arguments.family.split(",")))
    for name in families:
        if name not in FAMILIES:
            raise ValueError(f"--family must be names of {', '.join(FAMILIES)}, got {name!r}")
    asked = _filtered(arguments, chosen(families, arguments.half))
    if not asked:
        raise ValueError(_nothing(arguments, families))
    for family in dict.fromkeys(problem.family for problem in asked):
        if package := package_missing(family):
            say(f"{family} is left out: it needs {package}; {BRINGS}.")
    installed = [problem for problem in asked if not package_missing(problem.family)]
    absent = unavailable(installed, place)
    if absent:
        sets, count = ", ".join(sorted({str(problem.data) for problem in absent})), counted(len(absent), "problem")
        say(f"Left out for data sets that are not here, {sets}: {count} (`signedstep data fetch NAME` gets a set).")
    left = [problem for problem in installed if problem not in absent]
    if not left:
        count = counted(len(asked), "problem")
        raise ValueError(f"no problem is left: {_filter(arguments)} has {count}, none of them can be run here")
    return left


def _filtered(arguments: argparse.Namespace, problems: Sequence[BenchProblem]) -> list[BenchProblem]:
    return [problem for problem in problems if not arguments.only or arguments.only in problem.name]


def _filter(arguments: argparse.Namespace) -> str:
    """The options that choose problems, as they were given."""
    only = f" --only {arguments.only}" if arguments.only else ""
    return f"--half {arguments.half} --family {arguments.family}{only}"


def _nothing(arguments: argparse.Namespace, families: Sequence[str]) -> str:
    """What to say where the filter leaves nothing, and which half would leave something."""
    counts = {half: len(_filtered(arguments, chosen(families, half))) for half in HALVES}
    elsewhere = [f"--half {half} has {count}" for half, count in counts.items() if count]
    return f"no problem is left by {_filter(arguments)}; {' and '.join(elsewhere) or 'neither half has one'}"


def tell_missing(solvers: Sequence[BenchSolver], say: Callable[[str], None]) -> None:
    """Say which solvers are not tried."""
    for found in solvers:
        if package := missing(found):
            say(f"{found.name} is not tried: it needs {package}; {BRINGS}.")


def runs_of(
    arguments: argparse.Namespace, problems: Sequence[BenchProblem], solvers: Sequence[BenchSolver]
) -> list[BenchRun]:
    """Every solver on every problem from every start."""
    from signedstep.experiments.bench.execute import fingerprint

    return [
        BenchRun(
            problem=problem.name,
            solver=found.name,
            seed=seed,
            evals=arguments.budget or FAMILIES[problem.family].evals,
            seconds=arguments.time_limit,
            memory=arguments.memory or FAMILIES[problem.family].memory,
            dtype=arguments.dtype,
            code=fingerprint(problem.family, found.name),
        )
        for problem in problems
        for found in solvers
        for seed in range(arguments.seeds if problem.seeded else 1)
    ]
