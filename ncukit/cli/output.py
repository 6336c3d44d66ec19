"""What all commands share about printing: results, errors, progress, colour, encoding."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import typer

from ncukit.errors import NcukitError, UsageError
from ncukit.media import command, line
from ncukit.model.run import StepRecord
from ncukit.render.json import report_text
from ncukit.run.tools.process import parse_progress

# ---- Print long JSON whole or not at all

IN_MEMORY = 32 << 20
"""[byte] of JSON that are kept in memory; more goes through a temporary file."""


def print_report(file: str, launches: Iterable[str], region: Mapping[str, Any] | None = None) -> None:
    """Print the JSON object of one file as one line.

    It is printed when the last launch was read: a file that breaks in the middle prints its error alone.
    """
    with tempfile.SpooledTemporaryFile(
        IN_MEMORY, "w+", encoding="utf-8", errors="backslashreplace", newline=""
    ) as buffer:  # a file may have a name that is no UTF-8
        for piece in report_text(file, launches, region):
            buffer.write(piece)  # writelines would look at the size when all is in memory
        buffer.write("\n")
        buffer.seek(0)
        shutil.copyfileobj(buffer, sys.stdout)


# ---- What went wrong in a command, said as one of ncukit's errors

WrongUsage: Any = typer.BadParameter.__mro__[1]
"""click's UsageError, which typer bundles without a public name."""

_HINTS = {
    errno.ENOSPC: "free some space there, or choose another place with -o",
    errno.EDQUOT: "your quota is used up: free some space, or choose another place with -o",
    errno.EACCES: "check the permissions, or choose another place with -o",
    errno.EPERM: "check the permissions, or choose another place with -o",
    errno.EROFS: "choose a folder that can be written to with -o",
    errno.ENAMETOOLONG: "choose a shorter name with -o",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


def as_error(error: Exception) -> NcukitError:
    """Return ``error`` as one of ncukit's: what happened, and what to do.

    >>> as_error(OSError(errno.ENOSPC, "No space left on device")).message
    'cannot read or write: No space left on device'
    """
    match error:
        case NcukitError():
            return error
        case WrongUsage():
            return UsageError(error.format_message().rstrip("."), _help(error))
        case OSError() if error.strerror:
            place = f": {error.filename}" if error.filename is not None else ""
            hint = _HINTS.get(error.errno or 0, "run again with --debug to see where")
            if error.filename is None:  # stdout, which no option of ours leads elsewhere
                hint = hint.removesuffix(" with -o")
            return NcukitError(f"cannot read or write{place}: {error.strerror}", hint, code="io")
        case MemoryError():
            return NcukitError(
                "there is not enough memory", "use a machine with more of it, or fewer launches"
            )
    return NcukitError(
        f"internal error: {type(error).__name__}: {error}",
        "run again with --debug and report it",
        code="internal",
    )


def asks_for_help(error: Exception) -> bool:
    """Return whether ``error`` only means that a command was called without anything."""
    return type(error).__name__ == "NoArgsIsHelpError"


def _help(error: Any) -> str:
    command = error.ctx.command_path if error.ctx else "ncukit"
    return f"{command} --help says what there is"


# ---- What a run says while it works: notes as lines on stderr, progress only where a terminal shows it

_STEPS = {
    "check": "checking both results",
    "repetitions": "repeating both sides without a profiler",
    "compile": "compiling",
    "timing": "timing without a profiler",
    "driver": "looking for the driver",
    "timeline": "tracing",
    "choice": "choosing the launch",
    "counters": "measuring with ncu",
    "report": "writing the report",
}


class Teller:
    """Tells a person what happens; as a context it shows a progress bar on a terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Teller:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def started(self, step: str, command: Sequence[str]) -> None:
        """Show the step that starts."""
        if self._bar is not None:
            self._clear()
            self._task = self._bar.add_task(_STEPS.get(step, step), total=None)

    def text(self, text: str, whole: bool) -> None:
        """Show how far ncu is."""
        if self._bar is not None and self._task is not None and (found := parse_progress(text)):
            launches = f" launch {found.nth} of {found.of}" if found.nth and found.of else ""
            words = f"{_STEPS['counters']}:{launches} {line(found.name)[:60]}"
            self._bar.update(self._task, total=100, completed=found.percent, description=words)

    def note(self, text: str) -> None:
        """Print a fact."""
        if not self._quiet:
            print(f"note: {line(text)}", file=sys.stderr)

    def ended(self, record: StepRecord) -> None:
        """Take the step off the bar; what failed is told in the end."""
        self._clear()

    def _clear(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None


# ---- What all commands share about printing: errors, warnings, colour, encoding

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
