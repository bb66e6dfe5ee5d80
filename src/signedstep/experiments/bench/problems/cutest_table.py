from typing import NamedTuple


class Row(NamedTuple):
    name: str
    module: str
    n: int
    sizes: tuple[tuple[str, int], ...] = ()


SMALL = ()
LARGE = ()
