"""What the commands that run studies share: their options, and the way from runs to a report."""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from signedstep.experiments.models import ACTIVATIONS, LOSSES
from signedstep.experiments.problems import Place
from signedstep.experiments.runs import Budget, Network, Outcome, Run
from signedstep.experiments.studies import SEEDS, TABLE1_BUDGET


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the budget, the network, and where and how runs are carried out."""
    add, budget, network = parser.add_argument, TABLE1_BUDGET, Network()
    add("--seeds", type=count, default=SEEDS, metavar="N", help="initial weights for every method (%(default)s)")
    add("--iterations", type=count, default=budget.iterations, metavar="N", help="of a run, at least (%(default)s)")
    add("--evals", type=count, default=budget.evals, metavar="N", help="evaluations of a run, at least (%(default)s)")
    add("--time-limit", type=positive, default=budget.seconds, metavar="S", help="seconds of a run (%(default)g)")
    add("--hidden", type=count, default=network.hidden, metavar="N", help="hidden layers (%(default)s)")
    add("--width", type=count, default=network.width, metavar="N", help="units in each of them (%(default)s)")
    add("--activation", choices=tuple(ACTIVATIONS), default=network.activation, help="(%(default)s)")
    add("--loss", choices=tuple(LOSSES), default=network.loss, help="mse: half the mean squared error (%(default)s)")
    add("--scale", type=positive, default=network.scale, metavar="X", help="factor on initial weights (%(default)g)")
    add("--no-bias", dest="bias", action="store_false", help="a network without biases")
    add("--jobs", type=count, metavar="N", help="processes of one thread each (as many as there are cores)")
    add("--dask", metavar="ADDRESS", help="run on this Dask cluster instead, whose workers see the same files")
    add_data_dir(parser)
    add("--results", type=Path, default=Path("results"), metavar="FOLDER", help="runs and report (%(default)s)")


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """The option of where data sets are."""
    help = "a folder with files of the data sets (or SIGNEDSTEP_DATA)"
    parser.add_argument("--data-dir", type=folder, metavar="FOLDER", help=help)


def network_of(arguments: argparse.Namespace) -> Network:
    """The network that the options describe."""
    names = ("hidden", "width", "activation", "bias", "scale", "loss")
    return Network(**{name: getattr(arguments, name) for name in names})


def budget_of(arguments: argparse.Namespace) -> Budget:
    """The budget that the options describe."""
    return Budget(arguments.iterations, arguments.evals, arguments.time_limit)


def place_of(arguments: argparse.Namespace) -> Place:
    """Where the data sets are, with an absolute path: workers may run elsewhere."""
    return Place(str(arguments.data_dir.resolve()) if arguments.data_dir else None)


def carry_out(
    arguments: argparse.Namespace,
    runs: Sequence[Run],
    folder: Path,
    title: str,
    place: Place,
    shapes: Mapping[str, tuple[int, int]],
    comparison: bool = False,
) -> int:
    """Run what is missing, write the report, print a summary and where the report is; the exit status."""
    from signedstep.experiments.estimates import expected_seconds
    from signedstep.experiments.report import write
    from signedstep.experiments.schedule import here, on_dask
    from signedstep.experiments.session import outcomes_of
    from signedstep.experiments.store import Store, StoreError
    from signedstep.experiments.summary import summary
    from signedstep.experiments.terminal import terminal
    from signedstep.experiments.training import BadStartError

    console = terminal()
    if wrong := unusable(arguments.results, folder):
        return complain(wrong)
    try:
        backend = on_dask(arguments.dask) if arguments.dask else here(arguments.jobs)
        store: Store[Outcome] = Store(folder / "runs")
        outcomes = outcomes_of(
            runs, store, backend, place, lambda run: expected_seconds(run, *shapes[run.data]), console
        )
        page = write(outcomes, folder / "report", title, arguments.command_line, comparison)
    except (BadStartError, ConnectionError, StoreError) as error:
        return complain(error)
    except KeyboardInterrupt:
        console.print("Interrupted. Finished runs are kept; the same command goes on from there.")
        raise
    console.print(summary(outcomes, exact=comparison))
    console.print(f"Report: {page}", soft_wrap=True, highlight=False)
    return 0


def unusable(results: Path, folder: Path) -> str | None:
    """Why runs and a report cannot be written into a folder below `--results`; trying leaves nothing behind."""
    for below in (folder / "runs", folder / "report"):
        made: list[Path] = []
        try:
            made += [path for path in (below, *below.parents) if not path.exists()]
            below.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=below).close()
        except OSError as error:
            return f"--results must be a folder that can be written, got {str(results)!r} ({below}: {error.strerror})"
        finally:
            for path in made:
                with suppress(OSError):  # not made, or no longer empty
                    path.rmdir()
    return None


def complain(error: Exception | str) -> int:
    """Say what is wrong with the question; the exit status for that."""
    print(f"signedstep: {error}", file=sys.stderr)
    return 2


def count(text: str) -> int:
    """An argument that is a whole number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {text!r}")
    return int(text)


def folder(text: str) -> Path:
    """An argument that is a folder."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"must be a folder, got {text!r}")
    return Path(text)


def positive(text: str) -> float:
    """An argument that is a positive number."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return number
