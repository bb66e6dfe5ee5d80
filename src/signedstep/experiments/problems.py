"""What a run trains: a network on a data set, from its initial parameters."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from signedstep.experiments.models import Labelled, network_loss, start
from signedstep.experiments.runs import Network, Run


class Place(NamedTuple):
    """Where the data of runs are: the folder of the known sets, or the file that a run's data name stands for."""

    data_dir: str | None = None
    file: str | None = None
    label: str | int = -1
    """The column of labels, if the file has columns."""


class Problem:
    """A network on a data set: loss, initial parameters and accuracy."""

    def __init__(self, network: Network, data: Labelled, seed: int):
        self.loss, self._predict = network_loss(network, data)
        self.start = start(network, data.X.shape[1], seed)
        self._y = torch.tensor(data.y, dtype=torch.float64)

    @classmethod
    def of(cls, run: Run, place: Place) -> "Problem":
        """The problem of a run."""
        return cls(run.network, _loaded(run.data, place), run.seed)

    def evaluated(self, x: Tensor) -> tuple[float, Tensor]:
        """Loss and gradient."""
        leaf = x.detach().requires_grad_(True)
        value = self.loss(leaf)
        (g,) = torch.autograd.grad(value, leaf)
        return value.item(), g

    def accuracy(self, x: Tensor) -> float:
        """The share of rows whose label has the sign of the output."""
        return (self._predict(x) * self._y > 0).double().mean().item()


@lru_cache(maxsize=2)
def _loaded(name: str, place: Place) -> Labelled:
    """A data set, kept: runs that follow each other mostly share it, and reading the large ones takes seconds."""
    from signedstep.experiments.data import load

    folder = Path(place.data_dir) if place.data_dir else None
    return load(place.file, folder, label=place.label) if place.file else load(name, folder)
