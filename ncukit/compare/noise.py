"""What a change must exceed to be one: the spread of repeats, else a stated floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncukit.catalog import load
from ncukit.model import Kernel
from ncukit.model.comparison import Sample

FLOOR, FLOOR_POINTS = 2.0, 1.0
"""[%] and [points] below which one pass each shows no change: two passes of one kernel differ by that."""

SHORT = 10e-6
"""[s] Launches under this have noisy clocks and shares (METRICS, trap 1)."""
SHORT_FLOOR, SHORT_FLOOR_POINTS = 10.0, 5.0
"""The floors of such launches."""

FEW = 5
"""Repeats below this understate the spread: the floor holds as well."""

_SETTLED = frozenset(
    {
        *("compute_capability", "sm_count", "max_warps_per_sm", "memory_bus_width", "l2_cache_size"),
        *("ecc_enabled", "replay_passes", "sm_clock_max", "dram_clock_max"),
    }
)
"""Context that is read, not measured."""
_MEASURED = frozenset({"occupancy_gap_pct"})
"""Launch statistics that contain a measurement."""


def settled(id: str) -> bool:
    """Return whether ``id`` is a setting: any difference is a change."""
    metric = load().metrics[id]
    return id in _SETTLED or (metric.family == "launch" and id not in _MEASURED)


def noise(id: str, base: Sample, other: Sample) -> tuple[float, str]:
    """Return what a change of ``id`` must exceed [% of the base, or points], and where that is from.

    The spread is the whole range of the repeats of one side, relative to its value; the larger side counts.
    """
    if settled(id):
        return 0.0, "a setting, not a measurement"
    points = load().metrics[id].unit == "%"
    floor, words = _floor(base, other, points=points)
    widths = [_width(id, sample, points=points) for sample in (base, other)]
    known = [width for width in widths if width is not None]
    if not known:
        return floor, words
    most = max(base.repeats, other.repeats)
    spread = f"spread of {base.repeats} and {other.repeats} repeats"
    if most >= FEW:
        return max(known), spread
    return max(floor, *known), f"{spread}, at least {words}" if max(known) < floor else spread


def spread_of(kernels: Sequence[Kernel]) -> Mapping[str, tuple[float, float]]:
    """Return the smallest and the largest value of each metric over repeats; nothing for a single launch."""
    if len(kernels) < 2:
        return {}
    found: dict[str, tuple[float, float]] = {}
    for id in kernels[0].metrics:
        values = [n for kernel in kernels if (n := kernel.number(id)) is not None]
        if len(values) > 1:
            found[id] = (min(values), max(values))
    return found


def _width(id: str, sample: Sample, *, points: bool) -> float | None:
    ends = sample.spread.get(id)
    value = sample.kernel.number(id)
    if ends is None or value is None:
        return None
    width = ends[1] - ends[0]
    if points:
        return width
    return 100 * width / abs(value) if value else (0.0 if not width else float("inf"))


def _floor(base: Sample, other: Sample, *, points: bool) -> tuple[float, str]:
    short = any(s.duration is not None and s.duration < SHORT for s in (base, other))
    floor = (SHORT_FLOOR_POINTS if short else FLOOR_POINTS) if points else SHORT_FLOOR if short else FLOOR
    unit = "points" if points else "%"
    why = ", as launches under 10 µs are noisy" if short else ""
    return floor, f"a floor of {floor:g} {unit}{why}"
