"""Numbers in sentences."""


def counted(count: int, noun: str) -> str:
    """So many of something: "1 run", "2 runs"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
