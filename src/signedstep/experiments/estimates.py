"""Rough times of runs, from measurements on one machine: they order the runs of a study and weigh the time left."""

from signedstep.experiments.execute import matrices_fit
from signedstep.experiments.models import unknowns
from signedstep.experiments.runs import Run
from signedstep.experiments.solvers import SOLVERS


def expected_seconds(run: Run, rows: int, features: int) -> float:
    """About how long a run takes on data of this shape."""
    n = unknowns(run.network, features)
    if not SOLVERS[run.solver].dense_in_n:
        evals = max(run.budget.iterations, run.budget.evals)
        return min(run.budget.seconds, evals * (3e-4 + run.network.hidden * 2.5e-7 * rows + 4e-8 * n))
    decomposition = 2.4e-10 * n**3
    return min(run.budget.seconds, 3 + 1.2 * run.budget.iterations * decomposition) if matrices_fit(n) else 0.1
