"""NVTX ranges: how often, how long, and which kernels were launched inside, also by other threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.timeline.devices import numbered
from ncukit.diagnose.timeline.intervals import union_by
from ncukit.diagnose.timeline.scope import PROCESS
from ncukit.diagnose.timeline.statistics import spreads_by
from ncukit.model.timeline import RangeTime
from ncukit.model.trace import UNKNOWN, Columns, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

PUSH_POP = 59


MOST = 5000
"""Ranges that are told apart, by total time: some programs make up a name for every instance."""


def ranges(trace: Trace, call: Ints) -> tuple[tuple[RangeTime, ...], int]:
    """Return the NVTX ranges by domain, name and style, longest total first, and how many are left out.

    ``call`` is the row of the launch call of each kernel.  Kernels of nested ranges count for each of them.
    """
    import numpy as np

    rows = trace.ranges
    if not len(rows):
        return (), 0
    kind, _ = numbered(rows["domain"], rows["name"], rows["style"])
    rows, kind, left_out = _longest(rows, kind)
    known = call != UNKNOWN
    launched, thread = trace.calls["start"][call[known]], trace.calls["thread"][call[known]]
    duration = trace.kernels.duration[known]
    inside, kernel_time = _launched(
        rows, kind, launched, duration, thread & PROCESS, rows["thread"] & PROCESS
    )
    own, _ = _launched(rows, kind, launched, duration, thread, rows["thread"])
    instances = spreads_by(kind, rows.duration)
    open_ = np.bincount(kind, weights=rows["open"])
    _, first = np.unique(kind, return_index=True)
    found = []
    for k, row in enumerate(first.tolist()):
        found.append(
            RangeTime(
                name=trace.names[int(rows["name"][row])],
                domain=trace.names[int(rows["domain"][row])],
                style="push/pop" if rows["style"][row] == PUSH_POP else "start/end",
                instances=instances[k],
                kernels=int(inside[k]),
                kernel_time=int(kernel_time[k]),
                other_threads=int(inside[k] - own[k]),
                open=int(open_[k]),
                attributed=bool(known.any()) or not len(trace.kernels),
            )
        )
    return tuple(sorted(found, key=lambda r: -r.instances.total)), left_out


def _longest(rows: Columns, kind: Ints) -> tuple[Columns, Ints, int]:
    """Return the rows of the `MOST` longest kinds, numbered anew, and how many kinds are left out."""
    import numpy as np

    total = np.bincount(kind, weights=rows.duration)
    if len(total) <= MOST:
        return rows, kind, 0
    kept = np.isin(kind, np.argsort(-total, kind="stable")[:MOST])
    _, again = np.unique(kind[kept], return_inverse=True)
    return rows.take(kept), again, len(total) - MOST


def _launched(
    rows: Columns, kind: Ints, launched: Ints, duration: Ints, place: Ints, of_row: Ints
) -> tuple[Ints, Ints]:
    """Return, for each kind, how many kernels were launched inside and the sum of their durations [ns].

    Only launches whose ``place`` (thread or process) is that of the range count; where instances of one kind
    overlap they count once.
    """
    import numpy as np

    kinds, places = int(kind.max()) + 1, np.unique(of_row)
    key, start, end = union_by(
        kind * len(places) + np.searchsorted(places, of_row), rows["start"], rows["end"]
    )
    count, time = np.zeros(kinds, np.int64), np.zeros(kinds, np.int64)
    for i, p in enumerate(places):
        mine, windows = place == p, key % len(places) == i
        order = np.argsort(launched[mine], kind="stable")
        starts = launched[mine][order]
        sums = np.concatenate(([0], np.cumsum(duration[mine][order])))
        low, high = (np.searchsorted(starts, t[windows], side="left") for t in (start, end))
        of = key[windows] // len(places)
        np.add.at(count, of, high - low)
        np.add.at(time, of, sums[high] - sums[low])
    return count, time
