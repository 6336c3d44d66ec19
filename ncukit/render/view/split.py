"""Where the issue slots went, top down: time without work, slots used and empty, empty ones by cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncukit import quantity
from ncukit.model import Diagnosis
from ncukit.model.shares import DISAGREE, ISSUE_GUARD, Part, Split
from ncukit.render.line import Line, line
from ncukit.render.view.stalls import NAMES, fitting
from ncukit.render.words import listed

SOURCES = {"counters": "counters", "samples": "stall samples"}


def section(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """Return bars and table of the split of one launch; None where neither slots nor stalls are known.

    Where the schedulers are busy, waiting costs little: its causes are left out.
    """
    found = diagnosis.facts.split
    if found.issued is None and not found.parts:
        return None
    if _busy(found):
        found = replace(found, source=None, parts=(), agreement=None)
    return {
        "sentence": _sentence(found),
        "bars": _bars(found),
        "rows": [_row(part, found) for part in found.parts],
        "foot": line(*_foot(found)),
        "apart": found.agreement is not None and found.agreement >= DISAGREE,
    }


def _busy(found: Split) -> bool:
    issued = None if found.issued is None else found.issued.number
    return issued is not None and issued >= 100 * ISSUE_GUARD


def _sentence(found: Split) -> Line:
    words = ""
    if found.issued is not None and found.issued.number is not None:
        words = (
            f"Schedulers issue in {quantity.short(found.issued.number, '%')} of the cycles in which SMs work"
        )
        if found.parts:
            first = found.parts[0]
            words += f"; the first cause of the rest: {NAMES[first.category].lower()}"
        elif _busy(found):
            words += ": they are busy, so waiting costs little"
    else:
        words = "How often schedulers issue is unknown; of the waiting, the causes are known"
    return line(f"{words}.")


def _foot(found: Split) -> list[str]:
    words = []
    if found.source is not None:
        words.append(
            f"Causes by {SOURCES[found.source]}; states in which a warp could have issued do not count."
        )
    if found.agreement is not None:
        words.append(
            " Counters and samples differ: they saw different executions, so trust the order of causes only "
            "where both agree."
            if found.agreement >= DISAGREE
            else " Samples, counted apart, agree."
        )
    if found.missing:
        words.append(f" Not known: {listed(found.missing)}.")
    return words


def _bars(found: Split) -> list[dict[str, Any]]:
    bars = []
    if found.idle is not None and found.idle.number is not None:
        idle = found.idle.number
        bars.append(_bar("Time of a mean SM", [("used", "with work", 100 - idle), ("other", "idle", idle)]))
    issued = None if found.issued is None else found.issued.number
    if issued is not None:
        empty = max(0.0, 100 - issued)
        bars.append(_bar("Its issue slots", [("used", "issued", issued), ("other", "empty", empty)]))
    if found.parts:
        parts = [(part.category, NAMES[part.category], part.share) for part in found.parts]
        bars.append(_bar("Empty slots, by cause" if issued is not None else "Waiting, by cause", parts))
    return bars


def _bar(name: str, parts: list[tuple[str, str, float]]) -> dict[str, Any]:
    """Return one bar: widths [%] of 100, labels where they fit."""
    return {
        "name": name,
        "parts": [
            {
                "category": category,
                "width": round(min(100.0, share), 2),
                "label": fitting(f"{label} {share:.0f}{quantity.NARROW}%", share),
                "wide": share >= 40,
            }
            for category, label, share in parts
            if share > 0
        ],
        "text": "; ".join(f"{label} {quantity.short(share, '%')}" for _, label, share in parts),
    }


def _row(part: Part, found: Split) -> dict[str, Any]:
    resources = [
        f"{unit.label} {quantity.short(unit.percent, '%')}{' (full)' if unit.full else ''}"
        for unit in part.ceilings
    ]
    return {
        "category": part.category,
        "name": NAMES[part.category],
        "share": quantity.short(part.share, "%"),
        "slots": "" if part.slots is None else quantity.short(part.slots, "%"),
        "states": ", ".join(f"{state} {quantity.short(share, '%')}" for state, share in part.states[:3]),
        "resources": line("; ".join(resources) or "no unit of its own"),
    }
