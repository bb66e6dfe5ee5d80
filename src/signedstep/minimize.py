"""`minimize`, with SciPy's signature and habits."""

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from scipy.optimize import OptimizeWarning
from torch import Tensor

from signedstep.catalogue import Settings
from signedstep.checks import check_at_least_zero, check_count
from signedstep.closure import ClosureObjective
from signedstep.effects import warn_of_no_effect
from signedstep.engine import Engine, Tolerances
from signedstep.history import History
from signedstep.methods import build
from signedstep.module import ModuleLoss
from signedstep.residuals import LeastSquares
from signedstep.result import Result, display, result_of
from signedstep.sources import Derivatives, objective_of, second_cost
from signedstep.space import Space
from signedstep.start import Front, start_of
from signedstep.status import Status

_RUN_OPTIONS = ("maxiter", "maxfun", "disp", "return_all")
_SETTINGS = tuple(field.name for field in fields(Settings))
_TOLERANCES = tuple(field.name for field in fields(Tolerances))


def minimize(
    fun: Callable | LeastSquares | ModuleLoss,
    x0: Any = None,
    args: Any = (),
    method: str | None = "auto",
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: None = None,
    constraints: tuple[()] | None = (),
    tol: float | None = None,
    callback: Callable | None = None,
    options: Mapping[str, Any] | None = None,
) -> Result:
    """Minimise a smooth function of several variables, convex or not.

    Parameters
    ----------
    fun : callable, `fun(x, *args) -> float`
        With a NumPy `x0` it gets arrays; with a torch tensor it gets tensors and is differentiated by autograd. A trial
        point where it raises, or is not finite, counts as infinitely high; what it raises at `x0` comes through. In its
        place a `LeastSquares` or a `ModuleLoss`, which gauss-newton, natural and kfac need: those see inside f.
    x0 : array or tensor of any shape
        The start; `fun` and the result have its type, shape and precision (integers become floats; differences are
        made in float64). Left out, a `ModuleLoss` starts at its module's parameters; it leaves them at the result.
    args : tuple
        Further arguments of `fun` and its derivatives.
    method : str
        "auto", `"<curvature>"` or `"<curvature>/<globalization>"`; `signedstep.methods()` lists them.
    jac : callable, True, "2-point", "3-point" or None
        The gradient, `jac(x, *args)`. True: `fun` returns value and gradient. None: autograd for tensors, forward
        differences ("2-point") for arrays.
    hess : callable
        The Hessian, `hess(x, *args)`, for newton. None: autograd for tensors; for arrays, differences of the gradient,
        which must be given. Other methods warn that they do not use it.
    hessp : callable
        The Hessian times a vector, `hessp(x, p, *args)`, for newton-cg, which also takes `hess`. None: autograd for
        tensors; for arrays, a difference of the gradient, which must be given. Other methods warn.
    bounds, constraints
        In SciPy's places, and refused: there is no method for them here.
    tol : float
        Short for `options={"gtol": tol}`.
    callback : callable
        Called after every iteration with `intermediate_result`, if its parameter has that name, else with `x`;
        raising StopIteration ends the run.
    options : dict
        Any of those below. Unknown ones, and those that the method does not use, are warned of.

    Returns
    -------
    Result
        SciPy's, with `history`: x, fun, jac, success, status, message, nit, nfev, njev, nhev.

    Options
    -------
    gtol : 1e-5
        Ends where the largest entry of the gradient is, in magnitude, at most this.
    ftol, xtol : 0 (off)
        Ends where f decreased in one iteration by at most this part of itself; where a step is at most this part of
        the length of x.
    maxiter : 200 n, at least 1000
        Iterations.
    maxfun : no limit
        Evaluations of `fun`. Differences that newton-cg makes of gradients count, but are not stopped within an
        iteration.
    disp, return_all : False
        Print a summary; keep all iterates in `result.allvecs`.
    history_size : 20; mix and auto: 50 up to 2000 unknowns
        Pairs that limited-memory models keep.
    gamma : by model
        The curvature where nothing is learned yet: a number, or a rule, "identity", "norm" (the length of y over that
        of s), "yy/sy" or "sy/ss", perhaps with a factor, "0.1*norm".
    floor : 1e-14; lsr1: 1e-3
        The smallest eigenvalue that flip, clip and damp allow, relative to the largest.
    c1 : 1e-4
        Sufficient decrease: a part of what the slope promises, for trust regions and cubic of what the model does.
    c2 : 0.9; cg: 0.1; mix and auto: 0.999
        How much of the slope may be left at the end of a line search.
    condition : "strong"; mix and auto: "weak"
        Which condition c2 stands in: also "paper", its one-sided one, or "armijo": none, sufficient decrease only.
    search : "more-thuente"
        How that is found; "zoom": by the search, and from the first step, of `torch.optim.LBFGS`.
    max_linesearch : 30
        Trials in one iteration.
    delta : 4e-11; float32: 2e-5
        The smallest |cosine| between direction and gradient (proposition 1 of the paper). Below it the step goes along
        the flipped direction, or -gradient.
    on_failure : "restart"; wolfe with an indefinite model: "stop"
        After a search that found nothing: start again without a model, or stop.
    beta : "pr+"
        Of cg: "fr" (Fletcher-Reeves), "pr+" (Polak-Ribiere+), "hs" (Hestenes-Stiefel) or "dy" (Dai-Yuan).
    krylov_size, krylov_tol : 50, None
        Of newton-cg, gauss-newton and natural: the most products with the matrix in one iteration, and the relative
        residual that ends them. None: 0.1, and less while the gradient falls fast.
    fisher_samples : 0
        Of natural and kfac: labels drawn at each example; 0 is the exact expectation.
    mixing : Mixing()
        Of mix and auto: a `signedstep.Mixing`, which experts there are and how they are weighed.

    Examples
    --------
    >>> import numpy as np
    >>> import signedstep
    >>> def rosenbrock(x):
    ...     return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    >>> result = signedstep.minimize(rosenbrock, np.array([-1.2, 1.0]), options={"gtol": 1e-4})
    >>> result.message
    'Converged: the largest entry of the gradient is within its tolerance.'
    >>> bool(result.history.f[-1] == result.fun)
    True
    """
    if bounds is not None or (constraints is not None and np.size(constraints)):
        raise ValueError("signedstep minimises without bounds and constraints; use scipy.optimize.minimize for those")
    if not isinstance(options, Mapping | None):
        raise TypeError(f"options must be a dict, got {options!r}")
    options = dict(options or {})
    if tol is not None:
        check_at_least_zero("tol", tol)
        options.setdefault("gtol", tol)
    _warn_unknown(options)
    args = args if isinstance(args, tuple) else (args,)
    if x0 is None and isinstance(fun, ModuleLoss):
        x0 = fun.x0
    tensors = isinstance(x0, Tensor)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")

    space = Space()
    start, front = start_of(x0, space.room)
    settings = _pick(options, _SETTINGS)
    parts = build(method, start, space, settings)
    warn_of_no_effect(settings, parts.name, stacklevel=2)
    objective = objective_of(fun, Derivatives(jac, hess, hessp), args, start, front.shape, parts.name, tensors)
    tolerances = Tolerances(**_pick(options, _TOLERANCES))
    costs = objective.cost, second_cost(objective, parts.name)
    limits = _Limits(options.get("maxiter"), options.get("maxfun"), start.numel(), *costs)
    engine = Engine(
        objective,
        objective(start),
        parts.curvature,
        parts.globalization,
        space,
        tolerances,
        parts.on_failure,
        objective.resolution,
    )
    del start  # after the first step nobody needs this vector

    history = History(engine.at.f, engine.grad_norm)
    iterates = [front.give(engine.at.x)] if options.get("return_all") else None
    status = engine.status
    wants_result = callback is not None and _wants_result(callback)
    try:
        while status is Status.RUNNING:
            status = limits.status(engine.k, objective.evals)
            if status is not Status.RUNNING:
                break
            history.append(engine.step(limits.remaining(objective.evals)))
            status = engine.status
            if iterates is not None:
                iterates.append(front.give(engine.at.x))
            if callback is not None and _asks_to_stop(callback, wants_result, front, engine):
                status = Status.CALLBACK if status is Status.RUNNING else status
    finally:
        if isinstance(objective, ClosureObjective):
            objective.leave_at(engine.at)

    result = result_of(engine, front, status, objective, history)
    if iterates is not None:
        result.allvecs = iterates
    if options.get("disp"):
        display(parts.name, result)
    return result


class _Limits:
    """maxiter and maxfun, checked and with their defaults."""

    def __init__(self, maxiter: Any, maxfun: Any, n: int, cost: int, reserve: int):
        self.maxiter = max(1000, 200 * n) if maxiter is None else _limit("maxiter", maxiter)
        self.maxfun = math.inf if maxfun is None else _limit("maxfun", maxfun)
        self.cost, self.reserve = cost, reserve

    def status(self, iterations: int, evals: int) -> Status:
        if iterations >= self.maxiter:
            return Status.MAXITER
        return Status.MAXFUN if self.remaining(evals) < 1 else Status.RUNNING

    def remaining(self, evals: int) -> float:
        """How many points may still be evaluated, beside the second derivatives that one of them may need."""
        return math.inf if self.maxfun == math.inf else (self.maxfun - evals - self.reserve) // self.cost


def _limit(name: str, value: Any) -> float:
    return math.inf if value == math.inf else check_count(name, value, least=0)


def _asks_to_stop(callback: Callable, wants_result: bool, front: Front, engine: Engine) -> bool:
    try:
        if wants_result:
            callback(intermediate_result=Result(x=front.give(engine.at.x), fun=engine.at.f, nit=engine.k))
        else:
            callback(front.give(engine.at.x))
    except StopIteration:
        return True
    return False


def _wants_result(callback: Callable) -> bool:
    """SciPy's rule: the only parameter is called intermediate_result."""
    try:
        return set(inspect.signature(callback).parameters) == {"intermediate_result"}
    except ValueError:  # built-in functions may have no signature
        return False


def _pick(options: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def _warn_unknown(options: Mapping[str, Any]) -> None:
    known = {*_RUN_OPTIONS, *_SETTINGS, *_TOLERANCES}
    unknown = [name for name in options if name not in known]
    if unknown:
        message = f"Unknown solver options: {', '.join(map(str, unknown))}; known are {', '.join(sorted(known))}"
        warnings.warn(message, OptimizeWarning, stacklevel=3)
