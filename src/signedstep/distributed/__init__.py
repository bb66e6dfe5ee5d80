"""Training on several ranks of torch.distributed: losses and gradients summed, vectors whole or in slices.

`Parallel` is what users pass to an optimizer. It makes a `Flat` of the parameters, with the space of its vectors:

- Shared: whole vectors on each rank, gradients that DistributedDataParallel has averaged      -> Copied
- Summed: the same, with gradients of each rank's own data                                     -> Copied
- Sliced: each rank keeps one slice of every vector (`shard=True`)                             -> Sharded
- Placed: parameters are DTensors (FSDP2), whose shards are the slices                         -> Sharded

All of them talk through one `Link`; what ranks report of an evaluation (`reports`) travels with the gradient.
"""

from signedstep.distributed.checkpoint import load
from signedstep.distributed.link import LostRankError
from signedstep.distributed.objective import RankError
from signedstep.distributed.parallel import Parallel

__all__ = ["LostRankError", "Parallel", "RankError", "load"]
