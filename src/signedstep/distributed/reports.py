"""What each rank says about an evaluation, carried exactly by a sum in any precision."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from signedstep.distributed.link import Link


class Report(NamedTuple):
    """One rank's loss, the number of samples behind it, and whether its closure raised."""

    loss: float
    count: float
    failed: float


class Reports(NamedTuple):
    """Those of all ranks, in the order of ranks: arrays, the same to the last bit everywhere."""

    loss: np.ndarray
    count: np.ndarray
    failed: np.ndarray


class Slots:
    """Room for the reports in a buffer that is summed over ranks: each rank fills its own row and leaves 0 elsewhere.

    So sums are exact, and loss and gradient travel together: a float64 number is cut into as many pieces of the
    buffer's precision as it takes.
    """

    def __init__(self, link: Link, dtype: torch.dtype):
        self.link, self.dtype = link, dtype
        self.pieces = 1 if dtype == torch.float64 else 3
        self.length = link.size * len(Report._fields) * self.pieces

    def write(self, report: Report, slots: Tensor) -> None:
        """Fill this rank's row, and 0 in the others'."""
        values, parts = np.array(report, dtype=np.float64), []
        with np.errstate(all="ignore"):
            for _ in range(self.pieces):
                part = values if self.pieces == 1 else values.astype(np.float32).astype(np.float64)
                parts.append(part)
                values = np.where(np.isfinite(part), values - part, 0.0)
        row = torch.from_numpy(np.concatenate(parts))
        slots.zero_().view(self.link.size, -1)[self.link.rank].copy_(row)

    def read(self, slots: Tensor) -> Reports:
        """The reports in a buffer after its sum."""
        rows = slots.double().numpy(force=True).reshape(self.link.size, self.pieces, -1)
        return Reports(*rows[:, ::-1].sum(axis=1).T)
