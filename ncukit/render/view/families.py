"""The five families: one row a metric, a bar or a word beside it, and a foot that corrects a misreading."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from ncukit import quantity
from ncukit.metrics import load
from ncukit.model.shares import HALF_READ, ISSUE_GUARD, TENSOR_TYPES
from ncukit.render.cells import Cell, Cells
from ncukit.render.line import Line, line
from ncukit.render.view.rows import FAMILIES, MIX, PIPES, Row
from ncukit.render.words import plural

APART = 0.3
"""[points] Two counters of nearly the same this far apart are told apart in words."""

BANDWIDTH_APART = 1.0
"""[points] The same for the busiest part of DRAM and its bytes over the peak bandwidth, which is rounded."""

LITTLE = 5.0
"""[%] Pipe use below which its ratio to anything says nothing."""
GEFORCE = (86, 89, 120)
"""Compute capabilities of GeForce boards whose tensor pipe runs FP32 accumulation at half rate."""

_UNITS = {
    "l1tex": "L1/TEX",
    "lts": "L2",
    "ltc": "L2",
    "l2": "L2",
    "dram": "DRAM",
    "fbpa": "DRAM",
    "lrc": "L2",
    "idc": "the constant cache",
}
_PLACE = re.compile(r"\{(\w+)\}")


def families(cells: Cells, cited: Collection[str]) -> list[dict[str, Any]]:
    """Return the families of one launch; a metric in ``cited`` is part of the verdict and red."""
    return [
        {
            "id": f"kernel-{cells.launch}-family-{family.id}",
            "name": family.name,
            "of": family.of,
            "rows": _rows(family.id, family.rows, cells, cited),
            "foot": _foot(family.id, family.rows, cells),
        }
        for family in FAMILIES
    ]


def metric_row(row: Row, cells: Cells, cited: Collection[str] = ()) -> dict[str, Any]:
    """Return one row: label, cell, and a bar [% of the width] or words beside the number."""
    value = cells.value(row.id)
    cell = cells.of(value)
    bar = None
    if value.unit == "%" and value.number is not None:
        bar = round(min(100.0, max(0.0, value.number)), 1)
    return {
        "id": row.id,
        "label": line(row.label),
        "cell": cell,
        "bar": bar,
        "aside": _aside(row.aside, cells) if value.known and bar is None else "",
        "hot": row.id in cited,
    }


def _rows(family: str, rows: tuple[Row, ...], cells: Cells, cited: Collection[str]) -> list[dict[str, Any]]:
    shown = [metric_row(row, cells, cited) for row in _shown(rows, cells)]
    if family == "scheduler" and (stall := _top_stall(cells, cited)):
        at = next((i for i, row in enumerate(shown) if row["id"] == "warp_cycles_per_issued_instruction"), -1)
        shown.insert(at + 1, stall)
    return shown


def _shown(rows: tuple[Row, ...], cells: Cells) -> list[Row]:
    """Return the rows to print: not those this GPU lacks, nor those that are shown only when used."""
    kept: list[Row] = []
    for row in rows:
        value = cells.value(row.id)
        if value.status == "absent":
            continue
        if row.when == "used" and not value.value:
            continue
        kept.append(row)
    if mix := [row for row in kept if row in MIX]:
        first = kept.index(mix[0])
        mix = [row for row in mix if (cells.number(row.id) or 0) >= 1]
        mix.sort(key=lambda row: -(cells.number(row.id) or 0))
        kept = [row for row in kept if row not in MIX]
        kept[first:first] = mix
    return kept


def _top_stall(cells: Cells, cited: Collection[str]) -> dict[str, Any] | None:
    """Return the row of the largest counter-based stall state that is not the productive one."""
    best: tuple[float, str, str] | None = None
    for category in load().stalls.values():
        for state, raw in category["states"].items():
            cycles = cells.number(f"stall_cycles_{state}")
            if state not in ("selected", "not_selected") and cycles and (best is None or cycles > best[0]):
                best = (cycles, state, raw)
    if best is None:
        return None
    _, state, raw = best
    return metric_row(Row(f"stall_cycles_{state}", f"of these in `{raw}`", "cycles"), cells, cited)


def _aside(aside: str, cells: Cells) -> str:
    for id in _PLACE.findall(aside):
        value = cells.value(id)
        if value.number is None:
            return ""
        aside = aside.replace(f"{{{id}}}", quantity.short(value.number, value.unit))
    return aside


def _foot(family: str, rows: tuple[Row, ...], cells: Cells) -> Line:
    words = line(*_FEET[family](cells))
    counted = [(row, cells.value(row.id)) for row in rows]
    absent = sum(v.status == "absent" for _, v in counted)
    if absent:
        words += line(f" {plural(absent, 'row')} hidden: not on this GPU.")
    return words


def _speed_of_light(cells: Cells) -> list[str]:
    words = []
    if members := cells.kernel.breakdowns.get("memory_throughput_pct"):
        name = members[0][0]
        unit = _UNITS.get(name.split("__")[0].removeprefix("breakdown:"), "")
        if unit:
            words.append(
                f"Memory “busiest unit” is {unit} here{', not DRAM' if unit != 'DRAM' else ''}: `{name}`."
            )
    if (operations := half_read(cells)) is not None:
        words.append(
            f" The tensor pipe’s counter reads half here: by operations tensor cores reach "
            f"{quantity.short(operations, '%')} of their dense peak."
        )
    dram, used = cells.number("dram_throughput_pct"), bandwidth_share(cells)
    if dram is not None and used is not None and abs(dram - used) >= BANDWIDTH_APART:
        share = quantity.short(used, "%")
        words.append(f" DRAM is its busiest part; the bytes alone are {share} of its peak bandwidth.")
    zero = sum(cells.value(row.id).value == 0 for row in PIPES)
    unknown = sum(not cells.value(row.id).known and _collectable(cells, row.id) for row in PIPES)
    if zero:
        words.append(f" {plural(zero, 'further pipe')} {'reads' if zero == 1 else 'read'} 0.")
    if unknown:
        words.append(f" {plural(unknown, 'pipe')} not collected.")
    return words


def bandwidth_share(cells: Cells) -> float | None:
    """Return what the bytes of DRAM take of its peak bandwidth [%]; None where either is unknown."""
    rate, peak = cells.number("dram_bandwidth"), cells.number("peak_dram_bandwidth")
    return 100 * rate / peak if rate is not None and peak else None


def half_read(cells: Cells) -> float | None:
    """Return what tensor cores reach by operations [%] where their pipe's counter reads about half of it.

    The pipe of a GeForce runs FP32 accumulation at half rate, and its counter counts as if it did not.
    """
    pipe = cells.number("pipe_tensor_pct") or 0.0
    if pipe < LITTLE or cells.number("compute_capability") not in GEFORCE:
        return None
    rates = (cells.number(f"tensor_{dtype}_share_pct") for dtype in TENSOR_TYPES)
    operations = sum(rate for rate in rates if rate)
    return operations if operations >= HALF_READ * pipe else None


def _memory(cells: Cells) -> list[str | Cell]:
    if (cells.number("l2_hit_rate_from_l1_pct") or 0) == 0:
        return []
    reads = cells.number("l2_read_hit_rate_pct")
    if reads is None:
        return ["Writes count as L2 hits, so an L2 hit rate near the share of writes means no reuse."]
    return ["Writes count as L2 hits; of the reads ", cells["l2_read_hit_rate_pct"], " hit."]


def _scheduler(cells: Cells) -> list[str | Cell]:
    issued = cells.number("warps_issued_per_scheduler")
    if issued is None:
        return ["Whether stalls matter is unknown: the issue rate was not collected."]
    words: list[str | Cell] = [
        f"Issued is {quantity.short(issued)}: schedulers are busy, stall reasons say little."
    ]
    if issued < ISSUE_GUARD:
        words = [f"Issued is below {ISSUE_GUARD}, so stalls are worth reading."]
    slots = cells.number("issue_slot_utilization_pct")
    if slots is not None and abs(100 * issued - slots) >= APART:
        words += [
            " Per scheduler and cycle in which it has a warp; issue slots, ",
            cells["issue_slot_utilization_pct"],
            ", count the cycles in which the SM has one.",
        ]
    return words


def _launch(cells: Cells) -> list[str]:
    waves = cells.number("waves_per_sm")
    if waves is not None and waves < 1:
        return [
            "Less than one wave: the tail effect does not apply, some SMs never get a block or not enough."
        ]
    return []


def _source(cells: Cells) -> list[str]:
    rest = sum(n for row in MIX if 0 < (n := cells.number(row.id) or 0) < 1)
    words = [f"Mix by opcode; {quantity.short(rest, '%')} in classes under 1 % each."] if rest >= 0.05 else []
    if cells.number("flops_total") == 0:
        words.append(" No floating-point operation was executed.")
    return words


_FEET: dict[str, Callable[[Cells], Any]] = {
    "speed_of_light": _speed_of_light,
    "memory": _memory,
    "scheduler": _scheduler,
    "launch": _launch,
    "source": _source,
}


def _collectable(cells: Cells, id: str) -> bool:
    return cells.value(id).status != "absent"
