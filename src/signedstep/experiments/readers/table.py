"""What every reader gives back, its limits and its error."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array


class DataError(ValueError):
    """A data set that cannot be had as asked; the text names the file and, where there is one, the line."""


@dataclass(frozen=True)
class Limits:
    """How much a file may ask of this machine before it is refused."""

    line: int = 2**24
    """Bytes in one line."""
    text: int = 2**31
    """Bytes of the whole file after decompression."""
    rows: int = 10**7
    features: int = 10**7
    values: int = 10**8
    """Numbers kept: those written in a LIBSVM file, rows times columns in the dense formats."""


LIMITS = Limits()
LABELS = "labels must be two numbers"
"""What is accepted, for errors at labels that are text."""


@dataclass(frozen=True)
class Table:
    """A whole data set with two classes; everything in it is finite."""

    X: np.ndarray | csr_array
    """Rows of features, float64; CSR exactly if the file was LIBSVM text."""
    y: np.ndarray
    """-1 for the smaller of the two labels, +1 for the larger."""
    labels: tuple[float, float]
    """The two labels as the file has them."""
    sha256: str | None = None
    """Of the decompressed text, where the file was text."""


def shape(X: np.ndarray | csr_array) -> tuple[int, int]:
    """Rows and columns, which SciPy's type hints do not promise a matrix to have."""
    rows, columns = X.shape  # pyright: ignore[reportGeneralTypeIssues]
    return rows, columns


def first(bad: np.ndarray) -> int | None:
    """The position of the first true entry of the flattened array, if any, without a list of them all."""
    position = int(bad.argmax()) if bad.size else 0
    return position if bad.size and bad.flat[position] else None


def is_number(text: bytes | str) -> bool:
    """Whether it is a number to everyone; Python alone also reads 1_000 and the digits of other scripts."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and ("_" if isinstance(text, str) else b"_") not in text  # type: ignore[operator]


def make_table(
    X: np.ndarray | csr_array, labels: np.ndarray, place: Callable[[int], str], file: str, sha256: str | None = None
) -> Table:
    """The table of features and raw labels, or a DataError; `place` names the file and line of a row."""
    rows, features = shape(X)
    if not rows or not features:
        raise DataError(f"{file}: there are no {'features, only labels' if rows else 'rows'}")
    if (row := first(~np.isfinite(labels))) is not None:
        raise DataError(f"{place(row)}: the label is {labels[row]}, accepted are finite numbers")
    found, places = np.unique(labels, return_index=True)
    accepted = "accepted are exactly two different labels, both numbers"
    if len(found) == 1:
        raise DataError(f"{file}: every row has the label {found[0]:g}, {accepted}")
    if len(found) > 2:
        one, two, three = np.sort(places)[:3]
        others = f"{labels[one]:g} and {labels[two]:g}"
        raise DataError(f"{place(three)}: {labels[three]:g} is a third label beside {others}, {accepted}")
    return Table(X, np.where(labels == found[0], -1.0, 1.0), (float(found[0]), float(found[1])), sha256)
