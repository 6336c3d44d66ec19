"""Counters over the time of a launch as small charts, each a path that the template draws."""

from __future__ import annotations

import math
from typing import Any

from ncukit import quantity
from ncukit.model import Diagnosis
from ncukit.model.kernel import Series
from ncukit.render.cells import Cells
from ncukit.render.line import line
from ncukit.render.words import plural

WIDTH, HEIGHT = 300, 64
POINTS = 120
"""Columns of a chart; where there are more samples, one column spans several: from lowest to highest."""
ROUNDS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
"""Where an axis ends, times a power of ten."""


def section(cells: Cells, diagnosis: Diagnosis) -> dict[str, Any] | None:
    """Return the charts of one launch on one time scale; None where nothing was sampled over time."""
    found = [_trimmed(one) for one in diagnosis.facts.series]
    if not found:
        return None
    span = max(one.times[-1] - one.times[0] for one in found)
    return {
        "charts": [_chart(one, span) for one in found],
        "width": WIDTH,
        "height": HEIGHT,
        "sentence": line(
            f"{plural(len(found), 'counter')} sampled over {quantity.short(span, 's')}. Each was taken in a "
            "pass of its own: shapes can be compared, numbers with those of the launch cannot."
        ),
        "foot": line(
            "Every chart begins at its first sample that is not 0; all have one time scale. "
            + ("A grey band spans the lowest to the highest sample of a column. " if _dense(found) else "")
            + _length(cells, span)
        ),
    }


def _length(cells: Cells, span: float) -> str:
    duration = cells.number("kernel_duration")
    if not duration:
        return ""
    words = f"The launch itself took {quantity.short(duration, 's')}"
    return f"{words}: the sampled window holds more than it." if span > 1.5 * duration else f"{words}."


def _dense(found: list[Series]) -> bool:
    return any(len(one.times) > POINTS for one in found)


def _trimmed(one: Series) -> Series:
    """Return ``one`` without the samples of 0 before and after what it shows, but for one at each end."""
    used = [n for n, value in enumerate(one.values) if value]
    first, last = max(0, used[0] - 1), min(len(one.values), used[-1] + 2)
    return Series(one.id, one.label, one.unit, one.raw, one.times[first:last], one.values[first:last])


def _chart(one: Series, span: float) -> dict[str, Any]:
    peak, mean = max(one.values), math.fsum(one.values) / len(one.values)
    top = axis_end(peak, one.unit)
    start = one.times[0]
    x = [WIDTH * (t - start) / span if span else 0.0 for t in one.times]
    y = [HEIGHT * (1 - value / top) for value in one.values]
    size = math.ceil(len(x) / POINTS)
    columns = [(x[n : n + size], y[n : n + size]) for n in range(0, len(x), size)]
    middle = [(_mean(xs), _mean(ys)) for xs, ys in columns]
    band = [(_mean(xs), min(ys)) for xs, ys in columns] + [
        (_mean(xs), max(ys)) for xs, ys in reversed(columns)
    ]
    unit = "" if one.unit == "%" else f" {one.unit}"
    return {
        "id": one.id,
        "label": one.label,
        "raw": one.raw,
        "top": f"{quantity.short(top, one.unit)}{unit}",
        "end": quantity.short(span, "s"),
        "path": _path(middle),
        "band": f"{_path(band)}z" if size > 1 else "",
        "peak": f"{quantity.short(peak, one.unit)}{unit}",
        "mean": f"{quantity.short(mean, one.unit)}{unit}",
        "samples": f"{len(one.values):,}",
        "every": quantity.short(_every(one), "s"),
    }


def axis_end(peak: float, unit: str) -> float:
    """Return where the axis of a chart ends: 100 for percentages that allow it, else the next round number.

    >>> axis_end(61.0, "%"), axis_end(4.2, "inst/cycle"), axis_end(7.3, "%")
    (100.0, 5.0, 8.0)
    """
    if unit == "%" and 50 <= peak <= 100:
        return 100.0
    if peak <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(peak))
    return next(power * each for each in (*ROUNDS, 20) if power * each >= peak * (1 - 1e-9))


def _every(one: Series) -> float | None:
    return (one.times[-1] - one.times[0]) / (len(one.times) - 1) if len(one.times) > 1 else None


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}".replace(".0", "") for x, y in points)
