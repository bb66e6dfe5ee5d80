"""Writes the table of CUTEst problems: which of sif2jax's unconstrained problems the benchmark takes, and how large.

    python benchmarks/cutest_table.py > src/signedstep/experiments/bench/problems/cutest_table.py

A problem that sif2jax lists is taken with its own size where that is at most 200. One that is larger is made with
n = 100, and one whose size is a parameter also with n = 1000 for the table of large ones, or with about as many
unknowns as its structure allows. Left out is what cannot be made so, is not finite at its start, has a gradient that is
not its own, or takes minutes. One that only seems to grow, most of whose unknowns do nothing, is listed in HOLLOW.
"""

import dataclasses
import re
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from signedstep.experiments.bench.jax_setup import loaded_jax
from signedstep.experiments.bench.problems import cutest

LEFT_OUT = {"EG1": "it has bounds, which sif2jax drops: its start differs from that of the original"}
Form = tuple[int, tuple[tuple[str, int], ...]]
"""Unknowns of a problem, and the sizes that it is made with."""
NAMES = ("n", "_n", "N", "m", "p", "M", "n_param")
"""Fields that set the size of a problem."""
TIED = {"CHAINWOO": ("ns", lambda n: n // 2 - 1)}
"""Problems with a field that follows from the size and is to be set with it."""
HEAD = '''"""Which CUTEst problems the benchmark has, and their sizes; written by benchmarks/cutest_table.py."""

from typing import NamedTuple


class Row(NamedTuple):
    """A problem of sif2jax: its class, the module of it, unknowns, and the sizes that it is made with."""

    name: str
    module: str
    n: int
    sizes: tuple[tuple[str, int], ...] = ()

'''

HOLLOW = "Large ones most of whose unknowns do nothing: not run, but in their places, so that the halves stay."


def listed() -> list[tuple[str, str]]:
    """Module and class of every problem that sif2jax lists; those under review are commented out there."""
    folder = Path(sys.modules[cutest.FOLDER].__path__[0])
    text = re.sub(r"#.*", "", (folder / "__init__.py").read_text())
    found = re.findall(r"^from \.(\w+) import (?:\(([^)]*)\)|(.*))$", text, re.M)
    return sorted({(module, name) for module, many, one in found for name in re.findall(r"(\w+) as", many + one)})


def size_field(kind: type) -> str | None:
    """The one field that sets the size of a problem."""
    taken = {field.name for field in dataclasses.fields(kind) if field.init and isinstance(field.default, int)}
    return next((name for name in NAMES if name in taken), None)


def unknowns(kind: type, **sizes: int) -> int:
    """The number of unknowns, 0 if it cannot be made so."""
    try:
        return int(np.size(kind(**sizes).y0))
    except Exception:
        return 0


def made(kind: type, target: int) -> Form | None:
    """Unknowns and sizes of a form of a problem with about `target` unknowns, at least half of them."""
    field = size_field(kind)
    if field is None:
        return None
    root = int(target**0.5)
    sizes = (target, target // 2 - 1, root + 1, root, root - 1, root - 2)
    tied = [(name, follows) for problem, (name, follows) in TIED.items() if problem == kind.__name__]
    given = [((field, size), *((name, follows(size)) for name, follows in tied)) for size in sizes]
    forms: Iterator[Form] = ((unknowns(kind, **dict(each)), each) for each in given)
    return next((form for form in forms if target // 2 <= form[0] <= target + target // 20), None)


def measured(kind: type, form: Form) -> tuple[bool, bool]:
    """Whether a problem is usable and whether it is hollow.

    Usable: value and gradient are finite at the start, there is a slope, and differences along a random direction
    agree with it. Hollow: more than half of the gradient is 0 wherever one looks.
    """
    jax, problem = loaded_jax(), kind(**dict(form[1]))
    evaluated = jax.jit(jax.value_and_grad(lambda y: problem.objective(y, problem.args)))
    start, random = np.asarray(problem.y0, dtype=float), np.random.default_rng(0)
    try:
        f, g = evaluated(start)
    except TypeError:  # some have data for one size only
        return False, False
    if not (np.isfinite(f) and np.isfinite(g).all() and np.any(g)):
        return False, False
    v = (1 + np.abs(start)) * random.uniform(-1, 1, start.shape)
    slope = float(np.sum(g * v))
    seen = [float(evaluated(start + t * v)[0] - evaluated(start - t * v)[0]) / (2 * t) for t in (1e-4, 1e-6, 1e-8)]
    looks = [evaluated(start + size * random.standard_normal(start.shape))[1] for size in (1e-3, 0.1, 1.0)]
    alive = np.any([g, *looks], axis=0).mean()
    return bool(np.min(np.abs(np.array(seen) - slope)) <= 1e-2 * abs(slope)), bool(alive < 0.5)


def rows(module: str, name: str) -> dict[str, str]:
    """The lines of a problem in the tables."""
    kind = getattr(import_module(f"{cutest.FOLDER}.{module}"), name)
    field = size_field(kind)
    default: Any = next((f.default for f in dataclasses.fields(kind) if f.name == field), 0)
    own = unknowns(kind) if default <= 1000 else 10**9  # the largest take minutes to build
    found = {"SMALL": (own, ()) if own <= 200 else made(kind, 100), "LARGE": made(kind, 1000)}
    lines = {}
    for table, form in found.items():
        usable, hollow = measured(kind, form) if form else (False, False)
        if form and usable:
            lines[table] = repr((name, module, *form))
            lines |= {"HOLLOW": repr(name)} if hollow and table == "LARGE" else {}
    return lines


def main() -> None:
    jax = loaded_jax()
    cutest.without_the_rest()
    tables: dict[str, list[str]] = {"SMALL": [], "LARGE": [], "HOLLOW": []}
    for module, name in listed():
        if name in LEFT_OUT:
            continue
        print(name, end=" ", file=sys.stderr, flush=True)
        signal.alarm(60)
        try:
            for table, line in rows(module, name).items():
                tables[table].append(line)
        except (TimeoutError, ValueError) as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            signal.alarm(0)
            jax.clear_caches()  # gigabytes, else
    print(HEAD)
    for table in ("SMALL", "LARGE"):
        print(f"{table} = tuple(\n    Row(*row)\n    for row in (")
        print("".join(f"        {line},\n" for line in tables[table]) + "    )\n)\n")
    print(f'HOLLOW = ({", ".join(tables["HOLLOW"])},)\n"""{HOLLOW}"""')


def _late(*_: object) -> None:
    raise TimeoutError("more than a minute")


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _late)
    main()
