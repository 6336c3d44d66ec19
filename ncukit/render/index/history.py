"""One kernel in several reports, in the order in which they were made, with their recorded revisions."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import datetime
from statistics import median
from typing import Any

from ncukit import quantity
from ncukit.render.index.row import Row
from ncukit.render.plot import HEIGHT, MARGIN, SLIM_HEIGHT, Figure, digits, look

MOST = 20
"""Histories that are shown: those of the kernels that take the most time."""
POWERS = {"ps": 1e12, "ns": 1e9, "µs": 1e6, "ms": 1e3, "s": 1.0, "ks": 1e-3}
"""Units of time, and how many of each are a second."""
REVISION = 10
"""Characters of a git revision."""


def histories(rows: Sequence[Row]) -> tuple[list[dict[str, Any]], dict[str, Figure], int]:
    """Return the histories, their figures, and how many more there are.

    A history is one kernel on one GPU with the same parameters, in at least two reports of different times.
    """
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.measured.durations:
            params = tuple(sorted((k, str(v)) for k, v in row.measured.origin.params.items()))
            groups.setdefault((row.measured.kernel.demangled, row.gpu, params), []).append(row)
    found = [
        sorted(group, key=lambda row: (row.measured.origin.time, row.n))
        for group in groups.values()
        if len({row.measured.origin.time.replace(microsecond=0) for row in group}) > 1
    ]
    found.sort(key=lambda group: -sum(row.measured.total for row in group))
    shown, figures = [], {}
    for number, group in enumerate(found[:MOST], 1):
        figures[f"history-{number}"] = _figure(group)
        shown.append(_history(group, f"history-{number}"))
    return shown, figures, max(0, len(found) - MOST)


def moment(time: datetime) -> str:
    """Return a time to the minute, UTC."""
    return f"{time:%Y-%m-%d %H:%M}"


def revision(row: Row) -> str:
    """Return the recorded git revision, marked where the script differed from it; nothing when unknown."""
    origin = row.measured.origin
    if origin.revision is None:
        return ""
    return origin.revision[:REVISION] + (" + changes" if origin.modified else "")


def _history(group: Sequence[Row], id: str) -> dict[str, Any]:
    times = [median(row.measured.durations) for row in group]
    clean = [row.measured.origin.clean for row in group]
    texts, clean_texts = quantity.together(times, "s"), quantity.together(clean, "s")
    first = group[0]
    params = ", ".join(f"{k}={v}" for k, v in sorted(first.measured.origin.params.items()))
    lines = []
    for at, (row, text) in enumerate(zip(group, texts, strict=True)):
        before = group[at - 1] if at else None
        lines.append(
            {
                "n": row.n,
                "time": moment(row.measured.origin.time),
                "of_file": row.measured.origin.of_file,
                "report": row.measured.origin.name,
                "link": row.link,
                "copies": row.copies,
                "revision": revision(row) or "not recorded",
                "shape": _shape(row),
                "median": text,
                "change": _change(row, before, times[at], times[at - 1]),
                "clean": clean_texts[at] if clean[at] is not None else "not measured",
                "limit": row.limit,
            }
        )
    return {
        "id": id,
        "name": first.name,
        "gpu": first.gpu,
        "params": params,
        "unit": quantity.scale(times, "s"),
        "clean_unit": quantity.scale(clean, "s"),
        "count": len(group),
        "range": quantity.span(min(times), max(times), "s"),
        "rows": lines,
        "label": f"Median duration of {first.name} over time; every value is in the table below.",
    }


def _shape(row: Row) -> str:
    return f"{row.measured.grid or 'unknown'} of {row.measured.block or 'unknown'}"


def _change(row: Row, before: Row | None, now: float, then: float) -> str:
    """Return the change since the report before; launches of another size are not compared."""
    if before is None:
        return ""
    if _shape(row) != _shape(before):
        return "other launch size"
    if not then:
        return ""
    change = 100 * (now - then) / then
    sign = "+" if change > 0 else quantity.MINUS if change < 0 else ""
    return f"{sign}{abs(change):.1f}{quantity.NARROW}%"


def _figure(group: Sequence[Row]) -> Figure:
    """Return durations against time: filled where the git revision is recorded, hollow elsewhere."""
    seconds = [digits(median(row.measured.durations)) for row in group]
    unit = quantity.scale(seconds, "s")
    values = [digits(s * POWERS[unit]) for s in seconds]
    axis = {"showgrid": True, "gridcolor": "var(--grid)", "zeroline": False, "fixedrange": True,
            "linecolor": "var(--ink2)", "tickfont": {"color": "var(--ink2)"}}  # fmt: skip
    moments = [f"{row.measured.origin.time:%Y-%m-%d %H:%M:%S}" for row in group]
    title = {"size": 12, "color": "var(--ink2)"}
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": moments,
                "y": values,
                "text": [
                    html.escape(f"{revision(row) or row.measured.origin.name}, {row.limit}") for row in group
                ],
                "hovertemplate": f"%{{x}}: %{{y:.3g}} {unit}<br>%{{text}}<extra></extra>",
                "line": {"color": "var(--bar)", "width": 1.4},
                "marker": {
                    "size": 9,
                    "color": "var(--ink)",
                    "symbol": ["circle" if row.measured.origin.revision else "circle-open" for row in group],
                },
            }
        ],
        "layout": {
            "height": HEIGHT - 150,
            "margin": dict(MARGIN),
            **look(),
            "xaxis": {**axis, "type": "date", "range": [moments[0], moments[-1]], "autorange": True},
            "yaxis": {
                **axis,
                "range": [0, 1.15 * max(values)],
                "title": {"text": f"median, profiled [{unit}]", "font": title},
            },
            "annotations": [],
        },
        "slim": {"height": SLIM_HEIGHT - 120},
    }
