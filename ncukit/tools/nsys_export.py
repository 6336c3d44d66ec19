"""Let nsys export a report as SQLite, and say why when it cannot."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ncukit.errors import ReportFormatError, ToolError
from ncukit.media import word
from ncukit.tools.locate import find
from ncukit.tools.run import Completed, run

TIMEOUT = 1800.0
"""A report of some gigabytes takes nsys minutes [s]."""
_NEWER = re.compile(
    r"created in Nsight Systems version \(([\d.]+)[^)]*\), newer than your current version \(([\d.]+)"
)
_UNREADABLE = re.compile(r"Exportation error: (?!File (?:not found|already exists))(.*)")
_SQLITE = b"SQLite format 3\0"


def export_sqlite(
    report: Path, target: Path, *, nsys: str | Path | None = None, written_by: str | None = None
) -> None:
    """Export ``report`` as sqlite to the new file ``target``.

    ``nsys`` is the program to use (None: the one that `ncukit.tools.locate.find` finds);
    ``written_by`` is the version that wrote the report, for the messages.

    Raises:
        ToolError: nsys is missing (``tool-missing``), older than the report (``tool-too-old``), or failed.
        ReportFormatError: nsys says that the report is damaged.
    """
    needed = f"nsys {written_by} or newer" if written_by else "an nsys as new as the one that wrote it"
    try:
        tool = find("nsys", nsys).path
    except ToolError as error:
        if nsys is not None:
            raise
        raise ToolError(
            f"{report} must be exported by nsys: {error.message}",
            f"Install {needed} (or name it with --nsys or NCUKIT_NSYS), or export it where nsys is: "
            f"nsys export --type sqlite {word(report.name)}, and give ncukit the .sqlite.",
            code="tool-missing",
        ) from error
    options = ("--type=sqlite", "--quiet=true", f"--output={target}")
    done = run((str(tool), "export", *options, os.path.abspath(report)), timeout=TIMEOUT)
    if done.returncode == 0 and _is_sqlite(target):  # rc 0 alone proves nothing
        return
    raise _why(report, done, needed)


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _why(report: Path, done: Completed, needed: str) -> ToolError | ReportFormatError:
    if match := _NEWER.search(done.output):
        return ToolError(
            f"{report} was written by nsys {match[1]}, but this nsys is {match[2]}",
            f"Install nsys {match[1]} or newer, or export it where it was recorded: "
            f"nsys export --type sqlite {word(report.name)}",
            code="tool-too-old",
        )
    if match := _UNREADABLE.search(done.output):
        return ReportFormatError(
            report,
            f"{report} is damaged: nsys cannot read it ({match[1].strip().rstrip('.')})",
            "Copy it again, or record it again.",
        )
    if done.timed_out:
        return ToolError(
            f"nsys did not export {report} within {TIMEOUT:.0f} s", "Export it by hand.", code="timeout"
        )
    said = next((line.strip() for _, line in reversed(done.lines) if line.strip()), "it said nothing")
    return ToolError(
        f"nsys could not export {report} (exit code {done.returncode}): {said}",
        f"Try it by hand: nsys export --type sqlite {word(report.name)}; it needs {needed}.",
        code="tool-failed",
    )
