"""What the charts of a launch show, as JSON data: memory, occupancy, issue slots, counters over time."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from ncukit.diagnose.facts import Facts
from ncukit.diagnose.links import memory_links
from ncukit.diagnose.occupancy import occupancy
from ncukit.diagnose.series import series
from ncukit.diagnose.split import split
from ncukit.model import Kernel, Value
from ncukit.model.links import MemoryLinks
from ncukit.model.series import Series
from ncukit.model.split import Split

DIGITS = 6
"""Significant digits of a sample; times are whole nanoseconds."""


def charts_data(kernel: Kernel) -> dict[str, Any]:
    """Return the data of every chart of ``kernel``; a key is absent where nothing was collected for it.

    A failed launch has none.

    >>> from ncukit.model import RawKernel
    >>> charts_data(Kernel("", RawKernel(0, "f", "f()", ""), {}, failed="the pass failed"))
    {}
    """
    if kernel.failed:
        return {}
    facts = Facts.of(kernel)
    found: dict[str, Any] = {}
    links = memory_links(kernel, facts)
    if any(link.used is not None for link in links.links):
        found["memory"] = _memory(links)
    if (held := occupancy(kernel, curves=False)) is not None:
        found["occupancy"] = {
            "theoretical_pct": held.percent,
            "warps": held.warps,
            "max_warps": held.max_warps,
            "blocks": held.blocks,
            "limits": [asdict(limit) for limit in held.limits],
        }
    slots = split(facts)
    if slots.issued is not None or slots.parts:
        found["issue_slots"] = _slots(slots)
    if sampled := series(kernel):
        found["over_time"] = [_series(one) for one in sampled]
    return found


def _memory(found: MemoryLinks) -> dict[str, Any]:
    return {
        "links": [
            {
                "id": link.id,
                "source": link.source,
                "target": link.target,
                "bytes": _number(link.bytes),
                "requests": _number(link.count),
                "share_pct": _number(link.share),
                "reason": None if link.used is not None else link.bytes.reason,
            }
            for link in found.links
        ],
        "hit_rates_pct": {box: _number(value) for box, value in found.hit_rates.items()},
        "busy_pct": {box: _number(value) for box, value in found.busy.items()},
    }


def _slots(found: Split) -> dict[str, Any]:
    return {
        "idle_pct": _number(found.idle),
        "issued_pct": _number(found.issued),
        "causes_from": found.source,
        "causes": [
            {
                "category": part.category,
                "share_pct": part.share,
                "slots_pct": part.slots,
                "units": [
                    {"unit": unit.unit, "percent": unit.percent, "full": unit.full} for unit in part.ceilings
                ],
            }
            for part in found.parts
        ],
        "disagreement_pct": found.agreement,
        "missing": list(found.missing),
    }


def _series(one: Series) -> dict[str, Any]:
    return {
        "id": one.id,
        "unit": one.unit,
        "raw": one.raw,
        "times": [round(time, 9) for time in one.times],
        "values": [float(f"{value:.{DIGITS}g}") for value in one.values],
    }


def _number(value: Value | None) -> float | None:
    """Return a number that may be used; None where it is unknown or unreliable."""
    number = None if value is None else value.number
    return number if number is not None and math.isfinite(number) else None
