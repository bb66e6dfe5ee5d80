"""What users' functions return, taken as it is meant or refused: an error names the function and what it gave."""

import math
from typing import Any

import numpy as np
from torch import Tensor


def scalar(value: Any, source: str = "fun") -> float:
    """The value of a function as a float, if it is one real number; `source` names the function in errors."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
        return float(value.item())
    if isinstance(value, str | bytes | tuple | None):
        also = "with jac=True, a scalar and a gradient" if source == "fun" else "or a scalar and something else"
        raise TypeError(f"{source} must return a scalar ({also}), got {value!r}")
    if isinstance(value, list) and any(isinstance(part, Tensor) for part in value):
        raise TypeError(f"{source} must return a scalar, got a list of {len(value)}")
    if not isinstance(value, Tensor) and np.asarray(value).dtype.kind not in "biufc":
        raise TypeError(f"{source} must return a scalar, got {value!r}")
    size = value.numel() if isinstance(value, Tensor) else np.size(value)
    if size != 1:
        raise ValueError(f"{source} must return a scalar, got an array of {size} numbers")
    if isinstance(value, Tensor) or np.iscomplexobj(value):
        raise TypeError(f"{source} must return a real number, got a complex one")
    return float(np.asarray(value).item())


def pair(returned: Any) -> tuple[Any, Any]:
    """The value and the gradient of a function that returns both (jac=True)."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise TypeError(f"with jac=True, fun must return a value and a gradient, got {type(returned).__name__}")
    return returned[0], returned[1]


def array_of(given: Any) -> np.ndarray:
    """A vector or a matrix as an array: functions of arrays may return tensors, too."""
    return given.numpy(force=True) if isinstance(given, Tensor) else np.asarray(given)


def check_shape(given: tuple[int, ...], wanted: tuple[int, ...], source: str = "the gradient") -> None:
    """Complain of a vector that has neither the shape of x0 nor its count of numbers in a row."""
    n = math.prod(wanted)
    if given != wanted and given != (n,) and not math.prod(given) == n == 1:
        raise ValueError(f"{source} must have the shape {wanted} of x0, got {given}")


def check_real(given: Any, source: str = "the gradient") -> None:
    """Complain of complex numbers, tensors or arrays, and of nothing at all."""
    if given is None:
        raise TypeError(f"{source} must be an array or a tensor, got None")
    if given.is_complex() if isinstance(given, Tensor) else np.iscomplexobj(given):
        raise TypeError(f"{source} must be real, got complex numbers")


def check_square(given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Complain of a Hessian that has not the shape of one for an x of this shape."""
    n = math.prod(shape)
    if tuple(given) not in ((n, n), (*shape, *shape)) and not math.prod(given) == n == 1:
        raise ValueError(f"the Hessian must have the shape {(n, n)}, got {tuple(given)}")


def square(H: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A Hessian as a matrix, if it has the shape of one for an x of this shape."""
    check_square(H.shape, shape)
    n = math.prod(shape)
    return H.reshape(n, n)
