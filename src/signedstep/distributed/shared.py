"""Parameters that ranks share: flat vectors that are filled, and gradients that are summed, on all of them together."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from signedstep.distributed.link import Link
from signedstep.distributed.reports import Report, Reports, Slots
from signedstep.distributed.sharded import Copied
from signedstep.flat import Flat, real
from signedstep.space import Space


class Shared(Flat):
    """Whole parameters on every rank, whose gradients something else has averaged already: DistributedDataParallel."""

    averaged = True

    def __init__(self, params: Iterable[Tensor], link: Link):
        super().__init__(params)
        self.link = link
        link.device = self.device
        self.slots = Slots(link, self.dtype)

    def holds(self, x: Tensor) -> bool:
        return self.link.all(super().holds(x))

    def space(self) -> Space:
        return Copied(self.link)

    def exchange_grads(self, report: Report) -> tuple[Tensor, Callable[[], Reports]]:
        """The gradient of all ranks, weighted by their counts and not yet divided by them, and what they report.

        Averaged gradients are there before the reports, which travel with the next sums.
        """
        return self.read_grads(), self.reported(report)

    def reported(self, report: Report) -> Callable[[], Reports]:
        """The reports alone, where gradients do not have to travel."""
        rows = self.link.later(self.link.row(report))
        return lambda: Reports(*rows().T)

    def check_alike(self) -> None:
        """Complain about parameters that are not the same on all ranks, as DistributedDataParallel makes them."""
        sums = [real(p).sum().nan_to_num() for p in self.params]  # in their own precision: no copy is made
        mine = torch.tensor([float(value) for value in sums], dtype=torch.float64, device=self.link.device)
        everyone = mine.new_empty(self.link.size, len(mine))
        self.link.collect(everyone, mine)
        if not bool((everyone == everyone[0]).all()):
            raise ValueError(
                "the parameters are not the same on all ranks: seed all ranks alike before the model is made, or "
                "broadcast its parameters from rank 0"
            )


class Summed(Shared):
    """Whole parameters on every rank, with gradients of its own data: one sum for loss and gradient together."""

    averaged = False

    def exchange_grads(self, report: Report) -> tuple[Tensor, Callable[[], Reports]]:
        buffer = torch.empty(self.n + self.slots.length, dtype=self.dtype, device=self.device)
        g, slots = buffer[: self.n], buffer[self.n :]
        if report.count:
            for part, grad in zip(g.split(self._sizes), self.grads(), strict=True):
                part.copy_(grad.reshape(-1))
            if report.count != 1:
                g.mul_(report.count)
        else:
            g.zero_()  # neither a mean of no samples nor what a failure has left
        self.slots.write(report, slots)
        self.link.add(buffer)
        return g, lambda: self.slots.read(slots)
