"""One look for every figure and for the page: a colour and a dash per method, and a light and a dark theme.

The colours are Okabe and Ito's, which colour-blind readers can tell apart; where the paper gives a method a colour (GD
red, SR1 blue and green, BFGS yellow, Adam black) we take the nearest. A method and its limited-memory form, which is
dashed, share one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_GREEN, _BLUE, _SKY, _ORANGE, _RED, _PINK = "#009e73", "#0072b2", "#56b4e9", "#e69f00", "#d55e00", "#cc79a7"
_GREY, _BROWN = "#7f7f7f", "#9c6b3f"


@dataclass(frozen=True)
class Stroke:
    """How a method is drawn; `dash` is in the spelling that plotly and SVG share."""

    colour: str
    dash: str = "solid"
    width: float = 1.8

    @property
    def linestyle(self) -> Any:
        """The same dash for matplotlib."""
        return {"solid": "-", "dash": (0, (4, 2)), "dot": (0, (1.2, 1.6))}[self.dash]


_STROKES = {
    "gd": Stroke(_RED),
    "adam-0.001": Stroke(_GREY),
    "adam-best": Stroke(_GREY, "dash"),
    "bfgs": Stroke(_ORANGE),
    "sr1-p": Stroke(_SKY),
    "sr1-pn": Stroke(_GREEN, width=2.6),
    "lbfgs": Stroke(_ORANGE, "dash"),
    "lsr1": Stroke(_SKY, "dash"),
    "lsr1-damp": Stroke(_PINK),
    "lsr1-damp-dense": Stroke(_PINK, "dot"),
    "lsr1-wolfe+-": Stroke(_GREEN, "dash", width=2.6),
    "lsr1-flip": Stroke(_BLUE),
    "lbfgs-scaled": Stroke(_BROWN),
    "momentum-0.01": Stroke(_RED, "dash"),
    "momentum-0.1": Stroke(_RED, "dot"),
    "rmsprop-0.001": Stroke(_BROWN, "dash"),
    "rmsprop-0.01": Stroke(_BROWN, "dot"),
    "auto": Stroke(_GREEN, width=2.8),
    "lsr1/flip": Stroke(_BLUE),
    "lsr1/wolfe+-": Stroke(_GREEN, "dash"),
    "mix": Stroke(_BLUE, "dash", width=2.6),
    "torch-lbfgs": Stroke(_ORANGE),
    "scipy-lbfgsb": Stroke(_RED),
    "scipy-bfgs": Stroke(_RED, "dash"),
    "scipy-trust-ncg": Stroke(_PINK),
    "scipy-trust-krylov": Stroke(_PINK, "dash"),
    "scipy-trust-sr1": Stroke(_PINK, "dot"),
    "torchmin-lbfgs": Stroke(_BROWN),
    "torchmin-bfgs": Stroke(_BROWN, "dash"),
    "torchzero-lsr1": Stroke("#4b3f9c"),
    "torchzero-lsr1-pm": Stroke("#4b3f9c", "dash"),
    "torchzero-lsr1-trust": Stroke("#4b3f9c", "dot"),
    "optax-lbfgs": Stroke(_SKY),
    "optimistix-lbfgs": Stroke("#8a9a00"),
    "optimistix-bfgs": Stroke("#8a9a00", "dash"),
}
_FALLBACKS = (Stroke("#4b3f9c"), Stroke("#8a9a00"), Stroke("#b0413e", "dash"), Stroke("#3f7f8c", "dash"))


def stroke(column: str) -> Stroke:
    """How a method is drawn, the same everywhere; one that this file does not know gets a stroke by its name."""
    if column.startswith("adam-"):
        return _STROKES.get(column, _STROKES["adam-best"])
    return _STROKES.get(column) or _FALLBACKS[sum(map(ord, column)) % len(_FALLBACKS)]


@dataclass(frozen=True)
class Theme:
    """The colours of a figure that are not a method's."""

    name: str
    paper: str
    ink: str
    faint: str
    """Grid and frame."""
    contours: str
    """A colour map of matplotlib."""


LIGHT = Theme("light", "#ffffff", "#22262b", "#d9dde2", "Greys")
DARK = Theme("dark", "#16191d", "#dfe3e8", "#3a4048", "Greys_r")


@contextmanager
def drawn_in(theme: Theme) -> Iterator[None]:
    """Make figures in this theme; nothing of it stays behind."""
    import matplotlib

    settings: dict[Any, Any] = {
        "figure.facecolor": theme.paper,
        "savefig.facecolor": theme.paper,
        "axes.facecolor": theme.paper,
        "axes.edgecolor": theme.faint,
        "axes.labelcolor": theme.ink,
        "axes.titlecolor": theme.ink,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": 9.5,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": theme.faint,
        "grid.linewidth": 0.6,
        "text.color": theme.ink,
        "xtick.color": theme.faint,
        "ytick.color": theme.faint,
        "xtick.labelcolor": theme.ink,
        "ytick.labelcolor": theme.ink,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "figure.constrained_layout.h_pad": 0.08,
        "figure.constrained_layout.w_pad": 0.08,
        "hatch.color": theme.ink,
        "hatch.linewidth": 0.5,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "font.family": "DejaVu Sans",
        "lines.solid_capstyle": "round",
        "svg.fonttype": "path",
        "svg.hashsalt": "signedstep",
        "savefig.dpi": 180,
    }
    with matplotlib.rc_context(settings):
        yield
