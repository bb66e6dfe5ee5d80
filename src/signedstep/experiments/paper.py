"""The table the paper prints, as data: what our numbers stand beside."""

from dataclasses import dataclass

DNF = "DNF"
"""The paper's mark for a run that did not finish in the allocated time."""

COLUMNS = ("gd", "adam-0.001", "lbfgs", "lsr1", "lsr1-damp", "lsr1-wolfe+-")
"""The columns of Table 1, in its order, by the names of our solvers."""

TWINS = {"lsr1-damp-dense": "lsr1-damp"}
"""Solvers of ours that stand beside a column of the paper which is printed once: damping has two forms here."""


@dataclass(frozen=True)
class Row:
    """One data set of Table 1: its size and the training errors in the order of `COLUMNS`."""

    rows: int
    features: int
    values: tuple[float | str, ...]

    def value(self, solver: str) -> float | str | None:
        """The printed value, "DNF", or None where the paper does not have the solver."""
        column = TWINS.get(solver, solver)
        return self.values[COLUMNS.index(column)] if column in COLUMNS else None

    def bold(self, solver: str) -> bool:
        """Whether the paper prints it in bold: exactly where it is the lowest of its row."""
        return self.value(solver) == min(value for value in self.values if value != DNF)


TABLE: dict[str, Row] = {
    "a1a": Row(1605, 119, (0.217, 0.203, 0.315, 0.500, 0.214, 0.199)),
    "a9a": Row(32561, 123, (0.220, 0.212, 0.332, 0.330, 0.216, 0.211)),
    "colon-cancer": Row(62, 2000, (0.006, 0.046, 0.500, 0.183, DNF, 0.003)),
    "gisette": Row(6000, 5000, (0.139, 0.171, 0.395, 0.395, DNF, 0.050)),
    "heart": Row(270, 13, (0.455, 0.382, 0.388, 0.237, 0.239, 0.237)),
    "ijcnn1": Row(35000, 22, (0.132, 0.120, 0.131, 0.165, 0.130, 0.120)),
    "ionosphere": Row(351, 34, (0.201, 0.118, 0.201, 0.500, 0.199, 0.170)),
    "leukemia": Row(38, 7129, (0.028, 0.001, 0.160, 0.160, DNF, 0.064)),
    "madelon": Row(2000, 500, (0.500, 0.500, 0.490, 0.396, 0.382, 0.396)),
    "mushrooms": Row(8124, 112, (0.040, 0.018, 0.166, 0.500, 0.019, 0.009)),
    "splice": Row(1000, 60, (0.270, 0.260, 0.485, 0.500, 0.262, 0.195)),
    "svmguide3": Row(1243, 22, (0.295, 0.276, 0.374, 0.374, 0.267, 0.260)),
    "w1a": Row(2477, 300, (0.088, 0.059, 0.200, 0.200, 0.071, 0.063)),
    "w8a": Row(49749, 300, (0.096, 0.066, 0.193, 0.193, 0.079, 0.071)),
}


def order(names: list[str]) -> list[str]:
    """Names of data sets in the order of Table 1, those that the paper does not have after them as they come."""
    places = list(TABLE)
    return sorted(names, key=lambda name: places.index(name) if name in TABLE else len(places))
