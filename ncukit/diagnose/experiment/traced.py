"""What a trace offers to be watched: gaps and kernel durations of a region."""

from __future__ import annotations

from collections.abc import Mapping

from ncukit.model.experiment import Moved, Observed, Prediction
from ncukit.model.timeline import Timeline

UNITS: Mapping[str, str] = {
    "gap_time": "s",
    "gap_share_pct": "%",
    "gpu_busy_pct": "%",
    "kernel_time": "s",
    "kernel_median": "s",
    "kernel_launches": "",
    "launch_calls": "",
    "copy_time": "s",
}
"""Metrics of a trace by name, with their units: of the region, on its main device.

All but ``kernel_median`` and the shares are of one call of the region.  A gap is time in which nothing runs
on the device; ``kernel_time`` adds up all kernels, ``kernel_median`` is the median launch of the kernel with
the most time; ``launch_calls`` are calls of the CPU that launch something.
"""
FLOOR, FLOOR_POINTS = 10.0, 5.0
"""[%] and [points] that one trace of each side must differ by: a single trace has no spread of its own."""
COUNTED = frozenset({"kernel_launches", "launch_calls"})
"""Counted, not timed: any difference is one."""


def traced(timeline: Timeline, calls: int = 1) -> dict[str, float]:
    """Return the metrics of ``timeline`` for one of ``calls`` of the region; times [s], shares [%]."""
    main = next((d for d in timeline.devices if d.id == timeline.main_device), None)
    found: dict[str, float] = {
        "kernel_time": timeline.kernel_total / 1e9 / calls,
        "kernel_launches": timeline.launches.kernels / calls,
        "launch_calls": timeline.launches.calls / calls,
        "copy_time": sum(copy.total for copy in timeline.copies) / 1e9 / calls,
    }
    if timeline.kernels:
        found["kernel_median"] = timeline.kernels[0].steady.median / 1e9
    if main is not None:
        found["gap_time"] = main.empty / 1e9 / calls
        if main.span:
            found["gap_share_pct"] = 100 * main.empty / main.span
            found["gpu_busy_pct"] = 100 * main.busy / main.span
    return found


def watched(
    prediction: Prediction, baseline: Mapping[str, float], variant: Mapping[str, float], source: str
) -> Observed:
    """Return how a metric of two traces moved, beside what was predicted.

    ``source`` says where they are from; of a trace without any metrics, why it has none.
    """
    name, unit = prediction.metric, UNITS[prediction.metric]
    a, b = baseline.get(name), variant.get(name)
    if a is None or b is None:
        lacks = f"not in the trace of the {'baseline' if a is None else 'variant'}"
        why = lacks if baseline and variant else source
        return Observed(name, prediction.direction, "unknown", unit, a, b, source=why)
    points = unit == "%"
    noise = 0.0 if name in COUNTED else FLOOR_POINTS if points else FLOOR
    change = b - a if points else 100 * (b - a) / a if a else (0.0 if b == a else None)
    moved = direction_of(prediction, b - a, beyond=b != a and (change is None or abs(change) > noise))
    return Observed(name, prediction.direction, moved, unit, a, b, change, noise, source)


def direction_of(prediction: Prediction, difference: float, *, beyond: bool) -> Moved:
    """Return what a difference says about a prediction; ``beyond`` says whether it exceeds its noise."""
    if not beyond:
        return "not-moved"
    return "as-predicted" if (difference < 0) == (prediction.direction == "lower") else "opposite"
