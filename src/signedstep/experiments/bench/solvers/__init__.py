"""All solvers of the benchmark: the peers, and ours by the names of `signedstep.methods()`."""

from importlib.util import find_spec

from signedstep.experiments.bench.solvers import scipy_peers, torch_peers
from signedstep.experiments.bench.solvers.base import BenchSolver, Ended
from signedstep.experiments.bench.solvers.ours import ours

__all__ = ["DEFAULT", "PEERS", "BenchSolver", "Ended", "missing", "solver"]

PEERS: dict[str, BenchSolver] = {peer.name: peer for peer in (*torch_peers.SOLVERS, *scipy_peers.SOLVERS)}
DEFAULT = ("auto", "torch-lbfgs", "scipy-lbfgsb", "scipy-bfgs")


def solver(name: str) -> BenchSolver:
    """A peer or one of our methods by its name."""
    return PEERS[name] if name in PEERS else ours(name)


def missing(found: BenchSolver) -> str | None:
    """The package that a solver needs and that is not here."""
    return found.package if found.package and find_spec(found.package) is None else None
