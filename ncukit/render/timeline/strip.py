"""The lanes of the timeline strip: few enough items to draw, however long the trace.

Short neighbours that begin in the same step of a lane's resolution become one item that says how many it
holds and how much of its time they fill; the resolution is the finest at which a lane stays within its part
of the budget.  Long items stay themselves.  Where anything was merged, a second set of lanes shows a short
part of the trace in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ncukit.model.trace import UNKNOWN, Columns
from ncukit.record import dataclass
from ncukit.render.words import shorten
from ncukit.trace.activity import DIRECTIONS, Named, directions
from ncukit.trace.intervals import lengths_by, plain_call
from ncukit.trace.scope import Scope, empty_time, numbered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

ITEMS = 3000
"""Items of all lanes together, over the whole window; the part in full has half as many."""
DETAIL = 120
"""Kernels in the part that is shown in full."""
STREAMS = 8
"""Streams with a lane of their own; the kernels of all others share one."""
RANGES = 3
"""Lanes of NVTX ranges, by depth of nesting."""
NAME = 60
"""Longest name of an item [characters]; the tables have the whole names."""
_FINEST = 64
"""The resolution is at first this many steps for each item of the budget."""
_LANES = {"h2d": "to device", "d2h": "to host"}


@dataclass(frozen=True)
class _Source:
    name: str
    kind: str
    rows: Columns


def strip(scope: Scope, device: int, *, around: int | None = None, items: int = ITEMS) -> dict[str, Any]:
    """Return the lanes of ``device`` within the region, as plain data for the page.

    ``window`` is first start and length [ns]; items are start, length, name, count and filled time, five
    numbers each, from the window's start; ``names`` is what they point to; ``longest`` is the longest gap.
    ``around`` [ns] is what the part in full shows, None: the middle.
    """
    window = scope.windows[device]
    low, high = int(window.start[0]), int(window.end[-1])
    names: dict[str, int] = {}
    sources = [source for source in _sources(scope, device) if len(source.rows)]
    lanes = _lanes(scope, sources, (low, high), (low, high), items, names)
    gap = empty_time(scope, device)
    lengths = gap.end - gap.start
    longest = int(lengths.argmax()) if len(gap) else None
    found: dict[str, Any] = {
        "window": [low, high - low],
        "longest": None if longest is None else [int(gap.start[longest]) - low, int(lengths[longest])],
        "lanes": lanes,
        "detail": None,
    }
    if any(lane["resolution"] for lane in lanes):
        part = _detail(scope, device, low, high, around)
        inner = _lanes(scope, sources, (low, high), part, items // 2, names)
        found["detail"] = {"window": [part[0] - low, part[1] - part[0]], "lanes": inner}
    return found | {"names": list(names)}


def label(name: str) -> str:
    """Return a name as the items of the strip carry it."""
    return shorten(name, NAME)


def _detail(scope: Scope, device: int, low: int, high: int, around: int | None) -> tuple[int, int]:
    """Return the part of the window with `DETAIL` kernels around a time."""
    import numpy as np

    rows = scope.rows("kernels", device)
    if not len(rows):
        middle, half = (low + high) // 2, max(1, (high - low) // 200)
        return max(low, middle - half), min(high, middle + half)
    place = int(np.searchsorted(rows["start"], (low + high) // 2 if around is None else around))
    first = max(0, min(place - DETAIL // 2, len(rows) - DETAIL))
    last = min(len(rows), first + DETAIL)
    return max(low, int(rows["start"][first])), min(high, int(rows["end"][first:last].max()))


def _lanes(
    scope: Scope,
    sources: list[_Source],
    window: tuple[int, int],
    part: tuple[int, int],
    items: int,
    names: dict[str, int],
) -> list[dict[str, Any]]:
    """Return one lane for each source, with what lies in ``part``, in times from the window's start."""
    budget = max(10, items // max(1, len(sources)))
    return [_lane(scope, source, window[0], part, budget, names) for source in sources]


def _lane(
    scope: Scope, source: _Source, zero: int, part: tuple[int, int], budget: int, names: dict[str, int]
) -> dict[str, Any]:
    import numpy as np

    low, high = part
    rows = source.rows
    rows = rows.take((rows["start"] < high) & ((rows["end"] > low) | (rows["start"] == low)))
    start, end = np.maximum(rows["start"], low) - low, np.minimum(rows["end"], high) - low
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    naming = "short" if "short" in rows else "name"
    name = rows[naming][order] if naming in rows else np.full(len(rows), UNKNOWN, np.int64)
    group, resolution, steps = np.arange(len(start)), 0, budget * _FINEST
    while len(start) and int(group[-1]) + 1 > budget:
        resolution = max(1, (high - low) // steps)
        group = _groups(start, end, resolution, keep_long=steps > budget // 2)
        steps //= 2
    items: list[int] = []
    for s, e, i, n, busy in zip(*(a.tolist() for a in _merged(start, end, group)), strict=True):
        text = source.name
        if name[i] != UNKNOWN:
            spelled = scope.trace.names[int(name[i])]
            text = label(plain_call(spelled) if source.kind in ("launch", "wait") else spelled)
        items += [s + low - zero, e - s, names.setdefault(text, len(names)), n, busy]
    return {"name": source.name, "kind": source.kind, "resolution": resolution, "items": items}


def _groups(start: Ints, end: Ints, resolution: int, *, keep_long: bool) -> Ints:
    """Return the number of the item that each row belongs to; a row of ``resolution`` or more is its own."""
    import numpy as np

    step = start // resolution
    long = (end - start >= resolution) & keep_long
    new = np.ones(len(start), np.bool_)
    new[1:] = (step[1:] != step[:-1]) | long[1:] | long[:-1]
    return np.cumsum(new) - 1


def _merged(start: Ints, end: Ints, group: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return start, end, row of the longest, count and filled time of each item."""
    import numpy as np

    if not len(start):
        none = np.empty(0, np.int64)
        return none, none, none, none, none
    first = np.flatnonzero(np.concatenate(([True], np.diff(group) != 0)))
    longest = np.lexsort((start - end, group))[first]
    count = np.diff(np.concatenate((first, [len(start)])))
    _, busy = lengths_by(group, start, end)
    return start[first], np.maximum.reduceat(end, first), longest, count, busy


def _sources(scope: Scope, device: int) -> list[_Source]:
    """Return the events of each lane, from the CPU's side down to the GPU's."""
    import numpy as np

    found = [
        _Source(f"ranges {depth + 1}" if depth else "ranges", "range", rows) for depth, rows in _ranges(scope)
    ]
    calls = scope.trace.calls
    named = Named(scope.trace, calls)
    found.append(_Source("host launches", "launch", calls.take(named.is_kind("launch", "submit"))))
    found.append(_Source("host waits", "wait", calls.take(named.is_kind("wait"))))
    kernels = _on(scope.trace.kernels, device, "process", "context", "stream", "short")
    inverse, place = numbered(kernels["process"], kernels["context"], kernels["stream"])
    busy = np.bincount(inverse, weights=kernels.duration, minlength=len(place))
    most = np.argsort(-busy, kind="stable")[:STREAMS]
    for i in sorted(most.tolist()):
        name = "kernels" if len(place) == 1 else f"stream {kernels['stream'][place[i]]}"
        found.append(_Source(name, "kernel", kernels.take(inverse == i)))
    if len(place) > STREAMS:
        rest = kernels.take(~np.isin(inverse, most))
        found.append(_Source(f"{len(place) - STREAMS} other streams", "kernel", rest))
    graphs = scope.trace.graphs
    found.append(_Source("graphs", "graph", graphs.take(graphs["device"] == device)))
    copies = scope.trace.copies.take(scope.trace.copies["device"] == device)
    way = directions(copies)
    codes: dict[str, int] = {direction: code for code, direction in enumerate(DIRECTIONS)}
    for direction, name in _LANES.items():
        found.append(_Source(name, "copy", copies.take(way == codes[direction])))
    others = ~np.isin(way, [codes[direction] for direction in _LANES])
    found.append(_Source("other copies", "copy", copies.take(others)))
    memsets = scope.trace.memsets
    found.append(_Source("memory sets", "memset", memsets.take(memsets["device"] == device)))
    empty = empty_time(scope, device)
    found.append(_Source("GPU empty", "gap", Columns({"start": empty.start, "end": empty.end})))
    return found


def _on(rows: Columns, device: int, *columns: str) -> Columns:
    """Return start, end and ``columns`` of what ran on ``device``."""
    mask = rows["device"] == device
    return Columns({name: rows[name][mask] for name in ("start", "end", *columns)})


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
