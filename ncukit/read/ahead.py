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

_begun: list[tuple[Reader, tuple[int, ...]]] = []
"""At most one, with the state of its file before."""


def start(arguments: Sequence[str]) -> None:
    """Begin to read the first report among the ``arguments`` of the command line, if its command reads it.

    >>> start(["report", "/no/such.ncu-rep"]), take("/no/such.ncu-rep")
    (None, None)
    """
    if not (arguments and arguments[0] in COMMANDS):
        return
    for argument in arguments:
        if argument.endswith(".ncu-rep") and os.path.isfile(argument):
            with suppress(OSError, ImportError):  # no process, no file can be had: who needs it says so
                from ncukit.read.container import state
                from ncukit.read.isolate import Reader

                before = state(argument)
                _begun.append((Reader(argument, checked=False), before))
            return


def take(path: str) -> Reader | None:
    """Return the reader that was begun for ``path``, once; None: there is none, or the file has changed."""
    from ncukit.read.container import state

    for reader, before in _begun:
        if Path(reader.path) == Path(path) and reader.ours:
            if state(path) != before:
                end()
                return None
            _begun.clear()
            return reader
    return None


def end() -> None:
    """End what was begun and never taken, at once."""
    while _begun:
        reader, _ = _begun.pop()
        reader.close(patience=0)
