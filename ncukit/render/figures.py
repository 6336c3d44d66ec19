"""Figures as plain Plotly dicts: testable without a browser, coloured by ``var(--token)`` when drawn.

Positions of annotations on a logarithmic axis are logarithms, those of traces are not.
Private keys are read and removed by the page's script: ``along`` (turn the label to the slope of the
diagonals, ``off`` pixels beside the line) and ``wide`` / ``slim`` (only at that width of the figure).
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from ncukit.render.annotations import notes
from ncukit.render.plot import (
    PLOTS,
    Axes,
    Ceiling,
    Figure,
    Mark,
    digits,
    frame,
    has_neighbour,
    line_trace,
    roof_traces,
)

__all__ = ["Ceiling", "Figure", "Mark", "roofline"]

SHAPES = {"dram": "circle", "l2": "square", "l1": "triangle-up", "shared": "diamond"}
SIZES = {"dram": 9, "l2": 10, "l1": 12, "shared": 12}
NESTED = {"dram": 7, "l2": 13, "l1": 22, "shared": 9}


def roofline(marks: Sequence[Mark], ceilings: Sequence[Ceiling], *, unit: str) -> Figure | None:
    """Return the roofline of one launch; ``unit`` is FLOP, OP or warp instructions.  None without a point."""
    drawn = [m for m in marks if m.x > 0 and m.y > 0]
    if not drawn:
        return None
    axes = Axes.around(drawn, ceilings)
    figure = frame(axes, unit)
    figure["data"] = [*roof_traces(axes, drawn, ceilings), *_attainable(drawn), *_points(drawn)]
    for layout in PLOTS:
        figure["layout"]["annotations"] += notes(axes, ceilings, drawn, layout)
    return figure


def _attainable(marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Return, above each point, a short bar at what its roof allows, and the way there."""
    traces = []
    for hot in (False, True):
        some = [m for m in marks if m.attainable and m.hot == hot]
        if not some:
            continue
        color = "var(--hot)" if hot else "var(--ink2)"
        xs = [v for m in some for v in (digits(m.x), digits(m.x), None)]
        ys = [v for m in some for v in (digits(m.y), digits(m.attainable or 0), None)]
        traces.append(line_trace(xs, ys, color, "solid" if hot else "dot", 2.4 if hot else 1.2))
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [digits(m.x) for m in some],
                "y": [digits(m.attainable or 0) for m in some],
                "marker": {"symbol": "line-ew", "size": 13, "line": {"width": 2, "color": color}},
                "hoverinfo": "skip",
            }
        )
    return traces


def _points(marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Return one trace a level, the largest markers first, so that nested ones stay visible."""
    traces = []
    for level in ("l1", "l2", "shared", "dram"):
        some = [m for m in marks if m.level == level]
        if not some:
            continue
        colors = ["var(--hot)" if m.hot else f"var({m.color})" for m in some]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [digits(m.x) for m in some],
                "y": [digits(m.y) for m in some],
                "customdata": [m.key for m in some],
                "marker": {
                    "symbol": [SHAPES[level] + ("-open" if m.hollow else "") for m in some],
                    "size": [(NESTED if has_neighbour(m, marks) else SIZES)[level] for m in some],
                    "color": colors,
                    "opacity": 1,
                    "line": {
                        "width": [2 if m.hollow else 1.5 for m in some],
                        "color": [
                            c if m.hollow else "var(--paper)" for m, c in zip(some, colors, strict=True)
                        ],
                    },
                },
                "hoverinfo": "text",
                "hovertext": [html.escape(m.hover) for m in some],
            }
        )
    return traces
