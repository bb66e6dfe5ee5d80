"""What trial points raise is kept for the message of a run, and told to other ranks; its frames are not."""

from traceback import clear_frames, format_tb


def detached(error: Exception) -> Exception:
    """The exception without its frames, which hold vectors, and all that has called them; they stay as a note.

    What ran out of memory would else still be held at the next trial.
    """
    where = "".join(format_tb(error.__traceback__))
    if where not in getattr(error, "__notes__", ()):  # one object may be raised again and again
        error.add_note(where)
    link: BaseException | None = error
    while link is not None and link.__traceback__ is not None:
        clear_frames(link.__traceback__)
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


def told(error: BaseException) -> str:
    """An exception as other ranks quote it; nothing may be raised here, where they wait."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return name
