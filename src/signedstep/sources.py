"""What users pass to `minimize` as an objective: a function and its derivatives, residuals, or the loss of a module."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from scipy.optimize import OptimizeWarning
from torch import Tensor

from signedstep.arrays import NumpyObjective
from signedstep.closure import ClosureObjective
from signedstep.methods import model_of, parts_in_words
from signedstep.module import ModuleLoss
from signedstep.residuals import LeastSquares
from signedstep.tensors import TorchObjective

Source = TorchObjective | NumpyObjective | ClosureObjective
_DIFFERENCES = ("2-point", "3-point")


class Derivatives(NamedTuple):
    """Those that the user gives, under the names of `minimize`; None where there are none."""

    jac: Any
    hess: Any
    hessp: Any


def objective_of(
    fun: Any, given: Derivatives, args: tuple, start: Tensor, shape: tuple[int, ...], method: str, tensors: bool
) -> Source:
    """The objective that a method, by its full name, wants of a user's function; complains where it cannot be had.

    `start` is x0 as a flat vector; `shape` the user's, who has given a tensor or an array.
    """
    if isinstance(fun, LeastSquares | ModuleLoss):
        _check_parts(fun, given, args, method)
        if isinstance(fun, ModuleLoss):
            return fun.bind(start if tensors else None, shape)
        return fun.bind(args, shape, tensors, keep=bool(model_of(method).needs_parts))
    _check_first(fun, given.jac, tensors)
    if model_of(method).needs_parts:
        raise TypeError(f"{method!r} needs {parts_in_words(method)} as fun, got {fun!r}")
    products = model_of(method).needs_products
    used = {"hess": products or model_of(method).needs_hessian, "hessp": products}
    _check_second(method, {name: getattr(given, name) for name in used if used[name]}, given.jac, tensors)
    for name in used:
        if not used[name] and getattr(given, name) is not None:
            warnings.warn(f"{name} is not used by this method", OptimizeWarning, stacklevel=3)
    return (TorchObjective if tensors else NumpyObjective)(fun, given.jac, args, shape, given.hess, given.hessp)


def second_cost(objective: Source, method: str) -> int:
    """Values of the function that a method, by its full name, may need at a point for second derivatives.

    Differences along single vectors, as products of arrays are made, come on top of it.
    """
    if model_of(method).needs_hessian:
        return objective.hessian_cost
    if model_of(method).needs_products:
        return objective.products_cost
    return objective.parts_cost if model_of(method).needs_parts else 0


def _check_parts(fun: LeastSquares | ModuleLoss, given: Derivatives, args: tuple, method: str) -> None:
    kind = "ModuleLoss" if isinstance(fun, ModuleLoss) else "LeastSquares"
    for name, value in given._asdict().items():
        if value is not None:
            raise TypeError(f"{kind} brings its own derivatives, so {name}= must be None, got {value!r}")
    accepted = model_of(method).needs_parts
    if accepted and kind not in accepted:
        raise TypeError(f"{method!r} needs {parts_in_words(method)} as fun, got a {kind}")
    if isinstance(fun, ModuleLoss) and args:
        raise TypeError(f"a ModuleLoss has no arguments beside its data, got args={args!r}")
    if isinstance(fun, ModuleLoss) and model_of(method).needs_hessian:
        raise TypeError(f"{method!r} needs the whole Hessian, a ModuleLoss offers its products: use 'newton-cg'")


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
