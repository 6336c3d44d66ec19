"""Stall reasons, occupancy and instruction mix of both sides as paired bars: outlined base, filled other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.comparison.rows import limiter_words, signed
from ncukit.metrics import load
from ncukit.model.comparison import Pair, Row
from ncukit.render.cells import Cell
from ncukit.render.compare.changes import Two, change_text
from ncukit.render.line import line
from ncukit.render.view.rows import MIX
from ncukit.render.view.stalls import NAMES

OCCUPANCY = (
    ("theoretical_occupancy_pct", "Theoretical"),
    ("achieved_occupancy_pct", "Achieved"),
)
LIMITS = (
    ("occupancy_limit_registers", "Blocks that registers allow"),
    ("occupancy_limit_shared_mem", "Blocks that shared memory allows"),
    ("occupancy_limit_warps", "Blocks that warps allow"),
    ("occupancy_limit_blocks", "Blocks that the SM holds"),
    ("occupancy_limit_barriers", "Blocks that barriers allow"),
)
VISIBLE = 0.5
"""[%] Share of the instructions from which a class is shown."""


def stalls(two: Two, pair: Pair) -> dict[str, Any]:
    """Return warp cycles per issued instruction by category: absolute, so that the two can be subtracted."""
    rows: list[dict[str, Any]] = []
    for id, entry in load().stalls.items():
        members = [row for state in entry["states"] if (row := pair.row(f"stall_cycles_{state}")) is not None]
        sums = [_sum(two, members, side) for side in (0, 1)]
        if sums[0] is None and sums[1] is None:
            continue
        refused = next((row for row in members if row.comparable == "no"), None)
        rows.append(
            {
                "category": id,
                "name": NAMES[id],
                "values": sums,
                "cells": [_stall_cell(two, id, members, side, sums[side]) for side in (0, 1)],
                "why": line(refused.why) if refused is not None else [],
            }
        )
    rows.sort(key=lambda row: -max(v or 0.0 for v in row["values"]))
    largest = max((v for row in rows for v in row["values"] if v), default=0.0)
    return {
        "sentence": line(_stall_sentence(rows)),
        "rows": [_bar_row(row, largest) for row in rows if any(row["values"])],
    }


def occupancy(two: Two, pair: Pair) -> dict[str, Any]:
    """Return occupancy and what limits it, on both sides."""
    rows = [_pair_row(two, row, label, 100.0) for id, label in OCCUPANCY if (row := _known(pair, id))]
    limits = [
        {
            "label": label,
            "base": cells[0],
            "other": cells[1],
            "change": change_text(row) if row.beyond_noise else "",
        }
        for id, label in LIMITS
        if (row := _known(pair, id)) and (cells := two.of(row))
    ]
    limiter = pair.row("occupancy_limiter")
    return {"rows": rows, "limits": limits, "sentence": line(_limiter_sentence(limiter))}


def mix(two: Two, pair: Pair) -> dict[str, Any]:
    """Return the shares of the executed instructions by class."""
    found = [
        (row, mixed.label)
        for mixed in MIX
        if (row := _known(pair, mixed.id)) and max(row.base.number or 0.0, row.other.number or 0.0) >= VISIBLE
    ]
    found.sort(key=lambda item: -max(item[0].base.number or 0.0, item[0].other.number or 0.0))
    largest = max((n for row, _ in found for v in (row.base, row.other) if (n := v.number)), default=0.0)
    note = "" if pair.same_gpu else " The compiler writes other instructions for each architecture."
    return {
        "rows": [_pair_row(two, row, label, largest) for row, label in found],
        "sentence": line(f"Shares of the executed warp instructions.{note}"),
    }


def _known(pair: Pair, id: str) -> Row | None:
    row = pair.row(id)
    return row if row is not None and (row.base.known or row.other.known) else None


def _pair_row(two: Two, row: Row, label: str, top: float) -> dict[str, Any]:
    base, other = two.of(row)
    return {
        "label": label,
        "base": base,
        "other": other,
        "change": change_text(row) if row.beyond_noise else "",
        "bars": [_width(value.number, top) for value in (row.base, row.other)],
        "why": [],
    }


def _bar_row(row: dict[str, Any], largest: float) -> dict[str, Any]:
    a, b = row["values"]
    change = "" if row["why"] or a is None or b is None else signed(b - a, "").rstrip(quantity.NARROW)
    return {
        "label": row["name"],
        "category": row["category"],
        "base": row["cells"][0],
        "other": row["cells"][1],
        "change": change,
        "bars": [_width(value, largest) for value in (a, b)],
        "why": row["why"],
    }


def _width(value: float | None, top: float) -> float:
    return round(min(100.0, 100 * max(0.0, value or 0.0) / top), 1) if top else 0.0


def _sum(two: Two, members: Sequence[Row], side: int) -> float | None:
    values = [(row.base, row.other)[side].number for row in members]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _stall_cell(two: Two, id: str, members: Sequence[Row], side: int, value: float | None) -> Cell:
    cells = (two.base, two.other)[side]
    if value is None:
        return cells.of((members[0].base, members[0].other)[side])
    known = [row.id for row in members if (row.base, row.other)[side].number is not None]
    return cells.computed(
        f"{id} cycles",
        value,
        "cycle",
        meaning=f"{load().stalls[id]['plain']}, cycles per issued instruction",
        formula=" + ".join(known),
        sources=known,
    )


def _stall_sentence(rows: Sequence[Any]) -> str:
    if not rows:
        return "Stall reasons were not collected on either side."
    return "Cycles per issued instruction, from counters. Outlined: base. Filled: other."


def _limiter_sentence(row: Row | None) -> str:
    if row is None or not row.base.known or not row.other.known:
        return "Outlined: base. Filled: other."
    a, b = (limiter_words(str(value.value)) for value in (row.base, row.other))
    return f"Limited by {a} in both." if a == b else f"Limited by {a}, then by {b}."
