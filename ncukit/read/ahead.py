"""Begin to read the report of a command before the command line is loaded.

The native reader takes a tenth of a second for the first result of any file, as long as the rest of a short
command takes; the two go on beside each other.  What is begun for nothing is ended with the command.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncukit.read.isolate import Reader

COMMANDS = frozenset(("report", "show", "metrics", "compare"))
"""Those that read the report at once that stands first among their arguments."""

_begun: list[Reader] = []


def start(arguments: Sequence[str]) -> None:
    """Begin to read the first report among the ``arguments`` of the command line, if its command reads it.

    >>> start(["report", "/no/such.ncu-rep"]), take("/no/such.ncu-rep")
    (None, None)
    """
    if not (arguments and arguments[0] in COMMANDS and hasattr(os, "fork")):
        return
    for argument in arguments:
        if argument.endswith(".ncu-rep") and os.path.isfile(argument):
            from ncukit.read.isolate import Reader

            with suppress(OSError):  # no process can be had now: who needs it says so
                _begun.append(Reader(argument, checked=False))
            return


def take(path: str) -> Reader | None:
    """Return the reader that was begun for ``path``, once; None: there is none."""
    if _begun and Path(_begun[0].path) == Path(path) and _begun[0].ours:
        return _begun.pop()
    return None


def end() -> None:
    """End what was begun and never taken, at once."""
    while _begun:
        _begun.pop().close(patience=0)
