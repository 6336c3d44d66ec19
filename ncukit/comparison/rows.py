"""The metrics of two samples side by side: change, comparability, noise, clean times, totals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ncukit.comparison.comparable import OTHER_GPU, Judged, Sides, judge, noise, reading_of
from ncukit.comparison.pairs import SAME_WORK
from ncukit.judge.effect import direction_of
from ncukit.media import listed, sentence
from ncukit.metrics import Metric, load
from ncukit.model import Kernel, Value
from ncukit.model.comparison import Comparison, Pair, Per, Reading, Row, Sample, Side, Total
from ncukit.model.experiment import Observed, Prediction
from ncukit.model.run import Timing
from ncukit.quantity import brief
from ncukit.record import dataclass

# ---- How a metric that a hypothesis named moved between the two launches of a profiled pair


def watched(prediction: Prediction, comparison: Comparison) -> Observed:
    """Return the metric's row of the pair beside its prediction; unknown, with the reason, without values.

    What a change must exceed is the noise of the comparison.
    """
    name, direction = prediction.metric, prediction.direction
    if len(comparison.pairs) != 1:
        why = f"the profiled pair has {len(comparison.pairs)} matching launches"
        return Observed(name, direction, "unknown", source=why)
    row = comparison.pairs[0].row(name)
    if row is None:
        return Observed(name, direction, "unknown", source="the profiled pair does not hold it")
    a, b = row.base.number, row.other.number
    if a is None or b is None or row.change is None:
        why = row.reason or row.why or "one side lacks it"
        return Observed(name, direction, "unknown", row.base.unit, a, b, source=why)
    moved = direction_of(prediction, b - a, beyond=row.beyond_noise)
    noise = row.noise if math.isfinite(row.noise) else None
    source = f"counters of one launch each; noise: {row.noise_from}"
    return Observed(name, direction, moved, row.base.unit, a, b, row.finite, noise, source)


# ---- Registers down, local memory up, time up: the wrong lesson from an occupancy limit, said as such

REGISTERS = "registers_per_thread"
LOCAL = ("local_memory_bytes", "local_store_inst", "local_load_inst")
"""What shows local memory, best first."""
OCCUPANCY = "theoretical_occupancy_pct"
COUNTER = "marked_spill_inst"
"""Signal that counts only what the compiler marked as spills."""


@dataclass(frozen=True)
class Spilling:
    """What registers and local memory say together about a change in time."""

    claim: str
    deck: str
    cause: str
    evidence: tuple[str, ...]


def spilling(rows: Mapping[str, Row], sides: Sides) -> Spilling | None:
    """Return that a version spills, or no longer does, where registers, local memory and time agree.

    Registers must go one way, local memory traffic and time the other.  The word "spilling" is not used where
    a counter says that nothing of it is a spill.
    """
    registers, time = rows[REGISTERS], rows["kernel_duration"]
    local = next((rows[id] for id in LOCAL if rows[id].change is not None and rows[id].beyond_noise), None)
    if local is None or not registers.change or not time.change or not time.beyond_noise:
        return None
    slower = time.change > 0
    if ((registers.change or 0) < 0) != slower or ((local.change or 0) > 0) != slower:
        return None
    counted = (sides.other if slower else sides.base).number(COUNTER)
    if counted == 0:
        return None
    before, after = (brief(row.number) for row in (registers.base, registers.other))
    amounts = " \u2192 ".join(brief(v.number, v.unit) for v in (local.base, local.other))
    claim = "spilling" if slower else "no more spilling"
    claim += f"; registers {before} \u2192 {after}, {_name(local.id)} {amounts}"
    sure = (
        f"The spill counter agrees: {brief(counted)} instructions."
        if counted
        else "The report has no spill counter: that the traffic is spilling follows from the registers."
    )
    evidence = (REGISTERS, local.id, "kernel_duration", OCCUPANCY)
    return Spilling(claim, " ".join(part for part in (_occupancy(rows), sure) if part), "spilling", evidence)


def _name(id: str) -> str:
    return {"local_memory_bytes": "local memory traffic", "local_store_inst": "local stores"}.get(
        id, "local loads"
    )


def _occupancy(rows: Mapping[str, Row]) -> str:
    """Return what the registers bought in occupancy."""
    row, limiter = rows[OCCUPANCY], rows["occupancy_limiter"].other.value
    if row.change is None:
        return ""
    if row.change == 0:
        why = (
            f", because {limiter_words(str(limiter))} still {'limit' if '+' in str(limiter) else 'limits'} it"
            if limiter
            else ""
        )
        return sentence(f"occupancy is the same{why}: the change in registers bought nothing.")
    ends = " \u2192 ".join(brief(v.number, "%") for v in (row.base, row.other))
    return f"Theoretical occupancy {ends}."


def limiter_words(limiter: str) -> str:
    """Return what limits occupancy, in words.

    >>> limiter_words("registers+shared_mem")
    'registers and shared memory'
    """
    return listed(limiter.replace("shared_mem", "shared memory").split("+"))


# ---- The metrics of two samples side by side: change, comparability, noise, and what the change says

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


# ---- Clean times side by side: those of two runs, measured without a profiler

CLEAN = "clean_time"
"""Id of the row; it is no metric of the catalog, because no report holds it."""


def clean_row(base: Side, other: Side) -> Row | None:
    """Return the row of the clean times; None where neither side has one.

    The noise is the larger distance of the quartiles, in percent of the base; times of different clocks (GPU
    events against the host) do not compare.
    """
    if base.timing is None and other.timing is None:
        return None
    row = Row(CLEAN, _value(base.timing), _value(other.timing))
    if base.timing is None or other.timing is None:
        lacks = " and the ".join(s for s, t in (("base", base.timing), ("other", other.timing)) if t is None)
        return Row(CLEAN, row.base, row.other, reason=f"{lacks}: not measured")
    if base.timing.timer != other.timing.timer:
        why = f"other clocks: {base.timing.timer} and {other.timing.timer}"
        return Row(CLEAN, row.base, row.other, None, "", "not-comparable", why, "no", why)
    change, unit = change_of(base.timing.median, other.timing.median, "s")
    noise = 100 * max(base.timing.iqr, other.timing.iqr) / base.timing.median if base.timing.median else 0.0
    reading: Reading = "same" if abs(change) <= noise else "worse" if change > 0 else "better"
    where = f"the quartiles of {base.timing.n} and {other.timing.n} samples"
    return Row(CLEAN, row.base, row.other, change, unit, reading, noise=noise, noise_from=where)


def _value(timing: Timing | None) -> Value:
    if timing is None:
        return Value(CLEAN, None, "s", reason="not measured")
    return Value(CLEAN, timing.median, "s", "exact", (timing.timer,))


# ---- All pairs together: sums of times, bytes and FLOPs, and ratios of those sums, never means of ratios
#  A mean of ratios gives a launch of a microsecond the weight of one of a second.

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
    base, other = (_value_of_total(side) for side in sums)
    unit = load().metrics[id].unit
    known = base is not None and other is not None and counted
    change = change_of(base or 0.0, other or 0.0, unit)[0] if known else None
    return Total(id, unit, base if counted else None, other if counted else None, change, counted, len(pairs))


def _value_of_total(sums: Sequence[float]) -> float | None:
    """Return a sum, or a ratio of two; None over nothing."""
    if len(sums) == 1:
        return sums[0]
    return sums[0] / sums[1] if sums[1] else None
