"""optax's and optimistix's solvers: compiled by JAX, they call the objective back in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from signedstep.experiments.bench.jax_setup import loaded_jax
from signedstep.experiments.bench.meter import BudgetSpent, Meter, TimeSpent
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended

_current: list[Meter] = []
"""The meter of the run at hand: compiled code outlives a run, and one process carries out one run at a time."""


def _called_back(y: Any) -> tuple[np.ndarray, np.ndarray]:
    (meter,) = _current
    array = np.array(y)
    try:
        f, g = meter(torch.from_numpy(array))
    except (BudgetSpent, TimeSpent) as spent:
        raise RuntimeError("the meter has ended the run") from spent  # JAX does not pass others on
    return np.asarray(f, dtype=array.dtype), g.numpy()


@cache
def _function() -> Any:
    """The objective for JAX; with its derivative it is one evaluation."""
    jax = loaded_jax()

    def both(y: Any) -> Any:
        shapes = jax.ShapeDtypeStruct((), y.dtype), jax.ShapeDtypeStruct(y.shape, y.dtype)
        return jax.pure_callback(_called_back, shapes, y)

    @jax.custom_jvp
    def value(y: Any) -> Any:
        return both(y)[0]

    @value.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        f, g = both(primals[0])
        return f, jax.numpy.vdot(g, tangents[0])

    return value


@cache
def _optax_step(memory: int) -> tuple[Any, Any]:
    """Start and one compiled step of optax's L-BFGS."""
    import optax

    jax, value = loaded_jax(), _function()
    solver = optax.lbfgs(memory_size=memory)
    evaluate = optax.value_and_grad_from_state(value)

    def step(y: Any, state: Any) -> Any:
        f, g = evaluate(y, state=state)
        updates, state = solver.update(g, state, y, value=f, grad=g, value_fn=value)
        return optax.apply_updates(y, updates), state

    return solver.init, jax.jit(step)


def _optax(meter: Meter, memory: int) -> Ended:
    init, step = _optax_step(memory)
    with _during(meter) as y:
        state = init(y)
        while True:
            y, state = step(y, state)


@cache
def _value_of_two() -> Any:
    """The objective as optimistix calls it; the same function every time, since it compiles for a function."""
    value = _function()
    return lambda y, args: value(y)


def _optimistix(kind: str, meter: Meter, memory: int) -> Ended:
    import optimistix

    if kind == "LBFGS":
        solver = optimistix.LBFGS(rtol=0.0, atol=0.0, history_length=memory)
    else:
        solver = optimistix.BFGS(rtol=0.0, atol=0.0)
    with _during(meter) as y0:
        found = optimistix.minimise(_value_of_two(), solver, y0, max_steps=None, throw=False)
    return Ended(str(found.result), int(found.stats["num_steps"]))


@contextmanager
def _during(meter: Meter) -> Iterator[Any]:
    """Make a meter the current one; gives its start. In float32 JAX is as its users have it then."""
    jax = loaded_jax()
    _current[:] = [meter]
    try:
        with jax.enable_x64(meter.dtype == torch.float64):
            yield jax.numpy.asarray(meter.start.numpy())
    finally:
        _current.clear()


SOLVERS = (
    BenchSolver("optax-lbfgs", "optax L-BFGS", "optax.lbfgs with its zoom search", _optax, package="optax"),
    BenchSolver(
        "optimistix-lbfgs",
        "optimistix L-BFGS",
        "optimistix.LBFGS with its Armijo search",
        partial(_optimistix, "LBFGS"),
        package="optimistix",
    ),
    BenchSolver(
        "optimistix-bfgs",
        "optimistix BFGS",
        "optimistix.BFGS with its Armijo search",
        partial(_optimistix, "BFGS"),
        package="optimistix",
        dense=True,
    ),
)
