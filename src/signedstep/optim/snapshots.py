"""Whether a state dict fits an optimizer: the same kind, the same method, parameters of the same shapes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from torch import Tensor

from signedstep.flat import Flat, is_sharded
from signedstep.methods import full_name

COUNTERS = ("n_iter", "func_evals")
"""What a state keeps of an engine that no longer fits the parameters or options: how far it has come."""
_ENGINE = ("method", "layout", "shape", "engine")


def own(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is ours in the state of a parameter."""
    return {name: value for name, value in entry.items() if name in _ours(entry)}


def others(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is not: programs around an optimizer keep averages and the like there."""
    return {name: value for name, value in entry.items() if name not in _ours(entry)}


def _ours(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return (*COUNTERS, *_ENGINE) if "engine" in entry else COUNTERS


def check_loadable(state_dict: Mapping[str, Any], flat: Flat, method: str, owner: str) -> None:
    """Refuse a state dict that does not fit parameters `flat` under `method`; `owner` names the optimizer."""
    if not {"param_groups", "state"} <= set(state_dict):
        raise ValueError(f"this is no state dict of an optimizer: its keys are {sorted(state_dict)}")
    kept = [saved for saved in state_dict["state"].values() if "engine" in saved]
    parts = (*state_dict["param_groups"], *kept)
    for part in parts:
        if "method" not in part:
            raise ValueError(f"this state dict is of another optimizer than {owner}: {sorted(part)}")
    for saved in kept:
        mine, given = shapes(flat.layout), shapes(saved["layout"])
        if mine != given:
            raise ValueError(f"this state dict is for parameters of shapes {given}, the optimizer's are {mine}")
        mapped(lambda vector: _check_taken(vector, flat), saved.get("engine"))
    mine = full_name(method)
    for part in parts:
        if full_name(part["method"]) != mine:
            raise ValueError(f"this state dict is of the method {part['method']!r}, the optimizer's is {mine!r}")


def _check_taken(vector: Any, flat: Flat) -> None:
    if not flat.takes(vector):
        raise ValueError(
            "this state dict has vectors that are cut into other pieces than those of this optimizer: let "
            "torch.distributed.checkpoint save it, and signedstep.distributed.load load that"
        )


def mapped(change: Callable[[Any], Any], state: Any) -> Any:
    """A state with its vectors changed: tensors, and lists of tensors."""
    if isinstance(state, Tensor) or (isinstance(state, list) and state and isinstance(state[0], Tensor)):
        return change(state)
    if isinstance(state, Mapping):
        return {name: mapped(change, value) for name, value in state.items()}
    return state


def copied(state: Any) -> Any:
    """A state that later changes of the given one do not reach; deepcopy fails on DTensors."""
    if isinstance(state, Tensor):
        return _copied_shard(state) if is_sharded(state) else state.clone()
    if isinstance(state, Mapping):
        return {name: copied(value) for name, value in state.items()}
    return [copied(value) for value in state] if isinstance(state, list) else deepcopy(state)


def _copied_shard(t: Any) -> Tensor:
    """A copy of a DTensor; for its own `clone` torch would keep the mesh, and with it the process group, for ever."""
    from torch.distributed.tensor import DTensor  # takes a second to import

    part, shape, stride = t.to_local().clone(), t.shape, t.stride()
    return DTensor.from_local(part, t.device_mesh, t.placements, run_check=False, shape=shape, stride=stride)


def shapes(layout: Iterable[Sequence[Any]]) -> list[str]:
    """What two layouts must agree in for a state to fit: precision may differ, the count of numbers may not."""
    return [f"{'complex ' if dtype.startswith('complex') else ''}{list(shape)}" for shape, dtype in layout]
