"""What a verdict is made of, shared by all claims: the words, the rules for duels and the small tables of evidence."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from signedstep.experiments.duels import ENOUGH_PAIRS, Duel, Duels
from signedstep.experiments.panels import MEASURE_NAMES, MEASURES

HELD, PARTLY, NOT, FEW = "held", "held partly", "did not hold", "not enough runs"


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it held here, and why we say so."""

    key: str
    title: str
    says: str
    """The claim in the paper's words or ours."""
    criterion: str
    verdict: str
    sentence: str
    numbers: dict[str, Any] = field(default_factory=dict)
    """Everything the verdict was made from."""
    evidence: list[list[str]] = field(default_factory=list)
    """The same for readers: a small table, its first line the head."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def judged(found: Duels, judge: Callable[[Duel], str]) -> str:
    """The verdict of both measures, "held partly" where they disagree."""
    if not all(each.pairs >= ENOUGH_PAIRS for each in found.values()):
        return FEW
    return agreed([judge(each) for each in found.values()])


def agreed(verdicts: list[str]) -> str:
    """The one verdict of several parts, "held partly" where they disagree."""
    return verdicts[0] if len({*verdicts}) == 1 else PARTLY


def both_parts(first: bool, second: bool) -> str:
    """The verdict on a claim of two parts."""
    return HELD if first and second else PARTLY if first or second else NOT


def beats_or_leads(found: Duel) -> str:
    """Held: it beats the other. Partly: its median is lower on more than half of the data sets."""
    if found.beats:
        return HELD
    return PARTLY if 2 * found.sets_won > found.sets else NOT


def keeps_up(found: Duel) -> str:
    """Held: its median is at most that of the other on half of the data sets, ties among them."""
    return HELD if 2 * found.sets_won + found.sets_tied >= found.sets else NOT


def share(found: Duels) -> str:
    """How many pairs were won, in words."""
    shares = [f"{each.wins / max(1, each.pairs):.0%}" for each in found.values()]
    return f"{shares[0]} (equal iterations) and {shares[1]} (equal evaluations)"


def numbers(found: Duels) -> dict[str, Any]:
    return {MEASURE_NAMES[measure]: each.evidence for measure, each in found.items()}


def duel_table(rows: dict[str, Duels]) -> list[list[str]]:
    """The evidence of some duels, by a name for each, as a small table: how often the first ended below the second."""
    rows = {name: duels for name, duels in rows.items() if duels["iterations"].pairs}
    head = ["lower loss", *(f"at equal {MEASURE_NAMES[measure]}" for measure in MEASURES)]
    return [head, *([name, *map(str, duels.values())] for name, duels in rows.items())] if rows else []
