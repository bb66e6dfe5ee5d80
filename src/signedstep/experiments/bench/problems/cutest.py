"""Unconstrained CUTEst problems as sif2jax has them: compiled by JAX, an evaluation takes tens of microseconds.

sif2jax checks its functions against pycutest; those that it lists are in `cutest_table.py`. Its package builds more
than a thousand problems when it is imported, which takes minutes: only the modules of the wanted ones are imported.
"""

import sys
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from signedstep.experiments.bench.jax_setup import loaded_jax
from signedstep.experiments.bench.meter import Objective
from signedstep.experiments.bench.problems.base import BenchProblem
from signedstep.experiments.bench.problems.cutest_table import HOLLOW, LARGE, SMALL, Row
from signedstep.experiments.problems import Place

PACKAGE = "sif2jax"
FOLDER = f"{PACKAGE}.cutest._unconstrained_minimisation"


def small() -> list[BenchProblem]:
    """Problems with n <= 200."""
    return [_problem("cutest", row) for row in SMALL]


def large() -> list[BenchProblem]:
    """Those that can grow, with n about 1000."""
    return [_problem("cutest-large", row) for row in LARGE]


def _problem(family: str, row: Row) -> BenchProblem:
    return BenchProblem(
        family=family,
        short=f"{row.name}-n{row.n}",
        build=partial(_built, row),
        unknowns=row.n,
        work=0.1,
        seeded=False,
        function=row.name,
        hollow=family == "cutest-large" and row.name in HOLLOW,
    )


def _built(row: Row, place: Place, dtype: torch.dtype, seed: int) -> Objective:
    """The problem in float64, rounded to `dtype` at both ends; solvers of JAX in float32 call it with float64 off."""
    jax = loaded_jax()
    value_and_gradient, hessp, start = _compiled(row)

    def evaluated(x: Tensor) -> tuple[float, Tensor]:
        with jax.enable_x64(True):
            f, g = value_and_gradient(x.numpy().astype(np.float64))
        return torch.tensor(float(f), dtype=dtype).item(), torch.tensor(np.asarray(g), dtype=dtype)

    def product(x: Tensor, v: Tensor) -> Tensor:
        with jax.enable_x64(True):
            Hv = hessp(x.numpy().astype(np.float64), v.numpy().astype(np.float64))
        return torch.tensor(np.asarray(Hv), dtype=dtype)

    return Objective(evaluated, torch.tensor(start, dtype=dtype), product)


@lru_cache(maxsize=64)
def _compiled(row: Row) -> tuple[Any, Any, np.ndarray]:
    """Value and gradient, Hessian products and start; kept, since runs that follow each other mostly share them."""
    jax = loaded_jax()
    without_the_rest()
    problem = getattr(import_module(f"{FOLDER}.{row.module}"), row.name)(**dict(row.sizes))
    args, shape = problem.args, np.shape(problem.y0)

    def value(y: Any) -> Any:
        return problem.objective(y.reshape(shape), args)

    gradient = jax.grad(value)
    hessp = jax.jit(lambda y, v: jax.jvp(gradient, (y,), (v,))[1])
    return jax.jit(jax.value_and_grad(value)), hessp, np.array(problem.y0, dtype=np.float64).ravel()


@cache
def without_the_rest() -> None:
    """Put empty packages where sif2jax's own would import and build everything."""
    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    root = Path(next(iter(spec.submodule_search_locations))).parent
    parts = FOLDER.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        if name not in sys.modules:
            empty = ModuleSpec(name, None, is_package=True)
            empty.submodule_search_locations = [str(root.joinpath(*parts[:depth]))]
            sys.modules[name] = module_from_spec(empty)
