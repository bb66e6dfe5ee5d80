"""NumPy archives with the arrays X (rows of features) and y (labels)."""

import zipfile
import zlib
from pathlib import Path
from typing import IO
from zipfile import BadZipFile

import numpy as np
from numpy.lib import format as npy

from signedstep.experiments.readers.table import LABELS, DataError, Limits, Table, first, make_table

# What zipfile and NumPy raise on damaged bytes; a header of nested brackets exhausts the parser's memory.
DAMAGE = (OSError, EOFError, ValueError, TypeError, OverflowError, RuntimeError, MemoryError, BadZipFile, zlib.error)
SAFE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes


def read_npz(path: Path, limits: Limits) -> Table:
    """The table in an .npz file. No array is made before its size is known to be what the archive holds."""
    name = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            X, y = (_array(archive, key, limits, name) for key in ("X", "y"))
    except DataError:
        raise
    except DAMAGE as error:
        raise DataError(f"{name}: the archive cannot be read: {error}") from error
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise DataError(f"{name}: the shapes of X and y are {X.shape} and {y.shape}, accepted are (n, d) and (n,)")
    if X.shape[0] > limits.rows or X.shape[1] > limits.features:
        raise DataError(f"{name}: the shape of X is {X.shape}, the limit is {limits.rows} x {limits.features}")
    if (position := first(~np.isfinite(X))) is not None:
        row, column = divmod(position, X.shape[1])
        raise DataError(f"{name}: X[{row}, {column}] is {X[row, column]}, accepted are finite numbers")
    return make_table(X, y, lambda row: f"{name}, row {row} of y", name)


def _array(archive: zipfile.ZipFile, key: str, limits: Limits, name: str) -> np.ndarray:
    """One array as float64."""
    if f"{key}.npy" not in archive.namelist():
        raise DataError(f"{name}: there is no array {key}; accepted is an archive with the arrays X and y")
    member = archive.getinfo(f"{key}.npy")
    if member.compress_type not in SAFE:
        raise DataError(f"{name}: the array {key} is compressed in a way that NumPy does not write")
    if member.file_size > limits.text:
        raise DataError(f"{name}: the array {key} has {member.file_size} bytes, the limit is {limits.text}")
    with archive.open(member) as file:
        shape, dtype = _header(file)
        if dtype.kind not in "fiub" or dtype.itemsize > 8:
            labels = f"; {LABELS}" if key == "y" else ""
            raise DataError(
                f"{name}: the type of {key} is {dtype}, accepted are real numbers of at most 8 bytes{labels}"
            )
        count = int(np.prod(shape, dtype=object)) if shape else 1
        if count > limits.values:
            raise DataError(f"{name}: the shape of {key} is {shape}, the limit is {limits.values} values")
        if count * dtype.itemsize != member.file_size - file.tell() or min(shape, default=0) < 0:
            raise DataError(f"{name}: the shape of {key} is {shape}, but the archive holds another number of values")
    with archive.open(member) as file:
        return npy.read_array(file, allow_pickle=False).astype(np.float64)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    version = npy.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = npy.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = npy.read_array_header_2_0(file)
    else:
        raise ValueError(f"version {version} of the npy format is not one that numbers need")
    return shape, dtype
