"""A study that is killed at any moment goes on where it was: the same results, and nothing finished is run again.

SIGNEDSTEP_KILLS says how often it is killed (2); `make test-kill` does it ten times.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from signedstep.experiments.problems import Place
from signedstep.experiments.runs import Budget, Network
from signedstep.experiments.schedule import complete, here
from signedstep.experiments.store import Store
from signedstep.experiments.studies import all_runs, reproduction
from test_execute import numbers

KILLS = int(os.environ.get("SIGNEDSTEP_KILLS", "2"))
SEEDS = max(1, KILLS // 2)
COMMAND = [sys.executable, "-m", "signedstep", "reproduce", "--sets", "heart", "--seeds", str(SEEDS), "--jobs", "2"]
OPTIONS = ["--iterations", "150", "--evals", "300", "--width", "5"]
RUNS = all_runs(reproduction(["heart"], SEEDS, Budget(150, 300, 60.0), Network(width=5)))


class Silent:
    """A listener that does not listen."""

    def started(self, run) -> None: ...
    def iteration(self, name, k, f) -> None: ...
    def done(self, outcome) -> None: ...


@pytest.fixture
def study(tmp_path):
    """Starts `signedstep reproduce` in a session of its own, none of which is left behind."""
    begun: list[subprocess.Popen] = []

    def begin() -> subprocess.Popen:
        command = [*COMMAND, *OPTIONS, "--results", str(tmp_path)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
        begun.append(subprocess.Popen(command, start_new_session=True, **pipes))
        signal.signal(signal.SIGINT, before)
        return begun[-1]

    yield begin
    for process in begun:
        for pid in session(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def session(leader: int) -> list[int]:
    """The processes of a session that are still running."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(sid) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def finished(folder: Path) -> dict[Path, tuple[int, int]]:
    """The files of finished runs with what would change if they were written again."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*.json")}


def until(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.005)


def test_killed_and_resumed_is_as_if_nothing_had_happened(study, tmp_path):
    moments, folder = random.Random(KILLS), tmp_path / "runs"
    for left in range(KILLS, 0, -1):
        process, before = study(), finished(folder)
        wanted = len(before) + moments.randint(0, (len(RUNS) - len(before)) // (left + 1))
        until(lambda wanted=wanted, process=process: len(finished(folder)) >= wanted or process.poll() is not None)
        time.sleep(moments.random() * 0.1)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert before.items() <= finished(folder).items(), "what was finished is neither lost nor run again"
        until(lambda process=process: not session(process.pid))  # no worker goes on alone
    before = finished(folder)
    assert 0 < len(before) < len(RUNS), "the kills came in between"
    process = study()
    said, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints
    assert complaints == ""
    assert f"{len(RUNS)} runs, {len(before)} of them done before." in said
    assert before.items() <= finished(folder).items()
    undisturbed = Store(tmp_path / "undisturbed")
    complete(RUNS, undisturbed, here(1), Place(), Silent())
    assert [numbers(Store(folder).get(run)) for run in RUNS] == [numbers(undisturbed.get(run)) for run in RUNS]


def test_an_interrupt_leaves_cleanly_and_says_how_to_go_on(study, tmp_path):
    process = study()
    until(lambda: len(finished(tmp_path / "runs")) >= 2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    said, complaints = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in said
    assert complaints == ""
    until(lambda: not session(process.pid))
