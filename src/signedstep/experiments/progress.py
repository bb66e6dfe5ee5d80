"""Shows how a study gets on: a live display on a terminal that can redraw, plain lines anywhere else."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from signedstep.experiments.runs import Outcome
from signedstep.experiments.terminal import terminal
from signedstep.experiments.words import counted


class Display:
    """The listener of a study. `expected` gives rough seconds for each run by name: they weigh the time left."""

    def __init__(
        self, expected: Mapping[str, float], console: Console | None = None, tell: Callable[[Any], str] | None = None
    ):
        self.console, self._tell = console or terminal(), tell or told
        self._expected, self._spent = expected, 0.0
        self._all = sum(expected.values())
        self._hand: dict[str, str] = {}
        self._done, self._began = 0, time.monotonic()
        self._bar = Progress(
            TextColumn("runs"), BarColumn(None), MofNCompleteColumn(), TextColumn("{task.fields[left]}")
        )
        self._task = self._bar.add_task("", total=len(expected), left="")
        self._moves = self.console.is_terminal and not self.console.is_dumb_terminal
        self._live = Live(get_renderable=self._picture, console=self.console, refresh_per_second=4, transient=True)

    def __enter__(self) -> "Display":
        if self._moves:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._moves:
            self._live.stop()

    def started(self, run: Any) -> None:
        self._hand[run.name] = "..."

    def iteration(self, name: str, k: int, f: float) -> None:
        if name in self._hand:
            self._hand[name] = f"iteration {k}, loss {f:.6g}"

    def done(self, outcome: Any) -> None:
        name = outcome.run.name
        self._hand.pop(name, None)
        self._done += 1
        self._spent += self._expected[name]
        left = self._left()
        self._bar.update(self._task, completed=self._done, left=left)
        if not self._moves:
            count = f"{self._done:{len(str(len(self._expected)))}}/{len(self._expected)}"
            self.console.print(f"{count} {name}: {self._tell(outcome)}; {left}", highlight=False, soft_wrap=True)

    def _left(self) -> str:
        elapsed = time.monotonic() - self._began
        seconds = elapsed * (self._all - self._spent) / self._spent
        return f"about {clock(seconds)} left"

    def _picture(self) -> Group:
        hand = Table.grid(padding=(0, 2))
        for name, news in list(self._hand.items()):
            hand.add_row(f"  {name}", news)
        return Group(self._bar, hand)


def told(outcome: Outcome) -> str:
    """An outcome in a few words."""
    trace = outcome.trace
    words = f"loss {trace.f[-1]:.6g}, {counted(len(trace.f) - 1, 'iteration')}, {trace.seconds[-1]:.2f} s"
    return words if outcome.finished else f"{words}, not finished: {outcome.ended}"


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
