"""The lanes of the timeline strip: few enough items to draw, however long the trace.

Neighbours that lie closer than a resolution become one item that says how many it holds; the resolution is
the finest at which a lane stays within its part of the budget.  Long items always stay themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncukit.diagnose.timeline.calls import Named
from ncukit.diagnose.timeline.copies import DIRECTIONS, directions
from ncukit.diagnose.timeline.devices import empty_time, numbered
from ncukit.diagnose.timeline.names import plain_call
from ncukit.diagnose.timeline.scope import Scope
from ncukit.model.trace import UNKNOWN, Columns
from ncukit.render.words import shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

ITEMS = 4000
"""Items of all lanes together."""
STREAMS = 8
"""Streams with a lane of their own; the kernels of all others share one."""
RANGES = 3
"""Lanes of NVTX ranges, by depth of nesting."""
NAME = 60
"""Longest name of an item [characters]; the tables have the whole names."""
_COARSEST = 250
"""At this many steps over the window a lane cannot hold more than twice as many items."""
_LANES = {"h2d": "to device", "d2h": "to host"}


@dataclass(frozen=True)
class Lane:
    """One lane: ``kind`` colours it; items are start and length [ns from the window's start], name, count."""

    name: str
    kind: str
    items: tuple[tuple[int, int, int, int], ...]
    resolution: int
    """Items closer than this were merged [ns]; 0: every event is an item."""


def strip(scope: Scope, device: int, *, items: int = ITEMS) -> dict[str, Any]:
    """Return the lanes of ``device`` within the region, as plain data for the page.

    ``window`` [ns] is the first start and the length; ``names`` are what items point to.
    """
    window = scope.windows[device]
    low, high = int(window.start[0]), int(window.end[-1])
    names: dict[str, int] = {}
    sources = [s for s in _sources(scope, device) if len(s[2])]
    share = items // max(1, len(sources))
    lanes = [_lane(scope, name, kind, rows, (low, high), share, names) for name, kind, rows in sources]
    return {
        "window": [low, high - low],
        "names": list(names),
        "lanes": [
            {
                "name": lane.name,
                "kind": lane.kind,
                "resolution": lane.resolution,
                "items": [value for item in lane.items for value in item],
            }
            for lane in lanes
        ],
    }


def _sources(scope: Scope, device: int) -> list[tuple[str, str, Columns]]:
    """Return name, kind and events of each lane, from the CPU's side down to the GPU's."""
    import numpy as np

    found = [(f"ranges {depth + 1}" if depth else "ranges", "range", rows) for depth, rows in _ranges(scope)]
    calls = scope.trace.calls
    named = Named(scope.trace, calls)
    found.append(("host launches", "launch", calls.take(named.is_kind("launch", "submit"))))
    found.append(("host waits", "wait", calls.take(named.is_kind("wait"))))
    kernels = scope.trace.kernels.take(scope.trace.kernels["device"] == device)
    inverse, place = numbered(kernels["process"], kernels["context"], kernels["stream"])
    busy = np.bincount(inverse, weights=kernels.duration, minlength=len(place))
    most = np.argsort(-busy, kind="stable")[:STREAMS]
    for i in sorted(most.tolist()):
        name = "kernels" if len(place) == 1 else f"stream {kernels['stream'][place[i]]}"
        found.append((name, "kernel", kernels.take(inverse == i)))
    if len(place) > STREAMS:
        found.append(
            (f"{len(place) - STREAMS} other streams", "kernel", kernels.take(~np.isin(inverse, most)))
        )
    graphs = scope.trace.graphs
    found.append(("graphs", "graph", graphs.take(graphs["device"] == device)))
    copies = scope.trace.copies.take(scope.trace.copies["device"] == device)
    way = directions(copies)
    for direction, name in _LANES.items():
        found.append((name, "copy", copies.take(way == DIRECTIONS.index(direction))))
    rest = ~np.isin(way, [DIRECTIONS.index(d) for d in _LANES])
    found.append(("other copies", "copy", copies.take(rest)))
    memsets = scope.trace.memsets
    found.append(("memory sets", "memset", memsets.take(memsets["device"] == device)))
    empty = empty_time(scope, device)
    found.append(("GPU empty", "gap", Columns({"start": empty.start, "end": empty.end})))
    return found


def _ranges(scope: Scope) -> list[tuple[int, Columns]]:
    """Return the ranges of the busiest thread by depth of nesting, the outermost first."""
    import numpy as np

    rows = scope.trace.ranges
    if not len(rows):
        return []
    threads, n = np.unique(rows["thread"], return_counts=True)
    rows = rows.take(rows["thread"] == threads[np.argmax(n)])
    order = np.lexsort((-rows["end"], rows["start"]))
    rows, depth = rows.take(order), np.zeros(len(rows), np.int64)
    open_ends: list[int] = []
    for i, (start, end) in enumerate(zip(rows["start"].tolist(), rows["end"].tolist(), strict=True)):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        depth[i] = len(open_ends)
        open_ends.append(end)
    return [(d, rows.take(depth == d)) for d in range(min(RANGES, int(depth.max()) + 1))]


def _lane(
    scope: Scope,
    name: str,
    kind: str,
    rows: Columns,
    window: tuple[int, int],
    budget: int,
    names: dict[str, int],
) -> Lane:
    """Return one lane, merged until it holds at most ``budget`` items."""
    import numpy as np

    low, high = window
    rows = rows.take(
        (rows["end"] > low) & (rows["start"] < high) | ((rows["start"] == low) & (rows["end"] == low))
    )
    start, end = np.maximum(rows["start"], low) - low, np.minimum(rows["end"], high) - low
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    naming = "short" if "short" in rows else "name"
    label = rows[naming][order] if naming in rows else np.full(len(rows), UNKNOWN, np.int64)
    steps, resolution = max(1, budget) * 64, 0
    first, last, longest, count = _merge(start, end, 0)
    while len(first) > budget and steps >= _COARSEST // 2:
        resolution = max(1, (high - low) // steps)
        first, last, longest, count = _merge(start, end, resolution)
        steps //= 2
    items = []
    for s, e, i, n in zip(first.tolist(), last.tolist(), longest.tolist(), count.tolist(), strict=True):
        text = name if label[i] == UNKNOWN else shorten(plain_call(scope.trace.names[int(label[i])]), NAME)
        if text not in names:
            names[text] = len(names)
        items.append((s, e - s, names[text], n))
    return Lane(name, kind, tuple(items), resolution)


def _merge(start: Ints, end: Ints, resolution: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return start, end, position of the longest and count of what remains when close neighbours merge.

    Rows are ordered by start.  A row as long as ``resolution`` or longer begins an item of its own.
    """
    import numpy as np

    if not len(start):
        none = np.empty(0, np.int64)
        return none, none, none, none
    if resolution == 0:
        return start, end, np.arange(len(start)), np.ones(len(start), np.int64)
    length = end - start
    reach = np.maximum.accumulate(end)
    long = length >= resolution
    new = np.ones(len(start), np.bool_)
    new[1:] = (start[1:] - reach[:-1] >= resolution) | long[1:] | long[:-1]
    first = np.flatnonzero(new)
    bounds = np.concatenate((first, [len(start)]))
    last = np.maximum.reduceat(end, first)
    order = np.lexsort((-length, np.cumsum(new)))
    return start[first], last, order[first], np.diff(bounds)
