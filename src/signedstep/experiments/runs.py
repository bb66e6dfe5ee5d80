"""What a run is and what came out of it: the contract between studies, the store and the report."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from signedstep.experiments.fingerprint import of_studies
from signedstep.experiments.words import counted


@dataclass(frozen=True)
class Network:
    """A multilayer perceptron with one output; the defaults are those of every study that does not say otherwise."""

    hidden: int = 1
    """Hidden layers."""
    width: int = 10
    """Units in each of them."""
    activation: str = "tanh"
    bias: bool = True
    scale: float = 1.0
    """Factor on the initial weights, which are uniform in +-1/sqrt(fan-in); biases start likewise."""
    loss: str = "mse"
    """"mse": half the mean squared error on labels +-1, as (it seems) in the paper's table; or "logistic"."""

    @property
    def name(self) -> str:
        plain = "" if self.bias else "-nobias"
        scaled = "" if self.scale == 1 else f"-scale{self.scale:g}"
        return f"{self.hidden}x{self.width}-{self.activation}{plain}{scaled}-{self.loss}"

    @property
    def text(self) -> str:
        """The network in words."""
        layers = f"{counted(self.hidden, 'hidden layer')} of {counted(self.width, f'{self.activation} unit')}"
        kind = "half the mean squared error" if self.loss == "mse" else f"{self.loss} loss"
        bias = "" if self.bias else ", no biases"
        scale = "" if self.scale == 1 else f", initial weights times {self.scale:g}"
        return f"{layers}{bias}{scale}, {kind}"


@dataclass(frozen=True)
class Budget:
    """How long a run goes on: until it has had both its iterations and its evaluations, at most for some seconds."""

    iterations: int
    evals: int
    seconds: float


@dataclass(frozen=True)
class Run:
    """One training run; two equal runs give the same numbers, bit for bit, on one machine."""

    data: str
    network: Network
    solver: str
    seed: int
    budget: Budget
    code: str = field(default_factory=of_studies, repr=False)
    """A fingerprint of the code that the numbers depend on: where it changes, the run is made again."""

    @property
    def name(self) -> str:
        """A readable name, and the path of its file below the store."""
        return f"{self.data}/{self.network.name}/{self.solver}-seed{self.seed}"

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Run":
        network, budget = Network(**record["network"]), Budget(**record["budget"])
        return cls(**{"code": "", **record, "network": network, "budget": budget})


@dataclass(frozen=True)
class Trace:
    """Columns with one entry per iteration; entry 0 is the start, with alpha and cosine None.

    All numbers are finite: a run whose loss overflows ends, not finished, with the last entry before that.
    """

    f: Sequence[float]
    """Training loss."""
    grad_norm: Sequence[float]
    evals: Sequence[int]
    """Evaluations of loss and gradient so far, the first one included."""
    seconds: Sequence[float]
    """Wall time so far."""
    alpha: Sequence[float | None]
    """Signed step size."""
    cosine: Sequence[float | None]
    """Cosine between direction and -gradient, before the sign of the step."""

    def at_iteration(self, k: int) -> float:
        """The loss after k iterations; a run that ended before stays where it was."""
        return self.f[min(k, len(self.f) - 1)]

    def at_evals(self, evals: int) -> float:
        """The loss that the first so many evaluations bought."""
        return self.f[max(0, bisect_right(self.evals, evals) - 1)]


@dataclass(frozen=True)
class Outcome:
    """The result of a run. Not `finished`: it hit its time limit (the paper's DNF), diverged or could not run."""

    run: Run
    trace: Trace
    finished: bool
    ended: str
    """The sentence of the status that ended it."""
    unknowns: int
    """Parameters of the network."""
    accuracy: float | None = None
    """Share of the training rows classified rightly at the end."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Versions of what ran it."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Outcome":
        return cls(**{**record, "run": Run.from_json(record["run"]), "trace": Trace(**record["trace"])})
