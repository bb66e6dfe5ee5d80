"""The engine: one iteration at a time, shared by every front.

It proposes, then commits: the point stays until a step is accepted (the model may learn from a trial that was refused,
or be made to forget after a failure), and trial points that are not finite are data for the search, never exceptions.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from signedstep.checks import check_at_least_zero
from signedstep.curvature import Curvature
from signedstep.globalization import Globalization, Scale, Step
from signedstep.history import Record
from signedstep.objective import Objective, Point
from signedstep.space import Space
from signedstep.stall import Stall
from signedstep.status import Status

T = TypeVar("T")
ON_FAILURE = ("restart", "stop")
"""What to do after a search that found nothing: start again from the identity, or stop."""
_UNBOUNDED = 3
"""How many times in a row f falls up to the longest step, 1e10 times the first trial, before it counts as unbounded."""
_CONTRADICTIONS = 5
"""How many trials of one iteration, each shorter than the last, may rise where the slope says that f falls before the
gradient is not believed."""
_SLACK = 1.01
"""More than rounding can add to a bound."""


@dataclass(frozen=True)
class Tolerances:
    """When a run has converged; 0 switches a test off."""

    gtol: float = 1e-5
    """The largest magnitude in the gradient."""
    ftol: float = 0.0
    """The decrease of f in one iteration, relative to f."""
    xtol: float = 0.0
    """The length of the step, relative to the length of x."""

    def __post_init__(self) -> None:
        for name in ("gtol", "ftol", "xtol"):
            object.__setattr__(self, name, check_at_least_zero(name, getattr(self, name)))


class Engine:
    """A point, a curvature model and a globalization that moves the one with the other."""

    def __init__(
        self,
        objective: Objective,
        start: Point,
        curvature: Curvature,
        globalization: Globalization,
        space: Space,
        tolerances: Tolerances,
        on_failure: str = "restart",
        resolution: float = 0.0,
    ):
        self.objective, self.curvature, self.globalization = objective, curvature, globalization
        self.space, self.tolerances, self.on_failure, self.resolution = space, tolerances, on_failure, resolution
        self.evals, self.k, self.scale = 1, 0, Scale()
        self.error: Exception | None = None
        """What a trial point of the last iteration raised."""
        self._x_bound = self._length(start.x)  # |x| is at most this
        self._place(start)
        self._far = 1e6 * (1 + self._x_bound)  # 1 is the length of the first trial step
        first = abs(start.f) if math.isfinite(start.f) else 0.0
        self._nothing = math.sqrt(torch.finfo(start.x.dtype).eps) * first
        """What is left of a sum of squares below this is rounding."""
        curvature.start(objective, start)

    def _place(self, at: Point) -> None:
        """Look at a point with fresh eyes."""
        self.at, self.grad_norm = at, self._length(at.g)
        self.status = self._test_start()
        self._longest = 0  # how many steps in a row were the longest there are, far out
        self._stall = Stall(at.f, self.grad_norm, torch.finfo(at.x.dtype).eps, self.resolution)

    def move(self, at: Point) -> None:
        """Go on from a point that was just evaluated, here or elsewhere; what the curvature model knows stays."""
        self.evals += 1
        same = at.f == self.at.f and torch.equal(at.x, self.at.x) and torch.equal(at.g, self.at.g)
        at = self.at._replace(aux=at.aux) if self.space.agreed(same) else at
        square = self.space.square_later(at.g)
        self.curvature.move(self.objective, at)
        square()  # in the reduction of what the model wants to know there
        self._x_bound = math.inf
        self._place(at)

    def state(self) -> dict[str, Any]:
        """All that a later engine needs in order to go on bit for bit: tensors, numbers, words and lists of them."""
        return {
            "x": self.at.x,
            "f": self.at.f,
            "g": self.at.g,
            "g.g": self.space.square(self.at.g),
            "scale": list(self.scale),
            "k": self.k,
            "evals": self.evals,
            "status": self.status.name,
            "longest": self._longest,
            "far": self._far,
            "nothing": self._nothing,
            "stall": self._stall.state(),
            "curvature": self.curvature.state(self.at),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where another engine was; this one stands at that one's point."""
        self.space.remember(self.at.g, state["g.g"])
        self._place(self.at)
        self.scale, self.k, self.evals = Scale(*state["scale"]), state["k"], state["evals"]
        self.status = Status[state["status"]]
        self._longest, self._far, self._nothing = state["longest"], state["far"], state["nothing"]
        self._stall.restore(state["stall"])
        self.curvature.restore(state["curvature"], self.at)

    def step(self, budget: float = math.inf) -> Record:
        """One iteration within `budget` evaluations; afterwards `status` tells whether to go on."""
        began = time.perf_counter()
        step = self._propose(budget)
        self.k += 1
        self.evals += step.evals
        self.error = step.error
        learned = False
        if step.point is not None:
            old, self.at, self.scale = self.at, step.point, step.scale
            self._x_bound += self.scale.length
            self.grad_norm = self._length(self.at.g)
            largest, x_norm = self._largest(), self._x_norm(step)  # on their way with what the model sums
            learned = self._taught(self.curvature.update, old, self.at)
            self.status = self._test(old, step, largest, x_norm)
        elif step.evals < budget:  # else the budget ended it, which says nothing about the point
            self.status = self._excused(step.status)
        return Record(
            self.k,
            self.at.f,
            self.grad_norm,
            step.alpha,
            step.cosine,
            step.evals,
            time.perf_counter() - began,
            learned,
            step.status,
        )

    def _propose(self, budget: float) -> Step:
        """A step; if none was found, what the policy after a failure allows: start again from the identity."""
        step = self._asked(budget)
        if step.point is None and self.on_failure == "restart" and self.curvature.forgettable and step.evals < budget:
            self._start_again()
            again = self._asked(budget - step.evals)
            return again._replace(evals=step.evals + again.evals, error=again.error or step.error)
        return step

    def _taught(self, learn: Callable[[Point, Point], T], old: Point, new: Point) -> T:
        """What is interrupted here, or runs out of memory, is half the old model and half the new: it starts again."""
        try:
            return learn(old, new)
        except BaseException:
            self._start_again()
            raise

    def _start_again(self) -> None:
        """Forget the curvature model, and the bound that a region has for it."""
        self.curvature.forget(self.objective, self.at)
        self.scale = self.scale._replace(bound=math.nan)

    def _asked(self, budget: float) -> Step:
        """What the globalization proposes; a refused trial costs its evaluation, but the model learns from it."""
        scale, evals, error, contradictions = self.scale, 0, None, 0
        for _ in range(self.globalization.patience):
            tried = self.globalization.step(self.objective, self.at, self.curvature, scale, budget - evals)
            if evals and not tried.evals:
                break  # nothing is left to try; the last trial says why
            step = tried
            scale, evals, error = step.scale, evals + step.evals, step.error or error
            if step.refused is not None:
                self._taught(self.curvature.learn_from_refused, self.at, step.refused)
            contradictions = contradictions + 1 if step.status is Status.CONTRADICTION else 0
            if not step.retry or evals >= budget or contradictions == _CONTRADICTIONS:
                break
        return step._replace(evals=evals, error=error)

    def _excused(self, status: Status) -> Status:
        """Why no step was found; what is left of a sum of squares that has nearly come to 0 is rounding."""
        rounded = abs(self.at.f) <= self._nothing and status in (Status.CONTRADICTION, Status.NO_LOWER_POINT)
        return Status.STALLED if rounded else status

    def _length(self, v: Tensor) -> float:
        return math.sqrt(self.space.square(v))

    def _test_start(self) -> Status:
        if not (math.isfinite(self.at.f) and math.isfinite(self.grad_norm)):
            return Status.BAD_START
        return self._test_gradient(self._largest())

    def _largest(self) -> Callable[[], float]:
        """The largest entry of the gradient, where it may be small enough: it is at least |g|/sqrt(n)."""
        n = self.space.dimension(self.at.g)
        possible = self.grad_norm <= _SLACK * self.tolerances.gtol * math.sqrt(n)
        return self.space.largest_later(self.at.g) if possible else lambda: math.inf

    def _x_norm(self, step: Step) -> Callable[[], float]:
        """|x|, where a step is so short or so long that it matters; else a bound on it."""
        long = self.scale.length > _SLACK * self.tolerances.xtol * self._x_bound
        if long and step.status is not Status.MAX_STEP:
            return lambda: self._x_bound
        square = self.space.square_later(self.at.x)

        def x_norm() -> float:
            self._x_bound = math.sqrt(square())
            return self._x_bound

        return x_norm

    def _test_gradient(self, largest: Callable[[], float]) -> Status:
        if largest() <= self.tolerances.gtol:
            return self._converged(Status.GRADIENT)
        return Status.RUNNING if self.grad_norm > 0 else Status.STALLED  # its square underflows

    def _converged(self, status: Status) -> Status:
        """What it means that a test holds; nothing where x has left the range of its precision."""
        inside = self._x_bound < torch.finfo(self.at.x.dtype).max or math.isfinite(self.space.largest(self.at.x))
        return status if inside else Status.UNBOUNDED

    def _test(self, old: Point, step: Step, largest: Callable[[], float], x_norm: Callable[[], float]) -> Status:
        sound = step.status.ok and not step.bounded  # else it may just have been cut short
        ftol, xtol = (self.tolerances.ftol, self.tolerances.xtol) if sound else (0.0, 0.0)
        flat = self._test_gradient(largest)
        if flat is not Status.RUNNING:
            return flat
        if ftol and old.f - self.at.f <= ftol * max(abs(old.f), abs(self.at.f)):
            return self._converged(Status.DECREASE)
        if xtol and self.scale.length <= xtol * x_norm():
            return self._converged(Status.STEP)
        lost = step.status is Status.MAX_STEP and x_norm() >= self._far
        self._longest = self._longest + 1 if lost else 0
        if self._longest >= _UNBOUNDED:
            return Status.UNBOUNDED
        if not self._stall.sees(self.at.f, self.grad_norm, self.scale.length, step.status.ok):
            return Status.RUNNING
        if self.on_failure == "restart" and self.curvature.forgettable and self._stall.deserves_a_restart():
            self._start_again()
            return Status.RUNNING
        return Status.STALLED
