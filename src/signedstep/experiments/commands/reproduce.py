"""`signedstep reproduce`: run the paper's experiments and write the report; a second call goes on where one ended."""

import argparse

from signedstep.experiments.commands.common import add_options, budget_of, carry_out, complain, network_of, place_of
from signedstep.experiments.studies import EMBEDDED, all_runs, reproduction

TITLE = "Don't be so positive: the paper's experiments, run again"


def add(commands) -> None:
    """Declare the command."""
    parser = commands.add_parser("reproduce", help="run the paper's experiments, write a report", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="data sets that come with the package: minutes (default)")
    which.add_argument("--full", action="store_true", help="every data set that is here, see `signedstep data list`")
    which.add_argument("--sets", nargs="+", metavar="NAME", help="these data sets; downloaded if they are not here")
    add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from signedstep.experiments.data import SETS, DataError

    try:
        names = _names(arguments)
    except DataError as error:
        return complain(error)
    studies = reproduction(names, arguments.seeds, budget_of(arguments), network_of(arguments))
    shapes = {name: (SETS[name].rows, SETS[name].features) for name in names}
    return carry_out(arguments, all_runs(studies), arguments.results, TITLE, place_of(arguments), shapes)


def _names(arguments: argparse.Namespace) -> list[str]:
    """The data sets that were asked for, all of them here."""
    from signedstep.experiments.data import SETS, DataError, available, load

    here = available(arguments.data_dir)
    if arguments.full:
        missing = [name for name in SETS if name not in here]
        if missing:
            print(f"Not here, and left out: {', '.join(missing)} (`signedstep data fetch NAME` gets a set).")
        return here
    chosen: list[str] = list(dict.fromkeys(arguments.sets or EMBEDDED))
    for name in chosen:
        if name not in SETS:
            raise DataError(f"--sets must be names of {', '.join(SETS)}, got {name!r}")
        if name not in here:
            load(name, arguments.data_dir)  # once, before several processes want it
    return chosen
