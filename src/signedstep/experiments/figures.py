"""The figures as matplotlib draws them, for PNG, PDF and the page; each returns a figure or None if it has no data."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from signedstep.experiments import profiles
from signedstep.experiments.curves import Axis, curve
from signedstep.experiments.damping import damping_costs
from signedstep.experiments.panels import Panel, label, shared_columns
from signedstep.experiments.style import Theme, stroke
from signedstep.experiments.words import counted

DENSE = ("gd", "adam-0.001", "bfgs", "sr1-pn", "sr1-p")
"""The methods of the paper's Figures 2 and 3; what is drawn last lies on top."""
ITERATIONS = 50
"""As many as the paper's Figures 2 and 3 show."""
AXIS_NAMES = {"iterations": "iteration", "evals": "evaluations of loss and gradient", "seconds": "seconds"}


def depths(everything: Sequence[Panel]) -> list[Panel]:
    """The panels of Figures 2 and 3: one data set (heart, if it is there) by rising number of hidden layers."""
    found = [panel for panel in everything if {"bfgs", "sr1-p", "sr1-pn"} & panel.runs.keys()]
    names = [panel.data for panel in found]
    if not found:
        return []
    chosen = "heart" if "heart" in names else max(names, key=names.count)
    by_depth: dict[int, Panel] = {}
    for panel in found:
        if panel.data == chosen:
            by_depth.setdefault(panel.network.hidden, panel)
    return [by_depth[depth] for depth in sorted(by_depth)]


def training_error(everything: Sequence[Panel], theme: Theme) -> Figure | None:
    """Figure 2: training error by iteration for 1, 2 and 3 hidden layers, median and quartiles over the seeds."""
    chosen = depths(everything)
    if not chosen:
        return None
    figure, axes = _row(len(chosen), height=3.1)
    for ax, panel in zip(axes, chosen, strict=True):
        for column in _drawn(panel, DENSE):
            _draw_curve(ax, panel, column, "iterations", ITERATIONS)
        ax.set_title(_layers(panel))
        ax.set_xlabel("iteration")
        ax.set_yscale("log")
        tidy_log(ax.yaxis)
    axes[0].set_ylabel("training error")
    legend_below(figure, axes)
    return figure


def steps(everything: Sequence[Panel], theme: Theme) -> Figure | None:
    """Figure 3: signed steps and cosines, one dot per iteration of every seed; the first seed is joined by a line."""
    chosen = depths(everything)
    if not chosen:
        return None
    figure = Figure(figsize=(_width(len(chosen)), 5.2), layout="constrained")
    grid = figure.subplots(2, len(chosen), sharex=True, sharey="row", squeeze=False)
    for (top, bottom), panel in zip(grid.T, chosen, strict=True):
        for column in _drawn(panel, DENSE):
            _draw_dots(top, panel, column, "alpha")
            _draw_dots(bottom, panel, column, "cosine")
        top.set_title(_layers(panel))
        top.set_yscale("symlog", linthresh=1e-3, linscale=0.6)
        top.yaxis.set_minor_locator(NullLocator())
        bottom.set_ylim(-1.05, 1.05)
        bottom.set_xlabel("iteration")
        for ax in (top, bottom):
            ax.axhline(0, color=theme.ink, linewidth=0.8, zorder=1.5)
    _sparse_powers(grid[0, 0])
    grid[0, 0].set_ylabel("signed step size")
    grid[1, 0].set_ylabel("cosine of direction\nwith −gradient")  # noqa: RUF001
    legend_below(figure, list(grid.flat))
    return figure


def losses(panel: Panel, theme: Theme) -> Figure | None:
    """The loss curves of one data set with one network, by iteration and by evaluation."""
    figure, axes = _row(2, height=3.4, share=True)
    axis: Axis
    for ax, axis in zip(axes, ("iterations", "evals"), strict=True):
        for column in panel.columns:
            _draw_curve(ax, panel, column, axis)
        ax.set_xlabel(AXIS_NAMES[axis])
        ax.set_yscale("log")
    tidy_log(axes[0].yaxis)
    axes[0].set_ylabel("training loss")
    figure.suptitle(f"{panel.data}, {panel.network.text}", x=0.01, ha="left", fontsize=10.5, color=theme.ink)
    legend_below(figure, axes)
    return figure


def profile(chosen: Sequence[Panel], theme: Theme) -> Figure | None:
    """Performance profiles and data profiles for each tau."""
    columns = [column for column in shared_columns(chosen) if column != "lsr1-damp-dense"]
    found = [profiles.costs(chosen, columns, tau) for tau in profiles.TAUS]
    if len(columns) < 2 or not all(len(costs.evals) for costs in found):
        return None
    figure = Figure(figsize=(9.6, 6.2), layout="constrained")
    grid = figure.subplots(2, len(found), sharey=True, squeeze=False)
    draw_profiles(grid, found, max(panel.limit("evals", columns) for panel in chosen), label)
    for ax, costs in zip(grid[0], found, strict=True):
        ax.set_title(f"within {costs.tau:.0%} of the best loss seen")
    legend_below(figure, list(grid.flat))
    return figure


def damping(chosen: Sequence[Panel], theme: Theme) -> Figure | None:
    """Seconds per iteration against the number of unknowns: damping in both forms, and l-SR1 with Wolfe±."""
    rows, _ = damping_costs(chosen)
    timed = [(row.unknowns, row.dense) for row in rows if row.dense is not None]
    if not timed:
        return None
    figure, (ax,) = _row(1, height=3.4, width=6.4)
    for column, values in (
        ("lsr1-damp-dense", timed),
        ("lsr1-damp", [(row.unknowns, row.cheap) for row in rows]),
        ("lsr1-wolfe+-", [(row.unknowns, row.signed) for row in rows]),
    ):
        x, y = zip(*values, strict=True)
        look = stroke(column)
        ax.plot(x, y, "o", ls=look.linestyle, color=look.colour, lw=look.width, ms=4.5, label=label(column))
    late = [(row.unknowns, row.dense) for row in rows if row.dense is not None and row.unfinished]
    if late:
        ax.plot(*zip(*late, strict=True), "^", ms=10, mfc="none", mec=theme.ink, ls="none", label="did not finish")
    ax.set(xscale="log", yscale="log", xlabel="unknowns n", ylabel="seconds per iteration")
    tidy_log(ax.xaxis)
    legend_below(figure, [ax])
    return figure


def tidy_log(axis: XAxis | YAxis) -> None:
    """Plain numbers on a log axis that spans less than two decades, where powers of ten would be one tick or none."""
    low, high = axis.get_view_interval()
    if low > 0 and high / low < 100:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())


def _draw_curve(ax: Axes, panel: Panel, column: str, axis: Axis, last: int | None = None) -> None:
    found = curve(panel, column, axis, last)
    if found is None:
        return
    look = stroke(column)
    ax.fill_between(found.x, found.low, found.high, color=look.colour, alpha=0.14, linewidth=0)
    ax.plot(found.x, found.middle, color=look.colour, ls=look.linestyle, lw=look.width, label=label(column))


def _draw_dots(ax: Axes, panel: Panel, column: str, field: str) -> None:
    look = stroke(column)
    for place, outcome in enumerate(panel.runs[column]):
        values = [math.nan if value is None else value for value in getattr(outcome.trace, field)][1 : ITERATIONS + 1]
        x = range(1, len(values) + 1)
        if place == 0:
            ax.plot(x, values, lw=0.7, alpha=0.6, color=look.colour, zorder=2.5)
            ax.plot(x, values, "o", color=look.colour, ms=3.4, mew=0, label=label(column), zorder=3)
        else:
            ax.plot(x, values, "o", color=look.colour, ms=2.2, mew=0, alpha=0.3, zorder=2)


def draw_profiles(grid: np.ndarray, found: Sequence[profiles.Costs], budget: int, name: Callable[[str], str]) -> None:
    """Performance profiles above data profiles, one column of axes for each tau."""
    ratios, budgets = np.geomspace(1, 32, 200), np.arange(1, budget + 1)
    for (top, bottom), costs in zip(grid.T, found, strict=True):
        _draw_steps(top, costs, ratios, profiles.performance(costs, ratios), name)
        _draw_steps(bottom, costs, budgets, profiles.data_profile(costs, budgets), name)
        top.set_xscale("log", base=2)
        top.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))  # noqa: RUF001
        top.set_xlabel("evaluations relative to the fastest method")
        bottom.set_xlabel("evaluations")
    for ax in grid[:, 0]:
        ax.set_ylabel("share of problems solved")
        ax.set_ylim(-0.02, 1.02)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0%}"))


def _draw_steps(ax: Axes, costs: profiles.Costs, x: np.ndarray, shares: np.ndarray, name: Callable[[str], str]) -> None:
    for column, y in zip(costs.columns, shares, strict=True):
        look = stroke(column)
        line = {"color": look.colour, "ls": look.linestyle, "lw": look.width, "zorder": 2 + look.width / 10}
        ax.step(x, y, where="post", label=name(column), **line)  # wide lines lie on top


def _sparse_powers(ax: Axes) -> None:
    """At most three powers of ten on each side of a symmetric log axis."""
    low, high = ax.get_ylim()
    top = max(abs(low), abs(high), 1e-2)
    powers = list(range(-2, math.ceil(math.log10(top)) + 1))
    powers = powers[:: max(1, math.ceil(len(powers) / 3))]
    values = [10.0**power for power in powers]
    ax.set_yticks([-v for v in values if -v >= low] + [0.0] + [v for v in values if v <= high])


def _drawn(panel: Panel, columns: Sequence[str]) -> list[str]:
    return [column for column in columns if column in panel.runs]


def _layers(panel: Panel) -> str:
    return f"{panel.data}, {counted(panel.network.hidden, 'hidden layer')}"


def _width(panels: int) -> float:
    return 2.0 + 3.2 * panels


def _row(count: int, height: float, width: float | None = None, share: bool = False) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width or _width(count), height), layout="constrained")
    return figure, list(figure.subplots(1, count, sharey=share, squeeze=False).flat)


def legend_below(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend for all axes, each method once."""
    handles = {text: handle for ax in axes for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    widest = 0.7 + 0.07 * max(map(len, handles), default=0)  # inches of a column: a stroke and its words
    columns = min(len(handles), max(3, int(figure.get_figwidth() / widest)))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, handlelength=2.4)
