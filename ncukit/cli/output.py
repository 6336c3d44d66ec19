"""What all commands share about printing: errors, warnings, colour, encoding."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

from ncukit.errors import NcukitError
from ncukit.media import command, line

debug = False
"""Whether --debug was given: errors then say where they come from."""


def show_where() -> None:
    """Print the traceback of the error that is being handled, if --debug was given."""
    if debug:
        import traceback

        with suppress(OSError):
            traceback.print_exc()


def complain(error: NcukitError) -> None:
    """Print an error as two lines on stderr; where that takes nothing, the exit code must do."""
    with suppress(OSError):
        print(f"error: {line(error.message)}", file=sys.stderr)
        if error.hint:
            print(f"hint: {line(error.hint)}", file=sys.stderr)


def warn(messages: Iterable[str], about: str = "") -> None:
    """Print warnings on stderr."""
    for message in messages:
        print(f"warning: {line(about + ': ' if about else '')}{line(message)}", file=sys.stderr)


def show_what_the_terminal_cannot() -> None:
    """Make stdout and stderr write what their encoding lacks as escapes, instead of failing on it.

    One that is closed writes nowhere.
    """
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - until the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def drop_stdout() -> None:
    """Send what is still to be written to stdout nowhere: writing it failed, and would fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def typed(*, names: bool = False) -> str:
    """Return the command that was typed, as a shell takes it; with ``names`` paths lose their folders."""
    given = sys.argv[1:]
    return command(["ncukit", *(Path(a).name if names and "/" in a else a for a in given)])


def color() -> bool:
    """Return whether stdout wants colour: a terminal, and NO_COLOR not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def encoding() -> str:
    """Return the encoding of stdout."""
    return sys.stdout.encoding or "ascii"


def width() -> int:
    """Return the width [columns] that text may take."""
    import shutil

    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 120))
