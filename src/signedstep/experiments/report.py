"""The whole report from outcomes alone: one page that works offline, and figures, tables and verdicts as files."""

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from signedstep.experiments import exports, figures, saddle, saddle_figure
from signedstep.experiments.claims import claims
from signedstep.experiments.page import Picture, page
from signedstep.experiments.panels import MEASURE_NAMES, MEASURES, Panel, main_panels, panels
from signedstep.experiments.runs import Outcome
from signedstep.experiments.style import DARK, LIGHT, Theme, drawn_in
from signedstep.experiments.tables import table

Draw = Callable[[Theme], Figure | None]


def write(outcomes: Sequence[Outcome], folder: Path, title: str, command: str) -> Path:
    """Write report.html, figures/, tables/ and claims.json into a folder and return the page.

    Any subset of runs will do; what is missing is left out or said. `command` is what gives the same report again.
    """
    stamp = _stamp(outcomes, title, command)
    if _is_written(folder, stamp):
        return folder / "report.html"
    everything = panels(outcomes)
    main = main_panels(everything)
    tables = [table(main, measure) for measure in MEASURES] if main else []
    verdicts = claims(everything, main)
    pictures = _pictures(everything, main, folder / "figures")
    for found in tables:
        name = f"table1-equal-{MEASURE_NAMES[found.measure]}"
        _write(folder / "tables" / f"{name}.md", exports.to_markdown(found))
        _write(folder / "tables" / f"{name}.tex", exports.to_latex(found))
    _write(folder / "tables" / "table1.csv", exports.to_csv(tables))
    record = {"command": command, "claims": [claim.to_json() for claim in verdicts], "figure 1": _figure1()}
    _write(folder / "claims.json", json.dumps(_plain(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    text = page(title, command, stamp, everything, main, verdicts, tables, pictures)
    return _write(folder / "report.html", text)  # last, so that its stamp vouches for the rest


def _stamp(outcomes: Sequence[Outcome], title: str, command: str) -> str:
    """What the report is a function of, as one number: the runs, the words and this code."""
    digest = hashlib.sha256(repr((title, command)).encode())
    for outcome in sorted(outcomes, key=lambda outcome: (outcome.run.name, repr(outcome.run.budget))):
        digest.update(repr(outcome).encode())
    here = Path(__file__).parent
    for source in sorted([*here.glob("*.py"), *here.glob("templates/*")]):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _is_written(folder: Path, stamp: str) -> bool:
    """Whether this very report stands there already."""
    files = [folder / name for name in ("report.html", "claims.json", "figures/figure1.pdf", "tables/table1.csv")]
    if not all(path.is_file() for path in files):
        return False
    with files[0].open(encoding="utf-8") as page_file:
        return stamp in page_file.read(2000)


def _pictures(everything: Sequence[Panel], main: Sequence[Panel], folder: Path) -> dict[str, Picture]:
    """Draw and save all figures; those the page shows come back in both themes."""
    shown: dict[str, Draw] = {
        "figure1": saddle_figure.directions,
        "figure2": lambda theme: figures.training_error(everything, theme),
        "figure3": lambda theme: figures.steps(everything, theme),
        "profiles": lambda theme: figures.profile(main, theme),
        "damping": lambda theme: figures.damping(main, theme),
    }
    folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, dict[str, str]] = {name: {} for name in shown}
    for theme in (LIGHT, DARK):
        with drawn_in(theme):
            for name, draw in shown.items():
                figure = _drawn(draw, theme, folder / name if theme is LIGHT else None)
                if figure:
                    pictures[name][theme.name] = _svg(figure)
    with drawn_in(LIGHT):
        for panel in everything:
            name = panel.data if panel in main else f"{panel.data}-{panel.network.name}"
            _drawn(lambda theme, panel=panel: figures.losses(panel, theme), LIGHT, folder / f"losses-{_safe(name)}")
    return {name: Picture(**themes) for name, themes in pictures.items() if themes}


def _drawn(draw: Draw, theme: Theme, path: Path | None = None) -> Figure | None:
    """A figure with its layout settled, None if there is nothing to draw; with a path, saved as PNG and PDF."""
    figure = draw(theme)
    if figure is None:
        return None
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # settled: each format would do it again
    if path is not None:
        figure.savefig(f"{path}.png")
        figure.savefig(f"{path}.pdf", metadata={"CreationDate": None})
    return figure


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def _figure1() -> dict[str, Any]:
    rays = {ray.name: {"slope": ray.slope, "step": ray.step, "decrease": ray.decrease} for ray in saddle.rays()}
    return {"point": saddle.POINT, "rays": rays, "best non-negative combination": saddle.mixed()}


def _plain(value: Any) -> Any:
    """A record as strict JSON can hold it: numbers that are not finite become null."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _safe(name: str) -> str:
    """A name that is one part of a path: a user's data set may be called anything."""
    return "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in name).strip(".") or "data"


def _write(path: Path, text: str) -> Path:
    """Write a file in one go, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
    return path
