"""A session of runs as a command makes it: what is missing is run, with a display, and everything comes back."""

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rich.console import Console

from signedstep.experiments.problems import Place
from signedstep.experiments.progress import Display, clock, told
from signedstep.experiments.schedule import Backend, complete
from signedstep.experiments.store import Kept, Store
from signedstep.experiments.words import counted

K = TypeVar("K", bound=Kept)
OUTDATED = re.compile("is of another budget, network or code|was made by version")
"""Code changes all the time while a method is developed: what is done again for that is counted, not listed."""


def outcomes_of(
    runs: Sequence[Any],
    store: Store[K],
    backend: Backend,
    place: Place,
    expected_seconds: Callable[[Any], float],
    console: Console,
    tell: Callable[[Any], str] = told,
) -> list[K]:
    """The outcomes of the runs in their order; those that the store lacks are run first, the longest before all."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        there = {run: outcome for run in runs if (outcome := store.get(run)) is not None}
    expected = {run: expected_seconds(run) for run in runs if run not in there}
    outdated = 0
    for text in (str(warning.message) for warning in said):
        if OUTDATED.search(text):
            outdated += 1
        else:
            console.print(text, highlight=False, soft_wrap=True)
    done = "is" if outdated == 1 else "are"
    again = f", {outdated} of another version, budget, network or code {done} done again" if outdated else ""
    console.print(f"{counted(len(runs), 'run')}, {len(there)} of them done before{again}.", highlight=False)
    if expected:
        total = clock(sum(expected.values()))
        console.print(f"{len(expected)} to run, about {total} of computing on one core.", highlight=False)
        longest_first = sorted(expected, key=lambda run: -expected[run])
        with Display({run.name: seconds for run, seconds in expected.items()}, console, tell) as display:
            there |= {outcome.run: outcome for outcome in complete(longest_first, store, backend, place, display)}
    return [there[run] for run in runs]
