"""Datasets of many reports: two workers against one, memory over many files, a second build reads none."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Cost, Row, measured, ratio
from benchmarks.readers import Setting

FASTER, MEMORY = 1.7, 1.3
FILES = 200


def build(inputs: Sequence[Path], folder: Path, workers: int) -> tuple[Cost, dict[str, int]]:
    """Build a dataset of ``inputs`` in ``folder``; return what it took and what it did."""
    words = ["dataset", "build", *inputs, "-o", folder, "--workers", workers, "--json", "--quiet"]
    cost = measured([sys.executable, "-m", "ncukit", *words])
    return cost, json.loads(cost.out)


def dataset(setting: Setting) -> Iterator[Row]:
    """Build with one worker and with two, of half the files, and again of the same."""
    files = 12 if setting.quick else FILES
    many, half = (copies(setting.reports, n, setting.folder / f"of-{n}") for n in (files, files // 2))
    some, _ = build([half], setting.folder / "half", 1)
    one, done = build([many], setting.folder / "one", 1)
    two, _ = build([many], setting.folder / "two", 2)
    again, then = build([many], setting.folder / "two", 2)
    assert done["read"] == files
    yield Row(
        f"dataset, {files} files: two workers",
        f"{two.seconds:.1f} s",
        f"{one.seconds:.1f} s (one worker)",
        f"{one.seconds / two.seconds:.2f} x as fast",
        f"{FASTER} x",
        one.seconds >= FASTER * two.seconds,
    )
    yield ratio(f"dataset, {files} files: memory", one.peak, some.peak, "byte", f"{files // 2} files", MEMORY)
    yield Row(
        f"dataset, {files} files: again",
        f"{again.seconds:.2f} s",
        f"{two.seconds:.1f} s (the first time)",
        f"{then['read']} read",
        "none read",
        then["read"] == 0 and then["reports"] == files,
    )


def copies(reports: Sequence[Path], count: int, folder: Path) -> Path:
    """Put ``count`` links to ``reports``, taken in turns, into ``folder``."""
    folder.mkdir()
    for number in range(count):
        report = reports[number % len(reports)]
        os.symlink(report, folder / f"{number:04}-{report.name}")
    return folder
