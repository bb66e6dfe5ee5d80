"""The link between ranks: every collective of the package goes through here, and none after one has failed."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from signedstep.failures import told

if dist.is_available():  # there are builds of torch without
    import torch.distributed.nn  # for `Link.group`


def _collective(name: str, before: str) -> Any:
    """A collective by its name, and by that which it had before torch 2.13."""
    return getattr(dist, name, None) or getattr(dist, before, None)


_scatter_sums = _collective("reduce_scatter_single", "reduce_scatter_tensor")
_collect = _collective("all_gather_single", "all_gather_into_tensor")


class LostRankError(ConnectionError):
    """A collective failed: a rank has died, or has not answered within the time-out of the process group."""


class Lost(BaseException):
    """A `LostRankError` on its way through searches, which take an exception for a bad trial; this one ends the run."""


@contextmanager
def lost_as_error() -> Iterator[None]:
    """Users see `LostRankError`."""
    try:
        yield
    except Lost as lost:
        raise LostRankError(*lost.args) from lost.__cause__


class Link:
    """Sums and copies among the ranks of a process group.

    Ranks decide by what comes from here, and it is the same on all of them, to the last bit.
    """

    def __init__(self, group: Any = None):
        self._group: Callable[[], Any] = lambda: group
        if group in (None, dist.group.WORLD):
            self._group = weakref.ref(dist.group.WORLD)
        self.rank, self.size = dist.get_rank(self.group), dist.get_world_size(self.group)
        self.device = torch.device("cpu")
        """Where small numbers are reduced: that of the vectors, since not every backend has all devices."""
        self.agreed: Exception | None = None
        """What all ranks raise now, each its own."""
        self._broken: str | None = None
        self._waiting: list[tuple[np.ndarray, list[np.ndarray]]] = []

    @property
    def group(self) -> Any:
        """The process group. That of all ranks is not kept: its threads would go on after `destroy_process_group`.

        One that frees a tensor while Python shuts down aborts the process. torch's optimizers keep it as well, unless
        torch.distributed.nn, whose default arguments hold the group that exists at its import, was imported before.
        """
        group = self._group()
        if group is None or not dist.is_initialized():
            raise LostRankError("the process group that this optimizer was made for has been destroyed")
        return group

    def later(self, values: np.ndarray) -> Callable[[], np.ndarray]:
        """The sums of float64 numbers over all ranks, once they are asked for; all that waits travels together."""
        found: list[np.ndarray] = []
        if values.size:
            self._waiting.append((values, found))
        else:
            found.append(values)

        def sums() -> np.ndarray:
            if not found:
                self._send()
            return found[0]

        return sums

    def row(self, values: Sequence[float]) -> np.ndarray:
        """A row for each rank, and numbers in that of this one: the sum over ranks has the numbers of all of them."""
        rows = np.zeros((self.size, len(values)))
        rows[self.rank] = values
        return rows

    def all(self, here: bool) -> bool:
        """Whether something is true on every rank."""
        return not self.later(np.array([float(not here)]))()[0]

    def add(self, buffer: Tensor) -> None:
        """Sum a tensor over all ranks, in place."""
        self._run(dist.all_reduce, buffer)

    def add_slice(self, out: Tensor, rows: Tensor) -> None:
        """Sum rows [ranks, k] over all ranks; `out` [k] gets the row of this one."""
        self._run(_scatter_sums, out, rows.view(-1))

    def collect(self, rows: Tensor, mine: Tensor) -> None:
        """Fill rows [ranks, k] with `mine` [k] of every rank."""
        self._run(_collect, rows.view(-1), mine)

    def texts(self, text: str) -> list[str]:
        """A text of every rank."""
        found: list[Any] = [None] * self.size
        self._run(dist.all_gather_object, found, text)
        return found

    @contextmanager
    def together(self) -> Iterator[None]:
        """What all ranks must do or none: an exception here would let this rank go on with other trials than theirs.

        So it ends the link, unless it is raised on all of them.
        """
        try:
            yield
        except Lost:
            raise
        except BaseException as error:
            if error is self.agreed:
                raise
            self.leave(f"this rank failed outside its closure: {told(error)}")
            if isinstance(error, Exception):
                raise Lost(self._broken) from error
            raise  # an interrupt

    def leave(self, reason: str) -> None:
        """Take no further part: what this rank was about to do is no longer what the others expect."""
        self._broken = self._broken or reason

    def _send(self) -> None:
        """Sum all that waits, in one reduction."""
        total = torch.from_numpy(np.concatenate([values.ravel() for values, _ in self._waiting])).to(self.device)
        self.add(total)
        sums = np.split(total.numpy(force=True), np.cumsum([values.size for values, _ in self._waiting])[:-1])
        for (values, found), part in zip(self._waiting, sums, strict=True):
            found.append(part.reshape(values.shape))
        self._waiting = []

    def _run(self, collective: Callable, *args: Any, **options: Any) -> None:
        if self._broken:
            raise Lost(self._broken)
        try:
            collective(*args, group=self.group, **options)
        except LostRankError as error:
            self.leave(str(error))
            raise Lost(self._broken) from None
        except Exception as error:
            self.leave(f"lost another rank: {error}")
            raise Lost(self._broken) from error
        except BaseException:
            self.leave("this rank was interrupted while it waited for others")
            raise
