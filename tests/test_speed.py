"""Whole processes, measured side by side with the real tools, stay below their bars."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.speed import Bar, bars, measure, row
from tests.conftest import no_shared, shared_folder, tool

pytestmark = pytest.mark.speed
ATTEMPTS = 3
"""A machine does other work too: a bar is missed when it is missed every time."""

EVERY = {bar.name: bar for bar in bars(Path("ncu"), Path("reports"), Path("pages"))}


def bar_here(name: str, folder: Path) -> Bar:
    """Return the bar for this machine; skips where ncu or the reports are missing."""
    reports = shared_folder() / "reports" / "ncu"
    for bar in bars(tool("ncu"), reports if reports.is_dir() else None, folder):
        if bar.name == name:
            return bar
    pytest.skip(
        no_shared() if not reports.is_dir() else "no ncu: not in NCUKIT_NCU, PATH or .tools/nsight/bin"
    )


@pytest.mark.parametrize("name", EVERY)
def test_bar(name: str, tmp_path: Path) -> None:
    bar = bar_here(name, tmp_path)
    lines = []
    for _ in range(ATTEMPTS):
        ours, theirs = measure(bar)
        lines.append(row(bar, ours, theirs))
        if ours <= bar.limit * theirs:
            return
    pytest.fail("\n".join(lines))
