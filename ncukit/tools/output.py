"""Which run wrote a file: an output counts only when this run created it."""

from __future__ import annotations

import os
from pathlib import Path

from ncukit.record import dataclass
from ncukit.tools.failures import Context, Failure, classify, failure, notes
from ncukit.tools.run import Completed


@dataclass(frozen=True)
class Stamp:
    """What tells one writing of a file from another."""

    inode: int
    size: int
    modified: int
    """Time of the last change [ns]."""


@dataclass(frozen=True)
class Outcome:
    """What a run of a tool came to.

    ``path`` is the file that this run created, None if none; ``failure`` is the cause of what went wrong,
    which a partial report can have as well; ``notes`` are what the tool remarked beside.
    """

    path: Path | None
    failure: Failure | None = None
    notes: tuple[Failure, ...] = ()


def stamp(path: Path) -> Stamp | None:
    """Return the stamp of ``path``, None where there is no such file."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return Stamp(stat.st_ino, stat.st_size, stat.st_mtime_ns)


def judge(done: Completed, path: Path, before: Stamp | None, context: Context, magic: bytes) -> Outcome:
    """Return what ``done`` came to; ``before`` is the stamp of its output from before the run.

    The exit code alone says nothing: success is a new file that begins with ``magic``.
    """
    after = stamp(path)
    cause = classify(done, context)
    remarks = notes(done, context)
    if after is None:
        said = done.tail(1).strip() or "nothing"
        return Outcome(None, cause or _lost("missing", context, path, said), remarks)
    if after == before or (cause and cause.code == "stale-output"):
        return Outcome(None, cause or _lost("old", context, path), remarks)
    if done.timed_out or not _begins(path, magic):
        return Outcome(None, cause or _lost("unreadable", context, path), remarks)
    return Outcome(path, cause, remarks)


def _lost(kind: str, context: Context, path: Path, said: str = "") -> Failure:
    return failure(f"stale-output.{kind}", context, path=str(path), said=said)


def _begins(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic and bool(file.read(1))
