"""A training in a process of its own, which can be killed in the middle of an O(n^3) iteration.

The child is `python -m signedstep.experiments.child`: a JSON record of the run on its standard input, JSON lines on its
standard output, one for each iteration and then the ending. Not multiprocessing: Dask's workers may not use that.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from tempfile import TemporaryFile
from typing import IO, Any

from signedstep.experiments.problems import Place, Problem
from signedstep.experiments.runs import Run
from signedstep.experiments.solvers import SOLVERS
from signedstep.experiments.training import TIME_LIMIT, Ending, Entry, Report, train

KILLED = "The solver's process was killed from outside, perhaps for want of memory."


def train_in_child(run: Run, place: Place, report: Report) -> Ending:
    """Train in a child that is killed at the time limit, counted from its first entry; report entries as they come."""
    with TemporaryFile("w+") as errors, _child(errors) as child:
        assert child.stdin
        with suppress(BrokenPipeError):  # a child that is dead already says why below
            child.stdin.write(json.dumps({"run": asdict(run), "place": place}) + "\n")
            child.stdin.flush()  # it stays open: its end tells the child that its parent is gone
        late = threading.Event()
        ending = _listen(child, run.budget.seconds, late, report)
        child.kill()
        child.wait()
        if ending is not None:
            return ending
        if late.is_set():
            return Ending(False, TIME_LIMIT.format(run.budget.seconds))
        if child.returncode == -signal.SIGKILL:
            return Ending(False, KILLED)
        errors.seek(0)
        raise RuntimeError(f"the process of {run.name} failed:\n{errors.read()}")


@contextmanager
def _child(errors: IO[str]) -> Iterator[subprocess.Popen[str]]:
    """The running child; whatever happens, it does not outlive the block."""
    command = [sys.executable, "-m", "signedstep.experiments.child"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors, "text": True}
    child = subprocess.Popen(command, process_group=0, **pipes)  # its own group: a terminal's interrupt is not for it
    try:
        yield child
    finally:
        child.kill()
        with suppress(BrokenPipeError):
            child.communicate()


def _listen(child: subprocess.Popen[str], seconds: float, late: threading.Event, report: Report) -> Ending | None:
    """Report entries until the ending comes (then return it) or the pipe breaks off."""

    def expire() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(seconds, expire)
    assert child.stdout
    try:
        for line in child.stdout:
            if not line.endswith("\n"):
                return None  # killed while writing
            kind, values = json.loads(line)
            if kind == "ending":
                return Ending(*values)
            if kind == "start":
                timer.start()
            report(Entry(*values))
        return None
    finally:
        timer.cancel()


def main() -> None:
    """The child's side."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    run, kinds = Run.from_json(request["run"]), iter(["start"])

    def say(kind: str, values: tuple) -> None:
        print(json.dumps([kind, values], allow_nan=False), flush=True)

    problem = Problem.of(run, Place(*request["place"]))
    say("ending", train(problem, SOLVERS[run.solver], run.budget, lambda entry: say(next(kinds, "iteration"), entry)))


def _end_with_parent() -> None:
    """Wait until the parent's end of the pipe is closed, then end at once, whatever is being computed."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
