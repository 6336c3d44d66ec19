"""All kernels of one GPU on one roofline; work that is counted otherwise gets its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ncukit.render.index.row import Row
from ncukit.render.line import line
from ncukit.render.plot import Figure
from ncukit.render.view import shared_roof
from ncukit.render.view.roofs import leading, rate_unit
from ncukit.render.words import plural

KINDS = {"FLOP/s": "FLOP", "OP/s": "integer tensor operations", "inst/s": "warp instructions"}


def rooflines(rows: Sequence[Row], gpus: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, Figure]]:
    """Return the rooflines in the order of ``gpus``, and their figures."""
    found: list[dict[str, Any]] = []
    figures: dict[str, Figure] = {}
    for number, gpu in enumerate(gpus):
        here = [row for row in rows if row.gpu == gpu]
        charts = []
        for unit, words in KINDS.items():
            some = [row for row in here if _unit(row) == unit]
            if some:
                charts.append(
                    _chart(some, f"roof-{number}-{unit.removesuffix('/s').lower()}", words, figures)
                )
        left = [row for row in here if _unit(row) is None]
        found.append(
            {
                "id": f"gpu-{number}",
                "key": number,
                "gpu": gpu,
                "count": f"{plural(len(here), 'kernel')} of "
                f"{plural(len({row.measured.origin.path for row in here}), 'report')}",
                "charts": charts,
                "open": bool(charts) and not any(one["open"] for one in found),
                "left": _left(left),
            }
        )
    return found, figures


def _chart(rows: Sequence[Row], id: str, words: str, figures: dict[str, Figure]) -> dict[str, Any]:
    section, figure = shared_roof.section([row.launch for row in rows])
    first = section["rows"][0]["n"]
    if figure is not None:
        _say_rows(figure, rows)
        figures[id] = figure
    return {
        **section,
        "figure": id if figure is not None else "",
        "label": f"Roofline of {plural(len(rows), 'kernel')} by {words}; the longest are in the table.",
        "caption": line(
            f"By {words}. One point a kernel and report: its longest launch. Area: duration. "
            f"Hollow: estimate. Roofs are those of row {first}, the longest."
        ),
        "title": f"The {len(section['rows'])} longest" if len(section["rows"]) > 1 else "The kernel",
    }


def _say_rows(figure: Figure, rows: Sequence[Row]) -> None:
    """Name points by row; ``ids`` lists every row that a point stands for, so that a choice can hide it."""
    spots: dict[tuple[float, float], list[str]] = {}
    for row in rows:
        if (point := leading(row.launch.diagnosis.roofline.points)) is not None:
            spots.setdefault(_spot(point.intensity or 0, point.achieved or 0), []).append(str(row.n))
    for trace in figure["data"]:
        if str(trace.get("hovertemplate", "")).startswith("launch "):
            trace["hovertemplate"] = "row " + trace["hovertemplate"].removeprefix("launch ")
            near = zip(trace["x"], trace["y"], trace["customdata"], strict=True)
            trace["ids"] = [" ".join(dict.fromkeys([key, *spots.get(_spot(x, y), ())])) for x, y, key in near]


def _spot(x: float, y: float) -> tuple[float, float]:
    """Return where points count as one: to the pixel."""
    return round(math.log10(x), 2), round(math.log10(y), 2)


def _left(rows: Sequence[Row]) -> str:
    """Return what is said of kernels without a point."""
    if not rows:
        return ""
    named = ", ".join(str(row.n) for row in rows[:12])
    more = f" and {len(rows) - 12:,} more" if len(rows) > 12 else ""
    noun = "row" if len(rows) == 1 else "rows"
    return f"Without a point, because work, bytes or duration are not known: {noun} {named}{more}."


def _unit(row: Row) -> str | None:
    point = leading(row.launch.diagnosis.roofline.points)
    return None if point is None else rate_unit(point.precision)
