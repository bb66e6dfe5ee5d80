"""The drawing of Figure 1: contours with the three directions, f along each of them, and a map of who wins where."""

from typing import Any

import numpy as np
import torch
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from signedstep.experiments import saddle
from signedstep.experiments.style import Theme, stroke

COLOURS: dict[str, str] = {
    name: stroke(like).colour for name, like in zip(saddle.DIRECTIONS, ("lsr1-flip", "gd", "sr1-pn"), strict=True)
}
"""As in the paper: gradient blue, Newton red, its negative green."""
NAMES: dict[str, str] = dict(zip(saddle.DIRECTIONS, ("−gradient", "Newton", "−Newton"), strict=True))  # noqa: RUF001
HATCH = "////"
UPHILL_LENGTH = 1.6
"""Of the arrow of a direction along which there is no step."""


def directions(theme: Theme) -> Figure:
    """Figure 1."""
    figure = Figure(figsize=(11.6, 4.4), layout="constrained")
    plane, along, area = figure.subplots(1, 3)
    found = saddle.rays()
    _contours(plane, theme, (-2.4, 4.8), (-2.4, 4.8))
    _arrows(plane, theme, found)
    _along(along, theme, found)
    _map(area, theme)
    _legend(figure, theme)
    return figure


def _contours(ax: Axes, theme: Theme, xs: tuple[float, float], ys: tuple[float, float]) -> None:
    x, y = np.meshgrid(np.linspace(*xs, 300), np.linspace(*ys, 300))
    values = saddle.f(torch.tensor(np.stack([x, y], axis=-1))).numpy()
    levels = [1, 4, 10, 20, 35, 55, 80, 110, 145, 185, 240, 320, 450]
    edges = (*xs, *ys)
    ax.imshow(np.log1p(values), cmap=theme.contours, alpha=0.4, extent=edges, origin="lower", interpolation="bilinear")
    ax.contour(x, y, values, levels=levels, colors=theme.ink, linewidths=0.6, alpha=0.4)
    ax.set(xlim=xs, ylim=ys, aspect="equal", xlabel="x₁", ylabel="x₂", title="Directions from one point")
    ax.grid(visible=False)


def _arrows(ax: Axes, theme: Theme, found: list[saddle.Ray]) -> None:
    start = np.array(saddle.POINT)
    head = {"arrowstyle": "-|>,head_width=0.28,head_length=0.5", "lw": 2.2, "shrinkA": 0, "shrinkB": 0}
    for ray in found:
        colour = COLOURS[ray.name]
        x, y = start + (ray.step or UPHILL_LENGTH) * ray.direction
        ax.annotate("", (x, y), saddle.POINT, arrowprops={**head, "color": colour, "ls": "-" if ray.step else "--"})
        _label(ax, NAMES[ray.name], (x, y), colour, above=ray.direction[1] > 0)
    ax.plot(*start, "o", color=theme.ink, ms=6, zorder=5)


def _along(ax: Axes, theme: Theme, found: list[saddle.Ray]) -> None:
    x = torch.tensor(saddle.POINT, dtype=torch.float64)
    t = torch.linspace(0, saddle.REACH, 400, dtype=torch.float64)[:, None]
    start = saddle.f(x).item()
    for ray in found:
        colour = COLOURS[ray.name]
        values = saddle.f(x + t * torch.tensor(ray.direction)).numpy()
        ax.plot(t[:, 0].numpy(), values, color=colour, lw=2.2)
        if ray.step:
            end = (ray.step, start - ray.decrease)
            ax.plot(*end, "o", color=colour, ms=7, mec=theme.paper, mew=1.2, zorder=4)
            _label(ax, f"−{ray.decrease:.0f}", end, colour, above=False)  # noqa: RUF001
        else:
            above = int(np.flatnonzero(values > 1.5 * start)[0])
            ax.annotate(NAMES[ray.name], (t[above, 0].item(), values[above]), xytext=(8, 0), **_text(colour))
    ax.axhline(start, color=theme.ink, lw=0.8, ls=":")
    ax.set(ylim=(0, 1.9 * start), xlim=(0, saddle.REACH), xlabel="distance along the direction", ylabel="f")
    ax.set(title="f along them, dots: the Wolfe step", box_aspect=1)


def _map(ax: Axes, theme: Theme) -> None:
    winner, uphill = saddle.winners()
    side = saddle.EXTENT
    colours = ListedColormap([COLOURS[name] for name in saddle.DIRECTIONS])
    extent = (-side, side, -side, side)
    ax.imshow(winner, cmap=colours, vmin=0, vmax=2, alpha=0.75, interpolation="nearest", extent=extent, origin="lower")
    line = np.linspace(-side, side, len(uphill))
    ax.contourf(line, line, uphill.astype(float), levels=[0.5, 1.5], colors="none", hatches=[HATCH])
    ax.plot(*saddle.POINT, "o", color=theme.ink, ms=6)
    ax.set(xlabel="x₁", ylabel="x₂", aspect="equal", title="Which goes down farthest, by point")
    ax.grid(visible=False)


def _legend(figure: Figure, theme: Theme) -> None:
    handles: list[Artist] = [Patch(color=COLOURS[name], label=NAMES[name]) for name in saddle.DIRECTIONS]
    handles.append(
        Patch(facecolor="none", edgecolor=theme.ink, hatch=HATCH, lw=0, label="Newton's direction points uphill")
    )
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=1.4)


def _label(ax: Axes, text: str, at: tuple[float, float], colour: str, above: bool) -> None:
    look = {**_text(colour), "ha": "center", "va": "bottom" if above else "top"}
    ax.annotate(text, at, xytext=(0, 9 if above else -9), **look)


def _text(colour: str) -> dict[str, Any]:
    return {"textcoords": "offset points", "color": colour, "fontsize": 9, "fontweight": "bold"}
