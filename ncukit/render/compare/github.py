"""Gates as annotations of GitHub Actions: one workflow command a line."""

from __future__ import annotations

from ncukit.media import line
from ncukit.model.comparison import Comparison, Outcome
from ncukit.render.words import plural


def github_text(comparison: Comparison) -> str:
    """Return an error for each gate that failed, a warning or notice for what was let pass, and a summary."""
    lines = [line for outcome in comparison.gates if (line := _line(outcome))]
    failed = sum(outcome.failed for outcome in comparison.gates)
    words = f"{plural(failed, 'gate')} of {len(comparison.gates)} failed"
    if not comparison.gates:
        words = "no gate was set"
    lines.append(f"::notice title=ncukit compare::{_data(words)}")
    return "\n".join(lines)


def _line(outcome: Outcome) -> str:
    kind = "error" if outcome.failed else {"undecided": "warning", "noise": "notice"}.get(outcome.state)
    if kind is None:
        return ""
    where = f"{outcome.kernel} in {outcome.other}" if outcome.kernel else outcome.other
    message = f"{where}: {outcome.message}"
    return f"::{kind} title={_property(outcome.gate)}::{_data(message)}"


def _data(text: str) -> str:
    """Return text with what would end the command escaped, as GitHub's toolkit does.

    >>> _data("50 %" + chr(10) + "::error::x")
    '50 %25%0A::error::x'
    """
    text = text.replace("\u202f", " ")
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return line(escaped)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
