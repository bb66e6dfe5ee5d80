"""A session of runs as a command makes it: what is missing is run, with a display, and everything comes back."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from signedstep.experiments.estimates import expected_seconds
from signedstep.experiments.problems import Place
from signedstep.experiments.progress import Display, clock
from signedstep.experiments.runs import Outcome, Run
from signedstep.experiments.schedule import Backend, complete
from signedstep.experiments.store import Store

Shapes = Mapping[str, tuple[int, int]]
"""Rows and features of the data sets."""


def outcomes_of(
    runs: Sequence[Run], folder: Path, backend: Backend, place: Place, shapes: Shapes, console: Console
) -> list[Outcome]:
    """The outcomes of the runs in their order; those that the folder lacks are run first, the longest before all."""
    store = Store(folder)
    there = {run: outcome for run in runs if (outcome := store.get(run)) is not None}
    expected = {run: expected_seconds(run, *shapes[run.data]) for run in runs if run not in there}
    console.print(f"{len(runs)} runs, {len(there)} of them done before.", highlight=False)
    if expected:
        total = clock(sum(expected.values()))
        console.print(f"{len(expected)} to run, about {total} of computing on one core.", highlight=False)
        longest_first = sorted(expected, key=lambda run: -expected[run])
        with Display({run.name: seconds for run, seconds in expected.items()}, console) as display:
            complete(longest_first, store, backend, place, display)
    return [there.get(run) or _stored(store, run) for run in runs]


def _stored(store: Store, run: Run) -> Outcome:
    outcome = store.get(run)
    assert outcome is not None, f"{run.name} has just been written"
    return outcome
