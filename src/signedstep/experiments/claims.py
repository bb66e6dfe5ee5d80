"""A verdict on each claim of the paper, by criteria that are written down, with the numbers it stands on.

A claim is judged at equal iterations, as the paper counts, and at equal evaluations: where the two disagree it "held
partly". "Beats" means: a lower median on two thirds of the data sets, and a one-sided sign test over the pairs of runs
with the same data set, network and seed below 5 %. Runs on one data set are not independent, so that the test is a
rule that keeps chance out, not a probability to quote.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise

from signedstep.experiments.damping import DampingCost, damping_costs
from signedstep.experiments.duels import ENOUGH_PAIRS, Duels, duels, paired
from signedstep.experiments.exports import duration
from signedstep.experiments.panels import ADAM_BEST, ADAM_DEFAULT, MEASURES, Measure, Panel, label
from signedstep.experiments.runs import Outcome
from signedstep.experiments.stats import median
from signedstep.experiments.verdicts import (
    FEW,
    HELD,
    NOT,
    PARTLY,
    Claim,
    agreed,
    beats_or_leads,
    both_parts,
    duel_table,
    judged,
    keeps_up,
    numbers,
    share,
)
from signedstep.experiments.words import counted
from signedstep.status import Status

OURS, POSITIVE, DENSE_OURS, DENSE_POSITIVE = "lsr1-wolfe+-", "lsr1", "sr1-pn", "sr1-p"


def claims(everything: Sequence[Panel], main: Sequence[Panel]) -> list[Claim]:
    """All claims, in the order of the paper, our own question last; `main` are the panels of Table 1."""
    return [
        positive_stalls(everything),
        signed_converges(everything),
        below_bfgs(everything),
        damping_expensive(main),
        beats_others(main),
        beats_scaled(main),
    ]


def gave_up(outcome: Outcome) -> bool:
    """Whether a run ended before its iterations were used up without having arrived anywhere."""
    arrived = outcome.ended == Status.STALLED.value or outcome.ended.startswith("Converged")
    return outcome.finished and not arrived and len(outcome.trace.f) - 1 < outcome.run.budget.iterations


def positive_stalls(everything: Sequence[Panel]) -> Claim:
    runs = _runs(everything, DENSE_POSITIVE, POSITIVE)
    stopped = [len(outcome.trace.f) - 1 for outcome in runs if gave_up(outcome)]
    stalled = len(stopped) / len(runs) if runs else 0.0
    sentence = f"{len(stopped)} of {counted(len(runs), 'positive-only run')} stopped before all iterations were used up"
    sentence += f", half of them by iteration {median(stopped):g}" if stopped else ""
    uphill = sum(gave_up(outcome) and outcome.ended.startswith(Status.NOT_DESCENT.value) for outcome in runs)
    return Claim(
        "a",
        "Positive-only SR1 stalls",
        "With a line search that allows positive steps only, SR1 and l-SR1 do not converge.",
        "A run stalls if it stops before its budget of iterations without having converged. Held: at least 75 % of the "
        "SR1 (p) and l-SR1 runs stall; partly: at least 25 %.",
        _by_share(stalled) if len(runs) >= ENOUGH_PAIRS else FEW,
        f"{sentence}; {uphill} of them because the direction pointed uphill.",
        {"runs": len(runs), "stalled": len(stopped), "uphill": uphill, "iterations": sorted(stopped)},
    )


def signed_converges(everything: Sequence[Panel]) -> Claim:
    runs = _runs(everything, DENSE_OURS, OURS)
    stopped = sum(gave_up(outcome) for outcome in runs)
    falls = [g[-1] / g[0] for g in (outcome.trace.grad_norm for outcome in runs) if len(g) > 1 and g[0]]
    dense, limited = duels(everything, DENSE_OURS, DENSE_POSITIVE), duels(everything, OURS, POSITIVE)
    found: Duels = {measure: dense[measure] + limited[measure] for measure in MEASURES}
    goes_on = stopped <= 0.1 * len(runs)
    sentence = f"{stopped} of {counted(len(runs), 'Wolfe± run')} stopped early, "
    sentence += f"and they ended below the positive-only run from the same start in {share(found)} of the pairs"
    return Claim(
        "b",
        "Wolfe± makes it converge",
        "The same methods converge when the step may be negative.",
        "Two parts: at most 10 % of the Wolfe± runs stop early, and Wolfe± beats positive-only steps. Held: both, "
        "partly: one.",
        judged(found, lambda each: both_parts(goes_on, each.beats)),
        f"{sentence}." if runs else "There are no such runs.",
        {"runs": len(runs), "stalled": stopped, "gradient fell to": median(falls), **numbers(found)},
        duel_table({"Wolfe± below positive-only": found}),
    )


def below_bfgs(everything: Sequence[Panel]) -> Claim:
    depths = sorted({panel.network.hidden for panel in everything if {DENSE_OURS, "bfgs"} <= panel.runs.keys()})
    ratios = {m: [_advantage(everything, depth, m) for depth in depths] for m in MEASURES}
    found = duels(everything, DENSE_OURS, "bfgs")
    enough = len(depths) > 1 and all(each.pairs >= ENOUGH_PAIRS for each in found.values())
    by_iterations, by_evals = (", ".join(f"{ratio:.2f}" for ratio in ratios[m]) for m in MEASURES)
    sentence = (
        f"SR1± ended below BFGS in {share(found)} of the pairs. With {', '.join(map(str, depths))} hidden "
        f"{'layer' if depths == [1] else 'layers'} the "
        f"loss of BFGS was {by_iterations} times that of SR1± (equal iterations), or {by_evals} (equal evaluations)."
    )
    return Claim(
        "c",
        "SR1± ends below BFGS, more so with depth",
        "Dense SR1 with negative steps ends below BFGS, and the deeper the network, the more so.",
        "Two parts: SR1 (p+n) beats BFGS, and the median ratio of their losses, seed by seed, grows with every "
        "hidden layer. Held: both, partly: one.",
        agreed([both_parts(found[m].beats, _grows(ratios[m])) for m in MEASURES]) if enough else FEW,
        sentence if depths else "No data set has runs of both.",
        {"depths": depths, "ratios": ratios, **numbers(found)},
        duel_table({"SR1± below BFGS": found}),
    )


def damping_expensive(main: Sequence[Panel]) -> Claim:
    rows, exponent = damping_costs(main)
    dense = [row for row in rows if row.dense is not None or row.unfinished]
    timed = [row for row in dense if row.dense is not None]
    expensive = 2 * sum(row.costly for row in dense) > len(dense)
    factor = median([row.cheap / row.signed for row in rows])
    verdict = (PARTLY if factor <= 1.5 else HELD) if expensive else NOT
    sentence = f"The O(mn) form took {factor:.2f} times as long as l-SR1± in the median."
    if timed:
        top = timed[-1]
        unfinished = sum(row.unfinished for row in dense)
        sentence = (
            f"With n = {top.unknowns} ({top.data}) an iteration of the paper's form took {_dense_time(top)}, that of "
            f"l-SR1± {duration(top.signed)}; {unfinished} of {counted(len(dense), 'data set')} did not finish. "
            f"{sentence}"
        )
    return Claim(
        "d",
        "Damping is expensive",
        "Damping needs an eigenvalue decomposition and is therefore expensive; often it did not finish.",
        "The paper's form, an n by n eigendecomposition, is expensive if on most data sets it does not finish or an "
        "iteration takes 5 times that of l-SR1±. Held: it is, and so is the O(mn) form (more than 1.5 times); partly: "
        "only the paper's form is.",
        verdict if dense else FEW,
        sentence if rows else "No data set has runs of both.",
        {"data sets": [asdict(row) for row in rows], "exponent of n": exponent},
        [["time per iteration", "n", "l-SR1±", "O(mn) form", "paper's form"], *map(_cost_line, rows)] if rows else [],
    )


def beats_others(main: Sequence[Panel]) -> Claim:
    rivals = ("gd", "lbfgs", "lsr1-damp", ADAM_DEFAULT, ADAM_BEST)
    fought = {rival: duels(main, OURS, rival) for rival in rivals}
    fought = {rival: found for rival, found in fought.items() if found["iterations"].pairs}
    rules = {rival: keeps_up if rival in (ADAM_DEFAULT, ADAM_BEST) else beats_or_leads for rival in fought}
    parts = {rival: judged(found, rules[rival]) for rival, found in fought.items()}
    verbs = {rival: "Keeps up with" if rules[rival] is keeps_up else "Beats" for rival in fought}
    words = {HELD: "yes", PARTLY: "partly", NOT: "no", FEW: "too few runs"}
    listed = " ".join(f"{verbs[rival]} {label(rival)}: {words[part]}." for rival, part in parts.items())
    enough = {*rivals} - {ADAM_BEST} <= parts.keys() and FEW not in parts.values()
    return Claim(
        "e",
        "l-SR1± beats the others",
        "l-SR1 with negative steps beats l-BFGS, gradient descent and damping, and is competitive with Adam.",
        "Parts: it beats GD, damping and l-BFGS (from the identity, as the paper's), and its median is at most that of "
        "Adam on half of the data sets, both with Adam's default rate and with its best. Held: every part; did not "
        "hold: none.",
        agreed([*parts.values()]) if enough else FEW,
        listed or "No data set has runs of it and of another method.",
        {"parts": parts, **{rival: numbers(found) for rival, found in fought.items()}},
        duel_table({f"below {label(rival)}": found for rival, found in fought.items()}),
    )


def beats_scaled(main: Sequence[Panel]) -> Claim:
    found, flips, mixes = (duels(main, solver, "lbfgs-scaled") for solver in (OURS, "lsr1-flip", "mix"))
    sentence = f"l-SR1± ended below the scaled l-BFGS in {share(found)} of the pairs"
    for name, additional in (("l-SR1+flip", flips), ("mix", mixes)):
        sentence += f", {name} in {share(additional)}" if additional["evals"].pairs else ""
    return Claim(
        "+",
        "Our question: does it beat a well-scaled l-BFGS?",
        "Not in the paper: its l-BFGS starts from the identity, while l-BFGS is usually scaled by y·y/s·y.",
        "Held: l-SR1± beats the scaled l-BFGS; partly: its median is lower on more than half of the data sets.",
        judged(found, beats_or_leads),
        f"{sentence}." if found["evals"].pairs else "It was not run.",
        {**numbers(found), "flip": numbers(flips), "mix": numbers(mixes)},
        duel_table({"l-SR1± below it": found, "l-SR1+flip below it": flips, "mix below it": mixes}),
    )


def _by_share(stalled: float) -> str:
    return HELD if stalled >= 0.75 else PARTLY if stalled >= 0.25 else NOT


def _advantage(everything: Sequence[Panel], depth: int, measure: Measure) -> float:
    """The median of BFGS's loss over SR1±'s, seed by seed, for networks of one depth."""
    found = [panel for panel in everything if panel.network.hidden == depth]
    pairs = [pair for panel in found for pair in paired(panel, DENSE_OURS, "bfgs", measure)]
    return median([1.0 if ours == theirs else theirs / ours if ours else math.inf for ours, theirs in pairs])


def _grows(values: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _runs(everything: Sequence[Panel], *solvers: str) -> list[Outcome]:
    return [outcome for panel in everything for solver in solvers for outcome in panel.runs.get(solver, ())]


def _cost_line(row: DampingCost) -> list[str]:
    return [row.data, str(row.unknowns), duration(row.signed), duration(row.cheap), _dense_time(row)]


def _dense_time(row: DampingCost) -> str:
    if row.dense is None:
        return "not run"
    return f"at least {duration(row.dense)}" if row.bound else duration(row.dense)
