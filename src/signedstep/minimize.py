"""`minimize`, with SciPy's signature and habits."""

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from scipy.optimize import OptimizeResult, OptimizeWarning
from torch import Tensor

from signedstep.catalogue import Settings
from signedstep.checks import check_at_least_zero, check_count
from signedstep.closure import ClosureObjective
from signedstep.effects import warn_of_no_effect
from signedstep.engine import Engine, Tolerances
from signedstep.failures import told
from signedstep.history import History
from signedstep.methods import build
from signedstep.module import ModuleLoss
from signedstep.residuals import LeastSquares
from signedstep.room import Room
from signedstep.sources import Derivatives, Source, objective_of, second_cost
from signedstep.space import Space
from signedstep.status import Status

_RUN_OPTIONS = ("maxiter", "maxfun", "disp", "return_all")
_SETTINGS = tuple(field.name for field in fields(Settings))
_TOLERANCES = tuple(field.name for field in fields(Tolerances))


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
        Of mix and auto: a `signedstep.curvature.Mixing`, which experts there are and how they are weighed.

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
    start, front = _start(x0, space.room)
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

    result = _result(engine, front, status, objective, history)
    if iterates is not None:
        result.allvecs = iterates
    if options.get("disp"):
        _display(parts.name, result)
    return result


class _Front:
    """Hands flat vectors back in the type and shape of x0."""

    def __init__(self, shape: tuple[int, ...], torch_front: bool, room: Room):
        self.shape, self.torch, self.room = shape, torch_front, room

    def give(self, v: Tensor) -> Any:
        v = self.room.copy(v).reshape(self.shape)
        return v if self.torch else v.numpy()


def _start(x0: Any, room: Room) -> tuple[Tensor, _Front]:
    """x0 as a flat floating-point vector of our own."""
    is_torch = isinstance(x0, Tensor)
    if is_torch and x0.layout != torch.strided:
        raise TypeError(f"x0 must be a dense tensor, got one with the layout {x0.layout}")
    try:
        x = x0.detach() if is_torch else torch.from_numpy(_native(np.atleast_1d(np.array(x0))))
    except (TypeError, ValueError):
        raise TypeError(f"x0 must be an array of float32, float64 or integers, or a torch tensor, got {x0!r}") from None
    if not x.is_floating_point() and not x.is_complex():
        x = x.to(torch.get_default_dtype() if is_torch else torch.float64)
    if x.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"x0 must hold float32, float64 or integers, got {x.dtype}")
    if not torch.isfinite(x).all():
        raise ValueError("x0 must be finite, got NaN or infinity in it")
    return x.reshape(-1).clone(), _Front(tuple(x.shape), is_torch, room)


def _native(array: np.ndarray) -> np.ndarray:
    """The array in the byte order of this machine."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


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


def _result(engine: Engine, front: _Front, status: Status, objective: Source, history: History) -> Result:
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


def _asks_to_stop(callback: Callable, wants_result: bool, front: _Front, engine: Engine) -> bool:
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


def _display(name: str, result: Result) -> None:
    print(result.message)
    print(f"         Method: {name}")
    print(f"         Current function value: {result.fun:f}")
    print(f"         Iterations: {result.nit:d}")
    print(f"         Function evaluations: {result.nfev:d}")
    print(f"         Gradient evaluations: {result.njev:d}")


def _pick(options: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def _warn_unknown(options: Mapping[str, Any]) -> None:
    known = {*_RUN_OPTIONS, *_SETTINGS, *_TOLERANCES}
    unknown = [name for name in options if name not in known]
    if unknown:
        message = f"Unknown solver options: {', '.join(map(str, unknown))}; known are {', '.join(sorted(known))}"
        warnings.warn(message, OptimizeWarning, stacklevel=3)
