"""Tables in text: one row a line, columns separated by comma, semicolon, tab or blanks, perhaps with a header."""

import csv
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from signedstep.experiments.readers.lines import Lines
from signedstep.experiments.readers.table import LABELS, DataError, Limits, Table, first, is_number, make_table
from signedstep.experiments.words import counted

DELIMITERS = (",", ";", "\t")
BLANKS = " "


def read_separated(path: Path, limits: Limits, label: str | int = -1) -> Table:
    """The table in a CSV file; `label` is the name or number (from 0, or -1 for the last) of the label's column.

    The first line is a header if none of its fields is a number. Blank lines and lines that begin with # are skipped.
    """
    lines = Lines(path, limits)
    rows = _fields(lines)
    opening = next(rows, None)
    if opening is None:
        raise DataError(f"{lines.name}: there are no rows")
    header = None if any(map(is_number, opening)) else opening
    column = _column(label, header, len(opening), lines)
    values, places = array("d"), array("q")
    if header is None:
        _add(values, places, opening, len(opening), column, lines)
    for fields in rows:
        _add(values, places, fields, len(opening), column, lines)
    whole = np.frombuffer(values).reshape(-1, len(opening))
    if (position := first(~np.isfinite(whole))) is not None:
        row, column = divmod(position, whole.shape[1])
        where = f"{lines.place(places[row])}, column {column + 1}"
        raise DataError(f"{where}: the value is {whole[row, column]}, accepted are finite numbers")
    X = np.delete(whole, column, axis=1)
    return make_table(X, whole[:, column], lambda row: lines.place(places[row]), lines.name, lines.sha256)


def _fields(lines: Lines) -> Iterator[list[str]]:
    """The fields of each line that has any; the first such line tells the delimiter."""
    delimiter = None
    for raw in lines:
        try:
            line = raw.decode("utf-8-sig" if lines.number == 1 else "utf-8").strip(" \r")
        except UnicodeDecodeError as error:
            raise lines.error(f"the line is not UTF-8 text: {error.reason}") from None
        if not line or line.startswith("#"):
            continue
        if "\r" in line:
            raise lines.error("the line has a carriage return in its middle; accepted line ends are LF and CRLF")
        delimiter = delimiter or _delimiter(line, lines)
        yield _split(line, delimiter, lines)


def _delimiter(line: str, lines: Lines) -> str:
    found = [delimiter for delimiter in DELIMITERS if delimiter in line]
    if len(found) > 1:
        raise lines.error(f"the line has {' and '.join(map(repr, found))}, so the delimiter of columns is unclear")
    return found[0] if found else BLANKS


def _split(line: str, delimiter: str, lines: Lines) -> list[str]:
    if delimiter == BLANKS:
        return line.split()
    if '"' not in line:
        return [field.strip() for field in line.split(delimiter)]
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise lines.error(f"the quotes are not right: {error}") from None


def _column(label: str | int, header: list[str] | None, width: int, lines: Lines) -> int:
    """The number of the label's column."""
    if width < 2:
        raise lines.error("the line has one column, but a label and at least one feature are needed")
    if width - 1 > lines.limits.features:
        raise lines.error(f"there are more features than the limit of {lines.limits.features}")
    if header is not None and header.count(str(label)) == 1:
        return header.index(str(label))
    try:
        number = int(label)
    except ValueError:
        number = width
    if -1 <= number < width:
        return number % width
    names = "there is no header" if header is None else f"the columns are {', '.join(header[:20])}"
    raise lines.error(f"no one column is called {label!r}; {names}, numbers go from 0 to {width - 1}, -1 is the last")


def _add(values: array, places: array, fields: list[str], width: int, label: int, lines: Lines) -> None:
    """Take one row in."""
    if len(fields) != width:
        raise lines.error(f"the line has {counted(len(fields), 'column')}, the first one has {width}")
    for position, field in enumerate(fields):
        if not is_number(field):
            missing = "is missing" if not field else f"{field[:40]!r} is not a number"
            accepted = LABELS if position == label else "features must be numbers"
            raise lines.error(f"the value of column {position + 1} {missing}; {accepted}")
    values.extend(map(float, fields))
    places.append(lines.number)
    if len(places) > lines.limits.rows:
        raise lines.error(f"there are more rows than the limit of {lines.limits.rows}")
    if len(values) > lines.limits.values:
        raise lines.error(f"there are more values than the limit of {lines.limits.values}")
