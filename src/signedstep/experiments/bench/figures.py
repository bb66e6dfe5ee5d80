"""The figures of the benchmark; each returns a figure, or None if there is nothing to draw."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from signedstep.experiments.bench.results import Results
from signedstep.experiments.bench.solved import PROFILED, Solved, solved
from signedstep.experiments.bench.tables import checkpoints, label
from signedstep.experiments.bench.wins import duel
from signedstep.experiments.figures import draw_profiles, legend_below, tidy_log
from signedstep.experiments.stats import median
from signedstep.experiments.style import Theme, stroke
from signedstep.experiments.words import counted


def profiles(found: Results, theme: Theme) -> Figure | None:
    """Performance profiles above data profiles, for three accuracies."""
    by_tau = [solved(found, found.solvers, tau) for tau in PROFILED]
    if len(found.solvers) < 2 or not len(by_tau[0].evals.evals):
        return None
    figure = Figure(figsize=(12.2, 6.6), layout="constrained")
    grid = figure.subplots(2, len(by_tau), sharey=True, squeeze=False)
    draw_profiles(grid, [each.evals for each in by_tau], found.budget, label)
    for ax, tau in zip(grid[0], PROFILED, strict=True):
        ax.set_title(f"solved to {tau:.0e}")
    for ax in grid[1]:
        ax.set_xscale("log")
    legend_below(figure, list(grid.flat))
    return figure


def wins(found: Results, first: str, theme: Theme) -> Figure | None:
    """The share of problems on which the chosen solver is lower than each other one, with bootstrap intervals."""
    counts = checkpoints(found.budget)
    peers = [peer for peer in found.solvers if peer != first and duel(found, first, peer, counts[0]).medians]
    if not peers:
        return None
    figure = Figure(figsize=(10.4, 1.5 + 0.34 * len(peers)), layout="constrained")
    axes: Sequence[Axes] = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    places = np.arange(len(peers))[::-1]
    for ax, count in zip(axes, counts, strict=True):
        for place, peer in zip(places, peers, strict=True):
            found_duel = duel(found, first, peer, count)
            low, high = found_duel.interval
            ax.plot([low, high], [place, place], color=stroke(peer).colour, lw=2.2, solid_capstyle="round")
            ax.plot(found_duel.rate, place, "o", color=stroke(peer).colour, ms=6.5)
        ax.axvline(0.5, color=theme.ink, lw=0.8, zorder=1.5)
        ax.set_xlim(-0.02, 1.02)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0%}"))
        ax.set_title(f"after {counted(count, 'evaluation')}")
    axes[0].set_yticks(places, [label(peer) for peer in peers])
    figure.supxlabel(f"share of problems on which {label(first)} is lower", fontsize=9.5, color=theme.ink)
    return figure


def targets(found: Results, theme: Theme) -> Figure | None:
    """Median evaluations and seconds to solve a problem, for three accuracies."""
    by_tau = [solved(found, found.solvers, tau) for tau in PROFILED]
    if not len(by_tau[0].evals.evals):
        return None
    figure = Figure(figsize=(10.4, 1.7 + 0.34 * len(found.solvers)), layout="constrained")
    axes: Sequence[Axes] = figure.subplots(1, 2, sharey=True, squeeze=False)[0]
    places = np.arange(len(found.solvers))[::-1]
    for ax, unit in zip(axes, ("evaluations", "seconds"), strict=True):
        for mark, each in zip("o^s", by_tau, strict=True):
            _draw_medians(ax, each, unit, places, mark, theme)
        ax.set_xscale("log")
        tidy_log(ax.xaxis)
        ax.set_xlabel(f"median {unit} to solve a problem")
    axes[0].set_yticks(places, [label(solver) for solver in found.solvers])
    legend_below(figure, axes)
    return figure


def _draw_medians(ax: Axes, found: Solved, unit: str, places: np.ndarray, mark: str, theme: Theme) -> None:
    """One mark for each solver that solves at least half of the problems."""
    values = found.evals.evals if unit == "evaluations" else found.seconds
    middle = [median(list(column)) for column in values.T]
    for place, solver, x in zip(places, found.evals.columns, middle, strict=True):
        if np.isfinite(x):
            ax.plot(x, place, mark, color=stroke(solver).colour, ms=7)
    ax.plot([], [], mark, color=theme.ink, ms=7, label=f"to {found.evals.tau:.0e}")
