"""What a run returns."""

from scipy.optimize import OptimizeResult

from signedstep.engine import Engine
from signedstep.failures import told
from signedstep.history import History
from signedstep.sources import Source
from signedstep.start import Front
from signedstep.status import Status


class Result(OptimizeResult):
    """What `minimize` returns: SciPy's OptimizeResult, with the history of the run.

    Attributes
    ----------
    x : array or tensor like x0
        The best point.
    fun, jac : float, array or tensor like x0
        The function and its gradient there.
    success : bool
        True only where a convergence test holds at a finite point.
    status : Status
        Why the run ended.
    message : str
        The same as a sentence, with what a trial point raised, if that ended the run.
    nit, nfev, njev, nhev : int
        Iterations; evaluations of `fun`, those for finite differences included; gradients; Hessians, or products with
        them.
    history : History
        One record per iteration.
    allvecs : list
        All iterates, with the option `return_all`.
    """


def result_of(engine: Engine, front: Front, status: Status, objective: Source, history: History) -> Result:
    message = status.value
    if engine.error is not None and not status.converged:
        message += f" A trial point raised {told(engine.error)}"
    return Result(
        x=front.give(engine.at.x),
        fun=engine.at.f,
        jac=front.give(engine.at.g),
        nit=engine.k,
        nfev=objective.evals,
        njev=objective.gradients,
        nhev=objective.hessians,
        success=status.converged,
        status=status,
        message=message,
        history=history,
    )


def display(name: str, result: Result) -> None:
    """Print a summary, as SciPy does."""
    print(result.message)
    print(f"         Method: {name}")
    print(f"         Current function value: {result.fun:f}")
    print(f"         Iterations: {result.nit:d}")
    print(f"         Function evaluations: {result.nfev:d}")
    print(f"         Gradient evaluations: {result.njev:d}")
