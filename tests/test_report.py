"""The report's files: they come from any subset of runs, hold the right numbers, and hostile names stay text."""

import json
import math
import re
from pathlib import Path

import pytest

from made_outcomes import ending_at, falling, outcome
from signedstep.experiments import page, report
from signedstep.experiments.claims import claims
from signedstep.experiments.explorer import explorer
from signedstep.experiments.panels import main_panels, panels
from signedstep.experiments.runs import Budget, Network
from signedstep.experiments.tables import tables

TIME_LIMIT = {"finished": False, "ended": "The time limit of 60 s was reached."}
NAUGHTY = "</script><script>alert(1)</script> ../../x & y"


def rendered(outcomes, command="signedstep reproduce", comparison=False):
    """The page without its pictures, which take most of the time."""
    everything = panels(outcomes)
    main = main_panels(everything)
    verdicts = claims(everything, main)
    return page.page("Title", command, "stamp", everything, main, verdicts, tables(main, comparison), {}, comparison)


def own_text(html):
    """The page without plotly's code."""
    return re.sub(r"<script>/\*\*.*?</script>", "", html, flags=re.DOTALL)


SUBSETS = {
    "nothing": [],
    "one run": ending_at("gd", [0.2]),
    "no heart": [*ending_at("gd", [0.2], data="mine"), *ending_at("lsr1-flip", [0.1], data="mine")],
    "everything unfinished": [outcome("lsr1-damp-dense", [1.0], seed=seed, **TIME_LIMIT) for seed in range(3)],
    "never started": [outcome("lsr1-damp-dense", [], finished=False, ended="Killed.")],
    "not finite": [outcome("adam-0.1", [1.0, math.nan, math.inf]), *ending_at("gd", [0.2])],
    "no progress": [outcome(solver, [1.0] * 5) for solver in ("gd", "lsr1", "lsr1-wolfe+-")],
    "loss zero": [outcome(solver, falling(0.0)) for solver in ("bfgs", "sr1-p", "sr1-pn")],
    "networks": [outcome("sr1-pn", falling(0.1), network=Network(hidden=h, loss=k)) for h in (1, 2) for k in "ab"],
    "unknown solver": ending_at("my-solver", [0.3]),
}


@pytest.mark.parametrize("name", SUBSETS)
def test_a_page_from_any_subset(name):
    html = own_text(rendered(SUBSETS[name]))
    assert html.count('<article class="card') == 6
    assert html.rstrip().endswith("</html>")
    assert "these runs do not hold what it needs" in html
    json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])  # type: ignore[index]


@pytest.mark.parametrize("name", SUBSETS)
def test_a_comparison_leaves_out_what_its_methods_have_nothing_to_say_to(name):
    html = own_text(rendered(SUBSETS[name], comparison=True))
    assert "not enough runs" not in html
    assert ("Did the claims hold?" in html) == ('<article class="card' in html) == ('href="#verdicts"' in html)
    assert 'href="#figures"' not in html, "no picture was given"


def words(html):
    """What a reader sees, on one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.mark.parametrize("name", SUBSETS)
def test_a_comparison_from_any_subset(name):
    html = own_text(rendered(SUBSETS[name], comparison=True))
    assert html.rstrip().endswith("</html>")
    assert "Table 1" not in html
    assert "run again" not in html


def test_a_comparison_of_own_data_does_not_speak_of_values_the_paper_does_not_have():
    lasts = {"gd": 6e-13, "lbfgs": 0.0, "lsr1": 0.0123456}
    outcomes = [run for solver, last in lasts.items() for run in ending_at(solver, [last, last], "mine.csv")]
    html = own_text(rendered(outcomes, "signedstep compare mine.csv", comparison=True))
    sheet = html.partition('id="table-iterations"')[2].partition("</table>")[0]
    assert re.findall(r'class="value( best)?">([^<]*)<', sheet) == [(" best", "0"), ("", "6e-13"), ("", "0.0123")]
    assert "6e-13–6e-13" in sheet  # noqa: RUF001
    text = words(html)
    assert "only equal losses are a tie" in text
    for absent in (
        "the value the paper prints",
        "The paper prints",
        "our numbers beside",
        "Of the paper",
        "Himmelblau",
    ):
        assert absent not in text
    known = words(own_text(rendered(ending_at("gd", [0.2]), comparison=True)))
    assert "the value the paper prints" in known, "heart is one of its data sets"
    assert "not here: a1a" not in known


def test_a_comparison_opens_with_the_ranking_of_the_terminal_and_ends_with_the_papers_claims():
    lasts = {"gd": [0.6] * 5, "lbfgs": [0.1, 0.15, 0.2, 0.25, 0.3], "lsr1": [0.22] * 5, "lsr1-flip": [0.4] * 5}
    lasts |= {"adam-0.001": [0.9] * 5, "adam-0.1": [0.24] * 5, "lsr1-wolfe+-": [0.8] * 5}
    outcomes = [run for solver, ends in lasts.items() for run in ending_at(solver, ends, "mine.csv", per_iteration=1)]
    html = own_text(rendered(outcomes, comparison=True))
    sections = re.findall(r'<section id="(\w+)"', html)
    assert (sections[0], sections[-1]) == ("table", "verdicts")
    links = re.findall(r'<a\s+href="#(\w+)"', html.partition("</nav>")[0])
    assert links == sections, "the contents are in the order of the page"
    sheet = html.partition('id="table-evals"')[2].partition("</table>")[0]
    ranks = [words(row) for row in re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", sheet, re.DOTALL)]
    assert [rank.partition(" 0.")[0] for rank in ranks] == [
        *("l-BFGS", "l-SR1", "Adam, best rate (0.1)", "l-SR1+flip", "GD", "l-SR1+Wolfe±", "Adam"),
    ]
    assert ranks[0] == "l-BFGS 0.2 0.15–0.25 2.00"  # noqa: RUF001
    told = "Lowest median after 8 evaluations: l-BFGS, 0.2. Not told apart from it: l-SR1, Adam, best rate (0.1) ("
    assert told in words(html)


@pytest.mark.parametrize("name", ["nothing", "everything unfinished", "not finite", "no progress", "loss zero"])
def test_a_whole_report_from_any_subset(name, tmp_path, monkeypatch):
    monkeypatch.setattr(report.saddle_figure, "directions", lambda theme: None)  # the same whatever the runs
    path = report.write(SUBSETS[name], tmp_path, "Title", "signedstep reproduce")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    json.loads((tmp_path / "claims.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (tmp_path / "tables" / "table1.csv").exists()


def made():
    """A small study: two data sets, three depths on heart, an unfinished and a stalled method."""
    lasts = {"gd": 0.3, "adam-0.001": 0.4, "adam-0.1": 0.2, "lbfgs": 0.25, "lsr1-damp": 0.2, "lsr1-wolfe+-": 0.1}
    outcomes = [
        run
        for data in ("heart", "mine")
        for solver, last in lasts.items()
        for run in ending_at(solver, [last, last + 0.02, last + 0.01], data=data)
    ]
    outcomes += [outcome("lsr1-damp-dense", [1.0, 0.9], "heart", seed, **TIME_LIMIT) for seed in range(3)]
    for hidden in (1, 2, 3):
        for solver, last in {"bfgs": 0.2, "sr1-p": 0.6, "sr1-pn": 0.1}.items():
            outcomes += ending_at(solver, [last, last + 0.05], network=Network(hidden=hidden))
    return outcomes


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return report.write(made(), tmp_path_factory.mktemp("report"), "A <small> study", "signedstep reproduce --quick")


def test_all_files_are_written(written):
    files = {str(path.relative_to(written.parent)) for path in written.parent.rglob("*") if path.is_file()}
    figures = ["figure1", "figure2", "figure3", "profiles", "damping", "losses-heart", "losses-mine"]
    figures += [f"losses-heart-{hidden}x10-tanh-mse" for hidden in (2, 3)]
    measures = ["iterations", "evaluations"]
    assert files == {
        "report.html",
        "claims.json",
        "tables/table1.csv",
        *(f"tables/table1-equal-{measure}.{kind}" for measure in measures for kind in ("md", "tex")),
        *(f"figures/{name}.{kind}" for name in figures for kind in ("png", "pdf")),
    }


def test_the_page_shows_our_numbers_beside_the_papers(written):
    html = own_text(written.read_text(encoding="utf-8"))
    assert "A &lt;small&gt; study" in html
    heart = re.search(r'<table class="results">.*?(<tr><th scope="row">heart.*?</tr>)', html, re.DOTALL)
    assert heart
    row = heart[1]
    cells = [re.sub(r"<[^>]+>|\s+", " ", cell).split() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
    assert cells[0] == ["0.310", "0.305–0.315", "paper", "0.455"]  # noqa: RUF001
    assert ["DNF", "(60", "s)", "paper", "0.239"] in cells
    assert '<span class="value best">0.110</span>' in row
    assert 'paper <span class="bold">0.237</span>' in row
    assert "rate 0.1" in row


def test_the_page_asks_for_nothing_from_outside(written):
    html = own_text(written.read_text(encoding="utf-8"))
    addresses = re.findall(r'(?:src|href|srcset)="([^"]*)"', html)
    assert addresses
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert html.count("data:image/svg+xml") == 10  # five figures in two themes


def test_a_second_call_does_nothing_and_a_changed_run_writes_again(written):
    before = written.stat().st_mtime_ns
    folder, title, command = written.parent, "A <small> study", "signedstep reproduce --quick"
    assert report.write(list(reversed(made())), folder, title, command) == written
    assert written.stat().st_mtime_ns == before
    changed = [*made()[:-1], outcome("sr1-pn", falling(0.01), seed=1, network=Network(hidden=3))]
    assert report._stamp(changed, title, command) != report._stamp(made(), title, command)
    assert report._is_written(folder, report._stamp(made(), title, command))
    assert not report._is_written(folder, report._stamp(changed, title, command))
    assert not report._is_written(folder, report._stamp(made(), title, "another command"))


def test_a_hostile_name_stays_text():
    html = rendered(ending_at("gd", [0.2], data=NAUGHTY), command=NAUGHTY)
    assert "<script>alert" not in html
    assert html.count("</script>") == 3
    assert Path(report._safe(NAUGHTY)).name == report._safe(NAUGHTY)
    assert report._safe("..") == "data"


def test_notes_say_what_is_missing():
    everything = panels(
        [*ending_at("gd", [0.2]), outcome("lsr1", [1.0], finished=False, ended="Not tried: too large.")]
    )
    outcomes = [run for panel in everything for runs in panel.runs.values() for run in runs]
    main = main_panels(everything)
    found = " ".join([*page.missing(main), *page.notes(outcomes, main)])
    assert "not here: a1a, a9a" in found
    assert "not run: Adam, l-BFGS, l-SR1+damp" in found
    assert "lsr1 on heart: Not tried: too large." in found
    assert "1 seed only" in found


def test_one_of_each_is_told_in_grammar():
    one = outcome("gd", [1.0, math.inf], budget=Budget(1, 1, 60.0), ended="Diverged.", network=Network(width=1))
    assert page.facts([one])["Seeds"] == "1 (0)"
    assert page.facts([one])["Budget"] == "1 iteration and 1 evaluation, at most 60 s"
    assert page.facts([one])["Networks"].startswith("1 hidden layer of 1 tanh unit, ")
    assert page.notes([one], main_panels(panels([one])))[0].startswith("The loss did not stay finite in 1 run (")


def test_the_curves_of_the_page_are_those_of_the_runs():
    record = explorer(panels(made()))
    assert [problem["name"] for problem in record["problems"]][:2] == [
        "heart, 1 hidden layer",
        "heart, 2 hidden layers",
    ]
    gd = record["problems"][0]["curves"]["gd"]["iterations"]
    assert gd["x"] == [0, 1, 2, 3, 4]
    assert gd["y"] == pytest.approx(falling(0.31))
    assert gd["high"][-1] == pytest.approx(0.315)
