"""What users pass to `minimize` as an objective: a function and its derivatives, residuals, or the loss of a module."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from scipy.optimize import OptimizeWarning

from signedstep.arrays import NumpyObjective
from signedstep.closure import ClosureObjective
from signedstep.methods import needs_hessian, needs_parts, needs_products
from signedstep.module import ModuleLoss
from signedstep.objective import TorchObjective
from signedstep.residuals import LeastSquares

Source = TorchObjective | NumpyObjective | ClosureObjective
_DIFFERENCES = ("2-point", "3-point")


class Derivatives(NamedTuple):
    """Those that the user gives, under the names of `minimize`; None where there are none."""

    jac: Any
    hess: Any
    hessp: Any


def objective_of(
    fun: Any, given: Derivatives, args: tuple, shape: tuple[int, ...], method: str, tensors: bool
) -> Source:
    """The objective that a method, by its full name, wants of a user's function; complains where it cannot be had."""
    if isinstance(fun, LeastSquares | ModuleLoss):
        return _bound(fun, given, args, shape, tensors)
    _check_first(fun, given.jac, tensors)
    if needs_parts(method):
        raise TypeError(f"{method!r} needs {needs_parts(method)} as fun, got {fun!r}")
    products = needs_products(method)
    used = {"hess": products or needs_hessian(method), "hessp": products}
    _check_second(method, {name: getattr(given, name) for name in used if used[name]}, given.jac, tensors)
    for name in used:
        if not used[name] and getattr(given, name) is not None:
            warnings.warn(f"{name} is not used by this method", OptimizeWarning, stacklevel=3)
    return (TorchObjective if tensors else NumpyObjective)(fun, given.jac, args, shape, given.hess, given.hessp)


def _bound(
    fun: LeastSquares | ModuleLoss, given: Derivatives, args: tuple, shape: tuple[int, ...], tensors: bool
) -> Source:
    for name, value in given._asdict().items():
        if value is not None:
            raise TypeError(f"{type(fun).__name__} brings its own derivatives, so {name}= must be None, got {value!r}")
    return fun.bind(args, shape, tensors)


def _check_first(fun: Any, jac: Any, tensors: bool) -> None:
    if not callable(fun):
        raise TypeError(f"fun must be callable, got {fun!r}")
    known = callable(jac) or jac is None or isinstance(jac, bool)
    if not (known or (isinstance(jac, str) and jac in _DIFFERENCES and not tensors)):
        differences = "None (autograd)" if tensors else f"None or one of {_DIFFERENCES} (finite differences)"
        raise ValueError(f"jac must be callable, True, {differences}, got {jac!r}")


def _check_second(method: str, given: dict[str, Callable | None], jac: Any, tensors: bool) -> None:
    """Whether there is a source of second derivatives, if any is wanted: one given, autograd, or differences."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise ValueError(f"{name} must be callable or None, got {value!r}")
    if not given or any(value is not None for value in given.values()):
        return
    wanted = " or ".join(f"{name}=" for name in reversed(given))
    if tensors and jac:
        raise ValueError(f"{method!r} needs {wanted} where jac= is given: autograd is only used where it does both")
    if not tensors and not (callable(jac) or jac is True):
        raise ValueError(f"{method!r} needs {wanted}, or jac= (a callable or True) to take differences of")
