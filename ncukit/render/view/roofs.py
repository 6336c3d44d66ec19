"""The roofline of one launch: points and roofs of the figure, and the tables that hold the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ncukit import quantity
from ncukit.model import Diagnosis, Point, Roof, Roofline
from ncukit.render.cells import Cell, Cells, plain
from ncukit.render.figures import Figure, Mark, roofline
from ncukit.render.line import line
from ncukit.render.view.ceilings import ceilings, rate_unit, roof_name, sheet
from ncukit.render.view.quality import is_short
from ncukit.render.words import HOLLOW, LEVELS, PRECISIONS, listed
from ncukit.roofline import attainable

__all__ = ["UNITS", "ceilings", "leading", "limiting_point", "mark", "rate_unit", "section", "with_shared"]

UNITS = {"FLOP": "FLOP", "OP": "operations", "inst": "warp instructions"}


def section(cells: Cells, diagnosis: Diagnosis) -> tuple[dict[str, Any], Figure | None]:
    """Return the tables, checks and words of the roofline, and its figure (None without a point to draw)."""
    roof = with_shared(cells, diagnosis)
    limiter = limiting_point(roof.points, diagnosis.verdict.limiter)
    work = _work(roof.points)
    marks = [mark(p, p is limiter) for p in roof.points if p.intensity and p.achieved]
    figure = roofline(marks, ceilings(cells, roof.roofs, roof.points, roof.measured), unit=UNITS[work])
    tables = {
        "figure": f"kernel-{cells.launch}-roof" if figure else "",
        "label": _described(roof.points, limiter),
        "sentence": line(_sentence(roof.points)),
        "achieved": _achieved(cells, roof.points),
        "work": {"FLOP": "FLOP", "OP": "OP", "inst": "inst"}[work],
        "points": [_point_row(cells, p, p is limiter) for p in roof.points],
        "roofs": [_roof_row(cells, r, roof.roofs, roof.points, limiter) for r in roof.roofs]
        + [_measured_row(cells, r) for r in roof.measured],
        "checks": [_check(check.ok, check.message) for check in roof.checks],
        "missing": [line(text) for text in roof.missing],
        "caption": line(_caption(cells, roof.points, bool(roof.measured))),
    }
    return tables, figure


def mark(point: Point, hot: bool) -> Mark:
    """Return ``point`` as the figure draws it."""
    precision, color = PRECISIONS.get(point.precision, (point.precision, "--ink"))
    level = LEVELS.get(point.level, (point.level, "●"))[0]
    unit = rate_unit(point.precision)
    about = "≈ " if point.quality == "estimate" else ""
    share = "" if point.share is None else f"{about}{quantity.short(point.share, '%')}"
    intensity = f"{about}{quantity.significant(point.intensity or 0)} {_short_unit(point.precision)}/B"
    hover = f"{precision}, {level}: {intensity}, {quantity.short(point.achieved, unit)}"
    if point.attainable:
        hover += f"<br>{share} of the attainable {quantity.short(point.attainable, unit)}"
    return Mark(
        key=_key(point),
        group=point.precision,
        level=point.level,
        x=point.intensity or 0,
        y=point.achieved or 0,
        attainable=point.attainable,
        color=color,
        label="no roof",
        hover=hover,
        hollow=point.quality == "estimate",
        hot=hot,
        name=level if point.precision == "inst" else f"{precision} {level}",
        share=f"{share} of its roof" if share else "",
    )


def with_shared(cells: Cells, diagnosis: Diagnosis) -> Roofline:
    """Return the roofline with a point at shared memory where that is the limiter.

    It shares the roof of L1, whose data stage it goes through; its bytes, 128 a wavefront, are an estimate.
    """
    roof = diagnosis.roofline
    bytes_, same = cells.number("shared_bytes"), next(iter(roof.points), None)
    l1 = next((r for r in roof.roofs if r.name == "l1"), None)
    if diagnosis.verdict.limiter != "shared" or not bytes_ or same is None or l1 is None or same.peak is None:
        return roof
    intensity = same.flop / bytes_
    point = replace(
        same,
        level="shared",
        bytes=bytes_,
        intensity=intensity,
        attainable=attainable(intensity, same.peak, l1.value),
        bandwidth=l1.value,
        quality="estimate",
        sources=("shared_bytes",),
    )
    return replace(roof, points=(point, *roof.points))


def limiting_point(points: Sequence[Point], limiter: str | None) -> Point | None:
    """Return the point that the verdict is about: its level or its precision, nearest to the roof."""
    some = [p for p in points if p.share is not None and _about(p, limiter)]
    return max(some, key=lambda p: (p.share or 0, p.level == "dram"), default=None)


def _about(point: Point, limiter: str | None) -> bool:
    if limiter == "tensor":
        return point.precision.startswith("tensor")
    return limiter in (point.level, point.precision)


def leading(points: tuple[Point, ...]) -> Point | None:
    """Return the point that stands for a launch: nearest to its roof, at DRAM where that is known."""
    some = [p for p in points if p.intensity and p.achieved]
    return max(some, key=lambda p: (p.level == "dram", p.share or 0), default=None)


def _short_unit(precision: str) -> str:
    return rate_unit(precision).removesuffix("/s")


def _work(points: tuple[Point, ...]) -> str:
    units = {_short_unit(p.precision) for p in points}
    return units.pop() if len(units) == 1 else "FLOP"


def _key(point: Point) -> str:
    return f"{point.precision}@{point.level}"


def _point_row(cells: Cells, point: Point, hot: bool) -> dict[str, Any]:
    precision, color = PRECISIONS.get(point.precision, (point.precision, "--ink"))
    level, shape = LEVELS.get(point.level, (point.level, "●"))
    name = level if point.precision == "inst" else f"{precision}, {level}"
    return {
        "key": _key(point),
        "name": name,
        "shape": shape.translate(HOLLOW) if point.quality == "estimate" else shape,
        "color": "--hot" if hot else color,
        "hot": hot,
        "bytes": _cell(cells, point, "bytes", point.bytes, "byte", "Bytes moved at this level", ""),
        "intensity": _cell(
            cells, point, "intensity", point.intensity, "", f"{_short_unit(point.precision)} per byte",
            "work / bytes",
        ),
        "attainable": _cell(
            cells, point, "attainable", point.attainable, "", "What the roof allows at this intensity",
            "min(peak, intensity × bandwidth)",
        ),
        "share": _cell(
            cells, point, "share", point.share, "%", "Achieved share of the attainable rate",
            "achieved / attainable × 100",
        ),
    }  # fmt: skip


def _cell(
    cells: Cells, point: Point, what: str, value: float | None, unit: str, meaning: str, formula: str
) -> Cell | None:
    if value is None:
        return plain("no roof") | {"state": "missing"} if what == "attainable" else None
    neutral = [s for s in point.sources if s in cells.kernel.metrics]
    raw = [s for s in point.sources if s not in cells.kernel.metrics]
    quality = "derived" if point.quality == "exact" and formula else point.quality
    return cells.computed(
        f"{_key(point)} {what}",
        value,
        unit,
        meaning=meaning,
        formula=formula,
        sources=neutral,
        raw=raw,
        quality=quality,
    )


def _roof_row(
    cells: Cells, roof: Roof, roofs: tuple[Roof, ...], points: tuple[Point, ...], limiter: Point | None
) -> dict[str, Any]:
    name, _ = roof_name(roof)
    unit = rate_unit(roof.name) if roof.kind == "compute" else "byte/s"
    key = f"roof {roof.kind} {roof.name}"
    value = sheet(cells, roof)
    ridge = twin = None
    if roof.kind == "bandwidth" and (top := _top(roofs, points, limiter)):
        ridge = cells.computed(
            f"{key} ridge",
            top.value / roof.value,
            "",
            meaning=f"Intensity where the {roof_name(top)[0]} roof meets this one",
            formula="peak rate / bandwidth",
        )
    if value is not None:
        twin = cells.computed(
            f"{key} sheet",
            value,
            unit,
            meaning="The same roof at the clocks that the device advertises",
            formula="roof × advertised clock / clock of the run",
        )
    meaning = roof.note or "Roof at the clocks of the run"
    run = cells.computed(key, roof.value, unit, meaning=meaning, formula="", quality=roof.quality)
    return {"name": name, "note": roof.note, "run": run, "sheet": twin, "ridge": ridge}


def _measured_row(cells: Cells, roof: Roof) -> dict[str, Any]:
    name, _ = roof_name(roof)
    unit = rate_unit(roof.name) if roof.kind == "compute" else "byte/s"
    key = f"measured {roof.kind} {roof.name}"
    run = cells.computed(key, roof.value, unit, meaning=roof.note, formula="", quality=roof.quality)
    return {"name": f"measured {name}", "note": roof.note, "run": run, "sheet": None, "ridge": None}


def _top(roofs: tuple[Roof, ...], points: tuple[Point, ...], limiter: Point | None) -> Roof | None:
    """Return the compute roof whose ridges matter: of the limiter, else of the point nearest to its roof."""
    lead = limiter or max(points, key=lambda p: p.share or 0, default=None)
    return next((r for r in roofs if r.kind == "compute" and lead and r.name == lead.precision), None)


def _achieved(cells: Cells, points: tuple[Point, ...]) -> list[dict[str, Any]]:
    rates = {p.precision: p for p in points if p.achieved is not None}
    return [
        {
            "name": PRECISIONS.get(precision, (precision, ""))[0],
            "cell": _cell(
                cells, p, "achieved", p.achieved, rate_unit(precision), "Achieved rate", "work / duration"
            ),
        }
        for precision, p in rates.items()
    ]


def _check(ok: bool | None, message: str) -> dict[str, Any]:
    sign, status = {True: ("✓", "ok"), False: ("!", "warn"), None: ("–", "no")}[ok]
    return {"sign": sign, "status": status, "text": line(message)}


def _sentence(points: tuple[Point, ...]) -> str:
    if not points:
        return "No point can be drawn from this report."
    if all(p.precision == "inst" for p in points):
        return "No floating-point work is known, so the axes count warp instructions instead of FLOPs."
    names = listed(list(dict.fromkeys(PRECISIONS.get(p.precision, (p.precision, ""))[0] for p in points)))
    return f"Colour and label: precision ({names}). Shape: memory level. Only roofs that the kernel used."


def _caption(cells: Cells, points: tuple[Point, ...], measured: bool = False) -> str:
    clocks = [
        f"{name} {quantity.short(clock, 'hz')}"
        for name, id in (("SM", "sm_clock"), ("DRAM", "dram_clock"))
        if (clock := cells.number(id)) is not None
    ]
    at = f" ({', '.join(clocks)})" if clocks else ""
    if is_short(cells):
        return f"Dashed roofs at nominal clocks: those of a launch this short{at} are not reliable."
    words = f"Solid: roofs at the clocks of the run{at}. Dashed: data sheet clocks, or an estimated peak."
    if any(p.quality == "estimate" for p in points):
        words += " Hollow point: estimate."
    if measured:
        words += " Long dashes: measured on this GPU by a large copy or matrix product."
    return words + " The short bar above a point is what its roof allows."


def _described(points: tuple[Point, ...], limiter: Point | None) -> str:
    """Return the text alternative of the figure."""
    said = [p for p in points if p.share is not None]
    if limiter is not None:
        said = [limiter, *(p for p in said if p is not limiter)]
    words = [f"{mark(p, False).name} reaches {p.share:.1f} percent of its roof" for p in said[:3]]
    return f"Roofline. {'; '.join(words) or 'No share of a roof is known'}. All numbers are in the table."
