"""Counters over the time of a launch: `series`, from PM sampling."""

from __future__ import annotations

import math

from ncukit.catalog.counted import Sampled, sampled, sampled_counter
from ncukit.model import Kernel
from ncukit.model.series import Series

FEWEST = 3
"""Samples below which there is no course to draw."""


def series(kernel: Kernel) -> tuple[Series, ...]:
    """Return the series of ``kernel`` that the report holds and that ever differ from zero.

    The kernel must have been read with details (`ncukit.normalise.wanted`).
    """
    raw_of: dict[str, str] = {}
    for raw in sorted(kernel.raw.series, key=len):
        raw_of.setdefault(sampled_counter(raw) or raw, raw)
    found = (_one(kernel, known, raw_of) for known in sampled())
    return tuple(one for one in found if one is not None)


def _one(kernel: Kernel, known: Sampled, raw_of: dict[str, str]) -> Series | None:
    raw = next((raw_of[name] for name in known.names if name in raw_of), None)
    if raw is None:
        return None
    stamps, values = kernel.raw.series[raw]
    pairs = sorted((t, v) for t, v in zip(stamps, values, strict=False) if math.isfinite(v))
    if len(pairs) < FEWEST or not any(v for _, v in pairs):
        return None
    first = pairs[0][0]
    times = tuple((t - first) * 1e-9 for t, _ in pairs)
    return Series(known.id, known.label, known.unit, raw, times, tuple(v for _, v in pairs))
