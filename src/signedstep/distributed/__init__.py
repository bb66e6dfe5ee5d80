"""Training on several ranks of torch.distributed: losses and gradients summed, vectors whole or in slices."""

from signedstep.distributed.checkpoint import load
from signedstep.distributed.link import LostRankError
from signedstep.distributed.objective import RankError
from signedstep.distributed.parallel import Parallel
from signedstep.distributed.sharded import Sharded

__all__ = ["LostRankError", "Parallel", "RankError", "Sharded", "load"]
