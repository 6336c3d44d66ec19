"""What a report says about how it was made: versions and the command line of ncu.

``ncu_report`` does not hand these out, but the container holds them as plain text: a table of names and
values ("Nsight Compute Target", "Display Driver Version", ...), and, from 2022.3, ncu's command line.
"""

from __future__ import annotations

import mmap
import os
import re
from datetime import UTC, datetime
from pathlib import Path

from ncukit.model.recorded import Recorded
from ncukit.read.blocks import session_created

DEFAULT_CLOCKS, DEFAULT_CACHES = "base", "all"
"""What ncu does where its command line says nothing (Nsight Compute CLI documentation)."""

_NAMES = {"ncu": b"Nsight Compute Target", "driver": b"Display Driver Version", "cuda": b"CUDA Version"}
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_COMMAND = re.compile(rb'"?(?:/|[A-Za-z]:\\)[\x20-\x7e]{0,500}?[/\\]ncu(?:\.exe"?)? [\x20-\x7e]*')
_AROUND = 1 << 16
"""[byte] after the versions in which the command line stands."""
_LONGEST = 1 << 16


def recorded(path: str | Path) -> Recorded:
    """Return what the report at ``path`` says about how it was made; nothing for another file."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = {field: _value(data, name) for field, name in _NAMES.items()}
            command = _command(data, data.find(_NAMES["ncu"]))
    except (OSError, ValueError):
        return Recorded()
    if found["ncu"] is None:
        return Recorded()
    return Recorded(
        ".".join(found["ncu"].split(".")[:3]),
        found["driver"],
        found["cuda"],
        command,
        clock_control=None if command is None else option(command, "--clock-control", DEFAULT_CLOCKS),
        cache_control=None if command is None else option(command, "--cache-control", DEFAULT_CACHES),
    )


def created(path: str | Path) -> datetime | None:
    """Return when ncu made the report at ``path`` (UTC), as it says itself; None where it does not."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            seconds = session_created(file, os.fstat(file.fileno()).st_size)
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (OSError, OverflowError, ValueError):
        return None


def option(command: str, name: str, default: str) -> str:
    """Return the value of option ``name`` of a command line, else ``default``.

    >>> option("/opt/ncu --clock-control none -o a ./run", "--clock-control", "base")
    'none'
    """
    found = re.search(rf"(?:^| ){re.escape(name)}[ =](\S+)", command)
    return found[1] if found else default


def _value(data: mmap.mmap, name: bytes) -> str | None:
    """Return the version behind ``name``: a protobuf string, its length in one byte."""
    at = data.find(name + b"\x12")
    if at < 0:
        return None
    start = at + len(name) + 2
    text = data[start : start + data[start - 1]].decode("ascii", "replace")
    found = _VERSION.search(text)
    return found[0] if found else None


def _command(data: mmap.mmap, at: int) -> str | None:
    """Return ncu's command line: the longest text nearby that starts with its path."""
    if at < 0:
        return None
    found = _COMMAND.search(data[at : at + _AROUND])
    if found is None:
        return None
    text = found[0][:_LONGEST].decode("ascii", "replace")
    return (text[:-1] if text.count('"') % 2 else text).strip()  # the next field begins with its tag, a quote
