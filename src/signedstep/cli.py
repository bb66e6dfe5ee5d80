"""The command line: `signedstep reproduce | compare | bench | data`."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module

import signedstep
from signedstep.experiments.words import installed_by

COMMANDS = ("reproduce", "compare", "bench", "data")
INTERRUPTED = 130
"""The exit status of a program that was interrupted, by the shell's convention."""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    whole = argparse.ArgumentParser(prog="signedstep", description="Second-order optimizers with signed steps.")
    whole.add_argument("--version", action="version", version=f"signedstep {signedstep.__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"signedstep.experiments.commands.{name}").add(commands)
    return whole


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 if it did what was asked, 1 if not, 2 if the question was wrong."""
    try:
        try:
            return _carry_out(sys.argv[1:] if argv is None else argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as after `| head`; what is left to be written goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a disk that is full, a folder that is closed: no fault of this program
        print(f"signedstep: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _carry_out(words: Sequence[str]) -> int:
    """The exit status of a command that is not cut short from outside."""
    arguments = parser().parse_args(words)
    arguments.command_line = shlex.join(["signedstep", *words])
    try:
        return arguments.run(arguments)
    except ModuleNotFoundError as error:
        package = (error.name or "signedstep").partition(".")[0]
        if package == "signedstep":
            raise
        extra = "dask" if package == "distributed" else "experiments"
        print(f"signedstep: {package} is missing; {installed_by(extra)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
