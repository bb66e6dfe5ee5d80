"""The data of the experiments: `load` finds a set, checks it and scales it, or reads a user's own file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from signedstep.experiments.identity import checked, from_scikit_learn
from signedstep.experiments.readers import LIMITS, DataError, Limits, Table, read
from signedstep.experiments.readers.table import shape
from signedstep.experiments.sets import SETS, DataSet
from signedstep.experiments.sources import copies, fetch

__all__ = ["SETS", "Data", "DataError", "DataSet", "available", "load"]

SPARSE_BELOW = 0.2
"""The share of nonzeros below which features stay sparse."""


@dataclass(frozen=True)
class Data:
    """A data set as the experiments use it: y is +-1, everything is float64 and finite."""

    name: str
    X: np.ndarray | csr_array
    y: np.ndarray
    text: str
    """What it is, in a sentence."""


def load(name_or_path: str, data_dir: Path | None = None, *, label: str | int = -1, limits: Limits = LIMITS) -> Data:
    """A set of `SETS` by its name, else a file by its path: LIBSVM text, .npz, or .csv with `label` as its column.

    A set is looked for in `data_dir` (or the folder that SIGNEDSTEP_DATA names), in the package and in the cache;
    where it is in none of them it is downloaded into the cache. A file that does not hold the set's numbers is refused.
    """
    if name_or_path in SETS:
        return _load_set(SETS[name_or_path], data_dir)
    path = Path(name_or_path)
    if not path.is_file():
        raise DataError(f"{name_or_path!r} is neither a file nor one of the data sets {', '.join(SETS)}")
    table = read(path, label, limits)
    return _data(path.name, table, table.X, f"as in the file; label {table.labels[0]:g} is -1, {table.labels[1]:g} +1")


def available(data_dir: Path | None = None) -> list[str]:
    """The names of the sets that load without network."""
    return [name for name, dataset in SETS.items() if dataset.file is None or any(copies(dataset, data_dir))]


def _load_set(dataset: DataSet, data_dir: Path | None) -> Data:
    table = _table(dataset, data_dir)
    X = table.X if dataset.rescale is None else dataset.rescale(_dense(table.X))
    return _data(dataset.name, table, X, f"{dataset.source}; scaling: {dataset.scaling}")


def _table(dataset: DataSet, data_dir: Path | None) -> Table:
    if dataset.file is None:
        return from_scikit_learn(dataset)
    place = next(copies(dataset, data_dir), None)
    if place is None:
        return checked(dataset, fetch(dataset))
    try:
        return checked(dataset, place.path)
    except DataError as error:
        if place.where != "cache":
            raise
        raise DataError(f"{error}. `signedstep data fetch {dataset.name}` replaces it") from error


def _data(name: str, table: Table, X: np.ndarray | csr_array, text: str) -> Data:
    rows, features = shape(X)
    sparse = np.count_nonzero(X.data if isinstance(X, csr_array) else X) < SPARSE_BELOW * rows * features
    size = f"{rows} rows ({(table.y > 0).sum()} of class +1), {features} features"
    return Data(name, csr_array(X) if sparse else _dense(X), table.y, f"{size}; {text}")


def _dense(X: np.ndarray | csr_array) -> np.ndarray:
    return X.toarray() if isinstance(X, csr_array) else X
