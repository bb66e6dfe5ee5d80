"""JAX as the benchmark uses it: double precision, one thread, everything done when a call returns."""

import logging
import os
from functools import cache
from typing import Any

BELOW = {
    "optax": ("jax", "jaxlib"),
    "optimistix": ("jax", "jaxlib", "equinox", "lineax"),
    "sif2jax": ("jax", "jaxlib", "equinox"),
}
"""The packages that compute the numbers of those that are built on JAX."""


@cache
def loaded_jax() -> Any:
    """The module, set up before its first use in this process."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    logging.getLogger("jax._src.callback").setLevel(logging.CRITICAL)  # it prints the end of every run as an error
    return jax
