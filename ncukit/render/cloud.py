"""The shared roofline of many launches: area is duration, the longest are labelled, crowds are a density."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from ncukit.render import labels
from ncukit.render.annotations import note, roof_notes
from ncukit.render.figures import SHAPES
from ncukit.render.plot import PLOTS, Axes, Ceiling, Figure, Mark, digits, frame, roof_traces

DENSE = 2000
"""Points from which only a density and the longest launches are drawn."""
MOST = 350
"""Points that keep a figure under its size; more are merged, then drawn as a density."""
TOP = 20
BIGGEST, SMALLEST = 30.0, 6.0
"""[px] Diameters of the longest and of the shortest launch."""
LABELLED = 3


def cloud(
    marks: Sequence[Mark], weights: Sequence[float], ceilings: Sequence[Ceiling], *, unit: str
) -> Figure | None:
    """Return the roofline of many launches; ``weights`` are their durations [s].  None without a point."""
    pairs = [(m, w) for m, w in zip(marks, weights, strict=True) if m.x > 0 and m.y > 0]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: -pair[1])
    axes = Axes.around([m for m, _ in pairs], ceilings)
    figure = frame(axes, unit)
    figure["data"] = roof_traces(axes, [], ceilings)
    merged = _merged(pairs)
    if len(pairs) >= DENSE or len(merged) > MOST:
        figure["data"].append(_density([m for m, _ in pairs]))
        merged = pairs[:TOP]
    figure["data"] += _circles(merged, pairs[0][1])
    for layout in PLOTS:
        figure["layout"]["annotations"] += _labels(axes, ceilings, merged, layout)
    return figure


def _merged(pairs: Sequence[tuple[Mark, float]]) -> list[tuple[Mark, float]]:
    """Return the points, those that would cover each other to the pixel once: the longest stands for them."""
    seen: dict[tuple[Any, ...], tuple[Mark, float]] = {}
    for m, w in pairs:
        key = (m.group, m.level, m.hollow, round(math.log10(m.x), 2), round(math.log10(m.y), 2))
        seen.setdefault(key, (m, w))
    return list(seen.values())


def _circles(pairs: Sequence[tuple[Mark, float]], longest: float) -> list[dict[str, Any]]:
    """Return one trace a precision, level and certainty; the customdata of a point is its launch."""
    groups: dict[tuple[str, str, bool], list[tuple[Mark, float]]] = {}
    for m, w in pairs:
        groups.setdefault((m.color, m.level, m.hollow), []).append((m, w))
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [digits(m.x) for m, _ in some],
            "y": [digits(m.y) for m, _ in some],
            "customdata": [m.key for m, _ in some],
            "marker": {
                "symbol": SHAPES.get(level, "circle") + ("-open" if hollow else ""),
                "size": [
                    round(max(SMALLEST, BIGGEST * math.sqrt(w / longest if longest else 1))) for _, w in some
                ],
                "color": f"var({color})",
                "opacity": 1 if hollow else 0.75,
                "line": {"width": 1.2, "color": f"var({color})" if hollow else "var(--paper)"},
            },
            "hovertemplate": "launch %{customdata}: %{x:.3g} per byte, %{y:.3s} / s<extra></extra>",
        }
        for (color, level, hollow), some in groups.items()
    ]


def _density(marks: Sequence[Mark]) -> dict[str, Any]:
    """Return one trace of squares, darker where more launches lie."""
    step = 0.05
    while True:
        counts: dict[tuple[int, int], int] = {}
        for m in marks:
            cell = (round(math.log10(m.x) / step), round(math.log10(m.y) / step))
            counts[cell] = counts.get(cell, 0) + 1
        if len(counts) <= MOST:
            break
        step *= 2
    most = max(counts.values())
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [digits(10 ** (x * step)) for x, _ in counts],
        "y": [digits(10 ** (y * step)) for _, y in counts],
        "marker": {
            "symbol": "square",
            "size": 9,
            "color": [round(math.log(1 + n) / math.log(1 + most), 2) for n in counts.values()],
            "cmin": 0,
            "cmax": 1,
            "colorscale": [[0, "var(--track)"], [1, "var(--ink2)"]],
            "showscale": False,
        },
        "customdata": list(counts.values()),
        "hovertemplate": "%{customdata} launches<extra></extra>",
    }


def _labels(
    axes: Axes, ceilings: Sequence[Ceiling], pairs: Sequence[tuple[Mark, float]], layout: str
) -> list[dict[str, Any]]:
    plot = PLOTS[layout]
    named = [m for m, _ in pairs[: LABELLED if layout == "wide" else 1]]
    taken = [labels.marker(*axes.px(math.log10(m.x), math.log10(m.y), plot), 16) for m, _ in pairs[:60]]
    found = roof_notes(axes, ceilings, plot, taken, slim=layout == "slim")
    for m in named:
        x, y = math.log10(m.x), math.log10(m.y)
        spot = labels.place(html.escape(m.name), *axes.px(x, y, plot), taken, *plot)
        if spot is not None:
            label = note(x, y, html.escape(m.name), "--ink", xanchor=spot.xanchor, yanchor=spot.yanchor)
            found.append({**label, "xshift": spot.dx, "yshift": spot.dy, "bgcolor": "var(--paper)"})
    return [{**one, layout: True} for one in found]
