"""Memory: the chart of what moved between the units, its table, and the table of levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ncukit.model import Diagnosis
from ncukit.model.shares import Link
from ncukit.record import dataclass
from ncukit.render.cells import Cell, Cells
from ncukit.render.line import line
from ncukit.render.view.families import metric_row
from ncukit.render.view.memory_chart import chart
from ncukit.render.view.rows import Row
from ncukit.render.words import named, plural


@dataclass(frozen=True)
class Level:
    """One level of memory; empty ids are columns that make no sense for it."""

    name: str
    read: str = ""
    written: str = ""
    total: str = ""
    hit: str = ""
    rate: str = ""
    share: str = ""
    limiters: frozenset[str] = frozenset()
    when: str = "always"


LEVELS = (
    Level("Shared memory", total="shared_bytes", limiters=frozenset({"shared"})),
    Level(
        "L1/TEX",
        total="bytes_l1",
        hit="l1_hit_rate_pct",
        share="l1_throughput_pct",
        limiters=frozenset({"l1"}),
    ),
    Level("L1 to L2", "l1_to_l2_read_bytes", "l1_to_l2_write_bytes"),
    Level(
        "L2",
        total="bytes_l2",
        hit="l2_hit_rate_from_l1_pct",
        share="l2_throughput_pct",
        limiters=frozenset({"l2"}),
    ),
    Level(
        "DRAM",
        "dram_read_bytes",
        "dram_write_bytes",
        "dram_bytes",
        rate="dram_bandwidth",
        share="dram_throughput_pct",
        limiters=frozenset({"dram"}),
    ),
    Level("System memory, read", rate="sysmem_read_bandwidth", limiters=frozenset({"sysmem"}), when="used"),
    Level(
        "System memory, written", rate="sysmem_write_bandwidth", limiters=frozenset({"sysmem"}), when="used"
    ),
    Level("NVLink, received", rate="nvlink_receive_bandwidth", when="used"),
    Level("NVLink, transmitted", rate="nvlink_transmit_bandwidth", when="used"),
    Level("Chip to chip, received", total="c2c_receive_bytes", when="used"),
)


def memory(cells: Cells, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the chart, the table of its links and that of the levels; the limiting level is hot."""
    found, limiter = diagnosis.facts.links, diagnosis.verdict.limiter
    drawn = chart(cells, found, limiter)
    rows = [_row(level, cells, limiter) for level in LEVELS if _shown(level, cells)]
    known = any(cell["state"] != "missing" for row in rows for cell in row["cells"] if cell)
    return {
        "chart": drawn,
        "links": [_link(link, cells) for link in found.links] if drawn else [],
        "notes": [line(note) for note in (*_unknown(found.links), *found.notes)] if drawn else [],
        "rows": rows if known else [],
        "foot": line(
            "Share of peak is that of the busiest part of each unit; L1/TEX counts active cycles, L2 and "
            "DRAM elapsed ones. PCIe and NVLink counters are of the whole device."
        ),
    }


def _unknown(links: Sequence[Link]) -> list[str]:
    """Return how many links are unknown, by reason."""
    reasons = Counter(named(link.bytes.reason or "not in the report") for link in links if link.used is None)
    return [f"{plural(count, 'link')} unknown: {reason}." for reason, count in reasons.most_common()]


def _link(link: Link, cells: Cells) -> dict[str, Any]:
    share = None if link.share is None or not (link.bytes.known or link.share.known) else link.share
    return {
        "what": link.what,
        "bytes": cells.of(link.bytes),
        "count": None if link.count is None else cells.of(link.count),
        "share": None if share is None else cells.of(share),
        "used": link.used,
    }


def _shown(level: Level, cells: Cells) -> bool:
    ids = [id for id in (level.read, level.written, level.total, level.rate) if id]
    values = [cells.value(id) for id in ids]
    if level.when == "used":
        return any(value.value for value in values)
    return not all(value.status == "absent" for value in values)


def _row(level: Level, cells: Cells, limiter: str | None) -> dict[str, Any]:
    ids = (level.read, level.written, level.total, level.hit, level.rate, level.share)
    columns: list[Cell | None] = [cells[id] if id else None for id in ids]
    hot = limiter in level.limiters
    bar = metric_row(Row(level.share, ""), cells)["bar"] if level.share else None
    return {"name": level.name, "cells": columns, "bar": bar, "hot": hot}
