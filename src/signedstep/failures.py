"""What trial points raise is kept for the message of a run, and told to other ranks; its frames are not."""

import sys
from collections.abc import Callable
from contextlib import suppress
from traceback import clear_frames, format_tb
from typing import TypeVar

T = TypeVar("T")


def attempted(trial: Callable[[], T]) -> tuple[T | None, Exception | None]:
    """What a trial gives, or None and what it has raised."""
    handled = sys.exception()  # perhaps the caller's: it will be the context of all that is raised here
    try:
        return trial(), None
    except Exception as error:
        return None, _detached(error, handled)


def _detached(error: Exception, handled: BaseException | None) -> Exception:
    """The exception without its frames, which hold vectors, and all that has called them; they stay as a note.

    What ran out of memory would else still be held at the next trial.
    """
    where = "".join(format_tb(error.__traceback__))
    with suppress(Exception):  # some exceptions take no notes
        if where not in getattr(error, "__notes__", ()):  # one object may be raised again and again
            error.add_note(where)
    link: BaseException | None = error
    while link is not None and link is not handled and link.__traceback__ is not None:
        clear_frames(link.__traceback__)
        BaseException.with_traceback(link, None)  # also where a class lets nobody set attributes
        link = link.__cause__ or link.__context__
    return error


def told(error: BaseException) -> str:
    """An exception in words: those of a result, or those that other ranks wait for, so nothing may be raised here."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return name
