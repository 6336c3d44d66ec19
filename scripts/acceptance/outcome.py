"""What a step came to, and what it was held against."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

State = Literal["met", "not met", "not measured", "failed", "timed out", "not run"]


@dataclass(frozen=True)
class Check:
    """One expectation against what was found; ``met`` None: it could not be measured, or was only noted."""

    what: str
    expected: str
    found: str
    met: bool | None = None


@dataclass(frozen=True)
class Outcome:
    """The end of one command: ``code`` None where it was stopped; ``seconds`` [s] of wall time."""

    command: tuple[str, ...]
    code: int | None
    seconds: float
    out: str = ""
    err: str = ""
    folder: Path | None = None
    """The run directory that it wrote, if any."""

    def document(self) -> dict[str, Any]:
        """Return the JSON object on stdout (the last one), empty where there is none."""
        for text in (self.out, *reversed(self.out.splitlines())):
            try:
                found = json.loads(text)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
        return {}

    def error(self) -> dict[str, Any]:
        """Return the error that the command told, empty where it told none."""
        return self.document().get("error") or {}

    def file(self, name: str) -> dict[str, Any]:
        """Return a JSON file of the run directory, empty where it is not there."""
        path = self.folder / name if self.folder else None
        if path is None or not path.exists():
            return {}
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        return found


@dataclass(frozen=True)
class Row:
    """A line of the table: one step, its state, what was checked."""

    name: str
    state: State
    seconds: float = 0.0
    checks: tuple[Check, ...] = ()
    note: str = ""
    command: tuple[str, ...] = ()
    code: int | None = None
    folder: Path | None = field(default=None, compare=False)

    @classmethod
    def of(cls, name: str, outcome: Outcome, checks: tuple[Check, ...]) -> Row:
        """Return the row of a step that ran: its state follows from the checks."""
        if outcome.code is None:
            state: State = "timed out"
        elif any(check.met is False for check in checks):
            state = "not met"
        elif any(check.expected == "measured" and check.met is None for check in checks):
            state = "not measured"
        elif any(check.met for check in checks):
            state = "met"
        else:
            state = "not measured"
        note = "" if state == "met" else _last_words(outcome)
        return cls(name, state, outcome.seconds, checks, note, outcome.command, outcome.code, outcome.folder)


def _last_words(outcome: Outcome) -> str:
    lines = outcome.err.splitlines()
    said = [line for line in lines if line.startswith(("error:", "hint:"))]
    return " ".join(said[-2:] or [line for line in lines if line.strip()][-1:])
