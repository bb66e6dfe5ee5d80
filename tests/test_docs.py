"""The code in the documentation runs, and prints what the documentation says."""

import doctest
import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import signedstep
from signedstep.catalogue import CURVATURES, GLOBALIZATIONS, Settings
from signedstep.cli import parser
from signedstep.engine import Tolerances
from signedstep.experiments.commands.asked import first_of, problems_of, solvers_of
from signedstep.experiments.commands.common import place_of
from signedstep.optim.options import FURTHER
from signedstep.status import Status

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


RANKS = ROOT / "docs" / "distributed.md"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python") and page != RANKS], ids=lambda page: page.name
)
def test_python_blocks_run_in_order(page):
    names: dict = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


def torchrun(*command: str, folder: Path) -> str:
    """What a program prints on two ranks."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for _ in range(3):
        done = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
        if "terminate called without an active exception" not in done.stderr:
            break  # else a thread of torch's outlived Python, which a test of its own watches
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python_blocks_for_several_ranks_run_there(tmp_path):
    program = tmp_path / "page.py"
    program.write_text("\n".join([*blocks(RANKS, "python"), "open(f'{rank}.txt', 'w').write(repr(loss.item()))"]))
    torchrun(str(program), folder=tmp_path)
    first, second = ((tmp_path / f"{rank}.txt").read_text() for rank in (0, 1))
    assert first == second
    assert float(first) < 0.1


def test_the_example_for_several_ranks(tmp_path):
    example = str(ROOT / "examples" / "distributed.py")
    told = torchrun(example, "--steps", "3", "--folder", "saved", folder=tmp_path).splitlines()
    losses = [float(line.split()[3]) for line in told]
    assert losses == sorted(losses, reverse=True)
    assert len(list((tmp_path / "saved").glob("*/.metadata"))) == 3


def test_the_first_example_prints_what_it_says(capsys):
    """Sentences and signs exactly; values to a decade, or nothing, and counts to a quarter: they are rounding's."""
    code, printed = blocks(ROOT / "README.md", "python")[0], blocks(ROOT / "README.md", "text")[0]
    exec(compile(code, "README.md", "exec"), {})
    line = r"(\S+) +f = (\S+), +(\d+) evaluations, +(\d+) negative steps. (.*)"
    shown, got = (re.findall(line, text) for text in (printed, capsys.readouterr().out))
    assert len(shown) == len(printed.splitlines()) == 4
    for (*names, f, evals, negative, message), (*names_, f_, evals_, negative_, message_) in zip(
        shown, got, strict=True
    ):
        assert (names, message) == (names_, message_)
        assert float(f_) == pytest.approx(float(f), rel=9, abs=1e-12)
        assert int(evals_) == pytest.approx(int(evals), rel=0.25)
        assert (int(negative_) > 0) == (int(negative) > 0)


def test_the_page_of_minimize_has_every_option_and_every_end():
    text = (ROOT / "docs" / "minimize.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    options = {field.name for kind in (Settings, Tolerances) for field in fields(kind)}
    conditions = {status for status in Status if status.ok} | {Status.RUNNING, Status.MAX_STEP}
    ends = {status.name for status in Status} - {status.name for status in conditions}
    assert sorted(named) == sorted({*options, *ends, "maxiter", "maxfun", "disp", "return_all"})


def test_help_names_every_option():
    """In the text for `minimize` all, in that for the optimizers those that they take."""
    documented = set(re.findall(r"\w+", str(signedstep.minimize.__doc__).partition("Options\n")[2]))
    options = {field.name for kind in (Settings, Tolerances) for field in fields(kind)}
    assert {*options, "maxiter", "maxfun", "disp", "return_all"} <= documented
    arguments = set(inspect.signature(signedstep.SecondOrder).parameters)
    assert {*arguments, *FURTHER} <= set(re.findall(r"\w+", str(signedstep.SecondOrder.__doc__)))


def test_contributing_names_the_options_that_the_optimizers_do_not_take():
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Add an option")[2].partition("##")[0]
    taken = {*FURTHER, *inspect.signature(signedstep.SecondOrder).parameters}
    absent = [field.name for field in fields(Settings) if field.name not in taken]
    assert f"but for {' and '.join(f'`{name}`' for name in absent)}, of the torch.optim front" in " ".join(
        section.split()
    )


@pytest.mark.parametrize("module", ["minimize", "methods", "scipy_method", "optim.named"])
def test_examples_in_docstrings_print_what_they_say(module):
    failed, tried = doctest.testmod(importlib.import_module(f"signedstep.{module}"))
    assert tried
    assert not failed


def bench_commands() -> list[str]:
    """Those of all pages, in blocks and within sentences; dots stand for words that are left out."""
    found = []
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        found += re.findall(r"^signedstep bench.*$", text, re.MULTILINE)
        found += re.findall(r"`(signedstep bench [^`]+)`", text)
    return [" ".join(command.partition("#")[0].replace("...", "").split()) for command in found]


@pytest.mark.parametrize("command", [command for command in bench_commands() if "--help" not in command])
def test_documented_benchmarks_leave_problems_without_any_download(command, tmp_path, monkeypatch):
    """They are parsed and checked as the command itself does it, but not run."""
    monkeypatch.setenv("SIGNEDSTEP_DATA", str(tmp_path))
    arguments = parser().parse_args(shlex.split(command)[1:])
    assert first_of(arguments, solvers_of(arguments))
    assert problems_of(arguments, place_of(arguments), print)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_readme_names_every_part():
    text = (ROOT / "README.md").read_text()
    for name in (*CURVATURES, *GLOBALIZATIONS):
        assert f"`{name}`" in text, name


def test_the_page_of_methods_has_a_row_for_every_part():
    """And none for what does not exist; every cell says something."""
    lines = (ROOT / "docs" / "methods.md").read_text().splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("| `")]
    assert [row[0].strip(" `") for row in rows] == [*CURVATURES, *GLOBALIZATIONS]
    assert all(cell.strip() for row in rows for cell in row)


def test_methods_are_described():
    for name, text in signedstep.methods().items():
        assert len(text) > 10, name
