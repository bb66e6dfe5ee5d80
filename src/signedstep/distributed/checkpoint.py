"""Loading an optimizer from torch.distributed.checkpoint, on as many ranks as there are now."""

import os
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from signedstep.distributed.shared import Shared
from signedstep.flat import Flat


def load(optimizer: Any, folder: str | os.PathLike, key: str = "optimizer") -> None:
    """Load what `torch.distributed.checkpoint.save({key: optimizer.state_dict(), ...}, checkpoint_id=folder)` saved.

    That function loads into tensors that exist; a new optimizer has none. So they are made here, by the checkpoint's
    own metadata, for the ranks and the slices that there are now.
    """
    from torch.distributed.checkpoint.filesystem import FileSystemReader  # takes seconds to import
    from torch.distributed.checkpoint.state_dict_loader import load as load_into

    reader = FileSystemReader(folder)
    metadata = reader.read_metadata()
    flat: Flat = optimizer._parameters()
    paths = _paths(metadata, key)
    if not paths:
        raise KeyError(f"there is no {key!r} in the checkpoint {os.fspath(folder)!r}")
    room = {name: _room(flat, path, metadata.state_dict_metadata[name]) for name, path in paths.items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # one process may load too
        if isinstance(flat, Shared):
            load_into(room, storage_reader=reader, process_group=flat.link.group)
        else:
            load_into(room, storage_reader=reader, no_dist=True)
    state = _nested({path: room[name] for name, path in paths.items()})
    state["state"] = {int(i): saved for i, saved in state.get("state", {}).items()}
    optimizer.load_state_dict(state)


def _paths(metadata: Any, key: str) -> dict[str, tuple]:
    """The place of each saved value below `key`, by its name in the checkpoint."""
    return {name: tuple(path[1:]) for name, path in metadata.planner_data.items() if path[0] == key}


def _room(flat: Flat, path: Sequence[str | int], saved: Any) -> Any:
    """Something to load a value into."""
    if not hasattr(saved, "size"):  # not a tensor
        return None
    shape, dtype = tuple(saved.size), saved.properties.dtype or torch.float32
    if "engine" not in path:  # a learning rate
        return torch.empty(shape, dtype=dtype)
    return flat.room(shape, dtype, path[-1] if isinstance(path[-1], int) else None)


def _nested(values: dict[tuple, Any]) -> Any:
    """Values by their paths as dictionaries and, where a path has numbers, lists."""
    if () in values:
        return values[()]
    groups: dict[Any, dict[tuple, Any]] = {}
    for path, value in values.items():
        groups.setdefault(path[0], {})[path[1:]] = value
    if all(isinstance(name, int) for name in groups):
        return [_nested(groups[i]) for i in sorted(groups)]
    return {name: _nested(group) for name, group in groups.items()}
