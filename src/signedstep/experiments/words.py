"""Numbers and hints in sentences."""


def counted(count: int, noun: str) -> str:
    """So many of something: "1 run", "2 runs"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def listed(numbers: set[int]) -> str:
    """How many numbers and which: one seed, whose number is 0, would else read as none."""
    return f"{len(numbers)} ({', '.join(map(str, sorted(numbers)))})" if numbers else ""


def installed_by(extra: str) -> str:
    """How to get the packages of an extra: signedstep is on no package index, whose signedstep would be another."""
    return f"in a clone of the repository: pip install '.[{extra}]'"
