"""The metrics of two samples side by side: change, comparability, noise, and what the change says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from ncukit.catalog import Metric, load
from ncukit.compare.comparable import OTHER_GPU, Judged, Sides, judge, reading_of
from ncukit.compare.noise import noise
from ncukit.compare.samples import SAME_WORK
from ncukit.model import Kernel, Value
from ncukit.model.comparison import Per, Reading, Row, Sample

PER = (
    ("flops_total", "FLOP"),
    ("dram_bytes", "DRAM byte"),
    ("thread_count", "thread"),
)
"""What quantities are divided by: the work, the traffic, and the threads of the launch."""
QUANTITIES = ("kernel_duration", "dram_bytes", "bytes_l2", "inst_executed")
ELEMENT = "output element"
ANOTHER_KERNEL = "Another kernel"
UNRELATED = 2.0
"""FLOPs over FLOPs from which two kernels of different names do not do the same work."""
EXTENSIVE = frozenset({"s", "byte", "inst", "sector", "request", "wavefront", "conflict", "branch", "cycle"})
"""Units of quantities that grow with the work."""


def rows(base: Sample, other: Sample, sides: Sides) -> dict[str, Row]:
    """Return the row of every metric of the catalog, in its order."""
    return {metric.id: _row(metric, base, other, sides) for metric in load().metrics.values()}


def read(rows: Mapping[str, Row], other_kind: str = "", where: str = OTHER_GPU) -> dict[str, Row]:
    """Return the rows with what each change says, which for some depends on whether another one changed.

    An amount is neither good nor bad where ``other_kind`` says what differs beside the GPU; of another kernel
    nothing is.  ``where`` is where the other launch ran, in words.
    """
    found = {id: replace(row, **_reading(row, rows)) for id, row in rows.items()}  # type: ignore[arg-type]
    if not other_kind:
        return found
    why = f"{other_kind[0].lower()}{other_kind[1:]} on {where}: see the quantities per unit of work"
    return {
        id: replace(row, reading="moved", reason=why)
        if row.reading in ("better", "worse")
        and (other_kind == ANOTHER_KERNEL or load().metrics[id].unit in EXTENSIVE)
        else row
        for id, row in found.items()
    }


def other_work(rows: Mapping[str, Row]) -> bool:
    """Return whether both sides counted floating-point operations, and not the same number of them."""
    base, other = rows["flops_total"].base.number, rows["flops_total"].other.number
    if base is None or other is None:
        return False
    return abs(other - base) > SAME_WORK * max(base, other)


def other_kind(rows: Mapping[str, Row], sides: Sides) -> str:
    """Return what differs so much that amounts say nothing of faster or slower; "" where nothing does.

    On one GPU that is work of another kernel that is no version of the same: another name, and FLOPs that are
    `UNRELATED` times as many.
    """
    base, other = sides.base, sides.other
    if sides.same_gpu:
        return "Other work" if base.name != other.name and _unrelated(rows) else ""
    if other_work(rows):
        return "Other work"
    if base.name != other.name:
        return ANOTHER_KERNEL
    if (base.demangled or base.name) != (other.demangled or other.name):
        return "Other template arguments or parameters"
    return ""


def _unrelated(rows: Mapping[str, Row]) -> bool:
    ratio = rows["flops_total"].ratio
    return ratio is not None and not 1 / UNRELATED <= ratio <= UNRELATED


def per(base: Kernel, other: Kernel, elements: tuple[float | None, float | None]) -> tuple[Per, ...]:
    """Return quantities per FLOP, byte, thread and, where their number is given, output element."""
    found = []
    divisors = [(name, base.number(id), other.number(id)) for id, name in PER]
    for name, a, b in [*divisors, (ELEMENT, *elements)]:
        for id in QUANTITIES:
            unit = load().metrics[id].unit
            left, right = _over(base.number(id), a), _over(other.number(id), b)
            if (left is None and right is None) or (name == "DRAM byte" and id == "dram_bytes"):
                continue
            change = None if not left or right is None else 100 * (right / left - 1)
            found.append(Per(id, name, f"{unit}/{name}", left, right, change))
    return tuple(found)


def change_of(base: float, other: float, unit: str) -> tuple[float, Literal["%", "pt"]]:
    """Return the change from ``base`` to ``other``: points of a percentage, else percent of the base.

    From 0 to something it is infinite, from 0 to 0 it is 0.

    >>> change_of(90.2, 17.8, "%")[1], change_of(200.0, 150.0, "byte"), change_of(0.0, 3.0, "inst")
    ('pt', (-25.0, '%'), (inf, '%'))
    """
    if unit == "%":
        return other - base, "pt"
    if base == 0:
        return (0.0 if other == 0 else math.copysign(math.inf, other)), "%"
    return 100 * (other - base) / abs(base), "%"


def signed(change: float, unit: str = "%", *, digits: int = 1) -> str:
    """Return a change with its sign; one that rounds to nothing has none.

    >>> signed(-29.78), signed(0.004), signed(math.inf)
    ('−29.8\u202f%', '0.0\u202f%', 'from 0')
    """
    if not math.isfinite(change):
        return "from 0"
    text = f"{change:+,.{digits}f}"
    if not round(change, digits):
        text = text[1:]
    return f"{text}\u202f{unit}".replace("-", "\u2212")


def _row(metric: Metric, base: Sample, other: Sample, sides: Sides) -> Row:
    a, b = base.kernel.metrics[metric.id], other.kernel.metrics[metric.id]
    judged = judge(metric.id, sides)
    limit, where = noise(metric.id, base, other)
    row = Row(
        metric.id, a, b, change_unit="pt" if metric.unit == "%" else "%", comparable=judged.comparable,
        why=judged.why, noise=limit, noise_from=where,
        shares=(_share(sides.base, a, metric.unit, judged), _share(sides.other, b, metric.unit, judged)),
    )  # fmt: skip
    if reason := _unknown(a, b):
        return replace(row, reason=reason)
    if judged.comparable == "no" or a.number is None or b.number is None or metric.unit == "bool":
        return replace(row, change_unit="", reason=judged.why if judged.comparable == "no" else "")
    change, unit = change_of(a.number, b.number, metric.unit)
    return replace(row, change=change, change_unit=unit)


def _unknown(base: Value, other: Value) -> str:
    """Return why a row has no change because a side has no usable value; "" where both have one."""
    reasons = {
        side: value.reason or "not collected"
        for side, value in (("base", base), ("other", other))
        if not value.known or not value.reliable
    }
    if len(set(reasons.values())) == 1 and len(reasons) == 2:
        return f"both: {reasons['base']}"
    return "; ".join(f"{side}: {reason}" for side, reason in reasons.items())


def _share(kernel: Kernel, value: Value, unit: str, judged: Judged) -> float | None:
    """Return ``value`` as a share of its own peak [%]."""
    if unit == "%":
        return value.number if judged.comparable == "share" else None
    peak = kernel.number(judged.peak) if judged.peak else None
    return 100 * value.number / peak if peak and value.number is not None else None


def _reading(row: Row, rows: Mapping[str, Row]) -> dict[str, Reading | str]:
    if row.reason:
        known = row.base.number is not None and row.other.number is not None
        return {"reading": "not-comparable" if row.comparable == "no" and known else "unknown"}
    if row.change is None:
        return {"reading": "same" if row.base.value == row.other.value else "moved"}
    if not row.beyond_noise:
        return {"reading": "same"}
    why, same = reading_of(row.id)
    direction = load().metrics[row.id].direction
    if why or direction == "neutral":
        return {"reading": "moved", "reason": why}
    if same:
        condition = rows.get(same)
        if condition is None or condition.change is None or condition.beyond_noise:
            return {"reading": "moved", "reason": f"no better or worse while `{same}` differs or is unknown"}
    up = row.change > 0
    if row.comparable == "share":
        left, right = row.shares
        if left is None or right is None:
            return {"reading": "moved", "reason": row.why}
        up = right > left
    return {"reading": "better" if up == (direction == "higher") else "worse"}


def _over(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None
