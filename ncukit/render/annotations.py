"""The labels of a roofline, for one width of the figure: none covers another, a point or a line's label."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ncukit import quantity
from ncukit.render import labels
from ncukit.render.labels import Box
from ncukit.render.plot import PLOTS, Axes, Ceiling, Mark, near, ridges, rounded

ENDS = (1.0, 0.86, 0.72, 0.58, 0.44, 0.3)
"""Where the label of a ceiling may end, as shares of the width: at the right first."""
GAPS = (1.0, 7.0)
"""[px] Between a ceiling and its label; the larger one clears the bar of what a point may attain."""


def notes(
    axes: Axes, ceilings: Sequence[Ceiling], marks: Sequence[Mark], layout: str
) -> list[dict[str, Any]]:
    """Return the labels for one width of the figure, none over another."""
    plot = PLOTS[layout]
    slim = layout == "slim"
    taken: list[Box] = []
    for m in marks:
        taken.append(labels.marker(*axes.px(math.log10(m.x), math.log10(m.y), plot), 10))
        if m.attainable:
            taken.append(labels.marker(*axes.px(math.log10(m.x), math.log10(m.attainable), plot), 10))
            taken.append(_upright(axes, plot, m))
    found = roof_notes(axes, ceilings, plot, taken, slim=slim)
    taken += [_level(axes, plot, c) for c in ceilings if c.kind == "compute"]
    found += _point_labels(axes, marks, plot, taken, slim=slim)
    if not slim:
        found += _ridge_labels(axes, marks, ceilings, plot, taken)
    return [{**one, layout: True} for one in found]


def roof_notes(
    axes: Axes, ceilings: Sequence[Ceiling], plot: tuple[float, float], taken: list[Box], *, slim: bool
) -> list[dict[str, Any]]:
    """Return the labels of the roofs, and take their places."""
    return [
        *_ceiling_labels(axes, ceilings, plot, taken, slim=slim),
        *_diagonal_labels(axes, ceilings, plot, taken, slim=slim),
    ]


def _ceiling_labels(
    axes: Axes, ceilings: Sequence[Ceiling], plot: tuple[float, float], taken: list[Box], *, slim: bool
) -> list[dict[str, Any]]:
    """Return the labels of the ceilings: below the line, at its right end; those of the data sheet above."""
    found = []
    flat = [c for c in ceilings if c.kind == "compute"]
    for c in sorted(flat, key=lambda c: (c.sheet, -c.value)):
        if (slim and c.sheet) or not c.label:
            continue
        y = math.log10(c.value)
        text = html.escape(c.short if slim else c.label)
        lines = [_level(axes, plot, other) for other in flat if other is not c]
        start = axes.px(y - max(_slopes(ceilings, sheet=c.sheet), default=y - axes.left), y, plot)[0]
        for end, gap, below in itertools.product(ENDS, GAPS, (False, True) if c.sheet else (True, False)):
            x = axes.left + (axes.right - axes.left) * end
            shift, yanchor = (-gap, "top") if below else (gap, "bottom")
            at = axes.px(x, y, plot)
            box = labels.box_of(text, at[0], at[1] + shift, "right", yanchor)
            reach = replace(box, bottom=min(box.bottom, at[1]), top=max(box.top, at[1]))
            free = box.inside(*plot) and not any(box.hits(other) for other in taken)
            if free and not any(reach.hits(other) for other in lines) and box.left >= min(start, plot[0] / 2):
                taken.append(box)
                label = note(x, y, text, "--ink2" if c.sheet else c.color, xanchor="right", yanchor=yanchor)
                found.append({**label, "yshift": shift})
                break
    return found


def _slopes(ceilings: Sequence[Ceiling], *, sheet: bool) -> list[float]:
    return [math.log10(c.value) for c in ceilings if c.kind == "bandwidth" and c.sheet == sheet]


def _diagonal_labels(
    axes: Axes, ceilings: Sequence[Ceiling], plot: tuple[float, float], taken: list[Box], *, slim: bool
) -> list[dict[str, Any]]:
    notes = []
    angle = axes.angle(plot)
    tops = [math.log10(c.value) for c in ceilings if c.kind == "compute" and not c.sheet]
    labelled = [c for c in ceilings if c.kind == "bandwidth" and (c.measured or not c.sheet)]
    for c in sorted(labelled, key=lambda c: c.measured):
        v = math.log10(c.value)
        start = max(axes.left, axes.bottom - v)
        end = min(max(tops) - v if tops else axes.right, axes.right)
        text = html.escape(c.short if slim else c.label)
        placed = _along(axes, ceilings, plot, taken, text, v, start, end, angle)
        if placed is not None:
            x, off = placed
            notes.append(
                {
                    **note(x, x + v, text, "--ink2", xanchor="center", yanchor="middle"),
                    "along": True,
                    "off": off,
                }
            )
    return notes


def _along(
    axes: Axes,
    ceilings: Sequence[Ceiling],
    plot: tuple[float, float],
    taken: list[Box],
    text: str,
    v: float,
    start: float,
    end: float,
    angle: float,
) -> tuple[float, float] | None:
    """Return where on the diagonal, and how far beside it [px], its label is free."""
    sides = (-11.0, 11.0) if any(c.sheet and c.kind == "bandwidth" for c in ceilings) else (11.0, -11.0)
    for off in sides:
        for fraction in (0.5, 0.62, 0.38, 0.74, 0.26, 0.86):
            x = start + (end - start) * fraction
            px, py = axes.px(x, x + v, plot)
            boxes = list(labels.along(text, px - off * math.sin(angle), py + off * math.cos(angle), angle))
            if all(b.inside(*plot) and not any(b.hits(o) for o in taken) for b in boxes):
                taken += boxes
                return rounded(x), off
    return None


def _point_labels(
    axes: Axes, marks: Sequence[Mark], plot: tuple[float, float], taken: list[Box], *, slim: bool
) -> list[dict[str, Any]]:
    notes = []
    for cluster in _clusters(marks):
        m = max(cluster, key=lambda m: (m.hot, m.attainable is not None, m.level == "dram"))
        names = ", ".join(o.name for o in cluster)
        share = m.share.partition(" of its")[0] if slim else m.share
        text = f"<b>{html.escape(m.name if slim else names)}</b> {html.escape(share or m.label)}".rstrip()
        x, y = math.log10(m.x), math.log10(m.y)
        spot = labels.place(text, *axes.px(x, y, plot), taken, *plot)
        if spot is None:
            continue
        label = note(x, y, text, "--hot" if m.hot else m.color, xanchor=spot.xanchor, yanchor=spot.yanchor)
        notes.append({**label, "xshift": spot.dx, "yshift": spot.dy, "bgcolor": "var(--paper)"})
    return notes


def _ridge_labels(
    axes: Axes,
    marks: Sequence[Mark],
    ceilings: Sequence[Ceiling],
    plot: tuple[float, float],
    taken: list[Box],
) -> list[dict[str, Any]]:
    notes = []
    for ridge in ridges(marks, ceilings):
        text = html.escape(f"ridge {ridge.name} {quantity.significant(ridge.x)}")
        x = math.log10(ridge.x)
        at = axes.px(x, axes.bottom, plot)
        for xanchor, shift in (("left", 4), ("right", -4)):
            box = labels.box_of(text, at[0] + shift, 2, xanchor, "bottom")
            if box.inside(*plot) and not any(box.hits(other) for other in taken):
                taken.append(box)
                label = note(x, axes.bottom, text, "--ink2", xanchor=xanchor, yanchor="bottom")
                notes.append({**label, "xshift": shift, "yshift": 2})
                break
    return notes


def _upright(axes: Axes, plot: tuple[float, float], m: Mark) -> Box:
    """Return the line from a point up to what its roof allows."""
    x, low = axes.px(math.log10(m.x), math.log10(m.y), plot)
    high = axes.px(math.log10(m.x), math.log10(m.attainable or m.y), plot)[1]
    return Box(x - 1, min(low, high), x + 1, max(low, high))


def _level(axes: Axes, plot: tuple[float, float], c: Ceiling) -> Box:
    """Return the line of a ceiling across the plot."""
    y = axes.px(axes.left, math.log10(c.value), plot)[1]
    return Box(0, y - 1, plot[0], y + 1)


def _clusters(marks: Sequence[Mark]) -> list[list[Mark]]:
    """Return the points that share a label: of one group, nearer than a tenth of a decade to the next."""
    clusters: list[list[Mark]] = []
    for m in sorted(marks, key=lambda m: (not m.hot, m.group, m.x)):
        last = clusters[-1] if clusters else None
        if last and last[0].group == m.group and not m.hot and not last[0].hot and near(last[-1], m):
            last.append(m)
        else:
            clusters.append([m])
    return clusters


def note(x: float, y: float, text: str, color: str, *, xanchor: str, yanchor: str) -> dict[str, Any]:
    """Return an annotation of a logarithmic plot: ``x`` and ``y`` are decimal logarithms."""
    return {
        "x": rounded(x),
        "y": rounded(y),
        "text": text,
        "font": {"color": f"var({color})"},
        "xanchor": xanchor,
        "yanchor": yanchor,
    }
