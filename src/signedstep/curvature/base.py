"""The contract of a curvature model: learn from pairs, solve, and be diagonalised."""

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from signedstep.objective import Objective, Point
from signedstep.spectrum import Spectrum

NOT_FINITE = (np.linalg.LinAlgError, torch.linalg.LinAlgError)  # pyright: ignore[reportPrivateImportUsage]
"""What NumPy and torch raise for matrices that have overflowed."""
OVERFLOWS = (ArithmeticError, *NOT_FINITE)
"""What second derivatives raise where they overflow; other exceptions are mistakes, and come through."""

T = TypeVar("T")


def refusal_threshold(dtype: torch.dtype) -> float:
    """The relative size below which a denominator is noise: 1.5e-8 in float64, 3.5e-4 in float32."""
    return torch.finfo(dtype).eps ** 0.5


class Met(Generic[T]):
    """What `meet` has measured of a trial, until it is learned from or another is met."""

    def __init__(self) -> None:
        self._kept: tuple[Callable[[], Tensor | None], T] | None = None

    def keep(self, new: Point, found: T) -> None:
        self._kept = weakref.ref(new.g), found  # the gradient of a trial that came to nothing is not kept alive

    def take(self, new: Point, measure: Callable[[], T]) -> T:
        """What was measured of this trial, now if it has not been met."""
        kept, self._kept = self._kept, None
        return kept[1] if kept and kept[0]() is new.g else measure()


class Curvature(ABC):
    """A symmetric model B of the Hessian. It owns its buffers; what it returns belongs to the caller."""

    definite: ClassVar[bool]
    """Whether B is positive definite by construction, so that its directions always point downhill."""

    has_matrix: ClassVar[bool] = True
    """Whether B is known: it has a spectrum, and along -B^-1 g its minimum is at 1. Else there is only a direction."""

    steady: ClassVar[float] = 0.0
    """If the model errs alike from step to step: how many times the last step its secant may lengthen the next."""

    dense: ClassVar[bool] = False
    """Whether it keeps a matrix of n x n numbers, which needs whole vectors."""

    learned: int = 0
    """How many pairs it stands on, for models that learn from them."""

    def informed(self) -> bool:
        """Whether B is more than a blind multiple of the identity.

        Models of one point evaluate what they know of it when this is first asked.
        """
        return self.learned > 0

    @property
    def forgettable(self) -> bool:
        """Whether there may be something to forget; nothing is evaluated to know it."""
        return self.learned > 0

    @abstractmethod
    def start(self, objective: Objective, at: Point) -> None:
        """Forget everything; B becomes a multiple of the identity, or what can be known at this point."""

    @abstractmethod
    def update(self, old: Point, new: Point) -> bool:
        """Learn from the step between two points. False: it was refused.

        B is then unchanged; a direction that has no B starts again from -g.
        """

    def forget(self, objective: Objective, at: Point) -> None:
        """After a failure: B becomes a multiple of the identity, even for a model that could know better."""
        self.start(objective, at)

    def move(self, objective: Objective, at: Point) -> None:  # noqa: B027
        """Go on from another point, perhaps with another objective: a new batch. What was learned from pairs stays."""

    def meet(self, old: Point, new: Point) -> None:  # noqa: B027
        """Measure a trial before it is known what will become of it, for an `update` or `learn_from_refused` to come.

        It then shares its reduction with what else is summed of the trial. The value of `new` may not be known yet.
        """

    def learn_from_refused(self, at: Point, tried: Point) -> None:
        """Learn from a trial that was refused: the model stays at `at`."""
        self.update(at, tried)

    @abstractmethod
    def solve(self, g: Tensor) -> Tensor:
        """B^-1 g."""

    def raw(self, g: Tensor) -> Tensor:
        """The raw direction, -B^-1 g."""
        return -self.solve(g)

    @abstractmethod
    def spectrum(self, g: Tensor) -> Spectrum:
        """B diagonalised, as far as g can see it."""

    @abstractmethod
    def matrix(self) -> Tensor:
        """B as a dense n x n matrix in float64, for small n."""

    @abstractmethod
    def state(self, at: Point) -> dict[str, Any]:
        """What was learned up to this point, in tensors, numbers and lists; later changes do not reach it."""

    @abstractmethod
    def restore(self, state: Mapping[str, Any], at: Point) -> None:
        """Know what another model of this kind knew at this point, bit for bit; called after `start`."""
