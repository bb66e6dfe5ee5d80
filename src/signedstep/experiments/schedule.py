"""Carries out the runs that are not in the store yet: in parallel on this machine, or on a Dask cluster."""

import asyncio
import os
import signal
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Protocol

from signedstep.experiments.execute import execute
from signedstep.experiments.heartbeat import Heartbeats, sender
from signedstep.experiments.problems import Place
from signedstep.experiments.store import Kept, Named, Store


class Listener(Protocol):
    """Is told how a study gets on; `started` and `iteration` come as far as the backend can tell, from any thread."""

    def started(self, run: Any) -> None: ...
    def iteration(self, name: str, k: int, f: float) -> None: ...
    def done(self, outcome: Any) -> None: ...


Outcomes = Generator[Kept, None, None]
Backend = Callable[[Sequence[Named], Place, Listener], Outcomes]
"""Carries out runs, beginning with the first, and yields their outcomes as they come."""
Work = Callable[..., Kept]
"""Carries out one run, `work(run, place, watch)`; a function of a module, so that other processes can call it."""


def complete(runs: Sequence[Named], store: Store, backend: Backend, place: Place, listener: Listener) -> list[Any]:
    """Carry out runs and write each outcome as it arrives: an interruption loses no more than the runs in flight.

    The outcomes come back as well: by now another command may have written its own into the same files.
    """
    found = []
    with closing(backend(runs, place, listener)) as outcomes:
        for outcome in outcomes:
            store.put(outcome)
            listener.done(outcome)
            found.append(outcome)
    return found


def here(jobs: int | None = None, work: Work = execute) -> Backend:
    """A backend of this machine: so many processes of one thread, as many as it has cores; with one, this process."""
    from joblib import cpu_count

    jobs = jobs or cpu_count()
    return partial(_alone, work) if jobs == 1 else partial(_side_by_side, work, jobs)


def _alone(work: Work, runs: Sequence[Named], place: Place, listener: Listener) -> Outcomes:
    for run in runs:
        listener.started(run)
        yield work(run, place, listener.iteration)


def _side_by_side(work: Work, jobs: int, runs: Sequence[Named], place: Place, listener: Listener) -> Outcomes:
    from joblib import Parallel, delayed

    def tasks(address: tuple[str, int]) -> Generator[Any, None, None]:
        for run in runs:
            listener.started(run)
            yield delayed(_in_worker)(work, run, place, address, os.getpid())

    # A task is fetched when a worker is free for it, so that fetched means started, near enough.
    one_by_one: dict[str, Any] = {"pre_dispatch": jobs, "batch_size": 1, "return_as": "generator_unordered"}
    deaf = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)  # an interrupt is this process's business
    workers: Any = Parallel(jobs, backend="loky", initializer=deaf, **one_by_one)
    with warnings.catch_warnings(), Heartbeats(listener.iteration) as address:
        # an interrupted study says so itself, and how to go on
        warnings.filterwarnings("ignore", r"\d+ tasks (which were still being processed|have been)", UserWarning)
        with closing(workers(tasks(address))) as outcomes:
            yield from outcomes


def _in_worker(work: Work, run: Named, place: Place, address: tuple[str, int], parent: int) -> Kept:
    _end_with(parent)
    return work(run, place, sender(address))


_watched: set[int] = set()


def _end_with(parent: int) -> None:
    """See to it that this process ends with its parent, even a killed one: its work would be for nobody."""

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if parent not in _watched:
        _watched.add(parent)
        threading.Thread(target=wait, daemon=True).start()


async def _knock(address: str) -> None:
    """Open a connection to a Dask scheduler and close it again."""
    from distributed import Security
    from distributed.comm.core import connect

    (await connect(address, **Security().get_connection_args("client"))).abort()


def on_dask(address: str, work: Work = execute) -> Backend:
    """A backend that is a Dask cluster, whose workers see the same files and should have one thread each."""

    def backend(runs: Sequence[Named], place: Place, listener: Listener) -> Outcomes:
        from distributed import Client, as_completed

        try:
            asyncio.run(_knock(address))  # a Client that finds nobody keeps Python from ever ending
        except (OSError, ValueError) as error:
            raise ConnectionError(f"no Dask scheduler answers at {address!r}: {error}") from error
        with Client(address, set_as_default=False) as client:
            key = uuid.uuid4().hex  # of this call: Dask would answer a key it knows from memory
            futures = [
                client.submit(work, run, place, key=f"{run.name}-{key}", priority=-rank)
                for rank, run in enumerate(runs)
            ]
            try:
                for future in as_completed(futures, loop=client.loop):
                    yield future.result()
                    future.release()
            finally:
                client.cancel(futures)

    return backend
