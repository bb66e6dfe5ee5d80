"""Progress: plain lines for logs, a live display for people, news from other processes."""

import io
import json
import math
import re
import socket
import threading

import pytest

from made_outcomes import ending_at, outcome
from signedstep.experiments import heartbeat
from signedstep.experiments.progress import Display, clock
from signedstep.experiments.runs import Budget
from signedstep.experiments.summary import summary
from signedstep.experiments.terminal import terminal
from test_store import OUTCOME, RUN


def shown(*, live):
    text = io.StringIO()
    console = terminal(file=text, force_terminal=live, width=120, color_system=None)
    with Display({RUN.name: 30.0, "other": 10.0}, console) as display:
        display.started(RUN)
        display.iteration(RUN.name, 7, 0.125)
        display.iteration("a run that is not in hand", 1, 1.0)
        if live:
            display._live.refresh()
        display.done(OUTCOME)
    return text.getvalue()


def test_logs_get_a_line_for_each_run():
    (line,) = shown(live=False).splitlines()
    assert line.startswith(f"1/2 {RUN.name}: loss 0.3, 1 iteration, 0.01 s, not finished: The time limit of 60 s was")
    assert line.endswith("left")


def test_a_terminal_that_cannot_redraw_gets_lines_too(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert shown(live=True) == shown(live=False)


def test_terminals_see_the_run_in_hand_and_its_loss(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    text = shown(live=True)
    assert RUN.name in text
    assert "iteration 7, loss 0.125" in text
    assert "0/2" in text
    assert "a run that is not in hand" not in text


@pytest.mark.parametrize("sets", [1, 2])
def test_a_summary_shows_names_as_they_are_and_the_best_in_bold(sets):
    text = io.StringIO()
    outcomes = [
        run
        for data in ("my[bold]data", "other")[:sets]
        for solver, last in (("gd", 0.25), ("lbfgs", 0.125))
        for run in ending_at(solver, [last], data, per_iteration=1)
    ]
    terminal(file=text, force_terminal=True, color_system="standard", width=120).print(summary(outcomes))
    assert "my[bold]data" in text.getvalue()
    bold = re.findall(r"\x1b\[1m([^\x1b]*)", text.getvalue())
    assert any("0.125" in words for words in bold)
    assert not any("0.25" in words for words in bold)


def test_a_summary_has_the_numbers_and_ties_of_the_page():
    lasts = {"gd": 6e-13, "lbfgs": 0.0, "lsr1": 0.0}
    outcomes = [run for solver, last in lasts.items() for run in ending_at(solver, [last], per_iteration=1)]

    def printed(exact):
        text = io.StringIO()
        terminal(file=text, width=120).print(summary(outcomes, exact))
        return text.getvalue()

    assert "Lowest median: l-BFGS and l-SR1, 0." in printed(exact=True)
    assert "6e-13" in printed(exact=True)
    assert "Lowest median: l-BFGS and l-SR1 and GD, 0.000." in printed(exact=False)
    assert "6e-13" not in printed(exact=False)


def test_a_summary_names_what_the_seeds_do_not_tell_apart_from_the_lowest():
    lasts = {"gd": [0.1, 0.2, 0.3], "lbfgs": [0.24, 0.25, 0.9], "lsr1": [0.26, 0.26, 0.2], "lsr1-flip": [math.inf] * 3}
    outcomes = [run for solver, last in lasts.items() for run in ending_at(solver, last, per_iteration=1)]

    def said(outcomes):
        text = io.StringIO()
        terminal(file=text, width=120).print(summary(outcomes, exact=True))
        return text.getvalue()

    assert "Lowest median: GD, 0.2.\nNot told apart from it: l-BFGS (medians within its quartiles).\n" in said(outcomes)
    assert "told apart" not in said([run for run in outcomes if run.run.solver != "lbfgs"])


def test_a_summary_counts_in_grammar():
    budget = Budget(1, 1, 60.0)
    text = io.StringIO()
    terminal(file=text, width=120).print(summary([outcome("gd", [1.0, 0.5], budget=budget)]))
    assert "Training loss after 1 evaluation, median of 1 seed\n" in text.getvalue()


def test_clock():
    assert [clock(seconds) for seconds in (0, 59.6, 3599, 3600, 36061)] == [
        "0:00",
        "1:00",
        "59:59",
        "1:00:00",
        "10:01:01",
    ]


def test_heartbeats_arrive_but_not_all_of_them_and_rubbish_does_not_matter():
    heard, enough = [], threading.Event()

    def hear(*news):
        heard.append(news)
        if news[0] == "last":
            enough.set()

    with heartbeat.Heartbeats(hear) as address:
        send = heartbeat.sender(address)
        for k in range(1000):
            send("run", k, 0.5)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            for rubbish in (b"\xff", b"[]", b"{}", b'["a", "b", "c"]', b"[1", json.dumps(["last", 1, 2.0]).encode()):
                other.sendto(rubbish, address)
        assert enough.wait(10)
    assert heard[0] == ("run", 0, 0.5)
    assert heard[-1] == ("last", 1, 2.0)
    assert len(heard) < 10
