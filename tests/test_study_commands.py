"""`signedstep reproduce` and `signedstep compare` from the command line to the report."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import signedstep
from signedstep.cli import main
from signedstep.experiments.solvers import BASELINES, SOLVERS
from signedstep.experiments.store import Store

TINY = ["--seeds", "1", "--iterations", "2", "--evals", "3", "--width", "2", "--jobs", "1"]
OWN = [*TINY, "--solvers", "gd", "adam-0.01", "momentum-0.1", "rmsprop-0.01", "lsr1-flip"]


def status(*words):
    """The exit status of a command line, also of one that the parser refuses."""
    try:
        return main([str(word) for word in words])
    except SystemExit as stopped:
        return stopped.code


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def table(tmp_path):
    """A file of a user's own: the label is in the middle and decided by a product."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    rows = [f"{a:.3f},{int(a * b > 0)},{b:.3f}" for a, b in X]
    path = tmp_path / "my data.csv"
    path.write_text("first,class,second\n" + "\n".join(rows) + "\n")
    return path


def test_reproduce_runs_writes_its_report_and_does_nothing_the_second_time(tmp_path, capsys):
    tmp_path = tmp_path / "old [bold] :x:"
    words = ["reproduce", "--sets", "heart", *TINY, "--results", tmp_path]
    assert status(*words) == 0
    said = capsys.readouterr().out
    outcomes = Store(tmp_path / "runs").outcomes()
    assert {outcome.run.solver for outcome in outcomes} == set(SOLVERS) - set(BASELINES)
    assert {outcome.run.network.hidden for outcome in outcomes} == {1, 2, 3}
    assert f"{len(outcomes)} runs, 0 of them done before." in said
    assert str(tmp_path / "report" / "report.html") in said
    assert "Training loss after 3 evaluations, median of 1 seed" in said
    assert "signedstep reproduce --sets heart" in (tmp_path / "report" / "report.html").read_text()
    before = files(tmp_path)
    assert status(*words) == 0
    assert f"{len(outcomes)} of them done before." in capsys.readouterr().out
    assert files(tmp_path) == before


def test_compare_reads_a_file_and_ranks_the_solvers(tmp_path, table, capsys):
    words = ["compare", table, "--label", "class", *OWN, "--results", tmp_path / "results"]
    assert status(*words) == 0
    said = capsys.readouterr().out
    (folder,) = (tmp_path / "results" / "compare").iterdir()
    outcomes = Store(folder / "runs").outcomes()
    assert {outcome.run.solver for outcome in outcomes} == {
        "gd",
        "adam-0.01",
        "momentum-0.1",
        "rmsprop-0.01",
        "lsr1-flip",
    }
    assert {outcome.run.data for outcome in outcomes} == {"my_data.csv"}
    assert {outcome.unknowns for outcome in outcomes} == {2 * 2 + 2 + 2 + 1}, "two features: the label is none"
    assert "Lowest median: " in said
    page = (folder / "report" / "report.html").read_text()
    assert "only equal losses are a tie" in page
    lowest = re.search(r"Lowest median: (.*, (\S+))\.$", said, re.MULTILINE)
    assert lowest
    assert f"<strong>Lowest median after 3 evaluations: {lowest[1]}.</strong>" in page
    assert "these runs do not hold what it needs" not in page, "nothing but what was compared"
    assert f'<span class="value best">{lowest[2]}</span>' in page.partition('id="table-evals"')[2], "as on the terminal"
    table.write_text(table.read_text() + "1.5,1,2.5\n")
    assert status(*words) == 0
    assert len(list(folder.parent.iterdir())) == 2, "results of a file that has changed are not mixed"


def test_compare_takes_a_known_set_and_runs_again_with_another_budget(tmp_path, capsys):
    store = Store(tmp_path / "compare" / "heart" / "runs")
    assert status("compare", "heart", *OWN, "--results", tmp_path) == 0
    assert [outcome.run.budget.iterations for outcome in store.outcomes()] == [2] * 5
    assert "done again" not in capsys.readouterr().out
    assert status("compare", "heart", *OWN, "--results", tmp_path, "--iterations", "3") == 0
    assert "5 of another version, budget, network or code are done again" in " ".join(capsys.readouterr().out.split())
    assert [outcome.run.budget.iterations for outcome in store.outcomes()] == [3] * 5


def test_it_tells_its_version(capsys):
    assert status("--version") == 0
    told = f"signedstep {signedstep.__version__}\n"
    assert capsys.readouterr().out == told
    ended = subprocess.run(
        [sys.executable, "-m", "signedstep", "--version"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, told, ""), "without its script as well"


def test_compare_tells_what_it_takes(capsys):
    assert status("compare", "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "two classes, both numbers; features are used as they are, so scale them first" in said


@pytest.mark.parametrize("words", [["data", "list"], ["--help"]], ids=" ".join)
@pytest.mark.parametrize("buffered", [True, False])
def test_a_reader_that_has_gone_is_no_error(words, buffered):
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    command = [sys.executable, "-m", "signedstep", *words]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment, text=True, check=False)
    os.close(writer)
    assert ended.stderr == ""
    assert ended.returncode == (0 if words == ["--help"] and not buffered else 1), "argparse does not look"


def test_an_interrupt_at_any_time_ends_without_a_traceback(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("signedstep.experiments.data.load", interrupted)
    try:
        assert status("compare", "heart") == 130
    except KeyboardInterrupt:
        pytest.fail("it would end the tests, too")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["reproduce", "--sets", "nosuchset"], "--sets must be names of a1a, "),
        (["reproduce", "--seeds", "0"], "must be a whole number, at least 1, got '0'"),
        (["reproduce", "--time-limit", "nan"], "must be a positive number, got 'nan'"),
        (["reproduce", "--quick", "--full"], "not allowed with"),
        *(
            ([*words, "--data-dir", "nosuchfolder"], "argument --data-dir: must be a folder, got 'nosuchfolder'")
            for words in (["reproduce"], ["compare", "heart"], ["bench"], ["data", "list"], ["data", "fetch", "heart"])
        ),
        (["compare", "nosuchfile.csv"], "nosuchfile.csv"),
        (["compare", "heart", "--label", "0"], "--label is the column of labels in a .csv or .tsv file, and 'heart'"),
        (["compare", "mine.npz", "--label", "ill"], "and 'mine.npz' is none"),
        (["compare", "mine.txt.xz", "--label", "-1"], "and 'mine.txt.xz' is none"),
        (["compare", "heart", "--solvers", "sgd"], "invalid choice: 'sgd'"),
        (["compare", "heart", "--solvers", "auto"], "here 'auto' is called 'mix', and has c2 = 0.9 and m = 10 as all"),
        (["compare", "heart", "--dask", "nowhere"], "no Dask scheduler answers at 'nowhere'"),
    ],
)
def test_a_wrong_question_is_refused_with_what_is_accepted(words, text, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert status(*words) == 2
    assert text in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "nothing is left behind"


COMMANDS = {
    "reproduce": ["reproduce", "--sets", "heart", *TINY],
    "compare": ["compare", "heart", *OWN],
    "bench": [
        "bench",
        "--family",
        "factorisation",
        "--solvers",
        "lbfgs",
        "--budget",
        "3",
        "--seeds",
        "1",
        "--jobs",
        "1",
    ],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["a file", "below a file", "of the kernel", "read-only", "runs are a file"])
def test_results_that_cannot_be_written_are_refused_before_anything_runs(command, kind, tmp_path, capsys):
    folder = tmp_path / "there"
    if kind == "of the kernel":
        folder = Path("/proc/nosuch")  # nobody can write there, not even root
    elif kind == "read-only":
        if os.geteuid() == 0:
            pytest.skip("root may write anywhere")
        folder.mkdir(mode=0o500)
    elif kind == "runs are a file":
        (folder / "compare" / "heart").mkdir(parents=True)
        for runs in (folder / "runs", folder / "compare" / "heart" / "runs"):
            runs.touch()
    else:
        folder.touch()
        folder = folder / "below" if kind == "below a file" else folder
    before = files(tmp_path)
    assert status(*COMMANDS[command], "--results", folder) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"signedstep: --results must be a folder that can be written, got '{folder}' (")
    assert files(tmp_path) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_in_the_place_of_a_run_is_named_before_anything_runs(command, tmp_path, capsys):
    words = [*COMMANDS[command], "--results", tmp_path]
    assert status(*words) == 0
    (first, *others) = sorted(tmp_path.rglob("*-seed0*.json"))
    for outcome in (first, *others):
        outcome.unlink()
    first.mkdir()
    capsys.readouterr()
    assert status(*words) == 2
    assert capsys.readouterr().err == (f"signedstep: the outcome of a run cannot be kept in {first}: Is a directory\n")
    assert not [outcome for outcome in others if outcome.exists()]


def test_a_damaged_outcome_is_named_and_run_again(tmp_path, capsys):
    words = [*COMMANDS["compare"], "--results", tmp_path]
    assert status(*words) == 0
    damaged = next(tmp_path.rglob("gd-seed0.json"))
    whole = damaged.read_text()
    damaged.write_text(whole[:100])
    capsys.readouterr()
    assert status(*words) == 0
    said, complaints = capsys.readouterr()
    assert said.startswith(f"{damaged}: is damaged, no outcome; it will be run again\n5 runs, 4 of them done before.\n")
    assert complaints == ""


def test_a_report_that_cannot_be_written_is_told_in_a_line(tmp_path, capsys):
    (tmp_path / "compare" / "heart" / "report" / "report.html").mkdir(parents=True)
    assert status(*COMMANDS["compare"], "--results", tmp_path) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("signedstep: ")
    assert "report.html" in line


@pytest.mark.parametrize(("module", "extras"), [("rich", "experiments"), ("distributed", "dask")])
def test_what_is_not_installed_is_named(module, extras, tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "rich.console", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    assert status("compare", "heart", *OWN, "--dask", "tcp://127.0.0.1:1", "--results", tmp_path) == 1
    hint = f"in a clone of the repository: pip install '.[{extras}]'"
    assert f"signedstep: {module} is missing; {hint}\n" in capsys.readouterr().err


def test_a_run_that_cannot_start_says_which_option_to_change(tmp_path, capsys):
    words = ["compare", "heart", *OWN, "--activation", "relu", "--scale", "1e200", "--results", tmp_path]
    assert status(*words) == 2
    assert "smaller scale" in capsys.readouterr().err


def test_a_cluster_that_is_not_there_ends_the_program_and_not_the_command_only(tmp_path):
    words = ["compare", "heart", *OWN, "--dask", "nowhere", "--results", str(tmp_path)]
    asked = subprocess.run([sys.executable, "-m", "signedstep", *words], capture_output=True, text=True, timeout=60)
    assert asked.returncode == 2
    assert "no Dask scheduler answers at 'nowhere'" in asked.stderr
