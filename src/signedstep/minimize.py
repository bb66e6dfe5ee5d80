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
from signedstep.history import History
from signedstep.methods import build
from signedstep.module import ModuleLoss
from signedstep.residuals import LeastSquares
from signedstep.room import Room
from signedstep.sources import Derivatives, Source, objective_of, second_cost
from signedstep.space import Space
from signedstep.status import Status

_RUN_OPTIONS = ("maxiter", "maxfun", "disp", "return_all")
_SHAPE_OPTIONS = tuple(field.name for field in fields(Settings))
_TOLERANCES = tuple(field.name for field in fields(Tolerances))


class Result(OptimizeResult):
    """SciPy's OptimizeResult with `history`; `status` is a `Status`.

    `success` is true only where a convergence test holds at a finite point.
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
        With a NumPy `x0` it gets arrays; with a torch tensor it gets tensors and is differentiated by autograd. A
        `LeastSquares` or a `ModuleLoss` shows more of itself than values: gauss-newton, natural and kfac need that.
    x0 : array or tensor of any shape
        The start; `fun` and the result have its type, shape and precision (integers become floats; differences are
        made in float64). Left out, a `ModuleLoss` starts at its module's parameters; it leaves them at the result.
    method : str
        `"<curvature>"` or `"<curvature>/<globalization>"`; `signedstep.methods()` lists them.
    jac : callable, True, "2-point", "3-point" or None
        The gradient, `jac(x, *args)`. True: `fun` returns value and gradient. None: autograd for tensors, forward
        differences for arrays.
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
        maxiter, maxfun: limits (200 n, at least 1000 iterations; no limit on evaluations). Differences that newton-cg
        makes of gradients count, but are not stopped within an iteration.
        gtol, ftol, xtol: convergence tests, see `signedstep.engine.Tolerances` (1e-5, off, off).
        history_size: pairs kept by limited-memory models (20; mix and auto: 50 up to 2000 unknowns).
        gamma: the curvature where nothing is learned yet, a number or a rule ("norm", "0.1*norm", "yy/sy", ...).
        floor: smallest eigenvalue that flip, clip and damp allow, relative to the largest.
        c1, c2, condition, max_linesearch: of the line search; condition is "strong", "weak" or "paper" (the Wolfe
        conditions with that curvature condition) or "armijo" (sufficient decrease only). They are
        "strong" with c2 = 0.9, for cg with 0.1, for mix and auto "weak" with 0.999.
        search: how they are found, "more-thuente" (the default), or "zoom" with the search and the first step of
        `torch.optim.LBFGS`.
        beta: of cg, "fr" (Fletcher-Reeves), "pr+" (Polak-Ribiere+), "hs" (Hestenes-Stiefel) or "dy" (Dai-Yuan).
        krylov_size, krylov_tol: of newton-cg, gauss-newton and natural, most vectors of the Krylov space, and thus
        products, an iteration (50), and the relative residual that ends it (None: 0.1, less while the gradient falls
        fast).
        fisher_samples: of natural and kfac, labels drawn at each example (0: the exact expectation).
        mixing: of mix and auto, a `signedstep.curvature.Mixing`: which experts, and how they are weighed.
        delta: smallest |cosine| between direction and gradient (paper, proposition 1).
        on_failure: "restart" or "stop" after a search that found nothing.
        disp: print a summary. return_all: keep all iterates in `allvecs`.
        Those that have no effect on the method are warned of, as unknown ones are.

    Returns
    -------
    Result
        x, fun, jac, nit, nfev, njev, nhev, success, status, message, history. nhev counts Hessians, or products.
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
    shape = _pick(options, _SHAPE_OPTIONS)
    parts = build(method, start, space, shape)
    warn_of_no_effect(shape, parts.name, stacklevel=2)
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
    finite = math.isfinite(engine.at.f) and math.isfinite(engine.grad_norm)
    message = status.value
    if engine.error is not None and not status.converged:
        message += f" A trial point raised {type(engine.error).__name__}: {engine.error}"
    return Result(
        x=front.give(engine.at.x),
        fun=engine.at.f,
        jac=front.give(engine.at.g),
        nit=engine.k,
        nfev=objective.evals,
        njev=engine.evals + objective.extra_gradients,
        nhev=objective.hessians,
        success=status.converged and finite,
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
    known = {*_RUN_OPTIONS, *_SHAPE_OPTIONS, *_TOLERANCES}
    unknown = [name for name in options if name not in known]
    if unknown:
        message = f"Unknown solver options: {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        warnings.warn(message, OptimizeWarning, stacklevel=3)
