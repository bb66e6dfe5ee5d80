"""`signedstep bench` from the command line to its tables."""

import re
import sys
from dataclasses import replace

import pytest

from signedstep.cli import main
from signedstep.experiments.bench import execute
from signedstep.experiments.bench.runs import ABSENT, BUDGET, BenchOutcome
from signedstep.experiments.store import Store

TINY = [
    "bench",
    "--family",
    "factorisation,classical",
    "--only",
    "40x30",
    "--half",
    "all",
    "--seeds",
    "2",
    "--jobs",
    "1",
]
SOLVERS = ["--solvers", "auto", "torch-lbfgs", "scipy-lbfgsb", "scipy-bfgs"]


def status(*words):
    """The exit status of a command line, also of one that the parser refuses."""
    try:
        return main([str(word) for word in words])
    except SystemExit as stopped:
        return stopped.code


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")


def test_it_runs_prints_tables_and_does_nothing_the_second_time(tmp_path, capsys):
    tmp_path = tmp_path / "old [bold] :x:"
    words = [*TINY, *SOLVERS, "--budget", "60", "--results", tmp_path]
    assert status(*words) == 0
    said = capsys.readouterr().out
    assert "8 runs, 0 of them done before." in said
    for text in ("torch L-BFGS", "SciPy BFGS", "lower at 50", "runs at 60", "evals / iteration"):
        assert text in said
    outcomes = Store(tmp_path / "runs", BenchOutcome).outcomes()
    assert len(outcomes) == 8
    assert all(outcome.evals <= 60 for outcome in outcomes)
    page = tmp_path / "report" / "bench.html"
    assert page.is_file()
    assert f"Report: {page}" in said, "as it is called"
    assert status(*words) == 0
    again = capsys.readouterr().out
    assert "8 runs, 8 of them done before." in again
    assert again.partition("auto against")[2] == said.partition("auto against")[2]


def change_code_of(solver, monkeypatch):
    """Make what has run before be of other code, as after an edit of the solver."""
    real = execute.fingerprint
    monkeypatch.setattr(execute, "fingerprint", lambda family, name: real(family, name) + "x" * (name == solver))


def test_changed_code_runs_again_and_one_missing_file_only_that(tmp_path, capsys, monkeypatch):
    words = [*TINY, *SOLVERS, "--no-report", "--results", tmp_path, "--budget", "25"]
    assert status(*words) == 0
    next(tmp_path.rglob("torch-lbfgs-seed1-*.json")).unlink()
    assert status(*words) == 0
    assert "8 runs, 7 of them done before." in capsys.readouterr().out
    change_code_of("auto", monkeypatch)
    assert status(*words) == 0
    assert (
        "8 runs, 6 of them done before, 2 of another version, budget, network or code are done again."
        in capsys.readouterr().out
    ), "our code has changed, the peers' has not"


def test_runs_of_another_budget_memory_or_time_limit_stay(tmp_path, capsys):
    words = [*TINY, "--solvers", "lbfgs", "torch-lbfgs", "--no-report", "--results", tmp_path]
    limits = [["--budget", "20"], ["--budget", "25"], ["--budget", "20", "--memory", "3"]]
    limits.append(["--budget", "20", "--time-limit", "9"])
    for done in (0, 4):
        for more in limits:
            assert status(*words, *more) == 0
            assert f"4 runs, {done} of them done before." in capsys.readouterr().out
    assert len(Store(tmp_path / "runs", BenchOutcome).outcomes()) == 16


def test_solvers_whose_names_look_alike_in_files_are_kept_apart(tmp_path, capsys):
    words = [*TINY, "--solvers", "mix:flips=((0.3,1e-3),)", "mix:flips=[(0.3,1e-3),]", "lsr1/flip", "--budget", "9"]
    for done in (0, 6):
        assert status(*words, "--no-report", "--results", tmp_path) == 0
        assert f"6 runs, {done} of them done before." in capsys.readouterr().out


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_command_whose_files_another_one_replaces_has_its_own_outcomes(jobs, tmp_path, capsys, monkeypatch):
    real = Store.put
    other = {"code": "of another checkout"}
    monkeypatch.setattr(Store, "put", lambda self, own: real(self, replace(own, run=replace(own.run, **other))))
    words = [*TINY[:-1], jobs, "--solvers", "lbfgs", "torch-lbfgs", "--budget", "9", "--no-report"]
    assert status(*words, "--results", tmp_path) == 0
    assert "torch L-BFGS" in capsys.readouterr().out.partition("lbfgs against the others")[2]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--family", "nosuch"], "--family must be names of networks, "),
        (["--solvers", "nosuch"], "--solvers nosuch: unknown method 'nosuch'; valid are 'auto', "),
        (["--solvers", "torch-lbfgs:c2=0.5"], "or a peer of torch-lbfgs, "),
        (
            ["--solvers", "auto", "lsr1/flip:foo=1"],
            "--solvers lsr1/flip:foo=1: options of 'lsr1/flip' are history_size, ",
        ),
        (["--solvers", "lsr1/flip:foo=1"], "xtol, got 'foo'"),
        (["--solvers", "lbfgs:eta=4"], "xtol, got 'eta'"),
        (["--solvers", "lbfgs:c2=0.5,c2=0.6"], "the option 'c2' must be given once, got 'c2=0.5,c2=0.6'"),
        (["--solvers", "auto:c2=7"], "--solvers auto:c2=7: c2 must be a number in [0, 1), got 7"),
        (["--solvers", "auto:c2=word"], "--solvers auto:c2=word: c2 must be a number in [0, 1), got 'word'"),
        (["--solvers", "lsr1:gamma=nosuch"], "--solvers lsr1:gamma=nosuch: gamma='nosuch'"),
        (["--solvers", "auto:flips=3"], "--solvers auto:flips=3: flips=3: "),
        (["--solvers", "mix:decay=2"], "--solvers mix:decay=2: decay must be a number in [0, 1), got 2"),
        (["--solvers", "kfac"], "--solvers kfac: 'kfac' needs a module (signedstep.ModuleLoss), which this benchmark"),
        (["--solvers", "gauss-newton"], "it offers values and gradients, for gd, cg, bfgs, "),
        (["--solvers", "natural"], "'natural' needs residuals"),
        (["--solvers", "newton-cg"], "'newton-cg' needs products with the Hessian"),
        (
            ["--first", "foo"],
            "--first must be one of the solvers, auto, torch-lbfgs, scipy-lbfgsb, scipy-bfgs, got 'foo'",
        ),
        (
            ["--only", "nosuch", "--family", "logistic"],
            "no problem is left by --half dev --family logistic --only nosuch; neither half has one",
        ),
        (
            ["--only", "heart", "--family", "networks"],
            "no problem is left by --half dev --family networks --only heart; --half held-out has 3",
        ),
        (["--half", "third"], "invalid choice"),
        (["--budget", "0"], "must be a whole number"),
    ],
)
def test_a_wrong_question_is_refused(words, text, tmp_path, capsys):
    assert status("bench", *words, "--results", tmp_path) == 2
    assert text in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "nothing has run"


@pytest.mark.parametrize("first", [[], ["--first", "adam-0.001"], ["--first", "adam-best"]])
def test_a_rate_of_adam_is_compared_as_its_best(first, tmp_path, capsys):
    words = [*TINY, "--solvers", "adam-0.001", "adam-0.1", "lbfgs", *first, "--budget", "9", "--no-report"]
    assert status(*words, "--results", tmp_path) == 0
    table = capsys.readouterr().out.partition("Adam, best rate against the others")[2].partition("Problems solved")[0]
    assert "│ lbfgs" in table


def test_problems_without_data_are_left_out_and_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SIGNEDSTEP_DATA", str(tmp_path))
    words = ["--family", "logistic", "--half", "all", "--seeds", "1", "--budget", "5", "--jobs", "1", "--no-report"]
    assert status("bench", *words, "--solvers", "lbfgs", "torch-lbfgs", "--results", tmp_path / "results") == 0
    said = capsys.readouterr().out
    assert "a1a, colon-cancer" in said
    assert "4 runs" in said, "heart and breast_cancer"


def test_what_is_not_installed_is_named_and_the_rest_is_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchzero", None)
    monkeypatch.setitem(sys.modules, "sif2jax", None)
    words = [*TINY, "--seeds", "1", "--budget", "5", "--no-report", "--results", tmp_path]
    words[words.index("--family") + 1] += ",cutest"
    words[words.index("--only") + 1] = "0x30"
    assert status(*words, "--solvers", "lbfgs", "torchzero-lsr1") == 0
    said = capsys.readouterr().out
    assert (
        "torchzero-lsr1 is not tried: it needs torchzero; in a clone of the repository: pip install '.[bench]'." in said
    )
    endings = said.partition("How runs ended")[2]
    assert "The package torchzero is missing" in endings
    assert "'.[bench]'" in endings
    kinds = {outcome.run.solver: outcome.kind for outcome in Store(tmp_path / "runs", BenchOutcome).outcomes()}
    assert kinds == {"lbfgs": BUDGET, "torchzero-lsr1": ABSENT}
    assert status("bench", "--family", "cutest", "--results", tmp_path) == 2
    hint = "in a clone of the repository: pip install '.[bench]'."
    assert f"cutest is left out: it needs sif2jax; {hint}" in capsys.readouterr().out


def test_one_of_each_is_told_in_grammar(tmp_path, capsys, monkeypatch):
    words = ["bench", "--family", "factorisation", "--only", "40x30", "--half", "all", "--solvers", "lbfgs"]
    words += ["--seeds", "1", "--jobs", "1", "--no-report", "--results", tmp_path]
    assert status(*words, "--budget", "1") == 0
    said = capsys.readouterr().out
    assert "1 run, 0 of them done before." in said
    assert " after 1 evaluation, " in said
    assert status(*words, "--budget", "2") == 0
    assert "1 pair of problem and start: " in capsys.readouterr().out
    change_code_of("lbfgs", monkeypatch)
    assert status(*words, "--budget", "2") == 0
    said = capsys.readouterr().out
    assert "1 run, 0 of them done before, 1 of another version, budget, network or code is done again." in said


def test_one_solver_alone_has_its_losses_in_the_details_and_no_empty_table(tmp_path, capsys):
    words = ["bench", "--family", "factorisation", "--only", "40x30", "--half", "all", "--solvers", "lbfgs"]
    assert status(*words, "--details", "--seeds", "1", "--jobs", "1", "--budget", "60", "--results", tmp_path) == 0
    said = capsys.readouterr().out
    (outcome,) = Store(tmp_path / "runs", BenchOutcome).outcomes()
    assert re.search(rf"│ factorisation/40x30\S* │ +\S+ │ +{outcome.trace.f[-1]:.3g} │", said)
    assert "against the others" not in said


def test_float32_and_side_by_side(tmp_path, capsys):
    words = [*TINY[:-2], "--jobs", "2", "--budget", "30", "--dtype", "float32", "--no-report", "--results", tmp_path]
    assert status(*words, "--solvers", "lbfgs", "scipy-lbfgsb") == 0
    outcomes = Store(tmp_path / "runs", BenchOutcome).outcomes()
    assert {outcome.run.dtype for outcome in outcomes} == {"float32"}
    assert len(outcomes) == 4
