"""Whole processes, measured side by side with the real tools, stay below their bars."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measure import in_turns
from benchmarks.readers import HALF, MANY, ONE, Setting, setting
from benchmarks.results import line
from benchmarks.speed import Bar, bars
from tests.conftest import no_shared

pytestmark = pytest.mark.speed
ATTEMPTS = 3
"""A machine does other work too: a bar is missed when it is missed every time."""

REPORTS = [Path(name) for name in (ONE, MANY, HALF)]
EVERY = [
    bar.name
    for bar in bars(Setting(Path("pages"), REPORTS, Path("ncu"), quick=False))
    if bar.limit is not None
]


def bar_here(name: str, folder: Path) -> Bar:
    """Return the bar for this machine; skips where ncu or the reports are missing."""
    here = setting(folder)
    for bar in bars(here):
        if bar.name == name and bar.limit is not None:
            return bar
    pytest.skip("no ncu: not in NCUKIT_NCU, PATH or .tools/nsight/bin" if here.real else no_shared())


@pytest.mark.parametrize("name", EVERY)
def test_bar(name: str, tmp_path: Path) -> None:
    bar = bar_here(name, tmp_path)
    lines = []
    for _ in range(ATTEMPTS):
        ours, theirs = in_turns((bar.ours, bar.theirs), 6)
        row = bar.row(ours, theirs)
        if row.met:
            return
        lines.append(line(row))
    pytest.fail("\n".join(lines))
