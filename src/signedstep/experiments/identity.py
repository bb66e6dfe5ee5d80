"""Whether a file holds the data set that its name promises."""

import hashlib
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from signedstep.experiments.readers import LIMITS, DataError, Table
from signedstep.experiments.readers.libsvm import read_libsvm
from signedstep.experiments.sets import DataSet


def checked(dataset: DataSet, path: Path, shown: str | None = None) -> Table:
    """The table in a file that should hold the set, or a DataError that says how it differs."""
    return _compared(dataset, read_libsvm(path, LIMITS, dataset.features, shown), shown or str(path))


def from_scikit_learn(dataset: DataSet) -> Table:
    """The table of a set that scikit-learn has; the digits are made two classes, even and odd."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{dataset.name}")(return_X_y=True)
    labels = y % 2 if dataset.name == "digits" else y
    return _compared(dataset, Table(X, np.where(labels == 0, -1.0, 1.0), (0.0, 1.0)), f"scikit-learn's {dataset.name}")


def content(table: Table) -> str:
    """sha256 of the numbers of a table, whatever the layout of its file: shape, nonzeros by row, classes."""
    X = csr_array(table.X, copy=True)
    X.eliminate_zeros()
    digest = hashlib.sha256()
    for part in (X.shape, X.indptr, X.indices):
        digest.update(np.asarray(part, "<i8").tobytes())
    for part in (X.data, table.y):
        digest.update(np.asarray(part, "<f8").tobytes())
    return digest.hexdigest()


def _compared(dataset: DataSet, table: Table, file: str) -> Table:
    counts = {label: int((table.y == sign).sum()) for label, sign in zip(table.labels, (-1, 1), strict=True)}
    for what, found, known in (
        ("rows and features", table.X.shape, (dataset.rows, dataset.features)),
        ("rows by label", counts, dict(dataset.labels)),
    ):
        if found != known:
            raise DataError(f"{file}: this is not {dataset.name}: {what} are {found}, expected are {known}")
    if dataset.content is not None and content(table) != dataset.content:
        raise DataError(f"{file}: this is not {dataset.name}: shape and labels are right, other numbers are not")
    return table
