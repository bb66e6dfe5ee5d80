"""The whole report from outcomes alone: one page that works offline, and figures, tables and verdicts as files."""

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from signedstep.experiments import exports, figures, saddle, saddle_figure
from signedstep.experiments.claims import claims
from signedstep.experiments.output import Draw, Picture, pictures, settled, write_text
from signedstep.experiments.page import page
from signedstep.experiments.panels import MEASURE_NAMES, Panel, main_panels, panels
from signedstep.experiments.runs import Outcome
from signedstep.experiments.style import LIGHT, drawn_in
from signedstep.experiments.tables import tables


def write(outcomes: Sequence[Outcome], folder: Path, title: str, command: str, comparison: bool = False) -> Path:
    """Write report.html, figures/, tables/ and claims.json into a folder and return the page.

    Any subset of runs will do; what is missing is left out or said. `command` is what gives the same report again.
    A `comparison` of methods on data of one's own has all its digits and speaks of the paper only where it has to.
    """
    stamp = _stamp(outcomes, title, command)
    if _is_written(folder, stamp):
        return folder / "report.html"
    everything = panels(outcomes)
    main = main_panels(everything)
    found = tables(main, comparison)
    verdicts = claims(everything, main)
    drawn = _pictures(everything, main, folder / "figures")
    for table in found:
        name = f"table1-equal-{MEASURE_NAMES[table.measure]}"
        write_text(folder / "tables" / f"{name}.md", exports.to_markdown(table))
        write_text(folder / "tables" / f"{name}.tex", exports.to_latex(table))
    write_text(folder / "tables" / "table1.csv", exports.to_csv(found))
    record = {"command": command, "claims": [claim.to_json() for claim in verdicts], "figure 1": _figure1()}
    write_text(folder / "claims.json", json.dumps(_plain(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    text = page(title, command, stamp, everything, main, verdicts, found, drawn, comparison)
    return write_text(folder / "report.html", text)  # last, so that its stamp vouches for the rest


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
    found = pictures(shown, folder)
    with drawn_in(LIGHT):
        for panel in everything:
            name = panel.data if panel in main else f"{panel.data}-{panel.network.name}"
            settled(lambda theme, panel=panel: figures.losses(panel, theme), LIGHT, folder / f"losses-{_safe(name)}")
    return found


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
