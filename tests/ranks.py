"""Run a function on several ranks: real processes with a gloo process group, forked from a server that knows torch."""

import multiprocessing
import pickle
import tempfile
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch.distributed.tensor", "torch.distributed.checkpoint", "pytest", "signedstep"])


class Ranks:
    """Processes that run `function(rank, *args)`; afterwards `results` holds what each returned or raised."""

    def __init__(self, size: int, function: Callable, *args: Any, timeout: float = 60.0):
        self._folder = tempfile.TemporaryDirectory()
        meeting = Path(self._folder.name) / "meeting"
        self.results: list[Any] = [None] * size
        self.processes, self._pipes = [], []
        for rank in range(size):
            here, there = _context.Pipe(duplex=False)
            process = _context.Process(
                target=_run, args=(there, rank, size, str(meeting), timeout, function, args), daemon=True
            )
            process.start()
            there.close()
            self.processes.append(process)
            self._pipes.append(here)

    def join(self, patience: float = 100.0) -> list[Any]:
        """Wait for all of them; a rank that was killed has the result None."""
        waiting: dict[Any, int] = {pipe: rank for rank, pipe in enumerate(self._pipes)}
        try:
            while waiting:
                ready = wait(list(waiting), patience)
                assert ready, f"ranks {sorted(waiting.values())} hang"
                for pipe in ready:
                    with suppress(EOFError):
                        self.results[waiting[pipe]] = pickle.loads(pipe.recv_bytes())  # type: ignore[union-attr]
                    del waiting[pipe]
        finally:
            for process in self.processes:
                process.kill()
                process.join()
            self._folder.cleanup()
        return self.results


class Raised(str):
    """The traceback of a rank that raised."""

    __slots__ = ()


def on_ranks(size: int, function: Callable, *args: Any) -> list[Any]:
    """What `function(rank, *args)` returns on each of `size` ranks."""
    results = Ranks(size, function, *args).join()
    for rank, result in enumerate(results):
        assert not isinstance(result, Raised), f"rank {rank}:\n{result}"
    return results


def _run(pipe: Connection, rank: int, size: int, meeting: str, timeout: float, function: Callable, args: tuple) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    try:
        dist.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=rank, world_size=size, timeout=timedelta(seconds=timeout)
        )
        pipe.send_bytes(pickle.dumps(function(rank, *args)))  # tensors by value, not by shared memory
        dist.barrier()  # nobody leaves while another may still need its connections
        dist.destroy_process_group()
    except BaseException:
        with suppress(OSError):
            pipe.send_bytes(pickle.dumps(Raised(traceback.format_exc())))
