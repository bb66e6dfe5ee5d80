"""Whole parameters on every rank, flat vectors in slices: gradients are reduce-scattered, parameters all-gathered.

Both go by buckets, so that no rank ever holds a second vector of n numbers.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from signedstep.distributed.link import Link
from signedstep.distributed.reports import Report, Reports
from signedstep.distributed.sharded import Sharded
from signedstep.distributed.shared import Shared
from signedstep.flat import is_sharded, local, real
from signedstep.space import Space

_BUCKETS = 32
"""Into how many buckets a slice is cut; a backend may keep several of them, so a bucket should be small next to it."""
_LEAST, _MOST = 2**16, 2**20
"""Numbers of each rank in a bucket: what is worth sending, and what is no faster if more."""


class Sliced(Shared):
    """Rank r has the numbers from r c to (r + 1) c of every flat vector, c = ceil(n / ranks), as a DTensor would.

    `averaged` gradients are the same on all ranks already, and only cut.
    """

    def __init__(self, params: Iterable[Tensor], link: Link, averaged: bool = False):
        super().__init__(params, link)
        self.averaged = averaged
        if not all(real(p).is_contiguous() for p in self.params):
            raise ValueError("sharded vectors need contiguous parameters: call .contiguous() on them")
        self._ends = list(accumulate(self._sizes))
        self.share = -(-self.n // link.size)
        self.start = min(link.rank * self.share, self.n)
        self.stop = min(self.start + self.share, self.n)
        self._count = -(-self.share // max(_LEAST, min(_MOST, self.share // _BUCKETS))) or 1
        self._width = -(-self.share // self._count)

    def space(self) -> Space:
        return Sharded(self.link, self.n)

    def read(self) -> Tensor:
        return self._slice([real(p) for p in self.params])

    def holds(self, x: Tensor) -> bool:
        """Each rank looks at its slice; rounding to the parameters' precision is not a change."""
        parts = self._overlaps([real(p) for p in self.params], self.start, self.stop)
        return self.link.all(all(torch.equal(p, x[a:b].to(p)) for p, a, b in parts))

    def write_grads(self, g: Tensor) -> None:
        """No gradient is left: that of all ranks is in slices, and the one of this rank would mislead."""
        self.clear_grads()

    def exchange_grads(self, report: Report) -> tuple[Tensor, Callable[[], Reports]]:
        if self.averaged:
            return self._slice(self.grads()), self.reported(report)
        g = torch.empty(self.stop - self.start, dtype=self.dtype, device=self.device)
        grads = self.grads() if report.count else []  # neither a mean of no samples nor what a failure has left
        mine, rows = self._buffers(self.slots.length)
        self.slots.write(report, mine[self._width :])
        rows[:, self._width :] = mine[self._width :]
        for begin, end in self._buckets():
            if grads:
                for rank, row in enumerate(rows):
                    for grad, part in self._parts_of(grads, row, rank, begin, end):
                        part.copy_(grad).mul_(report.count)
            self.link.add_slice(mine, rows)
            g[begin:end] = mine[: len(g[begin:end])]
        reports = self.slots.read(mine[self._width :])
        return g, lambda: reports

    def saved(self, t: Tensor) -> Any:
        """A DTensor, which torch.distributed.checkpoint can save from and load onto any number of ranks."""
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.tensor import DTensor, Shard

        mesh = DeviceMesh.from_group(self.link.group, self.device.type)
        shape = (*t.shape[:-1], self.n)
        stride = (self.n, 1) if t.ndim == 2 else (1,)
        return DTensor.from_local(t, mesh, [Shard(t.ndim - 1)], run_check=False, shape=torch.Size(shape), stride=stride)

    def takes(self, saved: Any) -> bool:
        return local(saved).shape[-1] == self.stop - self.start if is_sharded(saved) else super().takes(saved)

    def loaded(self, saved: Any) -> Tensor:
        if is_sharded(saved):
            return saved.to_local()
        return super().loaded(saved)[..., self.start : self.stop].clone()

    def room(self, shape: tuple[int, ...], dtype: torch.dtype, part: int | None) -> Tensor:
        if part is not None:
            return super().room(shape, dtype, part)
        return self.saved(torch.empty(*shape[:-1], self.stop - self.start, dtype=dtype, device=self.device))

    def _fill(self, x: Tensor) -> None:
        targets = [real(p) for p in self.params]
        mine, rows = self._buffers()
        for begin, end in self._buckets():
            mine[: len(x[begin:end])] = x[begin:end]
            self.link.collect(rows, mine)
            for rank, row in enumerate(rows):
                for target, part in self._parts_of(targets, row, rank, begin, end):
                    target.copy_(part)

    def _buckets(self) -> Iterator[tuple[int, int]]:
        """Where buckets begin and end within a slice; at least one, which may be empty."""
        for i in range(self._count):
            yield i * self._width, min((i + 1) * self._width, self.share)

    def _buffers(self, more: int = 0) -> tuple[Tensor, Tensor]:
        """Zeros for a bucket of this rank, and for one of all ranks, used for all buckets in turn."""
        zeros = torch.zeros((self.link.size + 1) * (self._width + more), dtype=self.dtype, device=self.device)
        mine, rows = zeros[: self._width + more], zeros[self._width + more :]
        return mine, rows.view(self.link.size, -1)

    def _slice(self, tensors: list[Tensor]) -> Tensor:
        out = torch.empty(self.stop - self.start, dtype=self.dtype, device=self.device)
        for part, a, b in self._overlaps(tensors, self.start, self.stop):
            out[a:b] = part
        return out

    def _parts_of(
        self, tensors: list[Tensor], row: Tensor, rank: int, begin: int, end: int
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """What of some tensors lies in a bucket of a rank, each with its place in the bucket's row."""
        first = rank * self.share + begin
        last = min(rank * self.share + end, self.n)
        for part, a, b in self._overlaps(tensors, first, last):
            yield part, row[a:b]

    def _overlaps(self, tensors: list[Tensor], first: int, last: int) -> Iterator[tuple[Tensor, int, int]]:
        """The parts of tensors within first:last of the flat vector, each with its place relative to first."""
        at, i = first, bisect_right(self._ends, first)
        while at < last:
            begin = self._ends[i] - self._sizes[i]
            end = min(self._ends[i], last)
            yield tensors[i].reshape(-1)[at - begin : end - begin], at - first, end - first
            at, i = end, i + 1
