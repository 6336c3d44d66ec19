"""What a roofline is made of: roofs, points, axes; and the traces of its roofs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.record import dataclass

Figure = dict[str, Any]

HEIGHT, SLIM_HEIGHT = 430, 350
MARGIN = {"l": 64, "r": 14, "t": 12, "b": 46}
PLOTS = {"wide": (620.0, HEIGHT - 58.0), "slim": (265.0, SLIM_HEIGHT - 58.0)}
"""Width and height [px] of the plot that labels are placed for."""
NEAR = 0.1
"""[decades] Points of one precision closer than this share one label, and their markers nest."""
HALF = 0.5
"""[decades] Room around what is drawn."""


@dataclass(frozen=True)
class Ceiling:
    """A roof: ``bandwidth`` [byte/s] is a diagonal, ``compute`` [per second] a horizontal line.

    ``key`` is the precision or the level that it belongs to; without a label another roof speaks for it.
    """

    kind: str
    key: str
    name: str
    value: float
    label: str
    short: str
    color: str = "--ink2"
    dashed: bool = False
    sheet: bool = False
    """At data sheet clocks: a thin dashed line."""
    measured: bool = False
    """Reached by a copy or matrix product on this GPU: a thin dashed line with its own label."""


@dataclass(frozen=True)
class Mark:
    """A point: intensity [per byte] against rate [per second]."""

    key: str
    group: str
    """Points of one group (a precision) belong together."""
    level: str
    x: float
    y: float
    attainable: float | None
    color: str
    label: str
    hover: str
    hollow: bool = False
    hot: bool = False
    name: str = ""
    share: str = ""


@dataclass(frozen=True)
class Axes:
    """The ranges, as decimal logarithms."""

    left: float
    right: float
    bottom: float
    top: float

    @classmethod
    def around(cls, marks: Sequence[Mark], ceilings: Sequence[Ceiling]) -> Axes:
        """Return axes that hold all points, their bounds, ridges and compute roofs; half a decade around."""
        xs = [math.log10(m.x) for m in marks] + [math.log10(ridge.x) for ridge in ridges(marks, ceilings)]
        ys = [math.log10(m.y) for m in marks]
        roofs = [math.log10(c.value) for c in ceilings if c.kind == "compute"]
        bounds = [math.log10(m.attainable) for m in marks if m.attainable]
        return cls(
            rounded(min(xs) - HALF),
            rounded(max(xs) + HALF),
            rounded(min([*ys, *bounds]) - HALF),
            rounded(max([*ys, *bounds, *roofs]) + HALF),
        )

    def px(self, x: float, y: float, plot: tuple[float, float]) -> tuple[float, float]:
        """Return the pixel of a point given in decimal logarithms."""
        return (
            (x - self.left) / (self.right - self.left) * plot[0],
            (y - self.bottom) / (self.top - self.bottom) * plot[1],
        )

    def angle(self, plot: tuple[float, float]) -> float:
        """Return the angle [rad] at which a bandwidth roof is drawn."""
        return math.atan2(plot[1] / (self.top - self.bottom), plot[0] / (self.right - self.left))


def look() -> dict[str, Any]:
    """Return what every figure has in common: colours of the page, hover labels, no dragging."""
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "color": "var(--ink)"},
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": "var(--tip)",
            "bordercolor": "var(--ink)",
            "font": {"color": "var(--tipink)", "size": 12},
            "align": "left",
        },
        "dragmode": False,
    }


def frame(axes: Axes, unit: str) -> Figure:
    """Return the empty figure: axes named after ``unit``, no legend, no zoom."""
    ink2 = {"size": 12, "color": "var(--ink2)"}
    axis = {
        "type": "log",
        "showgrid": True,
        "gridcolor": "var(--grid)",
        "zeroline": False,
        "linecolor": "var(--ink2)",
        "linewidth": 1,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "var(--ink2)",
        "tickfont": {"color": "var(--ink2)"},
        "fixedrange": True,
    }
    return {
        "data": [],
        "layout": {
            "height": HEIGHT,
            "margin": dict(MARGIN),
            **look(),
            "template": {
                "layout": {"annotationdefaults": {"showarrow": False, "font": ink2, "align": "left"}}
            },
            "xaxis": _axis(axis, axes.left, axes.right, f"{unit} per byte"),
            "yaxis": _axis(axis, axes.bottom, axes.top, f"{unit} / s"),
            "annotations": [],
        },
        "slim": {"height": SLIM_HEIGHT},
    }


def _axis(axis: dict[str, Any], low: float, high: float, title: str) -> dict[str, Any]:
    ticks = [10.0**n for n in range(math.ceil(low), math.floor(high) + 1)]
    if len(ticks) < 2:
        ticks = [
            step * 10.0**n
            for n in range(math.floor(low), math.floor(high) + 1)
            for step in (1, 2, 5)
            if low <= n + math.log10(step) <= high
        ]
    return {
        **axis,
        "range": [low, high],
        "title": {"text": title, "standoff": 6, "font": {"size": 12, "color": "var(--ink2)"}},
        "tickvals": [digits(x) for x in ticks],
        "ticktext": [quantity.tick(x) for x in ticks],
    }


@dataclass(frozen=True)
class Ridge:
    """Where a bandwidth roof meets a compute roof: intensity ``x`` [per byte], rate ``y`` [per second]."""

    name: str
    x: float
    y: float


def ridges(marks: Sequence[Mark], ceilings: Sequence[Ceiling]) -> list[Ridge]:
    """Return the ridges of the roof that matters: of the limiter, else of the point nearest to its roof."""
    lead = max(marks, key=lambda m: (m.hot, m.y / m.attainable if m.attainable else 0), default=None)
    tops = [c for c in ceilings if c.kind == "compute" and not c.sheet and lead and c.key == lead.group]
    return [
        Ridge(f"{top.name}, {c.name}", top.value / c.value, top.value)
        for top in tops
        for c in ceilings
        if c.kind == "bandwidth" and not c.sheet
    ]


def roof_traces(axes: Axes, marks: Sequence[Mark], ceilings: Sequence[Ceiling]) -> list[dict[str, Any]]:
    """Return the lines: one trace a style, with gaps, so that a figure stays small."""
    traces: dict[tuple[str, str, float], tuple[list[Any], list[Any]]] = {}

    def add(style: tuple[str, str, float], x0: float, y0: float, x1: float, y1: float) -> None:
        xs, ys = traces.setdefault(style, ([], []))
        xs += [digits(10**x0), digits(10**x1), None]
        ys += [digits(10**y0), digits(10**y1), None]

    groups = [(False, False), (True, False), (True, True)]
    highest = [math.log10(c.value) for c in ceilings if c.kind == "compute" and not c.sheet]
    for sheet, measured in groups:
        level = [c for c in ceilings if (c.sheet, c.measured) == (sheet, measured)]
        tops = [math.log10(c.value) for c in level if c.kind == "compute"] or (highest if measured else [])
        slopes = [math.log10(c.value) for c in level if c.kind == "bandwidth"]
        for c in level:
            v = math.log10(c.value)
            color = "var(--ink3)" if sheet else f"var({c.color})"
            dash = "longdash" if measured else "dash" if c.dashed or sheet else "solid"
            if c.kind == "bandwidth":
                end = min(max(tops) - v if tops else axes.right, axes.right)
                start = max(axes.left, axes.bottom - v)
                if start < end:
                    add((color, dash, 1.6 if dash == "solid" else 1), start, start + v, end, end + v)
            else:
                start = max(axes.left, v - max(slopes) if slopes else axes.left)
                add((color, dash, 2 if dash == "solid" else 1), min(start, axes.right), v, axes.right, v)
    for ridge in ridges(marks, ceilings):
        x = math.log10(ridge.x)
        add(("var(--line2)", "dot", 1), x, axes.bottom, x, math.log10(ridge.y))
    return [line_trace(x, y, *style) for style, (x, y) in traces.items()]


def has_neighbour(m: Mark, marks: Sequence[Mark]) -> bool:
    """Return whether another point of the same group lies so near that the markers must nest."""
    return any(o is not m and o.group == m.group and near(o, m) for o in marks)


def near(a: Mark, b: Mark) -> bool:
    """Return whether two points lie within a tenth of a decade."""
    return math.hypot(math.log10(a.x / b.x), math.log10(a.y / b.y)) < NEAR


def line_trace(x: list[Any], y: list[Any], color: str, dash: str, width: float) -> dict[str, Any]:
    """Return a trace of lines; None among the coordinates is a gap."""
    style = {"color": color, "width": width, **({} if dash == "solid" else {"dash": dash})}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": style, "hoverinfo": "skip"}


def digits(value: float) -> float:
    """Return ``value`` with four significant digits: a figure needs no more."""
    return float(f"{value:.4g}")


def rounded(value: float) -> float:
    """Return a logarithm with three decimals."""
    return round(value, 3)
