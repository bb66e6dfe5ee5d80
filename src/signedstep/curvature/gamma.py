"""Where a model has learned nothing it is gamma I; a policy chooses gamma from the newest pair."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from signedstep.checks import as_float

RULES: dict[str, Callable[[float, float, float], float]] = {
    "identity": lambda ss, sy, yy: 1.0,  # the paper's choice
    "norm": lambda ss, sy, yy: math.sqrt(yy / ss),  # an average size of the curvature, whatever its sign
    "yy/sy": lambda ss, sy, yy: yy / sy,  # the usual choice of L-BFGS; the worst one for L-SR1
    "sy/ss": lambda ss, sy, yy: sy / ss,  # the curvature along the last step
}


@dataclass(frozen=True)
class Gamma:
    """A rule times a factor. A rule without a positive answer for a pair keeps the gamma of the pair before."""

    rule: str = "identity"
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"unknown gamma rule {self.rule!r}; the rules are {', '.join(RULES)}")
        if not (self.factor > 0 and math.isfinite(self.factor)):
            raise ValueError(f"gamma must be positive and finite, got {self.factor!r}")

    @classmethod
    def parse(cls, value: "Gamma | str | float") -> "Gamma":
        """A policy from a rule's name, a factor and a name ("0.1*norm"), or a number, which fixes gamma."""
        if isinstance(value, Gamma):
            return value
        if isinstance(value, Real) and not isinstance(value, bool):
            return cls("identity", as_float(value))
        if not isinstance(value, str):
            raise TypeError(f"gamma must be a number, a rule such as 'norm' or '0.1*norm', got {value!r}")
        factor, star, rule = value.rpartition("*")
        try:
            return cls(rule.strip(), float(factor) if star else 1.0)
        except ValueError as error:
            raise ValueError(f"gamma={value!r}: {error}") from None

    def __call__(self, ss: float, sy: float, yy: float, previous: float) -> float:
        try:
            gamma = self.factor * RULES[self.rule](ss, sy, yy)
        except ZeroDivisionError:
            return previous
        return gamma if gamma > 0 and math.isfinite(gamma) else previous

    def candidates(self, ss: float, sy: float, yy: float, previous: float) -> tuple[float, ...]:
        """gamma, and half of it where the rule is only a guess.

        SR1 cannot learn a pair that gamma I explains by accident (in one dimension "norm" always does).
        """
        gamma = self(ss, sy, yy, previous)
        return (gamma,) if self.rule == "identity" else (gamma, gamma / 2)
