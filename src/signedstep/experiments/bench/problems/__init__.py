"""All problems of the benchmark, by family, and which half each of them belongs to."""

import hashlib
import inspect
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from signedstep.experiments.bench.problems import (
    classical,
    classical_functions,
    cutest,
    cutest_table,
    factors,
    networks,
    pinns,
)
from signedstep.experiments.bench.problems.base import BenchProblem, Family
from signedstep.experiments.bench.problems.layers import Layers
from signedstep.experiments.fingerprint import data_files
from signedstep.experiments.models import network_loss
from signedstep.experiments.problems import Place

__all__ = [
    "FAMILIES",
    "HALVES",
    "TRAINING",
    "UNSEEN",
    "BenchProblem",
    "all_problems",
    "chosen",
    "half",
    "named",
    "package_missing",
    "sources",
    "unavailable",
]

FAMILIES = {
    family.name: family
    for family in (
        Family("networks", "networks on data sets", networks.problems),
        Family("autoencoders", "autoencoders", factors.autoencoders),
        Family("pinns", "physics-informed networks", pinns.problems),
        Family("factorisation", "matrix factorisation", factors.factorisations),
        Family("logistic", "logistic regression", factors.regressions),
        Family("classical", "classical functions, n from 2 to 1e4", classical.problems),
        Family("cutest", "CUTEst, n <= 200", cutest.small, cutest.PACKAGE, memory=50, evals=500),
        Family("cutest-large", "CUTEst, n about 1000", cutest.large, cutest.PACKAGE, memory=50, evals=500),
    )
}
TRAINING = ("networks", "autoencoders", "pinns", "factorisation", "logistic")
"""What is run unless told otherwise."""
DEVELOPMENT, HELD_OUT = HALVES = ("dev", "held-out")
UNSEEN = "unseen"
"""The held-out problems but for functions that are in the development half with another size."""


@cache
def all_problems(family: str) -> tuple[BenchProblem, ...]:
    """The problems of a family, whether their data are here or not."""
    found = tuple(FAMILIES[family].problems())
    assert len({problem.name for problem in found}) == len(found), f"two problems of {family} have one name"
    return found


@cache
def half(family: str) -> dict[str, str]:
    """To which half each problem of a family belongs: neighbours in size are a pair, and a hash says who is "dev".

    The rule knows nothing but the number of unknowns and the sha256 of the names, so nobody can choose; and it sees the
    whole family, so that the halves do not depend on which data are here.
    """
    ordered = sorted(all_problems(family), key=lambda problem: (problem.unknowns, _hash(problem.name)))
    names = [problem.name for problem in ordered]
    pairs = [sorted(names[place : place + 2], key=_hash) for place in range(0, len(names), 2)]
    return {name: which for pair in pairs for name, which in zip(pair, HALVES, strict=False)}


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def chosen(families: Sequence[str], which: str) -> list[BenchProblem]:
    """The problems of these families in one half, those that are unseen, or all of them."""
    found = [problem for family in families for problem in all_problems(family) if not problem.hollow]
    if which == UNSEEN:
        return [problem for problem in found if _is(problem, HELD_OUT) and problem.function not in _developed()]
    return [problem for problem in found if which == "all" or _is(problem, which)]


def _is(problem: BenchProblem, which: str) -> bool:
    return half(problem.family)[problem.name] == which


@cache
def _developed() -> set[str]:
    """The functions that the development half has, in whatever size."""
    every = [problem for family in FAMILIES for problem in all_problems(family)]
    return {problem.function for problem in every if problem.function and _is(problem, DEVELOPMENT)}


def named(name: str) -> BenchProblem:
    """A problem by its full name."""
    family = name.partition("/")[0]
    return next(problem for problem in all_problems(family) if problem.name == name)


def sources(family: str) -> list[Path]:
    """The files that decide what the problems of a family are."""
    module = Path(inspect.getfile(FAMILIES[family].problems))
    shared = [*data_files(), *(Path(inspect.getfile(thing)) for thing in (BenchProblem, Layers, network_loss))]
    beside = {"classical": classical_functions, "cutest": cutest_table}
    return [*shared, module, *(Path(str(beside[stem].__file__)) for stem in beside if stem == module.stem)]


def unavailable(problems: Sequence[BenchProblem], place: Place) -> list[BenchProblem]:
    """Those whose data set is neither here nor brought along."""
    from signedstep.experiments.data import available

    here = available(Path(place.data_dir) if place.data_dir else None)
    return [problem for problem in problems if problem.data is not None and problem.data not in here]


def package_missing(family: str) -> str | None:
    """The package that a family needs and that is not installed."""
    package = FAMILIES[family].package
    return package if package and find_spec(package) is None else None
