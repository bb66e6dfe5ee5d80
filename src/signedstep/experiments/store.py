"""Keeps outcomes: one small JSON file for each run, whole or not there, so that a study can be killed at any moment."""

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import signedstep
from signedstep.experiments.runs import Outcome

FORMAT = 1
"""Number of the file format; files of another one are not read."""


class Named(Protocol):
    """What a store asks of a run: a name that is the path of its file, and that two equal runs are equal."""

    @property
    def name(self) -> str: ...


class Kept(Protocol):
    """What a store asks of an outcome."""

    @property
    def run(self) -> Any: ...
    @property
    def environment(self) -> Mapping[str, str]: ...
    def to_json(self) -> dict[str, Any]: ...
    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Any: ...


K = TypeVar("K", bound=Kept)


class StoreError(Exception):
    """A place in a store that cannot take an outcome; the text names it."""


class Store(Generic[K]):
    """A folder of outcomes of one kind, each in a file that has the name of its run."""

    def __init__(self, folder: str | Path, kind: type[K] = Outcome):  # type: ignore[assignment]
        self.folder, self.kind = Path(folder), kind

    def file(self, run: Named) -> Path:
        """Where the outcome of a run is, or will be."""
        return self.folder / f"{run.name}.json"

    def get(self, run: Named) -> K | None:
        """The outcome of exactly this run; None, with a warning if there is a file, if it has to be run (again).

        A StoreError says, before anything is run, that its outcome could not be put there.
        """
        path = self.file(run)
        try:
            outcome = self._read(path)
        except FileNotFoundError:
            return None
        except (IsADirectoryError, NotADirectoryError) as error:
            raise _misplaced(path, error) from None
        except _UnusableError as reason:
            _warn(f"{path}: {reason}; it will be run again")
            return None
        if outcome.run != run:
            _warn(f"{path}: is of another budget, network or code, {outcome.run}; it will be run again")
            return None
        return outcome

    def put(self, outcome: K) -> Path:
        """Write an outcome: first to a temporary file beside its own, which then takes its place at once."""
        path = self.file(outcome.run)
        text = _written(outcome)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise _misplaced(path, error) from error
        return path

    def outcomes(self) -> list[K]:
        """All outcomes there are, in the order of their names; a file of no use is left out with a warning."""
        found = []
        for path in sorted(path for path in self.folder.rglob("*.json") if path.is_file()):
            try:
                outcome = self._read(path)
            except _UnusableError as reason:
                _warn(f"{path}: {reason}; it is left out")
                continue
            if path == self.file(outcome.run):
                found.append(outcome)
            else:
                _warn(f"{path}: is not in the place of its run {outcome.run.name}; it is left out")
        return found

    def _read(self, path: Path) -> K:
        try:
            file: Any = json.loads(path.read_bytes())
            if not isinstance(file, dict) or file.get("format") != FORMAT:
                raise _UnusableError(f"is not in format {FORMAT} of an outcome")
            if file["sha256"] != _sum(file["outcome"]):
                raise _UnusableError("is damaged, its checksum is not that of its content")
            outcome = self.kind.from_json(file["outcome"])
            version = outcome.environment["signedstep"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise _UnusableError("is damaged, no outcome") from None
        except PermissionError:
            raise _UnusableError("cannot be read") from None
        if version != signedstep.__version__:
            raise _UnusableError(f"was made by version {version}, this is {signedstep.__version__}")
        return outcome


class _UnusableError(Exception):
    """A file that does not hold an outcome of this version; the text says why."""


def _misplaced(path: Path, error: OSError) -> StoreError:
    return StoreError(f"the outcome of a run cannot be kept in {path}: {error.strerror}")


def _written(outcome: Kept) -> str:
    record = outcome.to_json()
    return json.dumps({"format": FORMAT, "sha256": _sum(record), "outcome": record}, allow_nan=False) + "\n"


def _sum(record: Any) -> str:
    """Of the record as JSON: what is read is written again with the same characters."""
    return hashlib.sha256(json.dumps(record, allow_nan=False).encode()).hexdigest()


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)
