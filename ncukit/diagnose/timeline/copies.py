"""Copies by direction and memory, their speed, and what would help each; the network is not seen here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.timeline.intervals import Times, union
from ncukit.diagnose.timeline.scope import Scope
from ncukit.model.timeline import CopyTime, Direction
from ncukit.model.trace import UNKNOWN, Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEMORY = {
    0: "pageable",
    1: "pinned",
    2: "device",
    3: "array",
    4: "managed",
    5: "device, static",
    6: "managed, static",
}
"""Memory kinds of nsys (ENUM_CUDA_MEM_KIND)."""
_HOST = (0, 1)
_TO = {
    **dict.fromkeys((1, 3, 11), "h2d"),
    **dict.fromkeys((2, 4, 12), "d2h"),
    **dict.fromkeys((5, 6, 7, 8, 13), "d2d"),
    9: "h2h",
    10: "peer",
}
DIRECTIONS: tuple[Direction, ...] = ("h2d", "d2h", "d2d", "peer", "h2h", "unknown")
SMALL = 64 * 1024
"""Copies below are ruled by latency, not by bandwidth [byte]."""
_MANAGED = (11, 12, 13)

_FIXES: tuple[tuple[str, str | None, bool | None, str], ...] = (
    ("h2d", "pageable", None, "copy from pinned memory (pin_memory=True, cudaHostAlloc) without blocking"),
    ("d2h", "pageable", True, "keep the values on the GPU: each small read (.item(), print) also waits"),
    ("d2h", "pageable", None, "copy into pinned memory, and read it later, not right away"),
    ("h2d", "managed", None, "prefetch (cudaMemPrefetchAsync) before the kernel needs the pages"),
    ("d2h", "managed", None, "do not touch managed memory on the CPU inside the loop"),
    ("h2d", None, True, "gather the small copies into one"),
    ("h2d", None, None, "copy the next batch on another stream while kernels run (double buffering)"),
    ("d2h", None, None, "copy on another stream while the next kernels run"),
    (
        "d2d",
        None,
        None,
        "avoid the copy: work in place, keep the layout (.contiguous(), .clone()), or fuse it",
    ),
    (
        "peer",
        None,
        None,
        "check that the GPUs are linked by NVLink (nvidia-smi topo -m), and overlap the copy",
    ),
    ("h2h", None, None, "the data never leaves the CPU: copy without CUDA, or not at all"),
)
"""(direction, host memory or any, small or any, what would help): the first that fits wins."""


def copies(scope: Scope, kernels: dict[int, Times]) -> tuple[CopyTime, ...]:
    """Return the region's copies by direction and memory, longest total first.

    ``kernels`` is when kernels ran on each device: copies beside them are hidden.
    """
    import numpy as np

    rows = scope.rows("copies")
    if not len(rows):
        return ()
    code = directions(rows)
    key = (code << 16) | ((rows["source"] & 0xFF) << 8) | (rows["target"] & 0xFF)
    found = []
    for k in np.unique(key):
        part = rows.take(key == k)
        direction = DIRECTIONS[int(k) >> 16]
        source, target = (_memory(int(part[side][0]), part, direction, side) for side in ("source", "target"))
        size, time = int(part["bytes"].sum()), int(part.duration.sum())
        median = float(np.median(part["bytes"]))
        found.append(
            CopyTime(
                direction,
                source,
                target,
                len(part),
                size,
                time,
                size / time * 1e9 if time else None,
                median,
                _hidden(part, kernels),
                fix(direction, source if direction == "h2d" else target, len(part) > 1 and median < SMALL),
            )
        )
    return tuple(sorted(found, key=lambda copy: -copy.total))


def fix(direction: str, host_memory: str, small: bool) -> str:
    """Return what would help copies of this direction and host memory; ``small`` ones are many and short.

    >>> fix("h2d", "pageable", False)
    'copy from pinned memory (pin_memory=True, cudaHostAlloc) without blocking'
    """
    for way, memory, size, text in _FIXES:
        fits = memory is None or host_memory.startswith(memory)
        if way == direction and fits and size in (None, small):
            return text
    return "the trace does not say between which memories: record it with a newer profiler"


def directions(rows: Columns) -> NDArray[np.int64]:
    """Return for each copy the position of its direction in `DIRECTIONS`."""
    import numpy as np

    host_source, host_target = (np.isin(rows[side], _HOST) for side in ("source", "target"))
    known = (rows["source"] != UNKNOWN) & (rows["target"] != UNKNOWN)
    guess = np.select(
        (~known, host_source & host_target, host_source, host_target),
        tuple(DIRECTIONS.index(d) for d in ("unknown", "h2h", "h2d", "d2h")),
        DIRECTIONS.index("d2d"),
    )
    code = guess.copy()
    for kind, direction in _TO.items():
        code[rows["kind"] == kind] = DIRECTIONS.index(direction)
    source, target = rows["source_device"], rows["target_device"]
    between = (source != target) & (source != UNKNOWN) & (target != UNKNOWN)
    code[(code == DIRECTIONS.index("d2d")) & between] = DIRECTIONS.index("peer")
    return np.asarray(code, np.int64)


def _memory(kind: int, part: Columns, direction: str, side: str) -> str:
    if kind in MEMORY:
        return MEMORY[kind]
    if int(part["kind"][0]) in _MANAGED:
        return "managed"
    on_host = direction in (("h2d", "h2h") if side == "source" else ("d2h", "h2h"))
    return "host, kind unknown" if on_host else "device"


def _hidden(part: Columns, kernels: dict[int, Times]) -> int:
    import numpy as np

    hidden = 0
    for device in np.unique(part["device"]):
        if (running := kernels.get(int(device))) is not None:
            mask = part["device"] == device
            hidden += (union(part["start"][mask], part["end"][mask]) & running).length
    return hidden
