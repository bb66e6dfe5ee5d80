"""Parameters that ranks share: flat vectors that are filled, and gradients that are summed, on all of them together."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from itertools import zip_longest

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
    piece = 0
    """Which part of the parameters this rank has; ranks with the same part must have the same numbers."""

    def __init__(self, params: Iterable[Tensor], link: Link):
        super().__init__(params)
        self.link = link
        link.device = self.device
        self.slots = Slots(link, self.dtype)

    def holds(self, x: Tensor) -> bool:
        return self.link.all(super().holds(x))

    def together(self) -> AbstractContextManager[None]:
        return self.link.together()

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

    def check_alike(self, options: Sequence[str]) -> None:
        """Complain about options or parameters that are not the same on all ranks: they would part, and never notice.

        One exchange of three numbers, whatever ranks have: where they differ, no other collective would fit.
        """
        said = [f"{type(self).__name__} parameters {self.layout}", *options]
        numbers = [fingerprint(said), self.piece, self._contents()]
        mine = torch.tensor(numbers, dtype=torch.int64, device=self.link.device)
        everyone = mine.new_empty(self.link.size, len(numbers))
        self.link.collect(everyone, mine)
        fingerprints, pieces, contents = everyone.T.tolist()
        if len(set(fingerprints)) > 1:
            raise ValueError(f"the ranks do not agree: {_difference(self.link.texts(chr(10).join(said)))}")
        if len(set(zip(pieces, contents, strict=True))) > len(set(pieces)):
            raise ValueError(
                "the parameters are not the same on all ranks: seed all ranks alike before the model is made, or "
                "broadcast its parameters from rank 0"
            )

    def _contents(self) -> int:
        """A number that tells parameters with other contents apart, and does not depend on the order of sums."""
        return fingerprint([str(_checksum(real(p))) for p in self.params])


def fingerprint(texts: Sequence[str]) -> int:
    """A number of 63 bits for some texts."""
    return int.from_bytes(sha256("\n".join(texts).encode()).digest()[:8]) >> 1


_INTEGERS = {1: torch.int8, 2: torch.int16}  # others in pieces of 32 bits: of 64, weighted sums would lose the sign
_PERIOD = 1021  # a prime, so that rows of matrices do not fall into step with it


def _checksum(p: Tensor) -> int:
    """A weighted sum of the bits of a parameter, exact whatever the number of threads, without a copy of it."""
    bits = p.contiguous().view(-1).view(_INTEGERS.get(p.element_size(), torch.int32))
    whole = len(bits) // _PERIOD * _PERIOD
    sums = torch.zeros(_PERIOD, dtype=torch.int64, device=bits.device)
    for part in bits[:whole].split(512 * _PERIOD):  # a sum in another precision copies what it sums
        sums += part.view(-1, _PERIOD).sum(dim=0, dtype=torch.int64)
    sums[: len(bits) - whole] += bits[whole:]
    return int((sums * torch.arange(1, 1 + _PERIOD, device=bits.device)).sum())


def _difference(texts: Sequence[str]) -> str:
    """The lines in which a rank differs from rank 0."""
    rank, text = next((rank, text) for rank, text in enumerate(texts) if text != texts[0])
    lines = zip_longest(texts[0].split("\n"), text.split("\n"), fillvalue="nothing")
    first, other = zip(*((here, there) for here, there in lines if here != there), strict=True)
    return f"rank 0 has {', '.join(first)}; rank {rank} has {', '.join(other)}"


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
