"""Whether a launch holds a valid measurement at all."""

from __future__ import annotations

import re

from ncukit.model import RawKernel, RawValue

_NO_COUNTER = re.compile(r"^(device__|launch__|profiler__|ncukit__|\w+__maximum_)")
"""Names of what is known without measuring."""


def failure(raw: RawKernel) -> str | None:
    """Return why ``raw`` holds no valid measurement, or None for a good launch.

    ncu writes a result even when the kernel could not be run again: without a launch configuration, with zero
    replay passes (the counters are then copies of an earlier launch), or with NaN for what was asked.  A
    launch that reads no block or no time did not run either.
    """
    metrics = raw.metrics
    if raw.workload != "kernel":
        return None
    passes, duration = metrics.get("profiler__replayer_passes"), metrics.get("gpu__time_duration.sum")
    grid = metrics.get("launch__grid_size")
    if grid is None and raw.origin == "report":
        return f"the launch failed under the profiler: no launch configuration was recorded{_left(raw)}"
    if grid == 0:
        return f"the launch did not run: its launch configuration reads 0 blocks{_left(raw)}"
    if passes == 0 and not duration:
        return "the launch was not profiled: zero replay passes, and no time was measured"
    if passes == 0:
        return "the launch was not profiled: zero replay passes (its counters belong to another launch)"
    if _is_nan(duration):
        return f"the profiling pass failed: the duration is not a number{_left(raw)}"
    if duration == 0:
        return f"the launch did not run: its duration reads 0{_left(raw)}"
    return None


def _left(raw: RawKernel) -> str:
    """Return what the counters of a failed launch read, as the end of a sentence."""
    numbers = {n: v for n, v in raw.metrics.items() if not isinstance(v, str) and not _NO_COUNTER.match(n)}
    peaks = [v for n, v in numbers.items() if ".peak_sustained" in n]
    counters = [v for n, v in numbers.items() if ".peak_sustained" not in n]
    if not counters:
        return ", and no counter"
    if any(v == v and v for v in counters):
        return ""
    if not any(v != v for v in counters):
        return ", and every counter reads 0"
    return ", and the counters are NaN" + (" (peaks read 0)" if any(v == 0 for v in peaks) else "")


def _is_nan(value: RawValue | None) -> bool:
    return isinstance(value, float) and value != value
