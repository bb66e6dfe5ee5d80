"""What a run of the benchmark is and what came out of it, each one small JSON record."""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class BenchRun:
    """One solver on one problem; two equal runs give the same losses on one machine."""

    problem: str
    solver: str
    seed: int
    evals: int
    """Evaluations of value and gradient, at most."""
    seconds: float
    """Wall time, at most."""
    memory: int
    """Pairs that a limited-memory method keeps."""
    dtype: str
    code: str
    """A fingerprint of the code that the numbers depend on: where it changes, the run is made again."""

    @property
    def name(self) -> str:
        """A readable name, and the path of its file below the store; runs that differ in more than code have two."""
        limits = f"{self.evals}evals-{self.seconds:g}s-m{self.memory}"
        precision = "" if self.dtype == "float64" else f"-{self.dtype}"
        return f"{self.problem}/{_file_name(self.solver)}-seed{self.seed}-{limits}{precision}"


def _file_name(solver: str) -> str:
    """The name of a solver without what files cannot have; then with a hash: options that differ may look alike."""
    plain = re.sub(r"[^\w.+=,-]", "-", solver)
    return plain if plain == solver else f"{plain}-{hashlib.sha256(solver.encode()).hexdigest()[:6]}"


@dataclass(frozen=True)
class Fall:
    """How the lowest value fell: columns with one entry for each evaluation that improved on all before it."""

    f: Sequence[float]
    """Lowest finite value so far."""
    evals: Sequence[int]
    """Evaluations it took, this one included."""
    seconds: Sequence[float]
    """Processor time it took."""

    def at_evals(self, evals: float) -> float:
        """The lowest value among the first so many evaluations; infinite if there was no finite one."""
        place = bisect_right(self.evals, evals) - 1
        return self.f[place] if place >= 0 else float("inf")

    def first_below(self, target: float) -> int | None:
        """The place of the first entry that is as low as a target."""
        return next((place for place, f in enumerate(self.f) if f <= target), None)


@dataclass(frozen=True)
class BenchOutcome:
    """The result of a run of the benchmark."""

    run: BenchRun
    trace: Fall
    ended: str
    """What ended it, a sentence of the solver's or of ours."""
    kind: str
    """How it ended, in a word of `KINDS`."""
    unknowns: int
    evals: int
    """Evaluations in all."""
    iterations: int | None
    """Iterations, where the solver tells."""
    seconds: float
    """Processor time in all, and that part of it which was spent inside the objective."""
    inside: float
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether it went on to its budget or ended by itself."""
        return self.kind in (BUDGET, STOPPED)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "BenchOutcome":
        return cls(**{**record, "run": BenchRun(**record["run"]), "trace": Fall(**record["trace"])})


BUDGET, STOPPED, TIME, CRASHED, ABSENT = "budget", "stopped", "time limit", "crashed", "not tried"
KINDS = {
    BUDGET: "used all its evaluations",
    STOPPED: "ended by itself before that",
    TIME: "ended by the time limit",
    CRASHED: "raised an exception; what it had reached counts",
    ABSENT: "needs a package that is missing, or matrices that are too large",
}
