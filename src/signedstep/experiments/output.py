"""How figures and texts become files and parts of a page."""

import base64
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from signedstep.experiments.style import DARK, LIGHT, Theme, drawn_in

Draw = Callable[[Theme], Figure | None]


@dataclass(frozen=True)
class Picture:
    """A figure as SVG in both themes."""

    light: str
    dark: str
    width: float
    """In pixels, as large as its letters are meant to be."""

    @property
    def sources(self) -> tuple[str, str]:
        """The two as addresses that hold their own content."""
        light, dark = (base64.b64encode(svg.encode()).decode() for svg in (self.light, self.dark))
        return f"data:image/svg+xml;base64,{light}", f"data:image/svg+xml;base64,{dark}"


def pictures(shown: Mapping[str, Draw], folder: Path) -> dict[str, Picture]:
    """Draw figures in both themes for a page, and save the light ones; those that have no data are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, str]] = {name: {} for name in shown}
    widths: dict[str, float] = {}
    for theme in (LIGHT, DARK):
        with drawn_in(theme):
            for name, draw in shown.items():
                figure = settled(draw, theme, folder / name if theme is LIGHT else None)
                if figure:
                    found[name][theme.name] = _svg(figure)
                    widths[name] = 96 * figure.get_figwidth()
    return {name: Picture(**themes, width=widths[name]) for name, themes in found.items() if themes}


def settled(draw: Draw, theme: Theme, path: Path | None = None) -> Figure | None:
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


def write_text(path: Path, text: str) -> Path:
    """Write a file in one go, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
    return path
