"""Carries out one run: trains, records every iteration, and says how it ended."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import signedstep
from signedstep.checks import check_choice
from signedstep.experiments.child import train_in_child
from signedstep.experiments.fingerprint import versions
from signedstep.experiments.heartbeat import Hear
from signedstep.experiments.problems import Place, Problem
from signedstep.experiments.runs import Outcome, Run, Trace
from signedstep.experiments.solvers import SOLVERS
from signedstep.experiments.training import Ending, Entry, one_thread, train

DENSE_MATRICES = 5
"""Matrices of n x n numbers that an iteration with an eigendecomposition holds at once: 4.3 were measured."""


def execute(run: Run, place: Place = Place(), watch: Hear | None = None) -> Outcome:  # noqa: B008
    """Carry out a run on one thread: its numbers are the same whatever runs beside it.

    `watch` is told of every iteration.
    """
    check_choice("solver", run.solver, SOLVERS)
    solver, problem = SOLVERS[run.solver], Problem.of(run, place)
    entries: list[Entry] = []

    def report(entry: Entry) -> None:
        entries.append(entry)
        if watch is not None:
            watch(run.name, len(entries) - 1, entry.f)

    n = len(problem.start)
    if not solver.dense_in_n:
        ending = train(problem, solver, run.budget, report)
    elif matrices_fit(n):
        ending = train_in_child(run, place, report)
    else:
        ending = Ending(False, _refusal(n))
    if not entries:  # not tried, or killed before it said anything
        report(_start(problem))
    return Outcome(run, _trace(entries), ending.finished, ending.text, n, ending.accuracy, environment())


def matrices_fit(n: int) -> bool:
    """Whether a run may hold the matrices of a dense eigendecomposition."""
    return _bytes(n) <= memory_share()


def _bytes(n: int) -> int:
    return DENSE_MATRICES * 8 * n * n


def memory_share() -> int:
    """Bytes of memory for each core, which one run may use; it does not depend on how many runs there are."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")  # of a container
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        total = min(total, int(text))
    return total // (os.cpu_count() or 1)


def environment() -> dict[str, str]:
    """The versions of what computes the numbers."""
    return {
        "signedstep": signedstep.__version__,
        "python": platform.python_version(),
        **versions(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _start(problem: Problem) -> Entry:
    with one_thread():
        f, g = problem.evaluated(problem.start)
    return Entry(f, g.norm().item(), 1, 0.0)


def _refusal(n: int) -> str:
    need, share = _bytes(n) / 1e9, memory_share() / 1e9
    return f"Not tried: {n} x {n} matrices need {need:.0f} GB of memory, a core's share of it is {share:.0f} GB."


def _trace(entries: Sequence[Entry]) -> Trace:
    return Trace(*(list(column) for column in zip(*entries, strict=True)))
