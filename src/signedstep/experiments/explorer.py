"""The numbers behind the page's interactive loss curves."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from signedstep.experiments.curves import AXES, Curve, curve
from signedstep.experiments.panels import Panel, in_order, label
from signedstep.experiments.style import stroke
from signedstep.experiments.words import counted


def explorer(everything: Sequence[Panel]) -> dict[str, Any]:
    """All curves of all panels, ready for JSON; the page's script reads exactly this."""
    columns = in_order(list({column for panel in everything for column in panel.columns}))
    return {
        "methods": [_method(column) for column in columns],
        "problems": [_problem(panel, everything) for panel in everything],
    }


def _method(column: str) -> dict[str, Any]:
    look = stroke(column)
    return {"id": column, "label": label(column), "colour": look.colour, "dash": look.dash, "width": look.width}


def _problem(panel: Panel, everything: Sequence[Panel]) -> dict[str, Any]:
    curves = {column: {axis: curve(panel, column, axis) for axis in AXES} for column in panel.columns}
    return {
        "name": _name(panel, everything),
        "curves": {
            column: {axis: _lists(found) for axis, found in axes.items() if found} for column, axes in curves.items()
        },
    }


def _name(panel: Panel, everything: Sequence[Panel]) -> str:
    """The data set, with as much of its network as tells it from the others."""
    networks = [other.network for other in everything if other.data == panel.data]
    if len(networks) == 1:
        return panel.data
    if len({network.hidden for network in networks}) == len(networks):
        return f"{panel.data}, {counted(panel.network.hidden, 'hidden layer')}"
    return f"{panel.data}, {panel.network.name}"


def _lists(found: Curve) -> dict[str, list[float | None]]:
    return {
        "x": _numbers(found.x),
        "y": _numbers(found.middle),
        "low": _numbers(found.low),
        "high": _numbers(found.high),
    }


def _numbers(values: np.ndarray) -> list[float | None]:
    """Four digits are more than a screen shows; what is not finite is a gap."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
