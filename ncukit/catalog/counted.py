"""Which raw counters are kept by instruction, and which over time (PM sampling)."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path

from ncukit.record import dataclass

DATA = Path(__file__).resolve().parent / "data"

STATES = "smsp__pcsamp_warps_issue_stalled_"
"""What the names of all sampled stall states begin with; the state follows."""

NOT_ISSUED = "_not_issued"
"""Ends the name of a state's samples that were taken in cycles in which the scheduler issued nothing."""

_PASS = re.compile(r"^(?:pmsampling:|(?:\w+\.)?Triage\w*\.)(?=[a-z])")
"""What stands before the name of a counter that was sampled over time."""


@dataclass(frozen=True)
class Sampled:
    """One series of PM sampling: any of ``names``, behind what names its pass."""

    id: str
    label: str
    unit: str
    names: tuple[str, ...]


@functools.cache
def by_pc() -> Mapping[str, tuple[str, ...]]:
    """Return, by column of a `ncukit.model.source.Cost`, the raw counters that may hold it, newest first."""
    found = json.loads((DATA / "by_pc.json").read_text(encoding="utf-8"))
    return {column: tuple(names) for column, names in found.items()}


@functools.cache
def sampled() -> tuple[Sampled, ...]:
    """Return the series of PM sampling that are known, in the order in which they are shown."""
    entries = json.loads((DATA / "series.json").read_text(encoding="utf-8"))
    return tuple(Sampled(e["id"], e["label"], e["unit"], tuple(e["names"])) for e in entries)


@functools.cache
def sampled_names() -> frozenset[str]:
    """Return every counter name that some series may have."""
    return frozenset(name for series in sampled() for name in series.names)


def sampled_counter(name: str) -> str | None:
    """Return the counter that raw metric ``name`` holds over time, or None for any other metric.

    >>> sampled_counter("pmsampling:sm__cycles_active.avg"), sampled_counter("sm__cycles_active.avg")
    ('sm__cycles_active.avg', None)
    >>> sampled_counter("FBSP.TriageSCG.dramc__throughput.avg.pct_of_peak_sustained_elapsed")[:17]
    'dramc__throughput'
    """
    found = _PASS.match(name)
    return name[found.end() :] if found else None
