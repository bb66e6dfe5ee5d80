"""The start of a run as a flat vector, and the way back to what the user has given."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from signedstep.room import Room


class Front:
    """Hands flat vectors back in the type and shape of x0."""

    def __init__(self, shape: tuple[int, ...], torch_front: bool, room: Room):
        self.shape, self.torch, self.room = shape, torch_front, room

    def give(self, v: Tensor) -> Any:
        v = self.room.copy(v).reshape(self.shape)
        return v if self.torch else v.numpy()


def start_of(x0: Any, room: Room) -> tuple[Tensor, Front]:
    """x0 as a flat floating-point vector of our own."""
    is_torch = isinstance(x0, Tensor)
    if is_torch and x0.layout != torch.strided:
        raise TypeError(f"x0 must be a dense tensor, got one with the layout {x0.layout}")
    if is_torch and (x0.is_meta or x0.is_nested):
        kind = "a nested one" if x0.is_nested else "one on the meta device"
        raise TypeError(f"x0 must be a tensor with numbers in it, got {kind}")
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
    return x.reshape(-1).clone(), Front(tuple(x.shape), is_torch, room)


def _native(array: np.ndarray) -> np.ndarray:
    """The array in the byte order of this machine."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)
