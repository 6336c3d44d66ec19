"""Whole processes beside the tools that do the same, in turns: start-up, one launch, many launches, SASS.

ncukit reads in one process and translates in another: on a busy machine its ratios are worse.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import NCUKIT, Row, in_turns, measured, ratio
from benchmarks.readers import HALF, MANY, ONE, TYPER, Setting, every_value


@dataclass(frozen=True)
class Bar:
    """Our command may take at most ``limit`` times as long as theirs; None: that is only shown.

    ``spare`` [s] more than theirs is always allowed: a short run is mostly start-up.
    """

    name: str
    limit: float | None
    ours: tuple[str, ...]
    beside: str
    theirs: tuple[str, ...]
    spare: float = 0.0

    def row(self, ours: float, theirs: float) -> Row:
        """Return the row of the median run times [s] of both commands.

        >>> bar = Bar("report", 2.0, (), "ncu_report", (), spare=0.2)
        >>> [bar.row(ours, theirs).met for ours, theirs in ((0.40, 0.21), (0.42, 0.2), (2, 1), (2.1, 1))]
        [True, False, True, False]
        """
        limit = None if self.limit is None else max(self.limit, 1 + self.spare / theirs)
        name = self.name if self.limit else f"{self.name}, beside {self.beside}"
        return ratio(name, ours, theirs, "s", self.beside, limit)


def bars(setting: Setting) -> Iterator[Bar]:
    """Yield what can be measured with this ncu and these reports."""
    yield Bar("--help", 1.5, (*NCUKIT, "--help"), "typer", (sys.executable, "-c", TYPER, "--help"))
    files = {"one launch": ONE, "many launches": MANY, "much SASS": HALF}
    found = {label: path for label, name in files.items() if (path := setting.report(name))}
    for label, file in found.items():
        bare = every_value(file)
        yield Bar(f"report, {label}", 2.0, report(file, setting.folder), "ncu_report", bare, spare=0.2)
    if setting.ncu is None:
        return
    for label, file in found.items():
        beside = importing(setting.ncu, file, sass=label == "much SASS")
        limit = {"one launch": 1.3, "many launches": 1.0, "much SASS": 1.25}[label]
        yield Bar(f"metrics, {label}", limit, metrics(file), "ncu --import", beside)
        yield Bar(f"report, {label}", None, report(file, setting.folder), "ncu --import", beside)
    for label, file in found.items():
        yield Bar(f"metrics, {label}", None, metrics(file), "ncu_report", every_value(file))


def metrics(file: Path) -> tuple[str, ...]:
    """Return our command that prints every metric."""
    return (*NCUKIT, "metrics", str(file), "--json")


def report(file: Path, folder: Path) -> tuple[str, ...]:
    """Return our command that writes a page into ``folder``."""
    return (*NCUKIT, "report", str(file), "--force", "-o", str(folder / f"{file.stem}.html"))


def importing(ncu: Path, file: Path, *, sass: bool = False) -> tuple[str, ...]:
    """Return ncu's command that prints a report."""
    return (str(ncu), "--import", str(file), "--page", *(("source", "--csv") if sass else ("details",)))


def speed(setting: Setting) -> Iterator[Row]:
    """Start-up, and reports of one and of many launches, beside ncu and a bare ncu_report."""
    every = list(bars(setting))
    commands = list(dict.fromkeys(command for bar in every for command in (bar.ours, bar.theirs)))
    seconds = dict(zip(commands, in_turns(commands, 1 if setting.quick else 6), strict=True))
    for bar in every:
        yield bar.row(seconds[bar.ours], seconds[bar.theirs])
    looks = range(1 if setting.quick else 5)  # memory is sampled: a short command can be missed
    peaks = {command: max(measured(command).peak for _ in looks) for command in commands}
    for bar in every[1:]:
        if bar.beside == "ncu_report":
            words = f"{bar.name}: memory"
            yield ratio(words, peaks[bar.ours], peaks[bar.theirs], "byte", bar.beside)
