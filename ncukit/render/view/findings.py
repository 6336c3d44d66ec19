"""What the rules found, by estimated gain, and which rules could not be applied."""

from __future__ import annotations

from typing import Any

from ncukit import quantity
from ncukit.model import Diagnosis, Finding, Place
from ncukit.render.cells import Cells
from ncukit.render.line import Line, code, line, small
from ncukit.render.view.verdict import ledger
from ncukit.render.words import FAMILIES, named, plural, shorten

SEVERITY = {"high": 0, "medium": 1, "low": 2, "info": 3}
PLACES = 3
"""Lines or instructions that are shown of one finding."""
SIGNS = {"high": ("!!", "warn"), "medium": ("!", "warn"), "low": ("·", "no"), "info": ("·", "no")}


def findings(cells: Cells, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the findings of one launch in the order of their gain, and the skipped rules with the reason."""
    ordered = sorted(diagnosis.findings, key=_order)
    return {
        "rows": [_row(cells, found) for found in ordered],
        "skipped": [
            {
                "id": s.id,
                "family": FAMILIES.get(s.family, s.family),
                "reason": line(named(s.reason)),
                "why": line(named(s.why or s.reason)),
            }
            for s in diagnosis.skipped
        ],
        "sentence": line(_sentence(diagnosis)),
        "folded": f"{plural(len(diagnosis.skipped), 'rule')} could not be applied",
    }


def _order(found: Finding) -> tuple[int, float, int]:
    """Global gains first, then local ones; the two are never compared with each other."""
    gain = found.gain_pct or 0
    return (0 if found.gain_kind == "global" and gain else 1, -gain, SEVERITY[found.severity])


def _row(cells: Cells, found: Finding) -> dict[str, Any]:
    gain = None if found.gain_pct is None else f"≈{quantity.NARROW}{quantity.short(found.gain_pct, '%')}"
    sign, status = SIGNS[found.severity]
    return {
        "id": found.id,
        "family": FAMILIES.get(found.family, found.family),
        "title": line(found.title),
        "detail": line(found.detail),
        "advice": line(found.advice),
        "source": found.source or "",
        "severity": found.severity,
        "sign": sign,
        "status": status,
        "global": gain if found.gain_kind == "global" else None,
        "local": gain if found.gain_kind == "local" else None,
        "values": [{"id": id, "cell": cells.of(value)} for id, value in found.metrics.items()],
        "against": [ledger(cells, evidence) for evidence in found.against],
        "places": [_place(place) for place in found.places[:PLACES]],
        "rows": [
            {"name": name, "text": line(text)}
            for name, text in (
                ("Try", found.advice),
                ("Watch", found.watch),
                ("Disproved if", found.disproved_if),
                ("Gain", _gain(found)),
            )
            if text
        ],
    }


def _gain(found: Finding) -> str:
    """Return what the estimated gain is of, and how it was estimated."""
    if found.gain_pct is None or not found.formula:
        return ""
    of = "Of the whole kernel (global)" if found.gain_kind == "global" else "Of one unit's work (local)"
    return f"{of}: {found.formula}."


def _place(place: Place) -> Line:
    where = place.source or f"SASS at +0x{place.offset:x}"
    unit = place.unit if place.unit == "inst" or place.amount == 1 else f"{place.unit}s"
    amount = f"{quantity.short(place.amount)} {unit}, {quantity.short(place.share, '%')} of all"
    note = f"; {place.note}" if place.note else ""
    return line(code(where), " ", code(shorten(place.text.strip(), 100)), " ", small(amount + note))


def _sentence(diagnosis: Diagnosis) -> str:
    found, skipped = len(diagnosis.findings), len(diagnosis.skipped)
    words = f"{plural(found, 'rule')} fired" if found else "No rule fired"
    if skipped:
        words += f"; {plural(skipped, 'rule')} could not be applied"
    return f"{words}. A finding is not yet the limit: the verdict weighs them."
