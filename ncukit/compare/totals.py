"""All pairs together: sums of times, bytes and FLOPs, and ratios of those sums, never means of ratios.

A mean of ratios gives a launch of a microsecond the weight of one of a second.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncukit.catalog import load
from ncukit.compare.rows import change_of
from ncukit.model.comparison import Pair, Total

SUMS = ("kernel_duration", "flops_total", "dram_bytes")
RATIOS = {
    "flop_rate_total": ("flops_total", "kernel_duration"),
    "dram_bandwidth": ("dram_bytes", "kernel_duration"),
    "arithmetic_intensity_dram": ("flops_total", "dram_bytes"),
}
"""Ratio -> what is summed above and below."""


def totals(pairs: Sequence[Pair]) -> tuple[Total, ...]:
    """Return what ``pairs`` come to together; nothing for fewer than two.

    Each quantity counts the pairs that have all of it on both sides; a pair counts as often as both sides
    repeat it.
    """
    if len(pairs) < 2:
        return ()
    found = (_total(id, parts, pairs) for id, parts in [*((id, (id,)) for id in SUMS), *RATIOS.items()])
    return tuple(total for total in found if total.pairs)


def _total(id: str, parts: Sequence[str], pairs: Sequence[Pair]) -> Total:
    sums = [[0.0] * len(parts) for _ in range(2)]
    counted = 0
    for pair in pairs:
        rows = [row for part in parts if (row := pair.row(part)) is not None and row.change is not None]
        if len(rows) < len(parts):
            continue
        counted += 1
        times = min(pair.base.repeats, pair.other.repeats)
        for side in (0, 1):
            for n, row in enumerate(rows):
                sums[side][n] += times * ((row.base, row.other)[side].number or 0.0)
    base, other = (_value(side) for side in sums)
    unit = load().metrics[id].unit
    known = base is not None and other is not None and counted
    change = change_of(base or 0.0, other or 0.0, unit)[0] if known else None
    return Total(id, unit, base if counted else None, other if counted else None, change, counted, len(pairs))


def _value(sums: Sequence[float]) -> float | None:
    """Return a sum, or a ratio of two; None over nothing."""
    if len(sums) == 1:
        return sums[0]
    return sums[0] / sums[1] if sums[1] else None
