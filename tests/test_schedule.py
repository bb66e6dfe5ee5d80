"""Schedules: whatever carries out the runs, this process, several or a Dask cluster, the numbers are the same bits."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from signedstep.experiments.estimates import expected_seconds
from signedstep.experiments.problems import Place
from signedstep.experiments.runs import Budget, Network, Outcome, Run
from signedstep.experiments.schedule import complete, here, on_dask
from signedstep.experiments.store import Store
from signedstep.experiments.studies import EMBEDDED, all_runs, grid, reproduction
from test_execute import numbers

SOLVERS = ("gd", "adam-0.01", "lsr1-flip", "sr1-pn", "lbfgs-scaled")
BUDGET = Budget(8, 12, 60.0)
CHEAP = grid(("heart", "digits"), Network(2, 5), SOLVERS, seeds=2, budget=BUDGET)
DENSE = Run("heart", Network(1, 5), "lsr1-damp-dense", 0, BUDGET)
RUNS = [DENSE, *CHEAP]


class Notes:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.begun: list[Run] = []
        self.heard: set[str] = set()
        self.ended: list[Outcome] = []

    def started(self, run: Run) -> None:
        self.begun.append(run)

    def iteration(self, name: str, k: int, f: float) -> None:
        self.heard.add(name)

    def done(self, outcome: Outcome) -> None:
        self.ended.append(outcome)


def results(folder, runs: Sequence[Run], backend) -> tuple[list, Notes]:
    store, notes = Store(folder), Notes()
    complete(runs, store, backend, Place(), notes)
    assert {outcome.run for outcome in notes.ended} == set(runs)
    assert len(notes.ended) == len(runs), "nothing is run twice"
    return [numbers(store.get(run)) for run in runs], notes


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process gets."""
    return dict(zip(RUNS, results(tmp_path_factory.mktemp("alone"), RUNS, here(1))[0], strict=True))


def test_two_processes_get_the_same_bits_and_report_as_they_go(tmp_path, alone):
    found, notes = results(tmp_path, RUNS, here(2))
    assert found == [alone[run] for run in RUNS]
    assert notes.begun == list(RUNS), "in the order they were given"
    assert notes.heard == {run.name for run in RUNS}


def test_a_dask_cluster_gets_the_same_bits(tmp_path, alone):
    from distributed import LocalCluster

    runs = [*CHEAP[:4], DENSE]  # the last one starts a child, which Dask's workers may not do by multiprocessing
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        found, _ = results(tmp_path / "one", runs, on_dask(cluster.scheduler_address))
        assert found == [alone[run] for run in runs]
        bad = replace(CHEAP[0], data="nosuchset")
        with pytest.raises(ValueError, match="nosuchset"):
            complete([bad, *runs], Store(tmp_path / "two"), on_dask(cluster.scheduler_address), Place(), Notes())


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_run_raises_is_raised_and_what_was_done_is_kept(tmp_path, jobs):
    store, notes = Store(tmp_path), Notes()
    bad = replace(CHEAP[0], network=Network(activation="relu", scale=1e120))
    with pytest.raises(ValueError, match="smaller scale"):
        complete([*CHEAP[:3], bad, *CHEAP[3:]], store, here(jobs), Place(), notes)
    assert len(store.outcomes()) == len(notes.ended) < len(CHEAP)


def test_studies_share_runs_and_name_them_apart():
    studies = reproduction(EMBEDDED)
    runs = all_runs(studies)
    assert [study.name for study in studies] == ["figure2", "table1"]
    assert len({run.name for run in runs}) == len(runs)
    assert {run for study in studies for run in study.runs} == set(runs)
    assert {(run.network.hidden, run.solver) for run in studies[0].runs} >= {(h, "sr1-pn") for h in (1, 2, 3)}
    assert sum(len(study.runs) for study in studies) - len(runs) == 2 * 5, "gd and Adam on heart, 5 seeds"
    assert [study.name for study in reproduction(["digits"])] == ["table1"]


def test_expected_times_put_long_runs_first():
    budget = Budget(100, 200, 60.0)
    cheap, dense = Run("", Network(), "gd", 0, budget), Run("", Network(), "lsr1-damp-dense", 0, budget)
    assert expected_seconds(cheap, 270, 13) < expected_seconds(cheap, 32561, 123) < expected_seconds(dense, 2477, 300)
    assert expected_seconds(dense, 2477, 300) == 60
    assert expected_seconds(dense, 38, 7129) < 1, "it is not tried"
