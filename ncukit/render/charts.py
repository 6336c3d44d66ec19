"""What the charts of a launch show, as JSON data: memory, occupancy, issue slots, counters over time."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from ncukit.model import Diagnosis, Value
from ncukit.model.kernel import Series
from ncukit.model.shares import MemoryLinks, Split

DIGITS = 6
"""Significant digits of a sample; times are whole nanoseconds."""


def charts_data(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the data of every chart of a launch; a key is absent where nothing was collected for it.

    A failed launch has none.

    >>> from ncukit.model import Kernel, RawKernel, Roofline, Verdict
    >>> kernel = Kernel("", RawKernel(0, "f", "f()", ""), {}, failed="the pass failed")
    >>> charts_data(Diagnosis(kernel, Roofline(), Verdict("failed", None, "low", "")))
    {}
    """
    if diagnosis.kernel.failed:
        return {}
    facts = diagnosis.facts
    found: dict[str, Any] = {}
    if any(link.used is not None for link in facts.links.links):
        found["memory"] = _memory(facts.links)
    if (held := facts.occupancy) is not None:
        found["occupancy"] = {
            "theoretical_pct": held.percent,
            "warps": held.warps,
            "max_warps": held.max_warps,
            "blocks": held.blocks,
            "limits": [asdict(limit) for limit in held.limits],
        }
    slots = facts.split
    if slots.issued is not None or slots.parts:
        found["issue_slots"] = _slots(slots)
    if facts.series:
        found["over_time"] = [_series(one) for one in facts.series]
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
