"""The paper's studies as lists of runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from signedstep.experiments.runs import Budget, Network, Run
from signedstep.experiments.solvers import BASELINES, SOLVERS

EMBEDDED = ("heart", "breast_cancer", "digits")
"""Data sets that need neither network nor folder."""

FIGURE2_SOLVERS = ("gd", "adam-0.001", "bfgs", "sr1-p", "sr1-pn")
FIGURE2_HIDDEN = (1, 2, 3)

DENSE_MODELS = ("bfgs", "sr1-p", "sr1-pn")
TABLE1_SOLVERS = tuple(name for name in SOLVERS if name not in (*DENSE_MODELS, *BASELINES))

SEEDS = 5
TIME_LIMIT = 60.0
TABLE1_BUDGET = Budget(iterations=100, evals=200, seconds=TIME_LIMIT)


@dataclass(frozen=True)
class Study:
    """Runs that belong to one figure or table."""

    name: str
    title: str
    runs: tuple[Run, ...]


def figure2(seeds: int, budget: Budget, network: Network) -> Study:
    """Training error of the dense methods by iteration on `heart`, by depth; Figure 3 is about the same runs.

    They have the budget of the table, with which they share some; the figures show the paper's 50 iterations of it.
    """
    networks = [replace(network, hidden=hidden) for hidden in FIGURE2_HIDDEN]
    runs = tuple(run for net in networks for run in grid(("heart",), net, FIGURE2_SOLVERS, seeds, budget))
    return Study("figure2", "Training error by iteration on heart, 1 to 3 hidden layers", runs)


def table1(names: Sequence[str], seeds: int, budget: Budget, network: Network) -> Study:
    """Training error of the limited-memory methods on several data sets."""
    return Study("table1", "Training error by data set", grid(names, network, TABLE1_SOLVERS, seeds, budget))


def reproduction(
    names: Sequence[str], seeds: int = SEEDS, budget: Budget = TABLE1_BUDGET, network: Network | None = None
) -> list[Study]:
    """The studies of the paper on these data sets; Figures 2 and 3 are about `heart` and need it among them."""
    network = network or Network()
    figures = [figure2(seeds, budget, network)] if "heart" in names else []
    return [*figures, table1(names, seeds, budget, network)]


def grid(names: Sequence[str], network: Network, solvers: Sequence[str], seeds: int, budget: Budget) -> tuple[Run, ...]:
    """Every solver on every data set from every seed; all of a data set together, so that it is read once."""
    return tuple(
        Run(name, network, solver, seed, budget) for name in names for solver in solvers for seed in range(seeds)
    )


def all_runs(studies: Iterable[Study]) -> list[Run]:
    """The runs of the studies, each once."""
    return list(dict.fromkeys(run for study in studies for run in study.runs))
