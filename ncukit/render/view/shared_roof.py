"""One roofline for all launches of a file, and the table of the longest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ncukit import quantity
from ncukit.model import Point, Roof
from ncukit.render.cloud import DENSE, TOP, cloud
from ncukit.render.line import line
from ncukit.render.plot import Figure
from ncukit.render.view.ceilings import ceilings, rate_unit
from ncukit.render.view.groups import Launch
from ncukit.render.view.roofs import UNITS, leading, mark
from ncukit.render.words import LEVELS, PRECISIONS, plural, shorten

LONGEST = 8
FIGURE = "roof"


def section(launches: Sequence[Launch]) -> tuple[dict[str, Any], Figure | None]:
    """Return the shared roofline: of each launch one point, in the kind of work that most of them do."""
    points = [
        (launch, p) for launch in launches if (p := leading(launch.diagnosis.roofline.points)) is not None
    ]
    if not points:
        why = Counter(text for launch in launches for text in launch.diagnosis.roofline.missing)
        return {"figure": "", "missing": [line(text) for text, _ in why.most_common(3)]}, None
    work = Counter(_work(p) for _, p in points).most_common(1)[0][0]
    shown = sorted(
        ((launch, p) for launch, p in points if _work(p) == work), key=lambda pair: -pair[0].weight
    )
    first = shown[0][0]
    roofs = _roofs(shown)
    lines = [c for c in ceilings(first.cells, roofs, tuple(p for _, p in shown)) if not c.sheet]
    marks = [replace(mark(p, False), key=str(launch.n), name=_name(launch)) for launch, p in shown]
    figure = cloud(marks, [launch.weight for launch, _ in shown], lines, unit=UNITS[work])
    left = len(launches) - len(shown)
    rows = [_row(launch, p) for launch, p in shown[: TOP if len(shown) >= DENSE else LONGEST]]
    return {
        "figure": FIGURE if figure else "",
        "label": f"Roofline of {plural(len(shown), 'launch')}; the longest are in the table.",
        "sentence": line(_sentence(shown, work)),
        "caption": line(
            f"Area: duration. Hollow: estimate. Roofs are those of launch {first.n}, the longest. "
            + (
                f"{plural(left, 'launch')} without such a point {'is' if left == 1 else 'are'} not drawn."
                if left
                else ""
            )
        ),
        "rows": rows,
        "title": f"The {len(rows)} longest launches" if len(rows) > 1 else "The launch",
        "work": {"FLOP": "FLOP/B", "OP": "OP/B", "inst": "inst/B"}[work],
        "missing": [],
    }, figure


def _work(point: Point) -> str:
    return rate_unit(point.precision).removesuffix("/s")


def _roofs(shown: Sequence[tuple[Launch, Point]]) -> tuple[Roof, ...]:
    """Return each roof once, of the longest launch that has it."""
    found: dict[tuple[str, str], Roof] = {}
    for launch, _ in shown:
        for roof in launch.diagnosis.roofline.roofs:
            found.setdefault((roof.kind, roof.name), roof)
    return tuple(found.values())


def _name(launch: Launch) -> str:
    return f"{launch.n} {shorten(launch.cells.kernel.name, 32)}"


def _row(launch: Launch, point: Point) -> dict[str, Any]:
    precision = PRECISIONS.get(point.precision, (point.precision, ""))[0]
    level = LEVELS.get(point.level, (point.level, ""))[0]
    raw = point.sources
    intensity = launch.cells.computed(
        f"{point.precision}@{point.level} intensity",
        point.intensity,
        "",
        meaning=f"{precision} work per byte at {level}",
        formula="work / bytes",
        raw=raw,
        quality="estimate" if point.quality == "estimate" else "derived",
    )
    share = None
    if point.share is not None:
        share = launch.cells.computed(
            f"{point.precision}@{point.level} share",
            point.share,
            "%",
            meaning="Achieved share of the attainable rate",
            formula="achieved / attainable × 100",
            raw=raw,
            quality="estimate" if "estimate" in (point.quality, point.roof_quality) else "derived",
        )
    return {
        "n": launch.n,
        "name": shorten(launch.cells.kernel.name, 48),
        "precision": precision,
        "intensity": intensity,
        "share": share,
    }


def _sentence(shown: Sequence[tuple[Launch, Point]], work: str) -> str:
    words = "" if work != "inst" else "The axes count warp instructions, because no FLOPs are known. "
    known = [p.share for _, p in shown if p.share is not None]
    if not known:
        return f"{words}No launch has a roof to be judged by."
    return (
        f"{words}One point a launch: {quantity.span(min(known), max(known), '%')} of what their roofs allow."
    )
