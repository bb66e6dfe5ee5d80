"""The command line: `signedstep reproduce | compare | bench | data`."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = ("reproduce", "compare", "bench", "data")


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    whole = argparse.ArgumentParser(prog="signedstep", description="Second-order optimizers with signed steps.")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"signedstep.experiments.commands.{name}").add(commands)
    return whole


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 if it did what was asked, 1 if not, 2 if the question was wrong."""
    words = sys.argv[1:] if argv is None else argv
    arguments = parser().parse_args(words)
    arguments.command_line = shlex.join(["signedstep", *words])
    try:
        return arguments.run(arguments)
    except ModuleNotFoundError as error:
        package = (error.name or "signedstep").partition(".")[0]
        if package == "signedstep":
            raise
        extras = "dask" if package == "distributed" else "experiments"
        print(f"signedstep: {package} is missing; pip install 'signedstep[{extras}]' brings it", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
