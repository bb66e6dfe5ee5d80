"""The page in a real browser: it loads without a word on the console or the network, and its controls work."""

import io
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

from bench_outcomes import made as bench_made
from made_outcomes import ending_at
from signedstep.experiments import report
from signedstep.experiments.bench import report as bench_report
from signedstep.experiments.studies import TABLE1_SOLVERS
from test_report import made, rendered

CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("SIGNEDSTEP_REQUIRE_BROWSER") == "1"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None and not REQUIRED, reason="there is no chromium on the path; scripts/install-chromium installs it"
)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "SIGNEDSTEP_REQUIRE_BROWSER=1, but there is no chromium on the path"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return report.write(made(), tmp_path_factory.mktemp("page"), "A study", "signedstep reproduce").as_uri()


@pytest.fixture
def opened(browser, address, request):
    """The page, and everything it said on the console or asked of the network."""
    width, scheme = getattr(request, "param", (1280, "light"))
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda asked: said.append(asked.url) if not asked.url.startswith(("data:", address)) else None)
    page.goto(address)
    page.wait_for_selector("#plot .scatterlayer .trace")
    yield page, said
    assert said == []
    page.close()


def shown(page):
    """The names of the lines in the plot."""
    return page.evaluate("document.getElementById('plot').data.filter(t => t.name).map(t => t.name)")


def widths(page):
    """Of every table: how far it stands out of its section, and whether it can be scrolled to its end."""
    return page.evaluate("""[...document.querySelectorAll("table")].filter(table => table.offsetWidth).map(table => {
        const [box, column] = [".scroll", "section"].map(name => table.closest(name).getBoundingClientRect());
        const scroll = table.closest(".scroll");
        scroll.scrollLeft = 1e6;
        const reached = table.getBoundingClientRect().right <= scroll.getBoundingClientRect().right + 1;
        return [Math.max(column.left - box.left, box.right - column.right, 0), reached];
    })""")


@pytest.mark.parametrize("opened", [(1280, "light"), (1920, "light"), (390, "dark")], indirect=True, ids=str)
def test_wide_tables_stay_in_the_column_of_the_text(opened):
    page, _ = opened
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    found = widths(page)
    assert len(found) > 2
    assert all(out < 1 and reached for out, reached in found), found


def hidden(page):
    """The titles of tables that do not show all their columns, and by how many pixels."""
    return page.evaluate("""[...document.querySelectorAll(".scroll")].filter(box => box.querySelector("table"))
        .map(box => [box.getAttribute("aria-label"), box.scrollWidth - box.clientWidth])
        .filter(([_, out]) => out > 0)""")


def reproduced():
    """The columns of `signedstep reproduce` on two data sets, with quartiles of three seeds."""
    lasts = [0.1, 0.2, 0.3]
    return [
        run for data in ("heart", "breast_cancer") for name in TABLE1_SOLVERS for run in ending_at(name, lasts, data)
    ]


def lengthened():
    """A benchmark with the longest names that its problems have, where losses are lost by a ratio of three digits."""
    longer = {"pinns/c": "factorisation/200x150-rank5-seen0.2", "networks/a": "autoencoders/breast_cancer-12x4x12-relu"}
    runs = [(outcome, outcome.run) for outcome in bench_made()]
    return [replace(outcome, run=replace(run, problem=longer.get(run.problem, run.problem))) for outcome, run in runs]


@pytest.mark.parametrize("width", [1280, 1440])
def test_every_column_of_a_table_is_seen_on_a_desktop(browser, tmp_path, width):
    reproduction = tmp_path / "report.html"
    reproduction.write_text(rendered(reproduced()), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    for path in (reproduction, bench_report.write(lengthened(), "auto", tmp_path, "signedstep bench")):
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert page.locator("table.results tbody tr").count() > 2
        assert hidden(page) == []
    page.close()


def test_a_table_that_must_be_scrolled_has_a_shadow_where_it_goes_on(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(rendered(reproduced()), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 900}, color_scheme="light")
    page.goto(path.as_uri())
    box = page.locator("#table .scroll:visible")
    box.scroll_into_view_if_needed()

    def edge():
        """The darkest that the empty end of the caption's line is at the right edge."""
        return np.min(imread(io.BytesIO(box.screenshot()))[2:12, -3:, :3])

    assert edge() < 0.9
    box.evaluate("box => box.scrollLeft = 1e6")
    assert edge() > 0.99
    page.close()


@pytest.mark.parametrize("opened", [(1280, "light"), (390, "dark")], indirect=True, ids=["desktop", "phone"])
def test_the_page_loads_in_silence_and_fits(opened):
    page, said = opened
    assert page.title() == "A study"
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("article.card").count() == 6
    images = page.evaluate("[...document.images].map(image => [image.complete && image.naturalWidth > 0, image.alt])")
    assert len(images) == 5
    assert all(complete and alt for complete, alt in images)
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(22, 25, 29)" if dark else "rgb(255, 255, 255)")
    assert page.evaluate("document.images[0].currentSrc === document.images[0].src") != dark  # the dark twin is shown


def test_a_method_can_be_hidden_shown_and_seen_alone(opened):
    page, _ = opened
    everything = shown(page)
    assert "l-SR1+Wolfe±" in everything
    chip = page.locator('#chips button[data-method="lsr1-wolfe+-"]')
    chip.click()
    assert shown(page) == [name for name in everything if name != "l-SR1+Wolfe±"]
    assert chip.get_attribute("aria-pressed") == "false"
    assert page.locator("#plot .scatterlayer path.js-line").count() > 0
    chip.click()
    assert shown(page) == everything
    chip.dblclick()
    assert shown(page) == ["l-SR1+Wolfe±"]
    chip.dblclick()
    assert shown(page) == everything


def test_the_axes_can_be_switched(opened):
    page, _ = opened
    axes = "(({xaxis, yaxis}) => [xaxis.type, yaxis.type, xaxis.title.text])(document.getElementById('plot').layout)"
    assert page.evaluate(axes) == ["linear", "log", "iteration"], "as the table"
    page.uncheck("#log-y")
    page.check("#log-x")
    page.check("input[name=axis][value=evals]")
    assert page.evaluate(axes) == ["log", "linear", "evaluations of loss and gradient"]
    page.check("input[name=axis][value=iterations]")
    line = "document.getElementById('plot').data.find(t => t.name === 'GD')"
    assert page.evaluate(f"{line}.x") == [0, 1, 2, 3, 4]
    page.check("input[name=axis][value=seconds]")
    assert page.evaluate(f"{line}.x.at(-1)") == 2
    bands = "document.getElementById('plot').data.filter(t => t.fill === 'toself').length"
    assert page.evaluate(bands) > 0
    page.uncheck("#bands")
    assert page.evaluate(bands) == 0


def test_another_data_set_can_be_chosen(opened):
    page, _ = opened
    names = page.locator("#problem option").all_inner_texts()
    assert names == [*(f"heart, {n} hidden layer{'s' * (n > 1)}" for n in (1, 2, 3)), "mine"]
    page.select_option("#problem", label="heart, 2 hidden layers")
    assert shown(page) == ["BFGS", "SR1 (p)", "SR1 (p+n)"]
    assert page.locator("#chips button:visible").all_inner_texts() == ["BFGS", "SR1 (p)", "SR1 (p+n)"]
    page.select_option("#problem", label="mine")
    assert "SR1 (p)" not in shown(page)
    assert "GD" in shown(page)


def test_the_table_can_be_switched(opened):
    page, _ = opened
    assert page.locator("#table-iterations").is_visible()
    assert not page.locator("#table-evals").is_visible()
    page.get_by_role("button", name="at equal evaluations").click()
    assert page.locator("#table-evals").is_visible()
    assert not page.locator("#table-iterations").is_visible()


def test_a_comparison_opens_with_evaluations_curves_and_table_alike(browser, tmp_path):
    page = browser.new_page()
    page.goto(report.write(made(), tmp_path, "Which?", "signedstep compare", comparison=True).as_uri())
    assert page.locator("input[name=axis]:checked").get_attribute("value") == "evals"
    assert page.locator("#table-evals").is_visible()
    assert not page.locator("#table-iterations").is_visible()
    assert page.locator("#tabs button").all_inner_texts() == ["at equal evaluations", "at equal iterations"]
    page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")], ids=["desktop", "phone"])
def test_the_page_of_the_benchmark_loads_in_silence_and_fits(browser, tmp_path, width, scheme):
    address = bench_report.write(bench_made(), "auto", tmp_path, "signedstep bench").as_uri()
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda asked: said.append(asked.url) if not asked.url.startswith(("data:", address)) else None)
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    images = page.evaluate("[...document.images].map(image => [image.complete && image.naturalWidth > 0, image.alt])")
    assert len(images) == 5
    assert all(complete and alt for complete, alt in images)
    assert page.locator("table").count() >= 8
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert all(out < 1 and reached for out, reached in widths(page))
    assert page.locator("text=IndexError: <x> & more").count() == 1
    assert said == []
    page.close()
