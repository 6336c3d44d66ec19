"""The memory chart: boxes for the units, two lanes a link, placed and worded; the template only draws.

Left to right: kernel, L1/TEX over shared memory, L2, DRAM over system memory over peer GPUs.  A lane is as
thick as its share of that link's own peak; one that moved nothing, or is unknown, is dashed and stays.
"""

from __future__ import annotations

from typing import Any

from ncukit import quantity
from ncukit.model import Value
from ncukit.model.shares import Box, Link, MemoryLinks
from ncukit.record import dataclass
from ncukit.render.cells import Cells, text
from ncukit.render.words import listed

WIDTH = 780
HEAD, LANE, SPACE = 18, 32, 8
"""[px] Height of a group's heading, of a lane with its label, and between groups."""
THINNEST, THICKEST = 1.0, 14.0
"""[px] Thickness of a lane at 0 % and at 100 % of its peak."""
TIP = 6
"""[px] Length of an arrow head."""
SILENT = 2.0
"""[px] Thickness of a lane that moved something, where nobody knows its peak."""

FEWEST = 3
"""Links that must be known: a chart of unknown lanes says nothing."""

LIMITS: dict[str, Box] = {
    "dram": "dram", "l2": "l2", "l1": "l1", "shared": "shared", "sysmem": "sysmem", "lsu-issue": "l1",
}  # fmt: skip
"""Limiter -> the box that it means."""
NAMES: dict[Box, str] = {
    "kernel": "Kernel", "l1": "L1/TEX", "shared": "Shared", "l2": "L2",
    "dram": "DRAM", "sysmem": "System", "peer": "Peer GPUs",
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Lanes that stand together in one gap, between two boxes, under a heading or none."""

    heading: str
    lanes: tuple[tuple[str, str], ...]
    """(id of the link, its short label)."""


KERNEL_GROUPS = (
    Group("global memory", (("global-loads", "loads"), ("global-stores", "stores"))),
    Group("local memory", (("local-loads", "loads"), ("local-stores", "stores"))),
    Group("texture", (("texture", "fetches"),)),
    Group("shared memory", (("shared-loads", "loads"), ("shared-stores", "stores"))),
)
L1_LANES = (("l2-reads", ""), ("l2-writes", ""))
SHARED_LANES = (("copies", "cp.async"), ("tma", "TMA"))
FAR: tuple[tuple[Box, tuple[tuple[str, str], ...]], ...] = (
    ("dram", (("dram-reads", ""), ("dram-writes", ""))),
    ("sysmem", (("sysmem-reads", ""), ("sysmem-writes", ""))),
    ("peer", (("peer-reads", ""), ("peer-writes", ""))),
)
COLUMNS = {"kernel": (0, 52), "near": (236, 94), "l2": (463, 84), "far": (680, 100)}
"""Where the boxes of a column stand: x, width [px]."""
INSIDE_L1 = 3
"""Groups of the kernel that go to L1/TEX; the rest goes to shared memory."""


@dataclass
class _Canvas:
    memory: MemoryLinks
    hot: Box | None
    boxes: list[dict[str, Any]]
    lanes: list[dict[str, Any]]
    heads: list[dict[str, Any]]

    def __post_init__(self) -> None:
        self.links = {link.id: link for link in self.memory.links}
        touching = [x for x in self.memory.links if self.hot in (x.source, x.target) and _share(x)]
        self.hottest = max(touching, key=lambda link: _share(link) or 0, default=None)

    def box(self, box: Box, column: str, y: float, height: float) -> None:
        x, width = COLUMNS[column]
        hit, busy = self.memory.hit_rates.get(box), self.memory.busy.get(box)
        lines = []
        if hit is not None and box in ("l1", "l2"):
            lines.append(f"hits {_marked(hit)}" if hit.known else "hits unknown")
        if busy is not None and busy.known:
            lines.append(f"busy {_marked(busy)}")
        self.boxes.append(
            {"x": x, "y": y, "w": width, "h": height, "cx": x + width / 2, "name": NAMES[box],
             "lines": [{"y": y + height / 2 + 10 + 15 * n, "text": line} for n, line in enumerate(lines)],
             "ty": y + height / 2 + (4 if not lines else -6), "hot": box == self.hot}
        )  # fmt: skip

    def lane(self, id: str, label: str, left: str, right: str, y: float) -> None:
        """Draw the lane of link ``id`` between two columns; nothing where this GPU has no such link."""
        link = self.links.get(id)
        if link is None:
            return
        start, end = COLUMNS[left][0] + COLUMNS[left][1] + 5, COLUMNS[right][0] - 5
        inward = COLUMNS[_column(link.target)][0] < COLUMNS[_column(link.source)][0]
        thick = thickness(link)
        middle = y + LANE - THICKEST / 2 - 2
        tip, tail = (start, end) if inward else (end, start)
        back = tip + TIP if inward else tip - TIP
        half = max(4.0, thick / 2 + 2)
        self.lanes.append(
            {"d": f"M{tail} {middle:g}H{back if thick else tip}",
             "tip": f"M{tip} {middle:g}L{back} {middle - half:g}V{middle + half:g}z" if thick else "",
             "width": round(thick, 1), "x": start, "end": end, "y": y + 11,
             "label": f"{label} {_amount(link)}".lstrip(), "share": _percent(link.share) if thick else "",
             "state": "none" if not thick else "hot" if link is self.hottest else "flow"}
        )  # fmt: skip

    def lanes_beside(
        self, lanes: tuple[tuple[str, str], ...], left: str, right: str, y: float, height: float
    ) -> None:
        """Draw ``lanes`` in the middle of a box that begins at ``y``."""
        there = [(id, label) for id, label in lanes if id in self.links]
        top = y + (height - LANE * len(there)) / 2
        for n, (id, label) in enumerate(there):
            self.lane(id, label, left, right, top + LANE * n)


def chart(cells: Cells, memory: MemoryLinks, limiter: str | None) -> dict[str, Any] | None:
    """Return the chart of one launch, its boxes, lanes and words; None where hardly a link is known."""
    if sum(link.used is not None for link in memory.links) < FEWEST:
        return None
    canvas = _Canvas(memory, LIMITS.get(limiter or ""), [], [], [])
    y, tops = 0.0, []
    for group in KERNEL_GROUPS:
        tops.append(y)
        canvas.heads.append({"x": COLUMNS["kernel"][1] + 6, "y": y + 12, "text": group.heading})
        for n, (id, label) in enumerate(group.lanes):
            canvas.lane(id, label, "kernel", "near", y + HEAD + LANE * n)
        y += HEAD + LANE * len(group.lanes) + SPACE
    height = y - SPACE
    edge = tops[INSIDE_L1]
    canvas.box("kernel", "kernel", 0, height)
    canvas.box("l1", "near", 0, edge - SPACE)
    canvas.lanes_beside(L1_LANES, "near", "l2", 0, edge - SPACE)
    canvas.box("shared", "near", edge, height - edge)
    canvas.lanes_beside(SHARED_LANES, "near", "l2", edge, height - edge)
    canvas.box("l2", "l2", 0, height)
    each = (height - SPACE * (len(FAR) - 1)) / len(FAR)
    for n, (box, lanes) in enumerate(FAR):
        if any(id in canvas.links for id, _ in lanes):
            canvas.box(box, "far", n * (each + SPACE), each)
            canvas.lanes_beside(lanes, "l2", "far", n * (each + SPACE), each)
    return {
        "width": WIDTH,
        "height": height + 2,
        "boxes": canvas.boxes,
        "lanes": canvas.lanes,
        "heads": canvas.heads,
        "title": f"Memory chart of launch {cells.launch}",
        "desc": _description(memory, canvas.hot),
    }


def thickness(link: Link) -> float:
    """Return how thick [px] the lane of ``link`` is drawn; 0 is a dashed line: nothing moved, or unknown."""
    if not link.used:
        return 0.0
    share = _share(link)
    if share is None:
        return SILENT
    return THINNEST + (THICKEST - THINNEST) * min(100.0, max(0.0, share)) / 100


def _column(box: Box) -> str:
    return {"kernel": "kernel", "l1": "near", "shared": "near", "l2": "l2"}.get(box, "far")


def _share(link: Link) -> float | None:
    return None if link.share is None else link.share.number


def _amount(link: Link) -> str:
    """Return the bytes, or what is counted instead; "unknown" where neither is."""
    if link.bytes.known:
        return _marked(link.bytes)
    if link.count is not None and link.count.known:
        return f"{_marked(link.count)} {link.count.unit}"
    return "unknown"


def _percent(value: Value | None) -> str:
    return _marked(value) if value is not None and value.known and value.value else ""


def _marked(value: Value) -> str:
    """Return a number with ≈ before an estimate and ! behind a value that no rule may use."""
    about = f"≈{quantity.NARROW}" if value.value and value.quality == "estimate" else ""
    return f"{about}{text(value)}{'' if value.reliable else ' !'}"


def _description(memory: MemoryLinks, hot: Box | None) -> str:
    moved = [f"{link.what} {_amount(link)}" for link in memory.links if link.used]
    words = f"What moved: {listed(moved)}. " if moved else "Nothing moved. "
    if unknown := [link.what for link in memory.links if link.used is None]:
        words += f"Unknown: {listed(unknown)}. "
    if hot is not None:
        words += f"The limit is {NAMES[hot]}. "
    return words + "The table holds the same numbers."
