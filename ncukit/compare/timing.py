"""Clean times side by side: those of two runs, measured without a profiler."""

from __future__ import annotations

from ncukit.compare.rows import change_of
from ncukit.model import Value
from ncukit.model.comparison import Reading, Row, Side
from ncukit.model.run import Timing

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
