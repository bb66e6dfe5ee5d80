"""The HTML page: everything it needs is inside, so that it works from a disk without a network."""

import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from signedstep.experiments import exports, paper, saddle, tables
from signedstep.experiments.explorer import explorer
from signedstep.experiments.output import Picture
from signedstep.experiments.panels import MEASURE_NAMES, Panel, diverged, label, timed_out
from signedstep.experiments.runs import Outcome
from signedstep.experiments.solvers import SOLVERS, WOLFE
from signedstep.experiments.style import stroke
from signedstep.experiments.verdicts import FEW, HELD, NOT, PARTLY, Claim
from signedstep.experiments.words import counted, listed

MARKS = {HELD: "✓", PARTLY: "◐", NOT: "✗", FEW: "…"}


def page(
    title: str,
    command: str,
    stamp: str,
    everything: Sequence[Panel],
    main: Sequence[Panel],
    verdicts: Sequence[Claim],
    found: Sequence[tables.Table],
    pictures: dict[str, Picture],
    comparison: bool = False,
) -> str:
    """The page as text: of the paper's experiments, or a comparison of methods on other data.

    A comparison opens with its ranking, ends with the paper's claims, and leaves out those and figures that its methods
    have nothing to say to.
    """
    environment = templates()
    environment.filters |= {"ours": exports.ours, "spread": tables.spread, "printed": tables.printed}
    environment.filters |= {"label": label, "named": tables.named}
    outcomes = [outcome for panel in everything for runs in panel.runs.values() for outcome in runs]
    return environment.get_template("report.html.jinja").render(
        title=title,
        command=command,
        stamp=stamp,
        written=datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC"),
        claims=[claim for claim in verdicts if not comparison or claim.verdict != FEW],
        marks=MARKS,
        kinds={verdict: f"kind-{place}" for place, verdict in enumerate(MARKS)},
        tables=found,
        measures=MEASURE_NAMES,
        comparison=comparison,
        beside_paper=any(table.beside_paper for table in found),
        decimals=tables.DIGITS,
        paper=paper.TABLE,
        pictures=pictures,
        saddle=_saddle(),
        main=main,
        facts=facts(outcomes),
        methods=_methods(everything),
        shared=", ".join(f"{key} = {value}" for key, value in WOLFE.items()),
        notes=[*([] if comparison else missing(main)), *notes(outcomes, main)],
        curves=_embedded(explorer(everything)),
        plotly=get_plotlyjs(),
    )


def templates() -> Environment:
    """The templates of pages; what they do not know is an error."""
    return Environment(
        loader=PackageLoader("signedstep.experiments", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def facts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """How it was run, in words."""
    budgets = {outcome.run.budget for outcome in outcomes}
    versions: dict[str, set[str]] = {}
    for outcome in outcomes:
        for name, version in outcome.environment.items():
            versions.setdefault(name, set()).add(version)
    found = {
        "Runs": f"{len(outcomes)}, of which {sum(not outcome.finished for outcome in outcomes)} did not finish",
        "Data sets": ", ".join(dict.fromkeys(outcome.run.data for outcome in outcomes)),
        "Seeds": listed({outcome.run.seed for outcome in outcomes}),
        "Networks": "; ".join(dict.fromkeys(outcome.run.network.text for outcome in outcomes)),
        "Budget": "; ".join(
            f"{counted(budget.iterations, 'iteration')} and {counted(budget.evals, 'evaluation')}, "
            f"at most {budget.seconds:g} s"
            for budget in sorted(budgets, key=lambda budget: (budget.iterations, budget.evals, budget.seconds))
        ),
        "Versions": ", ".join(f"{name} {' / '.join(sorted(several))}" for name, several in versions.items()),
        "Report written on": platform.platform(),
    }
    return {name: text for name, text in found.items() if text}


def missing(main: Sequence[Panel]) -> list[str]:
    """What a reproduction lacks of the paper's table."""
    found = []
    rows = {panel.data for panel in main}
    sets = [name for name in paper.TABLE if name not in rows]
    if sets and rows & paper.TABLE.keys():
        found.append(f"Of the paper's 14 data sets these are not here: {', '.join(sets)}.")
    absent = [label(column) for column in paper.COLUMNS if all(column not in panel.runs for panel in main)]
    if absent:
        found.append(f"Of the paper's methods these were not run: {', '.join(absent)}.")
    return found


def notes(outcomes: Sequence[Outcome], main: Sequence[Panel]) -> list[str]:
    """What a reader should know before believing a number: facts about these runs."""
    found = []
    lost = [outcome.run.name for outcome in outcomes if diverged(outcome)]
    if lost:
        listed = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        runs = counted(len(lost), "run")
        found.append(f"The loss did not stay finite in {runs} ({listed}) and counts as infinitely high there.")
    refused = {
        f"{outcome.run.solver} on {outcome.run.data}": outcome.ended for outcome in outcomes if _refused(outcome)
    }
    found += [f"{name}: {reason}" for name, reason in refused.items()]
    seeds = {len(runs) for panel in main for runs in panel.runs.values()}
    if seeds and min(seeds) < 5:
        found.append(f"Some medians stand on {counted(min(seeds), 'seed')} only.")
    return found


def _refused(outcome: Outcome) -> bool:
    return not outcome.finished and not diverged(outcome) and not timed_out(outcome)


def _saddle() -> dict[str, Any]:
    """The numbers in the caption of Figure 1."""
    winner, uphill = saddle.winners()
    negated = saddle.DIRECTIONS.index("negated Newton")
    return {
        "rays": {ray.name: ray for ray in saddle.rays()},
        "mixed": saddle.mixed(),
        "point": saddle.POINT,
        "uphill": uphill.mean(),
        "negated": (winner[uphill] == negated).mean(),
    }


def _methods(everything: Sequence[Panel]) -> list[dict[str, Any]]:
    """The solvers that ran, with their options."""
    ran = {solver for panel in everything for solver in panel.runs}
    known = [(name, solver) for name, solver in SOLVERS.items() if name in ran]
    return [
        {
            "label": solver.label,
            "method": solver.method,
            "text": solver.text,
            "options": ", ".join(f"{key} = {value}" for key, value in solver.options.items()),
            "ours": not solver.paper,
            "colour": stroke(name).colour,
        }
        for name, solver in known
    ]


def _embedded(record: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(record, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
