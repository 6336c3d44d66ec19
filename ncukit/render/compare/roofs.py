"""One roofline with the way from base to other; between different GPUs one each, under its own roofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ncukit import quantity
from ncukit.model import Diagnosis, Point, Roofline
from ncukit.model.comparison import Pair
from ncukit.record import dataclass
from ncukit.render.cells import Cells
from ncukit.render.compare.changes import Two
from ncukit.render.figures import Ceiling, Figure, Mark, roofline
from ncukit.render.line import line
from ncukit.render.plot import digits, line_trace
from ncukit.render.view.ceilings import ceilings, rate_unit
from ncukit.render.view.roofs import UNITS, limiting_point, mark, with_shared
from ncukit.render.words import LEVELS, PRECISIONS

ALIKE = 0.01
"""Share by which the roofs of two runs may differ to be drawn once."""


@dataclass(frozen=True)
class _End:
    """One side in the figure: its points as marks, outlined for the base."""

    cells: Cells
    roofline: Roofline
    marks: list[Mark]

    @property
    def points(self) -> tuple[Point, ...]:
        return self.roofline.points


def section(two: Two, pair: Pair, id: str) -> tuple[dict[str, Any], dict[str, Figure]]:
    """Return the table of the points of both sides, and the figures."""
    base = _end(two.base, pair.base.diagnosis, "base")
    other = _end(two.other, pair.other.diagnosis, "other")
    figures: dict[str, Figure] = {}
    if pair.same_gpu:
        drawn = _together(base, other)
        if drawn is not None:
            figures[id] = drawn
        named = {id: ("", [base, other])}
    else:
        named = {f"{id}-base": ("Base", [base]), f"{id}-other": ("Other", [other])}
        for name, (_, (end,)) in named.items():
            drawn = _figure(end.marks, end)
            if drawn is not None:
                figures[name] = drawn
    return {
        "figures": [
            {"id": name, "label": _described(name, ends), "caption": line(_caption(where, ends[0], pair))}
            for name, (where, ends) in named.items()
            if name in figures
        ],
        "sentence": line(_sentence(base, other, pair)),
        "rows": _rows(base, other, id, pair),
        "missing": [
            line(f"{side}: {text}")
            for side, end in (("Base", base), ("Other", other))
            for text in end.roofline.missing
        ],
    }, figures


def _end(cells: Cells, diagnosis: Diagnosis, side: str) -> _End:
    roof = with_shared(cells, diagnosis)
    hot = limiting_point(roof.points, diagnosis.verdict.limiter)
    marks = [
        replace(
            found := mark(point, point is hot),
            key=f"{side} {found.key}",
            name=f"{side} {found.name}",
            hollow=side == "base",
        )
        for point in roof.points
        if point.intensity and point.achieved
    ]
    return _End(cells, roof, marks)


def _figure(marks: Sequence[Mark], end: _End) -> Figure | None:
    roofs = [c for c in ceilings(end.cells, end.roofline.roofs, end.points) if not c.sheet]
    return roofline(marks, roofs, unit=UNITS[_work(end.points)])


def _together(base: _End, other: _End) -> Figure | None:
    """Return one figure of both, a thin line from each point of the base to where it went."""
    if not other.points and not base.points:
        return None
    work = {_work(end.points) for end in (base, other) if end.points}
    if len(work) > 1:  # FLOPs on one side, instructions on the other: no common axis
        return None
    roofs: dict[str, Ceiling] = {}
    for end in (other, base):
        for ceiling in ceilings(end.cells, end.roofline.roofs, end.points):
            if not ceiling.sheet:
                roofs.setdefault(f"{ceiling.kind} {ceiling.key}", ceiling)
    figure = roofline([*base.marks, *other.marks], list(roofs.values()), unit=UNITS[work.pop()])
    if figure is not None:
        figure["data"] = [*_ways(base.marks, other.marks), *figure["data"]]
    return figure


def _ways(base: Sequence[Mark], other: Sequence[Mark]) -> list[dict[str, Any]]:
    """Return the lines from the points of the base to those of the other side."""
    ends = {(m.group, m.level): m for m in other}
    xs: list[float | None] = []
    ys: list[float | None] = []
    for m in base:
        if (end := ends.get((m.group, m.level))) is not None:
            xs += [digits(m.x), digits(end.x), None]
            ys += [digits(m.y), digits(end.y), None]
    return [line_trace(xs, ys, "var(--ink2)", "dot", 1.6)] if xs else []


def _rows(base: _End, other: _End, id: str, pair: Pair) -> list[dict[str, Any]]:
    rows = []
    for side, end in (("base", base), ("other", other)):
        figure = id if pair.same_gpu else f"{id}-{side}"
        for point in end.points:
            precision, _ = PRECISIONS.get(point.precision, (point.precision, ""))
            level = LEVELS.get(point.level, (point.level, ""))[0]
            name = level if point.precision == "inst" else f"{precision}, {level}"
            rows.append(
                {
                    "point": f"{figure}:{side} {point.precision}@{point.level}",
                    "side": side,
                    "sign": "○" if side == "base" else "●",
                    "name": name,
                    "intensity": quantity.significant(point.intensity) if point.intensity else "–",
                    "rate": quantity.short(point.achieved, rate_unit(point.precision)),
                    "share": _share(end.cells, point),
                    "order": (point.precision, point.level, side),
                }
            )
    return sorted(rows, key=lambda row: str(row["order"]))


def _share(cells: Cells, point: Point) -> Any:
    if point.share is None:
        return None
    return cells.computed(
        f"{point.precision}@{point.level} share",
        point.share,
        "%",
        meaning="Achieved share of the attainable rate, under the roofs of its own run",
        formula="achieved / attainable × 100",
        sources=[s for s in point.sources if s in cells.kernel.metrics],
        raw=[s for s in point.sources if s not in cells.kernel.metrics],
        quality="estimate" if "estimate" in (point.quality, point.roof_quality) else "derived",
    )


def _work(points: Sequence[Point]) -> str:
    units = {rate_unit(p.precision).removesuffix("/s") for p in points}
    return units.pop() if len(units) == 1 else "FLOP"


def _sentence(base: _End, other: _End, pair: Pair) -> str:
    if not base.points and not other.points:
        return "No point can be drawn from either side."
    if not pair.same_gpu:
        return "One roofline a GPU, each under its own roofs: compare the shares, not the heights."
    off = [
        abs(b.value / a.value - 1)
        for a in base.roofline.roofs
        for b in other.roofline.roofs
        if (a.kind, a.name) == (b.kind, b.name) and a.value
    ]
    if off and max(off) > ALIKE:
        return (
            "Roofs of the other run; those of the base differ by up to "
            f"{quantity.short(100 * max(off), '%')}, because the clocks differ."
        )
    return "Roofs of the other run; those of the base are the same within 1 %."


def _caption(where: str, end: _End, pair: Pair) -> str:
    if where:
        return f"{where}: {end.cells.kernel.gpu or 'unknown GPU'}."
    return "Outlined: base. Filled: other. Colour: precision, shape: memory level. Dotted: the way."


def _described(name: str, ends: Sequence[_End]) -> str:
    words = [
        f"{m.name} reaches {m.share.replace(quantity.NARROW, ' ')}"
        for end in ends
        for m in end.marks
        if m.share
    ]
    return f"Roofline. {'; '.join(words[:4]) or 'No share of a roof is known'}. All numbers are in the table."
