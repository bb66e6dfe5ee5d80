"""What the engine minimises: a flat vector in, value and gradient out, and what models may ask for beside them.

The functions, closures, residuals and modules of users become objectives in files of their own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from signedstep.kronecker import Eigensystem


class Point(NamedTuple):
    """One evaluated point: a flat vector, its value and its gradient. Nobody writes into a point."""

    x: Tensor
    f: float
    g: Tensor
    aux: Any = None
    """What else the objective has to say about the point."""


class Objective(Protocol):
    """A function that evaluates value and gradient together."""

    def __call__(self, x: Tensor) -> Point: ...


Product = Callable[[Tensor], Tensor]
"""B v for a flat vector v of the precision of x: all that is known of a matrix."""


@runtime_checkable
class HasHessian(Objective, Protocol):
    """An objective that can be differentiated twice."""

    def hessian(self, at: Point) -> Tensor:
        """The n x n matrix of second derivatives at a point; it need not be symmetric to the last digit."""
        ...


@runtime_checkable
class HasHessianProducts(Objective, Protocol):
    """An objective that can multiply its Hessian with vectors."""

    def hvp(self, at: Point) -> Product:
        """Products with the Hessian at a point."""
        ...


@runtime_checkable
class HasGaussNewton(Objective, Protocol):
    """An objective with a positive semidefinite stand-in for its Hessian: J'J of residuals, or J'(loss'')J."""

    def gauss_newton(self, at: Point) -> Product:
        """Products with the Gauss-Newton matrix at a point."""
        ...

    def fisher(self, at: Point, samples: int) -> Product:
        """Products with the Fisher information at a point; of so many labels drawn at each example, 0: exactly."""
        ...


@runtime_checkable
class HasKronecker(Objective, Protocol):
    """An objective whose Fisher information has Kronecker factors."""

    def kronecker(self, at: Point, samples: int) -> Eigensystem:
        """Eigenvalues and eigenvectors of KFAC at a point; `samples` as in `fisher`."""
        ...
