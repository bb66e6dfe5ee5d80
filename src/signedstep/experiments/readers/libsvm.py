"""The LIBSVM (svmlight) text format: `label index:value index:value ... # comment`, indices from 1 and increasing."""

from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from signedstep.experiments.readers.lines import Lines
from signedstep.experiments.readers.table import LABELS, DataError, Limits, Table, first, is_number, make_table

ALL_BUT_COLON_AND_BLANK = bytes(set(range(256)) - set(b": "))


def read_libsvm(path: Path, limits: Limits, features: int | None = None, shown: str | None = None) -> Table:
    """The table in a LIBSVM file; `features` is the number of columns, else it is the largest index.

    A query number `qid:3` after the label is accepted and ignored, as scikit-learn does. Errors name the file `shown`.
    """
    lines, rows = Lines(path, limits, shown), _Rows()
    for line in lines:
        content = line.partition(b"#")[0]
        tokens = content.split()
        if tokens:
            _add(rows, tokens, b"_" in content, lines)
    X = rows.matrix(lines, features)
    return make_table(X, np.frombuffer(rows.labels), lambda row: rows.place(row, lines), lines.name, lines.sha256)


class _Rows:
    """The rows read so far in the arrays of CSR, and the line of each."""

    def __init__(self) -> None:
        self.labels, self.values = array("d"), array("d")
        self.indices, self.ends, self.lines = array("q"), array("q", [0]), array("q")

    def add(self, label: bytes, pairs: list[bytes], line: int) -> None:
        """Take one row in. ValueError or OverflowError: it is not of the format."""
        joined = b" ".join(pairs)
        if joined.translate(None, ALL_BUT_COLON_AND_BLANK) != b" ".join([b":"] * len(pairs)):
            raise ValueError("a pair has exactly one colon")
        fields = joined.replace(b":", b" ").split(b" ") if pairs else []
        self.labels.append(float(label))
        self.indices.extend(map(int, fields[::2]))
        self.values.extend(map(float, fields[1::2]))
        self.ends.append(len(self.values))
        self.lines.append(line)

    def place(self, row: int, lines: Lines) -> str:
        return lines.place(self.lines[row])

    def matrix(self, lines: Lines, width: int | None) -> csr_array:
        """The features of all rows, once every index and value is found to be right."""
        indices, ends = np.frombuffer(self.indices, np.int64), np.frombuffer(self.ends, np.int64)
        values, most = np.frombuffer(self.values), width or lines.limits.features

        def refuse(bad: np.ndarray, complaint: Callable[[int], str]) -> None:
            if (position := first(bad)) is not None:
                row = int(np.searchsorted(ends, position, side="right")) - 1
                raise DataError(f"{self.place(row, lines)}: {complaint(position)}")

        refuse(indices < 1, lambda i: f"the index {indices[i]} is below 1, where indices begin")
        refuse(indices > most, lambda i: f"the index {indices[i]} is above {most}, the most features accepted here")
        follows = np.ones(len(indices), bool)
        follows[ends[:-1][ends[:-1] < len(indices)]] = False  # the first of each row
        ordered = np.diff(indices, prepend=0) > 0
        refuse(follows & ~ordered, lambda i: f"the index {indices[i]} follows {indices[i - 1]}, they must increase")
        refuse(~np.isfinite(values), lambda i: f"feature {indices[i]} is {values[i]}, accepted are finite numbers")
        shape = (len(self.labels), width or int(indices.max(initial=0)))
        kind = np.int32 if max(*shape, len(values)) < 2**31 else np.int64
        return csr_array((values, (indices - 1).astype(kind), ends.astype(kind)), shape=shape)


def _add(rows: _Rows, tokens: list[bytes], underscored: bool, lines: Lines) -> None:
    label, pairs = tokens[0], tokens[1:]
    if pairs and pairs[0].startswith(b"qid:") and pairs[0][4:].isdigit():
        del pairs[0]
    try:
        if underscored:
            raise ValueError("Python reads 1_000 as a number, other readers of the format do not")
        rows.add(label, pairs, lines.number)
    except (ValueError, OverflowError):
        raise lines.error(_complaint(label, pairs)) from None
    if len(rows.labels) > lines.limits.rows:
        raise lines.error(f"there are more rows than the limit of {lines.limits.rows}")
    if len(rows.values) > lines.limits.values:
        raise lines.error(f"there are more values than the limit of {lines.limits.values}")


def _complaint(label: bytes, pairs: list[bytes]) -> str:
    """What is wrong with a row that could not be taken in."""
    if not is_number(label):
        named = "; a table with columns must be called .csv or .tsv" if any(sign in label for sign in b",;") else ""
        return f"the label {_shown(label)} is not a number; {LABELS}{named}"
    for pair in pairs:
        index, colon, value = pair.partition(b":")
        if not colon:
            return f"{_shown(pair)} is not of the form index:value"
        if not index.lstrip(b"+-").isdigit() or len(index) > 18:
            return f"the index {_shown(index)} is not a whole number from 1 to the limit of features"
        if not is_number(value):
            return f"the value {_shown(value)} of feature {index.decode()} is not a number"
    return "the line is not of the form: label index:value index:value ..."


def _shown(token: bytes) -> str:
    return repr(token[:40].decode("ascii", "backslashreplace"))
