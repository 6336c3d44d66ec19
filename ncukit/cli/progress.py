"""What a run says while it works: notes as lines on stderr, progress only where a terminal shows it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ncukit.media import line
from ncukit.model.run import StepRecord
from ncukit.tools.progress import parse_progress

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
