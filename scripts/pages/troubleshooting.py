"""docs/troubleshooting.md: one entry for each error code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ncukit import errors
from ncukit.render.words import listed
from ncukit.signals import SIGNALS
from scripts.pages import codes
from scripts.pages.words import plain

ABOUT = Path(__file__).resolve().parent / "errors.toml"
HEAD = """\
# Troubleshooting

Generated from the error codes in the source by `scripts/reference.py`; a test proves that no code is
missing.

An error is two lines on stderr, what happened and what to do; with `--json` it is also an object on stdout
(schema `ncukit.error/1`), whose `code` is the name of an entry here and stays the same between versions.
`--debug` adds the traceback.  `ncukit doctor` checks the whole chain, from Python to the counters, and says
how to mend what does not work; `ncukit doctor --bundle` packs the same for a bug report, without secrets.

What a run directory says of a failed step is one of these codes too.  An error of a step is not the end:
clean timing, trace and counters are kept as far as they came, the page shows them, and the exit code is 5.
"""
KINDS = {
    "use": "How ncukit is called",
    "file": "Files",
    "tool": "Tools",
    "gpu": "Driver, GPU and permission",
    "program": "The program and its kernels",
    "ncukit": "ncukit and its workers",
    "note": "Notes beside results",
}
PLACES = {"bare": "on the machine itself", "container": "in a container", "wsl": "in WSL"}
EXITS = {"Failure": errors.ToolError.exit_code, "Fault": errors.ReportError.exit_code}
SIGNALLED = {"interrupted": {errors.Interrupted(number=number).exit_code for number in SIGNALS}}
"""Codes of which a signal says how they end, not a class."""


def page() -> str:
    """Return the text of docs/troubleshooting.md."""
    about = entries()
    parts = [HEAD]
    for kind, title in KINDS.items():
        parts.append(f"\n## {title}\n")
        for code, entry in about.items():
            if entry["kind"] == kind:
                parts.append("\n" + "\n".join(_entry(code, entry)) + "\n")
    return "".join(parts)


def entries() -> Mapping[str, Mapping[str, Any]]:
    """Return what errors.toml says of each code."""
    return tomllib.loads(ABOUT.read_text(encoding="utf-8"))


def _entry(code: str, entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {code}"
    yield ""
    numbers = sorted(SIGNALLED.get(code) or exits(use.error for use in codes.codes()[code]))
    ends = "no error" if entry["kind"] == "note" else f"exit code {listed([str(n) for n in numbers], 'or')}"
    yield f"*{ends}.*  {entry['about']}"
    yield ""
    for row in codes.failures().get(code, ()):
        yield from _said(row)
    yield from (f"- {advice}" for advice in entry["try"])


def _said(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about one kind of a code: what is printed, and the hint with it."""
    messages = [row["message"]] if isinstance(row["message"], str) else row["message"]
    hint = " ".join(map(blanks, row.get("hint", ())))
    yield f"- **{plain(blanks(messages[0]))}**" + (f":  {_sentence(plain(hint))}" if hint else "")
    for place, name in PLACES.items():
        if place in row:
            yield f"    - {name}: {plain(' '.join(map(blanks, row[place])))}"


def exits(names: Iterable[str]) -> set[int]:
    """Return the exit codes of errors by the name of their class.

    >>> exits(["ReaderCrashed", "Failure"])
    {3, 4}
    """
    above = codes.classes()
    found = set()
    for name in names:
        while name not in EXITS and not hasattr(errors, name):
            name = above[name]
        found.add(EXITS.get(name) or getattr(errors, name).exit_code)
    return found


def blanks(text: str) -> str:
    """Return a message with what is filled in later in capitals.

    >>> blanks("{tool} was not found")
    'TOOL was not found'
    """
    return re.sub(r"{(\w+)}", lambda found: found[1].upper(), text)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
