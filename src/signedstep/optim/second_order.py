"""Any method of the library as a torch optimizer: a loop around the engine, and what torch expects of it."""

import math
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch.optim.optimizer import ParamsT

from signedstep.checks import check_count
from signedstep.closure import ClosureObjective
from signedstep.distributed.link import Lost, lost_as_error
from signedstep.distributed.parallel import Parallel
from signedstep.distributed.shared import Shared
from signedstep.effects import warn_of_no_effect
from signedstep.engine import Engine, Tolerances
from signedstep.failures import told
from signedstep.flat import Flat, is_sharded
from signedstep.history import History
from signedstep.methods import build, full_name, model_of
from signedstep.objective import Point
from signedstep.optim import options as group_options
from signedstep.optim.resumable import Resumable
from signedstep.optim.snapshots import mapped
from signedstep.status import Status

_SCHEDULED = ("initial_lr", "max_lr", "min_lr", "swa_lr", "base_momentum", "max_momentum")
"""What torch's schedulers keep in parameter groups."""


class SecondOrder(Resumable):
    """Any method of `signedstep.methods()` as a torch optimizer; `step` needs a closure, as `torch.optim.LBFGS` does.

    Parameters
    ----------
    params : iterable of tensors, of (name, tensor) or of dicts
        What to train. Several groups are one vector to the method, so their options must agree.
    method : str
        A name of `signedstep.methods()`.
    lr : float or Tensor
        Factor on the first step length that each line search tries. Methods without one (trust, cubic, ...) shorten
        each step by it, if it is below 1. 0 evaluates without moving. Schedulers attach to it.
    max_iter, max_eval : int
        Iterations and closure calls per `step`. Calls are counted between iterations, so that no search is cut short
        (default: 1.25 max_iter, twice that for newton-cg, which needs a call for its products).
    tolerance_grad : float
        `step` ends where the largest entry of the gradient is below this.
    tolerance_change : float
        `step` ends where the relative change of the loss or of the parameters falls below this; 0 switches it off.
    history_size : int
        Pairs that limited-memory models keep (20; mix and auto: 50 up to 2000 parameters).
    line_search_fn : str or None
        "strong_wolfe", "weak_wolfe", "paper_wolfe" or "armijo"; None: that of the model, strong for all but mix and
        auto, which use "weak_wolfe". With "strong_wolfe" lbfgs takes the steps of `torch.optim.LBFGS`, to rounding.
    globalization : str
        Short for method="<method>/<globalization>".
    maximize : bool
        Maximise the loss.
    reuse : bool
        True declares that the closure is deterministic and sees the same data in every `step`, which saves the
        evaluation at the start of a step. False (default) evaluates there again, so that a step may have a batch of
        its own: all of its losses and gradients, and so each pair (s, y), come from that batch.
    parallel : signedstep.distributed.Parallel
        Train on several ranks of torch.distributed, each with its own data. DTensor parameters (FSDP2) imply it.
    **options
        gamma, floor, c1, c2, search, max_linesearch, beta, krylov_size, krylov_tol, fisher_samples, delta, on_failure:
        as in `signedstep.minimize`.

    Attributes
    ----------
    history : History
        One record per iteration since the optimizer was made, or loaded.
    status : Status
        Why the last `step` ended.
    n_evals : int
        Closure calls so far; on several ranks evaluations, also where a rank has no samples and calls nothing.
    aux
        What the closure returned beside the loss at the point where the parameters are now.
    error : Exception or None
        What the closure raised at a trial point of the last iteration.
    """

    def __init__(
        self,
        params: ParamsT,
        method: str = "auto",
        lr: float | torch.Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int | None = None,
        line_search_fn: str | None = None,
        globalization: str | None = None,
        *,
        maximize: bool = False,
        reuse: bool = False,
        parallel: Parallel | None = None,
        **options: Any,
    ):
        if not isinstance(parallel, Parallel | None):
            raise TypeError(f"parallel must be a signedstep.distributed.Parallel, got {parallel!r}")
        check_count("max_iter", max_iter, least=0)
        method = method if globalization is None else f"{method}/{globalization}"
        calls = max(max_iter * 5 // 4, max_iter + 1) * (2 if model_of(full_name(method)).needs_products else 1)
        defaults = {
            "lr": lr,
            "method": method,
            "max_iter": max_iter,
            "max_eval": calls if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
            "reuse": reuse,
        }
        group_options.check_known(options, [*defaults, "globalization", "parallel"])
        defaults = group_options.plain({**defaults, **options})
        group_options.check(defaults)
        # arguments of torch's LBFGS may be idle
        warn_of_no_effect(options, full_name(method), stacklevel=2 if type(self) is SecondOrder else 3)
        super().__init__(params, defaults)
        if parallel is None and any(is_sharded(p) for group in self.param_groups for p in group["params"]):
            parallel = Parallel()
        self._parallel = parallel
        if parallel:
            group_options.check(defaults, self._parameters().space())
        self._forget()

    @torch._disable_dynamo  # pyright: ignore[reportPrivateImportUsage] # compilers cannot trace it, nor torch's LBFGS
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Up to `max_iter` iterations; returns the loss at the point where it leaves parameters and gradients.

        A closure that raises at a trial point, or returns a loss that is not finite, only shortens the step. What it
        raises at the start of a step, and KeyboardInterrupt, come through, with the parameters at the best point.
        """
        with lost_as_error():
            return self._step(closure)

    def _step(self, closure: Any) -> Any:
        self._materialise(closure)
        flat = self._parameters()
        rate = self._checked(flat, closure)
        self._adopt(flat)
        start = flat.read()
        self._status, before = Status.RUNNING, self._n_evals

        objective = self._objective(flat, closure)
        try:
            with flat.together():
                engine, reused = self._begin(objective, start, rate)
        except BaseException:
            with suppress(Lost):  # parameters that are gathered from ranks cannot be without them
                flat.write(start)
            self._note()
            objective.release()
            raise
        del start  # a vector of n numbers that nobody needs any more
        try:
            with flat.together():
                self._status = self._iterate(engine, rate, reused, before)
                objective.leave_at(engine.at)
        except BaseException:
            with suppress(Lost):
                objective.leave_at(engine.at)
            raise
        finally:
            self._note()
            objective.release()
        return objective.loss(engine.at)

    def _materialise(self, closure: Any) -> None:
        """Parameters of lazy modules get their shapes when the model is first used; ranks would not do it together."""
        if self._are_lazy() and callable(closure) and not self._parallel:
            self._n_evals += 1
            with torch.enable_grad():
                closure()

    @property
    def history(self) -> History:
        return self._history

    @property
    def status(self) -> Status:
        return self._status

    @property
    def n_evals(self) -> int:
        return self._n_evals

    @property
    def aux(self) -> Any:
        return self._engine.at.aux if self._engine else None

    @property
    def error(self) -> Exception | None:
        return self._engine.error if self._engine else None

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train more parameters from now on; the curvature model starts again, since its vectors get longer."""
        if not isinstance(param_group, dict):
            raise TypeError(f"a parameter group must be a dict, got {type(param_group).__name__}")
        param_group.update(group_options.plain(param_group))  # the user's own, as in torch
        if self.param_groups:
            shared = {name: value for name, value in self._options.items() if name in self._known}
            group_options.check_shared([shared, param_group], shared)
            param_group.update({**shared, **param_group})
        group_options.check_group(param_group, {*self._known, "params", "param_names", *_SCHEDULED})
        group_options.check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    def _objective(self, flat: Flat, closure: Callable[[], Any]) -> ClosureObjective:
        maximize, this = self._options["maximize"], weakref.ref(self)  # the engine keeps the objective: no cycle

        def count() -> None:
            optimizer = this()
            if optimizer is not None:
                optimizer._n_evals += 1
                optimizer._note()

        if self._parallel and isinstance(flat, Shared):
            return self._parallel.objective(flat, closure, maximize, count)
        return ClosureObjective(flat, closure, maximize, count)

    def _checked(self, flat: Flat, closure: Any) -> float:
        """The learning rate of a step that may begin, on all ranks: one that refused it alone would not be heard of."""
        try:
            group_options.check_closure(closure)
            group_options.check_shared(self.param_groups, self._known)
            rate = group_options.rate(*self.param_groups)
            if self._parallel:
                group_options.check(self._options, flat.space())
        except Exception as error:
            self._compare(flat, self._options["lr"], told(error))
            raise
        self._compare(flat, rate)
        return rate

    def _compare(self, flat: Flat, rate: Any, refusal: str = "") -> None:
        """Complain on all ranks where they would not do the same."""
        if self._parallel:
            options = {name: value for name, value in self._options.items() if name in self._known}
            spelled = group_options.spelled(options, rate)
            flat.check_alike([*spelled, self._parallel.spelled, refusal or self._past(flat)])

    def _adopt(self, flat: Flat) -> None:
        """Take the parameters as they are now; others, or another method, make the curvature model start again."""
        if self._outdated(flat):
            self._drop()
        if not self._saved:
            self._keep({"n_iter": 0, "func_evals": self._n_evals})
        self._flat = flat

    def _begin(self, objective: ClosureObjective, start: torch.Tensor, rate: float) -> tuple[Engine, bool]:
        """The engine, ready at `start`; True if an earlier evaluation there is used again."""
        engine = self._engine
        if engine is None:
            saved = mapped(objective.flat.loaded, self._saved.get("engine"))
            at = objective(start) if saved is None else Point(saved["x"].to(start), saved["f"], saved["g"].to(start))
            engine = self._new_engine(objective, at)
            if math.isnan(self._history.f0):
                self._history = History(objective.sign * at.f, engine.grad_norm)
            if saved is None:
                engine.k = self._saved.get("n_iter", 0)
            else:
                engine.restore(saved)
            self._engine = engine
            self._note()
            if saved is None:
                return engine, False
        engine.objective, engine.tolerances = objective, self._tolerances
        kept = objective.flat.holds(engine.at.x)
        if kept and rate and self._options["reuse"] and engine.status is Status.RUNNING:
            engine.curvature.move(objective, engine.at)
            return engine, True
        engine.move(objective(engine.at.x if kept else start))
        return engine, False

    def _iterate(self, engine: Engine, rate: float, reused: bool, before: int) -> Status:
        """Run the engine; why it ended. There were so many closure calls before this step."""
        options = self._options
        engine.globalization.rate = rate
        first = engine.k
        while rate and engine.status is Status.RUNNING:
            if engine.k >= first + options["max_iter"]:
                return Status.MAXITER
            if engine.k > first and self._n_evals - before >= options["max_eval"]:
                return Status.MAXFUN
            record = engine.step()
            self._note()
            self._history.append(record._replace(f=-record.f) if options["maximize"] else record)
            if reused and engine.status is not Status.RUNNING and not engine.status.converged:
                engine.move(engine.objective(engine.at.x))  # the loss may have changed after all
                reused = False
        return engine.status

    def _new_engine(self, objective: ClosureObjective, at: Point) -> Engine:
        options, space = self._options, objective.flat.space()
        self._built_with = self._settings
        parts = build(options["method"], at.x, space, group_options.settings(options))
        self._method = parts.name
        return Engine(objective, at, parts.curvature, parts.globalization, space, self._tolerances, parts.on_failure)

    @property
    def _known(self) -> set[str]:
        """The names of all options; other entries of parameter groups are labels, or belong to schedulers."""
        return {*self.defaults, *group_options.FURTHER}

    @property
    def _tolerances(self) -> Tolerances:
        grad, change = (max(0.0, self._options[name]) for name in ("tolerance_grad", "tolerance_change"))
        return Tolerances(grad, change, change)
