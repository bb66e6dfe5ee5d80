"""`signedstep bench`: problems x solvers x seeds, evaluations counted from outside; a second call goes on."""

import argparse
import math
from pathlib import Path

from signedstep.experiments.bench.problems import FAMILIES, HALVES, TRAINING, UNSEEN
from signedstep.experiments.bench.runs import BenchOutcome, BenchRun
from signedstep.experiments.bench.solvers import DEFAULT, PEERS
from signedstep.experiments.commands.asked import first_of, problems_of, runs_of, solvers_of, tell_missing
from signedstep.experiments.commands.common import add_data_dir, complain, count, place_of, positive, unusable
from signedstep.experiments.words import counted

WIDTH = 180
_HALF = "of the problems; unseen are those held out but for functions that dev has in another size (%(default)s)"


def add(commands) -> None:
    """Declare the command."""
    parser = commands.add_parser("bench", help="our methods next to their peers, on many problems", description=__doc__)
    option = parser.add_argument
    option("--half", choices=(*HALVES, UNSEEN, "all"), default="dev", help=_HALF)
    option("--family", default=",".join(TRAINING), metavar="NAMES", help=f"of {','.join(FAMILIES)} (%(default)s)")
    option("--solvers", nargs="+", default=DEFAULT, metavar="NAME", help="methods of ours, also with options as in "
           f"lsr1/flip:floor=1e-8,c2=0.5; peers {', '.join(PEERS)} ({' '.join(DEFAULT)})")  # fmt: skip
    option("--first", metavar="NAME", help="the solver that is compared with the others (the first of --solvers)")
    option(
        "--seeds", type=count, default=3, metavar="N", help="starts for every problem that has several (%(default)s)"
    )
    option("--budget", type=count, metavar="N", help="evaluations of a run (1000, CUTEst 500)")
    option("--memory", type=count, metavar="M", help="pairs of limited-memory methods (20, CUTEst 50)")
    option("--time-limit", type=positive, default=300.0, metavar="S", help="seconds of a run (%(default)g)")
    option("--dtype", choices=("float64", "float32"), default="float64", help="(%(default)s)")
    option("--only", metavar="TEXT", help="problems whose name contains this")
    option("--details", action="store_true", help="print every problem")
    option("--no-report", dest="report", action="store_false", help="print tables only, write no page and no figures")
    option("--jobs", type=count, metavar="N", help="processes of one thread each (as many as there are cores)")
    option("--dask", metavar="ADDRESS", help="run on this Dask cluster instead, whose workers see the same files")
    add_data_dir(parser)
    option("--results", type=Path, default=Path("results/bench"), metavar="FOLDER", help="runs, tables (%(default)s)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from signedstep.experiments.store import StoreError
    from signedstep.experiments.terminal import terminal

    place, console = place_of(arguments), terminal()
    if not console.is_terminal:
        console = terminal(width=WIDTH)  # tables in files need not fit a screen

    def say(text: str) -> None:
        console.print(text, highlight=False)

    try:
        solvers = solvers_of(arguments)
        first = first_of(arguments, solvers)
        problems = problems_of(arguments, place, say)
    except ValueError as error:
        return complain(error)
    if wrong := unusable(arguments.results, arguments.results):
        return complain(wrong)
    tell_missing(solvers, say)
    try:
        return _carry_out(arguments, runs_of(arguments, problems, solvers), first, console)
    except (ConnectionError, StoreError) as error:
        return complain(error)
    except KeyboardInterrupt:
        console.print("Interrupted. Finished runs are kept; the same command goes on from there.")
        raise


def _carry_out(arguments: argparse.Namespace, runs: list[BenchRun], first: str, console) -> int:
    from signedstep.experiments.bench.execute import execute_bench, expected_seconds
    from signedstep.experiments.bench.report import show, write
    from signedstep.experiments.schedule import here, on_dask
    from signedstep.experiments.session import outcomes_of
    from signedstep.experiments.store import Store

    backend = on_dask(arguments.dask, execute_bench) if arguments.dask else here(arguments.jobs, execute_bench)
    store: Store[BenchOutcome] = Store(arguments.results / "runs", BenchOutcome)
    outcomes = outcomes_of(runs, store, backend, place_of(arguments), expected_seconds, console, _told)
    show(outcomes, first, arguments.details, console)
    if arguments.report:
        page = write(outcomes, first, arguments.results / "report", arguments.command_line)
        console.print(f"Report: {page}", soft_wrap=True, highlight=False)
    return 0


def _told(outcome: BenchOutcome) -> str:
    lowest = outcome.trace.f[-1] if outcome.trace.f else math.inf
    return f"{lowest:.6g} after {counted(outcome.evals, 'evaluation')}, {outcome.seconds:.2f} s, {outcome.kind}"
