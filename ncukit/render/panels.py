"""Small multiples as one plain Plotly dict: panels beside each other, under each other where it is narrow."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from ncukit.record import dataclass
from ncukit.render.plot import Figure, digits, look

GAP = 56.0
"""[px] Between two rows of panels: the ticks and the title of the upper one, the title of the lower one."""
TOP, BOTTOM = 22, 40
SIDE = 0.07
"""Of the width, between two panels."""


@dataclass(frozen=True)
class Panel:
    """One small chart: ``x``, ``y`` and what hovering a point says; ``here`` marks one point.

    ``low`` and ``high`` are the ends of the y axis; ``steps`` draws each value up to the next x.
    """

    title: str
    x: Sequence[float]
    y: Sequence[float]
    hover: Sequence[str] | str
    ends: tuple[float, float]
    high: float
    x_title: str = ""
    low: float = 0.0
    y_ticks: tuple[Sequence[float], Sequence[str]] | None = None
    x_ticks: tuple[Sequence[float], Sequence[str]] | None = None
    steps: bool = False
    here: tuple[float, float] | None = None
    here_hover: str = ""
    hot: bool = False


def panels(found: Sequence[Panel], *, columns: int, height: int) -> Figure | None:
    """Return a figure of all panels, each ``height`` [px] high, ``columns`` beside each other."""
    if not found:
        return None
    wide, slim = (_axes(found, n, height) for n in (min(columns, len(found)), 1))
    layout = {
        "height": wide["height"],
        "margin": {"l": 46, "r": 12, "t": TOP, "b": BOTTOM},
        **look(),
        "template": {"layout": _SHARED},
        **wide["axes"],
        "annotations": [*_titles(found, wide, "wide"), *_titles(found, slim, "slim")],
    }
    traces = [trace for n, panel in enumerate(found) for trace in _traces(panel, _of(n))]
    return {"data": traces, "layout": layout, "slim": {"height": slim["height"], **slim["axes"]}}


_INK2 = {"size": 12, "color": "var(--ink2)"}
_AXIS = {
    "zeroline": False, "fixedrange": True, "tickfont": _INK2, "linecolor": "var(--ink2)", "linewidth": 1,
    "tickcolor": "var(--ink2)", "ticklen": 4, "title": {"font": _INK2, "standoff": 4},
}  # fmt: skip
_SHARED = {
    "xaxis": {**_AXIS, "showgrid": False, "ticks": "outside", "nticks": 6},
    "yaxis": {**_AXIS, "gridcolor": "var(--grid)", "nticks": 4, "rangemode": "tozero"},
    "annotationdefaults": {"showarrow": False, "font": _INK2, "align": "left"},
}


def _of(n: int) -> str:
    return "" if n == 0 else str(n + 1)


def _axes(found: Sequence[Panel], columns: int, height: int) -> dict[str, Any]:
    rows = math.ceil(len(found) / columns)
    inner = rows * height + (rows - 1) * GAP
    width = (1 - SIDE * (columns - 1)) / columns
    axes: dict[str, Any] = {}
    for n, panel in enumerate(found):
        row, column = divmod(n, columns)
        left, top = column * (width + SIDE), 1 - row * (height + GAP) / inner
        axes[f"xaxis{_of(n)}"] = {
            "domain": [round(left, 4), round(min(1.0, left + width), 4)],
            "range": [digits(end) for end in panel.ends],
            "anchor": f"y{_of(n)}",
            "title": {"text": html.escape(panel.x_title)},
            **_ticks(panel.x_ticks),
        }
        axes[f"yaxis{_of(n)}"] = {
            "domain": [round(max(0.0, top - height / inner), 4), round(top, 4)],
            "range": [panel.low, digits(panel.high)],
            "anchor": f"x{_of(n)}",
            **_ticks(panel.y_ticks),
        }
    return {"height": round(inner + TOP + BOTTOM), "axes": axes}


def _ticks(ticks: tuple[Sequence[float], Sequence[str]] | None) -> dict[str, Any]:
    return {} if ticks is None else {"tickvals": list(ticks[0]), "ticktext": list(ticks[1])}


def _titles(found: Sequence[Panel], axes: dict[str, Any], only: str) -> list[dict[str, Any]]:
    return [
        {
            "x": axes["axes"][f"xaxis{_of(n)}"]["domain"][0],
            "y": axes["axes"][f"yaxis{_of(n)}"]["domain"][1],
            "xref": "paper",
            "yref": "paper",
            "text": html.escape(panel.title),
            "xanchor": "left",
            "yanchor": "bottom",
            "yshift": 4,
            only: True,
        }
        for n, panel in enumerate(found)
    ]


def _traces(panel: Panel, axis: str) -> list[dict[str, Any]]:
    common = {"type": "scatter", "xaxis": f"x{axis}", "yaxis": f"y{axis}"}
    color = "var(--hot)" if panel.hot else "var(--ink2)"
    hover = (
        {"hovertemplate": panel.hover}
        if isinstance(panel.hover, str)
        else {"hoverinfo": "text", "hovertext": [html.escape(text) for text in panel.hover]}
    )
    traces: list[dict[str, Any]] = [
        {
            **common,
            "mode": "lines",
            **_spaced([digits(x) for x in panel.x]),
            "y": [digits(y) for y in panel.y],
            "line": {"color": color, "width": 1.6, **({"shape": "hv"} if panel.steps else {})},
            **hover,
        }
    ]
    if panel.here is not None:
        traces.append(
            {
                **common,
                "mode": "markers",
                "cliponaxis": False,
                "x": [panel.here[0]],
                "y": [panel.here[1]],
                "marker": {"size": 10, "color": "var(--hot)" if panel.hot else "var(--ink)"},
                "hoverinfo": "text",
                "hovertext": [html.escape(panel.here_hover)],
            }
        )
    return traces


def _spaced(x: list[float]) -> dict[str, Any]:
    """Return the x of a trace: start and step where they are even, which is shorter."""
    if len(x) < 3:
        return {"x": x}
    step = (x[-1] - x[0]) / (len(x) - 1)
    even = all(abs(x[0] + step * n - value) <= abs(step) / 20 for n, value in enumerate(x))
    return {"x0": x[0], "dx": digits(step)} if even and step else {"x": x}
