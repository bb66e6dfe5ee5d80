"""FSDP2 between two evaluations: what it keeps of a pass that has not come to its end would go into the next one."""

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor
from torch.distributed._composable_state import _module_state_mapping
from torch.distributed.fsdp import FSDPModule


class Wrappers:
    """The modules that `fully_shard` has made around some parameters; a parameter does not know its own."""

    def __init__(self, params: Iterable[Tensor]):
        mine = {id(p) for p in params}
        every = [module for module in list(_module_state_mapping) if isinstance(module, FSDPModule)]
        self._modules = [module for module in every if any(id(part.sharded_param) in mine for part in _parts(module))]

    def begin(self) -> None:
        """Let the next forward pass gather the parameters anew, and the next backward pass begin without gradients.

        A root keeps whole parameters after a forward pass, for a backward pass that may never come: after one that
        only validates, or a closure that raised. Gradients of some layers may be left of it, too.
        """
        for module in self._modules:
            for part in _parts(module):
                part.unsharded_accumulated_grad = None
                if hasattr(part, "_unsharded_param"):
                    part._unsharded_param.grad = None
            root = module._get_fsdp_state()._is_root  # None before the first forward pass
            if root is None or not hasattr(module, "reset_iter_state"):  # older versions of torch have none
                module.reshard()
            elif root:
                module.reset_iter_state()  # its reshard() does nothing if forward() itself has raised


def _parts(module: Any) -> Iterator[Any]:
    """What FSDP2 knows of each parameter within a module."""
    for child in module.modules():
        if isinstance(child, FSDPModule):
            state: Any = child._get_fsdp_state()
            groups = getattr(state, "_fsdp_param_groups", None)  # torch before 2.13 has at most one
            for group in filter(None, [state._fsdp_param_group] if groups is None else groups):
                yield from group.fsdp_params
