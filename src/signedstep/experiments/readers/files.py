"""Which reader a file needs."""

from pathlib import Path

from signedstep.experiments.readers.libsvm import read_libsvm
from signedstep.experiments.readers.lines import COMPRESSIONS
from signedstep.experiments.readers.npz import read_npz
from signedstep.experiments.readers.separated import read_separated
from signedstep.experiments.readers.table import LIMITS, DataError, Limits, Table

SEPARATED = {".csv", ".tsv"}


def read(path: Path, label: str | int = -1, limits: Limits = LIMITS) -> Table:
    """The table in a file: NumPy's .npz, .csv or .tsv, else LIBSVM text; text may be compressed (.xz, .gz, .bz2)."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    if has_columns(path):
        return read_separated(path, limits, label)
    return read_npz(path, limits) if _kind(path) == ".npz" else read_libsvm(path, limits)


def has_columns(path: Path) -> bool:
    """Whether a file, by its name, is a table in which one of the columns holds the labels."""
    return _kind(path) in SEPARATED


def _kind(path: Path) -> str:
    """The ending of a file's name, that of a compression aside."""
    kinds = [ending.lower() for ending in path.suffixes if ending not in COMPRESSIONS]
    return kinds[-1] if kinds else ""
