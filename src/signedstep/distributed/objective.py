"""The closures of all ranks as one objective: whatever happens on one of them happens to all."""

import math
from collections.abc import Callable
from traceback import clear_frames
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from signedstep.closure import ClosureObjective
from signedstep.distributed.reports import Report, Reports
from signedstep.distributed.shared import Shared
from signedstep.failures import told
from signedstep.objective import Point

T = TypeVar("T")


class Weights(NamedTuple):
    """How the gradients and losses of the ranks become those of all of them."""

    loss: Callable[[Reports], float]
    divisor: Callable[[Callable[[], Reports]], float]
    """What the gradient is to be divided by; one that is averaged does not wait for the reports."""


class RankError(RuntimeError):
    """The closure raised on another rank: this rank's trial counts as infinitely high too."""


class ParallelObjective(ClosureObjective):
    """Each rank evaluates its own closure; loss and gradient are those of all of them.

    A closure that raises on some rank raises on all: its own exception there, `RankError` elsewhere. One that returns
    NaN makes the loss NaN for all. So the ranks always agree on what a trial was.
    """

    flat: Shared

    def __init__(
        self,
        flat: Shared,
        closure: Callable[[], Any],
        maximize: bool,
        counted: Callable[[], None],
        count: Callable[[], float],
        weights: Weights,
    ):
        super().__init__(flat, closure, maximize)
        self._evaluating = counted  # not each call of the closure: ranks without samples make none, and must agree
        self._like = torch.zeros((), dtype=flat.dtype, device=flat.device)  # for ranks without samples
        self.count, self.weights = count, weights

    def __call__(self, x: Tensor) -> Point:
        return self.evaluated(x, lambda point: None)[0]

    def evaluated(self, x: Tensor, look: Callable[[Point], T]) -> tuple[Point, T]:
        """The point at x, and what `look` sums of it over the ranks: the reports on averaged gradients travel with it.

        So `look` may see a point whose value is NaN, because it is not known yet.
        """
        with self.flat.together():  # a search would take an exception for a bad trial
            return self._evaluated(x, look)

    def _evaluated(self, x: Tensor, look: Callable[[Point], T]) -> tuple[Point, T]:
        self._evaluating()
        self._place(x)
        report, aux, error = self._reported()
        g, reports = self.flat.exchange_grads(report)
        early = self.flat.averaged
        f = math.nan if early else self._loss(reports(), error)
        divisor = self.weights.divisor(reports)
        if divisor != 1:
            g.div_(divisor)
        point = self.pointed(x, f, g, aux)
        seen = look(point)
        if early:
            point = point._replace(f=self.sign * self._loss(reports(), error))
        return point, seen

    def leave_at(self, at: Point) -> None:
        """Leave parameters and gradients at a point; after an evaluation the gradients are still those of one rank."""
        if self.carried is not at.g:
            self.flat.write(at.x)
        self.flat.write_grads(at.g if self.sign > 0 else -at.g)
        self.carried = at.g

    def release(self) -> None:
        super().release()
        self.flat.link.agreed = None  # its frames hold vectors

    def _reported(self) -> tuple[Report, Any, Exception | None]:
        """What this rank has to say; it must say something, or the others would wait for it."""
        try:
            count = self.count()
            f, aux = self.called() if count else (0.0, None)  # a mean of no samples is no number
            return Report(f, count, 0.0), aux, None
        except Exception as error:
            clear_frames(error.__traceback__)  # what ran out of memory makes room for the gradient of the others
            self.flat.clear_grads()
            return Report(0.0, 0.0, 1.0), None, error
        except BaseException:
            self.flat.link.leave("this rank was interrupted in its closure")
            raise

    def _loss(self, reports: Reports, error: Exception | None) -> float:
        """The loss of all ranks, unless one of them has failed."""
        if not reports.failed.any():
            try:
                return self.weights.loss(reports)
            except ValueError as refusal:  # the reports are the same everywhere
                raise self._everywhere(refusal) from None
        texts = self.flat.link.texts("" if error is None else told(error))
        failed = "; ".join(f"rank {rank}: {texts[rank]}" for rank in np.flatnonzero(reports.failed))
        raise self._everywhere(RankError(failed) if error is None else error)

    def _everywhere(self, error: Exception) -> Exception:
        """An exception that is raised on all ranks at once."""
        self.flat.link.agreed = error
        return error
