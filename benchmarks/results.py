"""The table of results: as it is printed, and as ``benchmarks/RESULTS.md`` keeps it."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import ncukit
from benchmarks.measure import CHECKOUT, Row

HEADER = """\
# Results

Written by `make bench`, newest first; the last {kept} are kept.  A ratio is ncukit's time or memory over that
of what stands beside it, in one run, on one machine: times of different machines do not compare.  "Before" is
the ratio of the run below.  A bar that is missed says so.
"""
KEPT = 5
SECTION = "\n## "


def machine(ncu: Path | None) -> str:
    """Return what a reader must know about the machine and the versions, in one line."""
    parts = [
        f"{os.cpu_count()} cores",
        processor(),
        f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        f"{platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}",
        f"ncu {version(ncu)}" if ncu else "no ncu",
        f"ncukit {ncukit.__version__}{commit()}",
    ]
    return ", ".join(parts)


def processor() -> str:
    """Return the model of the processor as the kernel tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")


def version(ncu: Path) -> str:
    """Return the version that ncu prints."""
    done = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[-1].removeprefix("Version ").split()[0] if done.stdout else "?"


def commit() -> str:
    """Return the commit that was measured, where this is a clone."""
    words = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""


def line(row: Row, before: str = "") -> str:
    """Return one line of the table.

    >>> line(Row("--help", "0.18 s", "0.12 s (typer)", "1.50 x", "1.5 x", True), "1.40 x")
    '| --help | 0.18 s | 0.12 s (typer) | 1.50 x | 1.40 x | 1.5 x | met |'
    """
    said = {None: "", True: "met", False: "**MISSED**"}[row.met]
    return f"| {row.what} | {row.ours} | {row.beside} | {row.found} | {before} | {row.bar} | {said} |"


def table(rows: Iterable[Row], before: Mapping[str, str]) -> str:
    """Return the table in Markdown."""
    head = ("| | ncukit | beside | found | before | bar | |", "|---|---|---|---|---|---|---|")
    return "\n".join((*head, *(line(row, before.get(row.what, "")) for row in rows)))


def found_before(text: str) -> dict[str, str]:
    """Return what the newest table of ``RESULTS.md`` found, by the name of its row.

    >>> found_before("\\n## a\\n\\n| --help | 0.2 s | 0.1 s | 2.00 x | | 1.5 x | |\\n")
    {'--help': '2.00 x'}
    """
    newest = text.partition(SECTION)[2].partition(SECTION)[0]
    cells = [[cell.strip() for cell in row.split("|")] for row in newest.splitlines() if row.startswith("|")]
    return {row[1]: row[4] for row in cells if len(row) > 4 and row[1]}


def write(path: Path, rows: Sequence[Row], ncu: Path | None, seconds: float) -> None:
    """Put the results before those that ``path`` holds, of which the newest stay."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    older = [section.strip("\n") for section in text.split(SECTION)[1:]][: KEPT - 1]
    title = f"{datetime.now(UTC):%Y-%m-%d}, {machine(ncu)}"
    missed = [row.what for row in rows if row.met is False]
    bars = f"bars missed: {'; '.join(missed)}" if missed else "all bars met"
    total = f"Measured in {seconds:.0f} s; {bars}."
    newest = f"{title}\n\n{table(rows, found_before(text))}\n\n{total}"
    sections = "".join(f"{SECTION}{section}\n" for section in (newest, *older))
    path.write_text(HEADER.format(kept=KEPT) + sections, encoding="utf-8")
