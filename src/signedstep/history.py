"""What happened, iteration by iteration."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from signedstep.status import Status


class Record(NamedTuple):
    """One iteration: the step taken and the point it led to.

    Attributes
    ----------
    k : int
        Number of the iteration, from 1.
    f : float
        Objective after the step.
    grad_norm : float
        Euclidean norm of the gradient after the step.
    alpha : float
        Step size along the direction; negative where the direction pointed uphill, 0 where no step was taken.
    cosine : float
        Cosine between the direction and -gradient before the step (equation 3 of the paper); negative: uphill.
    evals : int
        Evaluations of value and gradient that the iteration cost.
    seconds : float
        Wall time of the iteration, the objective included.
    learned : bool
        Whether the curvature model accepted the pair (s, y) of this step.
    status : Status
        What the search achieved.
    """

    k: int
    f: float
    grad_norm: float
    alpha: float
    cosine: float
    evals: int
    seconds: float
    learned: bool
    status: Status


class History(Sequence[Record]):
    """The records of a run, a sequence with one `Record` per iteration.

    `history.alpha` or `history["alpha"]` is one column as an array, likewise every other field of `Record`: k, f,
    grad_norm, alpha, cosine, evals, seconds, learned, status. `to_dataframe()` has them all.

    Attributes
    ----------
    f0, grad_norm0 : float
        Objective and Euclidean norm of the gradient at the start, before the first iteration.
    """

    def __init__(self, f0: float, grad_norm0: float, records: Iterable[Record] = ()):
        self.f0, self.grad_norm0, self._records = f0, grad_norm0, list(records)

    def append(self, record: Record) -> None:
        """Add the record of one more iteration."""
        self._records.append(record)

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    @overload
    def __getitem__(self, index: str) -> np.ndarray: ...
    def __getitem__(self, index):
        if not isinstance(index, str):
            return self._records[index]
        if index not in Record._fields:
            raise KeyError(f"history has no column {index!r}; its columns are {', '.join(Record._fields)}")
        return np.array([getattr(record, index) for record in self._records])

    def __getattr__(self, name: str) -> np.ndarray:
        if name in Record._fields:
            return self[name]
        raise AttributeError(f"history has no column {name!r}; its columns are {', '.join(Record._fields)}")

    def __repr__(self) -> str:
        end = f", f {self.f0:.6g} -> {self._records[-1].f:.6g}" if self._records else f", f {self.f0:.6g}"
        return f"<History of {len(self)} iteration{'s' * (len(self) != 1)}{end}>"

    def to_dataframe(self) -> Any:
        """The records as a pandas DataFrame indexed by iteration (needs pandas)."""
        try:
            import pandas as pd  # a convenience: the package itself does without pandas
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("history.to_dataframe() needs pandas: pip install pandas") from error

        frame = pd.DataFrame(self._records, columns=list(Record._fields))
        frame["status"] = [status.name for status in frame["status"]]
        return frame.set_index("k")
