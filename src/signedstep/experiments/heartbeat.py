"""News from runs in other processes of this machine: now and then a datagram with the iteration and the loss."""

import json
import math
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

INTERVAL = 0.5
"""Seconds between two datagrams of a run."""

Hear = Callable[[str, int, float], None]
"""Name of the run, number of the iteration, loss after it."""


class Heartbeats:
    """Hears the datagrams; inside the `with` block, which gives the address that `sender` wants."""

    def __init__(self, hear: Hear):
        self._hear = hear
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> tuple[str, int]:
        self._socket.bind(("127.0.0.1", 0))
        self._thread.start()
        return self._socket.getsockname()

    def __exit__(self, *error: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.sendto(b"", self._socket.getsockname())  # an empty one ends the thread
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while message := self._socket.recv(4096):
            with suppress(ValueError, TypeError):  # not ours: any process may send
                name, k, f = json.loads(message)
                self._hear(str(name), int(k), float(f))


def sender(address: tuple[str, int]) -> Hear:
    """A function that sends what it is told, but not all of it; nobody waits for an answer."""
    last = -math.inf

    def send(name: str, k: int, f: float) -> None:
        nonlocal last
        if time.monotonic() - last >= INTERVAL:
            last = time.monotonic()
            with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
                sending.sendto(json.dumps([name, k, f]).encode(), address)

    return send
