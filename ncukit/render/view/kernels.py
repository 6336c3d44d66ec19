"""The table of a file with many launches, by kernel and by launch."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from ncukit import quantity
from ncukit.render.view.groups import Group, Launch, share
from ncukit.render.words import limited_by

LINKED = 40
"""Launches of one kernel that are linked by number."""
COLUMNS = (
    ("grid_size", "Blocks"),
    ("block_size", "Threads per block"),
    ("registers_per_thread", "Regs"),
    ("sm_throughput_pct", "SM %"),
    ("memory_throughput_pct", "Memory %"),
    ("dram_throughput_pct", "DRAM %"),
    ("achieved_occupancy_pct", "Occupancy %"),
)
"""Shape and main percentages; a column that no launch has is left out."""


def tables(
    launches: Sequence[Launch], kernels: Sequence[Group], names: Sequence[str], *, lazy: bool
) -> dict[str, Any]:
    """Return both tables; with ``lazy`` the rows by launch are left to the page's script."""
    columns = [
        column for column in COLUMNS if any(launch.cells.value(column[0]).known for launch in launches)
    ]
    whole = sum(launch.weight for launch in launches)
    totals = [group.total for group in kernels]
    longest = max(totals, default=0)
    like = [median(totals)] if totals else []
    typical = _typical(launches)
    spell = dict(zip((group.first.cells.kernel.demangled for group in kernels), names, strict=True))
    return {
        "columns": [label for _, label in columns],
        "lacking": [label for id, label in COLUMNS if (id, label) not in columns],
        "total_unit": quantity.scale(like, "s"),
        "duration_unit": quantity.scale([typical], "s"),
        "kernels": [
            {
                "name": name,
                "total": total,
                "share": quantity.short(share(group.time, whole), "%"),
                "bar": round(100 * group.total / longest) if longest else 0,
                "count": f"{len(group.launches):,}",
                "links": sorted(launch.n for launch in group.launches)[:LINKED],
                "more": max(0, len(group.launches) - LINKED),
                "median": _duration(_median(group), typical),
                "range": _range(group, typical),
                "columns": [_span(group, id) for id, _ in columns],
                "limit": _limits(group),
            }
            for group, name, total in zip(
                kernels, names, quantity.together([g.time for g in kernels], "s", like), strict=True
            )
        ],
        "launches": [] if lazy else [_row(launch, spell, columns, whole, typical) for launch in launches],
        "by_kernel": len(kernels) < len(launches),
    }


def plain_rows(launches: Sequence[Launch], spell: dict[str, str], word: Any) -> list[list[Any]]:
    """Return the rows by launch for the page's script: number, name, texts, limit; ``word`` interns."""
    columns = [
        column for column in COLUMNS if any(launch.cells.value(column[0]).known for launch in launches)
    ]
    whole = sum(launch.weight for launch in launches)
    like = _typical(launches)
    return [
        [
            launch.n,
            word(spell[launch.cells.kernel.demangled]),
            _duration(launch.duration, like),
            quantity.short(share(launch.duration, whole), "%"),
            *(_text(launch, id) for id, _ in columns),
            word(limited_by(launch.diagnosis.verdict.cls, launch.diagnosis.verdict.limiter)),
        ]
        for launch in launches
    ]


def _row(
    launch: Launch,
    spell: dict[str, str],
    columns: Sequence[tuple[str, str]],
    whole: float,
    like: float | None,
) -> dict[str, Any]:
    verdict = launch.diagnosis.verdict
    cell = launch.cells["kernel_duration"]
    return {
        "n": launch.n,
        "name": spell[launch.cells.kernel.demangled],
        "duration": {**cell, "text": _duration(launch.duration, like)}
        if launch.duration is not None
        else cell,
        "share": quantity.short(share(launch.duration, whole), "%"),
        "cells": [_unit_in_head(launch.cells[id], id) for id, _ in columns],
        "limit": limited_by(verdict.cls, verdict.limiter),
    }


def _unit_in_head(cell: dict[str, Any], id: str) -> dict[str, Any]:
    """Return a cell without the percent sign that its column already has."""
    return {**cell, "text": cell["text"].removesuffix(f"{quantity.NARROW}%")} if id.endswith("_pct") else cell


def _text(launch: Launch, id: str) -> str:
    value = launch.cells.value(id)
    if not value.known:
        return "not collected"
    return quantity.short(value.value, value.unit).removesuffix(f"{quantity.NARROW}%")


def _median(group: Group) -> float | None:
    known = [launch.duration for launch in group.launches if launch.duration is not None]
    return median(known) if known else None


def _typical(launches: Sequence[Launch]) -> float | None:
    """Return the median duration [s]: its unit is that of every duration in the tables."""
    return _median(Group(tuple(launches)))


def _duration(value: float | None, like: float | None) -> str:
    return "not collected" if value is None else quantity.together([value], "s", [like])[0]


def _range(group: Group, like: float | None) -> str:
    known = [launch.duration for launch in group.launches if launch.duration is not None]
    if len(known) < 2:
        return ""
    low, high = _duration(min(known), like), _duration(max(known), like)
    return low if low == high else f"{low}–{high}"


def _span(group: Group, id: str) -> str:
    values = [launch.cells.value(id) for launch in group.launches]
    known = [n for v in values if (n := v.number) is not None]
    if not known:
        return "not collected"
    return quantity.span(min(known), max(known), values[0].unit).removesuffix(f"{quantity.NARROW}%")


def _limits(group: Group) -> str:
    times: dict[str, float] = {}
    for launch in group.launches:
        words = limited_by(launch.diagnosis.verdict.cls, launch.diagnosis.verdict.limiter)
        times[words] = times.get(words, 0.0) + launch.weight + 1e-12
    first = max(times, key=lambda words: times[words])
    return first if len(times) == 1 else f"{first}, {len(times) - 1} other"
