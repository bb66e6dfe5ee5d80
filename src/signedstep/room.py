"""Memory for long vectors, used again once they are gone: to be given new memory takes longer than to fill it."""

import weakref

import torch
from torch import Tensor

from signedstep.native import prefer_large_pages

_LONG = 2**21
"""Bytes from which memory is used again, and asked for in large pages, which have this size; shorter vectors get theirs
from the heap, and quickly."""
_PRECISIONS = (torch.float32, torch.float64)


class Room:
    """Lends memory for vectors. It comes back when nobody holds a vector any more, nor a view of it.

    No more is kept than was lent at one time, and only as long as this object lives.
    """

    def __init__(self) -> None:
        self._free: dict[tuple[torch.dtype, int], list[Tensor]] = {}

    def like(self, v: Tensor) -> Tensor | None:
        """A vector like v to write into, for the `out` of torch's functions; None where it would not matter."""
        n = v.numel()
        if n * v.element_size() < _LONG or not v.is_cpu or v.dtype not in _PRECISIONS:
            return None
        free = self._free.get((v.dtype, n))
        memory = free.pop() if free else prefer_large_pages(torch.empty(n, dtype=v.dtype, device="cpu"))
        lent = memory.numpy()  # torch keeps this object alive as long as it needs the memory
        weakref.finalize(lent, self._take_back, weakref.ref(self), memory).atexit = False
        return torch.from_numpy(lent).view(v.shape)

    def copy(self, v: Tensor) -> Tensor:
        """A copy of a vector."""
        room = self.like(v)
        return v.clone() if room is None else room.copy_(v)

    @staticmethod
    def _take_back(room: "weakref.ref[Room]", memory: Tensor) -> None:
        lender = room()
        if lender is not None:
            lender._free.setdefault((memory.dtype, memory.numel()), []).append(memory)
