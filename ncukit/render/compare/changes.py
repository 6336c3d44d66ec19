"""What changed: rows in the order of what they explain, and what stayed, is unknown or cannot be compared."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ncukit import quantity
from ncukit.comparison.comparable import class_words
from ncukit.comparison.rows import ELEMENT, signed
from ncukit.comparison.summary import WORK
from ncukit.model import Value
from ncukit.model.comparison import Pair, Row
from ncukit.record import dataclass
from ncukit.render.cells import CAPACITIES, Cell, Cells
from ncukit.render.compare.names import LABELS
from ncukit.render.line import line
from ncukit.render.words import plural

FIRST = 18
"""Rows that are shown unfolded."""
TELLS = 1.0
"""[%] of the change in duration from which a row stands where its share puts it."""
NOTHING = 0.05
"""[%] of the change in duration below which a share is as good as none."""
FAR = 0.01
"""Two numbers further apart than this have a unit each."""
FIRST_ROW = "kernel_duration"
ELSEWHERE = (
    *("stall_*", "inst_mix_*", "peak_*", "*_dim_*", "ridge_point_*", "*_ncu", "*_clock_max"),
    *("gpu_name", "compute_capability", "occupancy_limiter", "pc_sampl*", "replay_passes"),
    *("sm_count", "max_warps_per_sm", "l2_cache_size", "memory_bus_width"),
)
"""Metrics that another part of the page shows, or that say nothing about the kernel."""
REPEATS = (
    *("elapsed_cycles", "sm_active_cycles", "ipc_*", "inst_rate", "mem_*", "flop_rate_*", "roofline_*"),
    *("warps_issued_*", "sm_busy_*", "thread_count", "shared_mem_*", "theoretical_warps_*"),
)
"""Metrics that say once more what another row says: last, unless they explain something."""
SAME_AS = {
    "l2_read_hit_rate_pct": "l2_hit_rate_pct",
    "l2_hit_rate_from_l1_pct": "l2_hit_rate_pct",
    "warp_cycles_per_executed_instruction": "warp_cycles_per_issued_instruction",
    "inst_issued": "inst_executed",
    "thread_inst_executed": "inst_executed",
    "shared_bytes": "shared_wavefronts",
    "l1_to_l2_read_bytes": "bytes_l2",
    "l2_sectors": "bytes_l2",
    "l2_sectors_from_l1": "bytes_l2",
    "global_load_requests": "global_load_inst",
    "global_store_requests": "global_store_inst",
}
"""Metric -> what it repeats: last as well, where that one changed too and it explains nothing."""
READINGS = {
    "better": ("▲", "better", "better"),
    "worse": ("▼", "worse", "worse"),
    "same": ("=", "same", "same"),
    "moved": ("", "", ""),
}
"""What a change says: sign, word, and the class that colours them."""
SHORT_CLASS = {"same": "same meaning", "share": "share of peak", "no": "no"}


@dataclass(frozen=True)
class Two:
    """The cells of both sides."""

    base: Cells
    other: Cells

    def of(self, row: Row) -> tuple[Cell, Cell]:
        """Return both numbers of a row, in one unit where they are not too far apart for that."""
        cells = self.base.of(row.base), self.other.of(row.other)
        values = (row.base.value, row.other.value)
        unit = row.base.unit
        if row.id in CAPACITIES or unit not in quantity.SYMBOLS or any(isinstance(v, str) for v in values):
            return cells
        known = [v if isinstance(v, int | float) and not isinstance(v, bool) else None for v in values]
        sizes = [abs(v) for v in known if v]
        if len(sizes) == 2 and min(sizes) < FAR * max(sizes):
            return cells
        texts, symbol = quantity.together(known, unit), quantity.scale(known, unit)
        a, b = (
            {**cell, "text": f"{text}{quantity.NARROW}{symbol}"} if value.known else cell
            for cell, text, value in zip(cells, texts, (row.base, row.other), strict=True)
        )
        return a, b


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that changed: duration, then by what they explain, then by how far beyond noise."""
    changed = [
        row
        for row in rows
        if row.change is not None and row.beyond_noise and not any(fnmatchcase(row.id, p) for p in ELSEWHERE)
    ]
    there = {row.id for row in changed}
    return sorted(changed, key=lambda row: _rank(row, there))


def _rank(row: Row, there: Collection[str]) -> tuple[int, float]:
    if row.id == FIRST_ROW:
        return 0, 0.0
    if row.explains is not None and abs(row.explains) >= TELLS:
        return (1 if row.explains > 0 else 3), -row.explains if row.explains > 0 else row.explains
    size = abs(row.change or 0.0) / (row.noise or 1.0)
    again = any(fnmatchcase(row.id, p) for p in REPEATS) or SAME_AS.get(row.id) in there
    return (4 if again else 2), -min(size, 1e12)


def section(two: Two, pair: Pair, clean: Row | None) -> dict[str, Any]:
    """Return the tables of the changes of one pair."""
    shown = [row for row in (clean,) if row is not None and row.change is not None]
    moved = ranked(pair.rows)
    table = [row_view(two, row, pair) for row in (*shown, *moved)]
    same = [row.id for row in pair.rows if row.reading == "same"]
    return {
        "sentence": line(_sentence(pair)),
        "rows": table[:FIRST],
        "more": table[FIRST:],
        "more_words": f"{plural(len(table[FIRST:]), 'more row')} that changed",
        "same": same,
        "same_words": f"{plural(len(same), 'metric')} without a change beyond the noise",
        "no": [_not(two, row) for row in pair.rows if row.reading == "not-comparable"],
        "unknown": _unknown(pair.rows),
        "classes": not pair.same_gpu,
        "explained": any(row["explains"] for row in table),
        "per": per_rows(pair),
        "per_told": pair.summary.cause == WORK or any(per.per == ELEMENT for per in pair.per),
    }


def row_view(two: Two, row: Row, pair: Pair) -> dict[str, Any]:
    """Return one row of the table."""
    base, other = two.of(row)
    sign, said, cls = reading(row)
    return {
        "id": row.id,
        "label": LABELS.get(row.id, ""),
        "base": base,
        "other": other,
        "shares": [_share(share) for share in row.shares] if row.base.unit != "%" else ["", ""],
        "change": change_text(row),
        "sort": _finite(row),
        "explains": explained(row.explains),
        "account": row.account,
        "word": f"{sign} {said}".strip(),
        "said": said,
        "cls": cls,
        "why": row.reason if row.reading == "moved" else "",
        "class": SHORT_CLASS[row.comparable],
        "same_meaning": row.comparable == "same",
        "class_cell": _class_cell(two, row) if row.why else None,
        "noise": f"more than {row.noise_from}" if row.noise_from else "",
        "plot": _plot(row),
    }


def reading(row: Row) -> tuple[str, str, str]:
    """Return what a change says: sign, word and class, each empty where it says nothing."""
    return READINGS.get(row.reading, ("", "", ""))


def change_text(row: Row) -> str:
    """Return the change for a table: points, percent, a factor where percent would be long, or "→ 0"."""
    if row.change is None:
        return ""
    if row.other.number == 0 and row.base.number:
        return "→ 0"
    return change_words(row.change, row.change_unit or "%")


def change_words(change: float, unit: str = "%") -> str:
    """Return a change in points or percent, or as a factor where percent would be long.

    >>> change_words(-29.78), change_words(4.06, "pt"), change_words(28166.2), change_words(-99.9991)
    ('−29.8\\u202f%', '+4.1\\u202fpt', '283\\u202f×', '−99.999\\u202f%')
    """
    ratio = 1 + change / 100
    if unit == "%" and math.isfinite(change) and ratio >= 10:
        return f"{quantity.significant(ratio)}{quantity.NARROW}×"
    digits = 1
    while unit == "%" and -100 < change < -99.9 and round(change, digits) == -100 and digits < 7:
        digits += 1
    return signed(change, unit, digits=digits)


def per_rows(pair: Pair) -> list[dict[str, Any]]:
    """Return the quantities per unit of work."""
    return [
        {
            "label": f"{LABELS.get(per.metric, per.metric)} per {per.per}",
            "base": _per(per.base, per.metric),
            "other": _per(per.other, per.metric),
            "change": "" if per.change is None else change_words(per.change),
        }
        for per in pair.per
    ]


def _per(value: float | None, metric: str) -> str:
    if value is None:
        return "unknown"
    unit = "s" if metric == "kernel_duration" else ""
    return quantity.short(value, unit) if unit else quantity.significant(value)


def _share(share: float | None) -> str:
    return "" if share is None else f"{quantity.short(share, '%')} of its peak"


def explained(share: float | None) -> str:
    """Return how much of the change in duration [%] goes with a row, for a table."""
    if share is None:
        return ""
    return f"≈ 0{quantity.NARROW}%" if abs(share) < NOTHING else quantity.short(share, "%")


def _finite(row: Row) -> float:
    return 1e12 if row.finite is None else row.finite


def _class_cell(two: Two, row: Row) -> Cell:
    words = class_words(row.comparable)
    tip = two.other.tips.computed(
        two.other.launch, f"{row.id} comparable", words, "exact", f"{words.capitalize()}: {row.why}.", ""
    )
    return {"text": SHORT_CLASS[row.comparable], "state": "exact", "tip": tip}


def _plot(row: Row) -> dict[str, float] | None:
    """Return where both ends stand [%]: percentages on 0 to 100, others from 0 to the larger of the two."""
    base, other = row.base.number, row.other.number
    if base is None or other is None:
        return None
    top = 100.0 if row.base.unit == "%" else max(abs(base), abs(other))
    if not top:
        return None
    a, b = (min(100.0, max(0.0, 100 * value / top)) for value in (base, other))
    return {"a": round(a, 1), "b": round(b, 1), "left": round(min(a, b), 1), "width": round(abs(a - b), 1)}


def _not(two: Two, row: Row) -> dict[str, Any]:
    base, other = two.of(row)
    return {"id": row.id, "label": LABELS.get(row.id, ""), "base": base, "other": other, "why": line(row.why)}


def _unknown(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the metrics that a side lacks, by side and reason, those that one side alone lacks first."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.reading == "unknown":
            found.setdefault((_lacking(row.base, row.other), _reason(row)), []).append(row.id)
    order = {"the base": 0, "the other": 1, "both": 2}
    return [
        {"side": side, "reason": reason, "ids": ids}
        for (side, reason), ids in sorted(found.items(), key=lambda item: (order[item[0][0]], item[0][1]))
    ]


def _lacking(base: Value, other: Value) -> str:
    lacks = [value.number is None for value in (base, other)]
    return "both" if all(lacks) else "the base" if lacks[0] else "the other"


def _reason(row: Row) -> str:
    value = row.base if row.base.number is None else row.other
    return value.brief if value.status == "absent" else value.reason or "not collected"


def _sentence(pair: Pair) -> str:
    words = "○ base, ● other. Percentages on 0 to 100; other rows from 0 to the larger of the two."
    if any(row.explains is not None for row in pair.rows):
        words += (
            " Explains: how much of the change in duration goes with a row; rows overlap and do not add up."
        )
    return words
