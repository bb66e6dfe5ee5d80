"""Numbers in sentences."""


def counted(count: int, noun: str) -> str:
    """So many of something: "1 run", "2 runs"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def listed(numbers: set[int]) -> str:
    """How many numbers and which: one seed, whose number is 0, would else read as none."""
    return f"{len(numbers)} ({', '.join(map(str, sorted(numbers)))})" if numbers else ""
