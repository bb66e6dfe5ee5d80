"""The terminal, where text is shown as it is: names, paths and messages hold brackets that rich takes for markup."""

from typing import Any

from rich.console import Console


def terminal(**how: Any) -> Console:
    """A console that reads no markup and no emoji codes, neither in lines nor in cells of tables."""
    return Console(markup=False, emoji=False, **how)
