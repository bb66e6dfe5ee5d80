"""Parameters that are DTensors, as FSDP2 (`fully_shard`) makes them: what is on a rank is its slice of flat vectors."""

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.placement_types import Placement

from signedstep.distributed.link import Link
from signedstep.distributed.sharded import Sharded
from signedstep.distributed.shared import Shared
from signedstep.distributed.wrappers import Wrappers
from signedstep.flat import is_sharded, local, real
from signedstep.space import Space


class Placed(Shared):
    """Flat vectors of local shards; whoever made the shards has reduced their gradients, and gathers parameters.

    Of several copies of the shards one `counts`, so that all ranks decide by the same sums; `shards` is the process
    group of the ranks that have one copy together.
    """

    def __init__(self, params: Iterable[Tensor], link: Link, shards: Any):
        super().__init__(params, link)
        self.counts = dist.get_global_rank(link.group, 0) in dist.get_process_group_ranks(shards)
        self.piece = dist.get_rank(shards)
        self._copies = link.size > dist.get_world_size(shards)
        self._wrappers = Wrappers(self.params)

    def space(self) -> Space:
        return Sharded(self.link, self.n, self.counts)

    def _contents(self) -> int:
        return super()._contents() if self._copies else 0  # nothing to compare with

    def grads(self) -> list[Tensor]:
        """The gradients, placed as their parameters are: autograd may leave partial sums."""
        for p in self.params:
            if isinstance(p.grad, DTensor) and isinstance(p, DTensor) and p.grad.placements != p.placements:
                p.grad = p.grad.redistribute(placements=p.placements)
        return super().grads()

    def saved(self, t: Tensor) -> Any:
        """DTensors, one for each parameter: shards of parameters are what loads onto another number of ranks."""
        parts = t.split(self._sizes, dim=-1)
        return [self._like(part, p) for part, p in zip(parts, self.params, strict=True)]

    def takes(self, saved: Any) -> bool:
        """Shards like those of the parameters."""
        return isinstance(saved, list) and all(
            is_sharded(part) and local(part).shape[part.ndim - p.ndim :] == p.shape
            for part, p in zip(saved, map(real, self.params), strict=True)
        )

    def loaded(self, saved: Any) -> Tensor:
        return super().loaded([part.to_local() for part in saved])

    def room(self, shape: tuple[int, ...], dtype: torch.dtype, part: int | None) -> Tensor:
        if part is None:
            raise ValueError("this checkpoint has vectors in one piece; DTensor parameters need one saved by them")
        p = self.params[part]
        lead = shape[: len(shape) - len(real_shape(p))]
        return self._like(torch.empty(*lead, real(p).numel(), dtype=dtype, device=self.device), p)

    def _fill(self, x: Tensor) -> None:
        self._wrappers.begin()
        super()._fill(x)

    def _like(self, part: Tensor, p: Tensor) -> DTensor:
        """A part of flat vectors [..., k] as a DTensor with the shards of a parameter."""
        assert isinstance(p, DTensor)
        lead = part.shape[:-1]
        shape = torch.Size((*lead, *real_shape(p)))
        placements: list[Placement] = [
            Shard(place.dim + len(lead)) if isinstance(place, Shard) else place for place in p.placements
        ]
        stride = torch.empty(shape, device="meta").stride()
        local = part.reshape(*lead, *real(p).shape)
        return DTensor.from_local(local, p.device_mesh, placements, run_check=False, shape=shape, stride=stride)


def real_shape(p: Tensor) -> tuple[int, ...]:
    """The shape of a parameter on all ranks together, complex numbers as pairs."""
    return (*p.shape, 2) if p.is_complex() else tuple(p.shape)


def sharding(params: list[Tensor]) -> tuple[Any, Any]:
    """The process groups of DTensor parameters: of all ranks that train them, and of those that share one copy."""
    patterns = {_pattern(p) for p in params}
    if len(patterns) > 1:
        raise ValueError(
            "all parameters must be DTensors with shards over the same dimensions of one mesh, so that every number "
            f"counts once; got {sorted(map(str, patterns))}. With FSDP2, call fully_shard on the root module too"
        )
    ((mesh, sharded),) = patterns
    if len(sharded) == mesh.ndim == 1:
        return mesh.get_group(), mesh.get_group()
    if mesh.size() != dist.get_world_size():
        raise ValueError(f"a mesh of several dimensions must hold all ranks, got {mesh} of {dist.get_world_size()}")
    if len(sharded) == 1:  # copies of shards: hybrid sharding
        return dist.group.WORLD, mesh.get_group(sharded[0])
    if len(sharded) == mesh.ndim:
        return dist.group.WORLD, dist.group.WORLD
    raise ValueError(f"parameters must be sharded over one or all dimensions of their mesh, got {sharded} of {mesh}")


def _pattern(p: Tensor) -> tuple[Any, tuple[int, ...]]:
    if not isinstance(p, DTensor):
        return "a plain tensor", ()
    if any(place.is_partial() for place in p.placements):
        raise ValueError(f"a parameter with partial sums cannot be trained, got placements {p.placements}")
    return p.device_mesh, tuple(i for i, place in enumerate(p.placements) if place.is_shard())
