"""`signedstep compare DATA`: which optimizer suits my data? The paper's experiment on a file of yours."""

import argparse
import hashlib
import re
from pathlib import Path

from signedstep.experiments.commands.common import add_options, budget_of, carry_out, complain, network_of, place_of
from signedstep.experiments.models import unknowns
from signedstep.experiments.problems import Place
from signedstep.experiments.solvers import SOLVERS, WOLFE
from signedstep.experiments.studies import DENSE_MODELS, grid

DENSE_UP_TO = 1000
"""Unknowns up to which methods with an n x n matrix take part unless told otherwise."""

_DATA = (
    "LIBSVM text, .csv or .npz, or a known data set; two classes, both numbers; features are used as they are, "
    "so scale them first"
)


def add(commands) -> None:
    """Declare the command."""
    parser = commands.add_parser("compare", help="which optimizer suits my data?", description=__doc__)
    parser.add_argument("data", metavar="DATA", help=_DATA)
    parser.add_argument("--label", metavar="COLUMN", help="labels of a .csv or .tsv, by name or number from 0 (last)")
    parser.add_argument(
        "--solvers", nargs="+", type=_solver, metavar="NAME", choices=tuple(SOLVERS), help=f"of {', '.join(SOLVERS)}"
    )
    add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from signedstep.experiments.data import SETS, DataError, load

    label = "-1" if arguments.label is None else arguments.label
    try:
        _check_label(arguments)
        data = load(arguments.data, arguments.data_dir, label=label)
    except (DataError, OSError) as error:
        return complain(error)
    network, (rows, features) = network_of(arguments), data.X.shape  # type: ignore[misc]
    solvers = list(dict.fromkeys(arguments.solvers or _suitable(unknowns(network, features))))
    if arguments.data in SETS:
        name, folder, place = arguments.data, arguments.data, place_of(arguments)
    else:
        name, folder, place = _own(Path(arguments.data), label)
    runs = grid((name,), network, solvers, arguments.seeds, budget_of(arguments))
    title = f"Which optimizer suits {name}?"
    results = arguments.results / "compare" / folder
    return carry_out(arguments, runs, results, title, place, {name: (rows, features)}, comparison=True)


def _solver(name: str) -> str:
    """The name of a solver; `auto` is told what the studies have of it, since its constants are others there."""
    if name == "auto":
        shared = f"c2 = {WOLFE['c2']:g} and m = {WOLFE['history_size']}"
        raise argparse.ArgumentTypeError(f"here 'auto' is called 'mix', and has {shared} as all line-search methods do")
    return name


def _check_label(arguments: argparse.Namespace) -> None:
    """Refuse a column of labels for data that have no columns to choose from."""
    from signedstep.experiments.data import SETS, DataError
    from signedstep.experiments.readers import has_columns

    if arguments.label is not None and (arguments.data in SETS or not has_columns(Path(arguments.data))):
        raise DataError(f"--label is the column of labels in a .csv or .tsv file, and {arguments.data!r} is none")


def _suitable(n: int) -> list[str]:
    """The solvers that a user may want for n unknowns: none that is O(n^3), and O(n^2) only for small n."""
    dense = () if n <= DENSE_UP_TO else DENSE_MODELS
    return [name for name, solver in SOLVERS.items() if not solver.dense_in_n and name not in dense]


def _own(path: Path, label: str) -> tuple[str, str, Place]:
    """Name, folder and place of a user's file; another folder if it changes, so that old results are not mixed in."""
    name = re.sub(r"[^\w.-]", "_", path.name)
    content = hashlib.sha256(path.read_bytes() + label.encode()).hexdigest()
    return name, f"{name}-{content[:8]}", Place(file=str(path.resolve()), label=label)
