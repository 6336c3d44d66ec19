"""Place the labels of a figure so that none covers another, a marker or a line's own label.

Everything here is in pixels of an assumed plot size, because a page can be drawn wide or slim: x to the
right, y upwards, from the lower left corner of the plot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ncukit.record import dataclass

CHARACTER = 6.7
"""[px] Width of a character at 12 px in the sans faces of the page, on the safe side."""
LINE_HEIGHT = 16.0


@dataclass(frozen=True)
class Box:
    """A rectangle: left, bottom, right, top [px]."""

    left: float
    bottom: float
    right: float
    top: float

    def hits(self, other: Box) -> bool:
        """Return whether the two cover a common area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

    def inside(self, width: float, height: float) -> bool:
        """Return whether the box lies within a plot of that size."""
        return self.left >= 0 and self.bottom >= 0 and self.right <= width and self.top <= height


@dataclass(frozen=True)
class Spot:
    """Where a label stands, relative to its point: shift [px] and anchors as Plotly names them."""

    dx: float
    dy: float
    xanchor: str
    yanchor: str


SPOTS = (
    Spot(11, 0, "left", "middle"),
    Spot(9, -11, "left", "top"),
    Spot(9, 11, "left", "bottom"),
    Spot(0, -13, "center", "top"),
    Spot(0, 13, "center", "bottom"),
    Spot(-9, -11, "right", "top"),
    Spot(-9, 11, "right", "bottom"),
    Spot(-11, 0, "right", "middle"),
    Spot(9, -28, "left", "top"),
    Spot(-9, -28, "right", "top"),
    Spot(9, 28, "left", "bottom"),
    Spot(-9, 28, "right", "bottom"),
)
"""Tried in this order: to the right of the point first."""


def size(text: str) -> tuple[float, float]:
    """Return width and height [px] of a label; ``<br>`` breaks it, other tags take no room."""
    lines = text.split("<br>")
    longest = max(sum(1 for c, inside in _outside_tags(part) if not inside) for part in lines)
    return longest * CHARACTER + 4, len(lines) * LINE_HEIGHT


def place(text: str, x: float, y: float, taken: list[Box], width: float, height: float) -> Spot | None:
    """Return the first free spot for ``text`` at the point (x, y), and take it; None where there is none."""
    for spot in SPOTS:
        box = box_of(text, x + spot.dx, y + spot.dy, spot.xanchor, spot.yanchor)
        if box.inside(width, height) and not any(box.hits(other) for other in taken):
            taken.append(box)
            return spot
    return None


def box_of(text: str, x: float, y: float, xanchor: str, yanchor: str) -> Box:
    """Return the rectangle of ``text`` that is anchored at (x, y)."""
    w, h = size(text)
    left = x - {"left": 0.0, "center": w / 2, "right": w}[xanchor]
    bottom = y - {"bottom": 0.0, "middle": h / 2, "top": h}[yanchor]
    return Box(left, bottom, left + w, bottom + h)


def along(text: str, x: float, y: float, angle: float) -> Iterable[Box]:
    """Return small boxes that cover ``text`` written along a line of ``angle`` [rad], centred at (x, y)."""
    length = size(text)[0]
    steps = max(1, math.ceil(length / 10))
    for i in range(steps + 1):
        d = length * (i / steps - 0.5)
        cx, cy = x + d * math.cos(angle), y + d * math.sin(angle)
        yield Box(cx - 7, cy - 8, cx + 7, cy + 8)


def marker(x: float, y: float, diameter: float) -> Box:
    """Return the rectangle of a marker."""
    r = diameter / 2
    return Box(x - r, y - r, x + r, y + r)


def _outside_tags(text: str) -> Iterator[tuple[str, bool]]:
    inside = False
    for c in text:
        if c == "<":
            inside = True
        yield c, inside
        if c == ">":
            inside = False
