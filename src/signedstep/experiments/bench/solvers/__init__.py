"""All solvers of the benchmark: the peers, and ours by the names of `signedstep.methods()`."""

from importlib.util import find_spec

from signedstep.experiments.bench.solvers import jax_peers, scipy_peers, torch_peers, torchmin_peers, torchzero_peers
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended
from signedstep.experiments.bench.solvers.ours import ours
from signedstep.methods import full_name

__all__ = ["DEFAULT", "PEERS", "BenchSolver", "Ended", "missing", "solver"]

_MODULES = (torch_peers, scipy_peers, torchmin_peers, torchzero_peers, jax_peers)
PEERS: dict[str, BenchSolver] = {peer.name: peer for module in _MODULES for peer in module.SOLVERS}
DEFAULT = ("auto", "torch-lbfgs", "scipy-lbfgsb", "scipy-bfgs")


def solver(name: str) -> BenchSolver:
    """A peer or one of our methods by its name."""
    if name in PEERS:
        return PEERS[name]
    try:
        full_name(name.partition(":")[0])
    except ValueError as error:
        raise ValueError(f"{error}; or a peer of {', '.join(PEERS)}") from None
    return ours(name)


def missing(found: BenchSolver) -> str | None:
    """The package that a solver needs and that is not here."""
    return found.package if found.package and find_spec(found.package) is None else None
