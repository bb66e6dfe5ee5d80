"""Hand-made outcomes for the tests of tables, verdicts and report: every number in them is chosen, none is computed."""

from collections.abc import Sequence
from typing import Any

from signedstep.experiments.panels import Panel, panels
from signedstep.experiments.runs import Budget, Network, Outcome, Run, Trace

BUDGET = Budget(iterations=4, evals=8, seconds=60.0)
SPENT = "The budget of iterations and evaluations was used up."


def outcome(
    solver: str,
    losses: Sequence[float],
    data: str = "heart",
    seed: int = 0,
    per_iteration: int = 2,
    seconds: float = 0.5,
    **changes: Any,
) -> Outcome:
    """A run with these losses by iteration, the same number of evaluations and seconds for each of them."""
    count = len(losses)
    trace = Trace(
        f=list(losses),
        grad_norm=[1 / (k + 1) for k in range(count)],
        evals=[1 + per_iteration * k for k in range(count)],
        seconds=[seconds * k for k in range(count)],
        alpha=[None, *((-1.0) ** k for k in range(1, count))][:count],
        cosine=[None, *(0.5 * (-1.0) ** k for k in range(1, count))][:count],
    )
    network = changes.pop("network", Network())
    run = Run(data, network, solver, seed, changes.pop("budget", BUDGET))
    given = {"finished": True, "ended": SPENT, "unknowns": 151, "environment": {"torch": "2.13"}, **changes}
    return Outcome(run, trace, **given)


def falling(last: float, iterations: int = 4) -> list[float]:
    """Losses from 1 down to a last one in equal steps."""
    return [1 + (last - 1) * k / iterations for k in range(iterations + 1)]


def ending_at(solver: str, lasts: Sequence[float], data: str = "heart", **changes: Any) -> list[Outcome]:
    """One run per seed that ends at these losses, by iterations and by evaluations alike."""
    return [outcome(solver, falling(last), data, seed, **changes) for seed, last in enumerate(lasts)]


def only(outcomes: Sequence[Outcome]) -> Panel:
    """The one panel of these outcomes."""
    (panel,) = panels(outcomes)
    return panel
