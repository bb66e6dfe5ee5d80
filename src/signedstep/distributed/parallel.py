"""How ranks train together: what their closures return, and what each keeps."""

from collections.abc import Callable, Iterable
from typing import Any

import torch.distributed as dist
from torch import Tensor

from signedstep.checks import check_choice, check_flag, check_number
from signedstep.distributed.link import Link
from signedstep.distributed.objective import ParallelObjective, Weights
from signedstep.distributed.reports import Reports
from signedstep.distributed.shared import Shared, Summed
from signedstep.distributed.sliced import Sliced
from signedstep.flat import is_sharded

LOSSES = ("mean", "sum")
GRADIENTS = ("local", "averaged")
_COUNT = "a number of samples that is not negative, at most 2**53"  # gradients are multiplied with it, even in float32


class Parallel:
    """What the `parallel=` argument of the torch.optim front takes: each rank's closure sees its own data.

    Parameters
    ----------
    group : ProcessGroup
        The ranks that train together; by default all of them, or those of the mesh if parameters are DTensors.
    loss : "mean" or "sum"
        Whether the loss of all data is the mean of the ranks' losses or their sum.
    count : float or callable
        How many samples are behind this rank's loss, so that the mean weights the ranks by it; a callable is asked
        before each evaluation. A rank with none is not evaluated. Default: all ranks weigh the same.
    gradients : "local" or "averaged"
        "averaged" declares that backward() leaves the average of all ranks, as DistributedDataParallel does. It only
        saves a reduction: an average is not changed by being averaged again. DTensors are always that way.
    shard : bool
        Keep only this rank's slice of the flat vectors and of the history: (2m + 8) n / ranks numbers on each. For
        limited-memory methods. Afterwards `.grad` is empty, since no rank has all of it.
    """

    def __init__(
        self,
        group: Any = None,
        *,
        loss: str = "mean",
        count: float | Callable[[], float] | None = None,
        gradients: str = "local",
        shard: bool = False,
    ):
        self.loss = check_choice("loss", loss, LOSSES)
        self.averaged = check_choice("gradients", gradients, GRADIENTS) == "averaged"
        self.shard = check_flag("shard", shard)
        if count is not None and (self.averaged or loss == "sum"):
            raise ValueError(
                "counts weight a mean of local gradients; a sum needs none, and averaged gradients were averaged "
                "without them: multiply the loss in the closure by ranks * count / total instead"
            )
        self._count = count
        if not dist.is_initialized():
            raise RuntimeError("there is no process group: call torch.distributed.init_process_group first")
        self._group, self._links = group, {}

    @property
    def spelled(self) -> str:
        """What must be the same on every rank; counts need not."""
        return f"loss = {self.loss!r}, averaged gradients = {self.averaged}, shard = {self.shard}"

    def flat(self, params: Iterable[Tensor]) -> Shared:
        """The parameters as flat vectors that the ranks share."""
        params = [p for p in params if p.requires_grad]
        if any(is_sharded(p) for p in params):
            return self._placed(params)
        link = self._link(self._group)
        if self.shard:
            return Sliced(params, link, self.averaged)
        return Shared(params, link) if self.averaged else Summed(params, link)

    def objective(
        self, flat: Shared, closure: Callable[[], Any], maximize: bool, counted: Callable[[], None]
    ) -> ParallelObjective:
        """The closures of all ranks as one objective."""
        scale = 1.0 if self.loss == "mean" else 1.0 / flat.link.size
        averaged = Weights(lambda reports: float(reports.loss.mean()) / scale, lambda reports: scale)
        weights = averaged if flat.averaged else Weights(self._weighted, lambda reports: self._total(reports()))
        return ParallelObjective(flat, closure, maximize, counted, self.count, weights)

    def count(self) -> float:
        given = self._count() if callable(self._count) else self._count
        return 1.0 if given is None else check_number("count", given, _COUNT, lambda count: 0 <= count <= 2**53)

    def _placed(self, params: list[Tensor]) -> Shared:
        from signedstep.distributed.placed import Placed, sharding  # takes a second to import

        if self._count is not None:
            raise ValueError(
                "count cannot weight DTensor parameters: their gradients are averaged before the optimizer sees them; "
                "multiply the loss in the closure by ranks * count / total instead"
            )
        everyone, shards = sharding(params)
        return Placed(params, self._link(self._group or everyone), shards)

    def _link(self, group: Any) -> Link:
        """One link for each group, which remembers that it broke."""
        group = None if group is dist.group.WORLD else group
        if group not in self._links:
            self._links[group] = Link(group)
        return self._links[group]

    def _total(self, reports: Reports) -> float:
        total = float(reports.count.sum()) if self.loss == "mean" else 1.0
        if not total > 0:
            raise ValueError("no rank has a sample: all counts are 0")
        return total

    def _weighted(self, reports: Reports) -> float:
        some = reports.count > 0  # what a rank without samples would say does not count, even if it is NaN
        return float((reports.loss * reports.count)[some].sum()) / self._total(reports)
