"""NVTX ranges: how often, how long, and which kernels were launched inside, also by other threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.timeline.devices import numbered
from ncukit.diagnose.timeline.intervals import Times, union
from ncukit.diagnose.timeline.scope import PROCESS
from ncukit.diagnose.timeline.statistics import spread
from ncukit.model.timeline import RangeTime
from ncukit.model.trace import UNKNOWN, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

PUSH_POP = 59


class _Launches:
    """Launches in the order of their calls, so that those in a window are a difference of two sums."""

    def __init__(self, start: Ints, duration: Ints) -> None:
        import numpy as np

        order = np.argsort(start, kind="stable")
        self._start = start[order]
        self._sum = np.concatenate(([0], np.cumsum(duration[order])))

    def within(self, times: Times) -> tuple[int, int]:
        """Return how many kernels were launched in ``times``, and the sum of their durations [ns]."""
        import numpy as np

        low, high = (np.searchsorted(self._start, t, side="left") for t in (times.start, times.end))
        return int((high - low).sum()), int((self._sum[high] - self._sum[low]).sum())


def ranges(trace: Trace, call: Ints) -> tuple[RangeTime, ...]:
    """Return all NVTX ranges of the trace by domain, name and style, longest total first.

    ``call`` is the row of the launch call of each kernel.  Kernels of nested ranges count for each of them.
    """
    import numpy as np

    rows = trace.ranges
    if not len(rows):
        return ()
    known = call != UNKNOWN
    duration, start = trace.kernels.duration[known], trace.calls["start"][call[known]]
    thread = trace.calls["thread"][call[known]]
    of_thread = {
        int(t): _Launches(start[m], duration[m]) for t in np.unique(thread) if (m := thread == t).any()
    }
    process = thread & PROCESS
    of_process = {
        int(p): _Launches(start[m], duration[m]) for p in np.unique(process) if (m := process == p).any()
    }
    kind, _ = numbered(rows["domain"], rows["name"], rows["style"])
    order = np.argsort(kind, kind="stable")
    found = []
    for group in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1):
        part = rows.take(group)
        domain, name, style = (int(part[column][0]) for column in ("domain", "name", "style"))
        inside = kernel_time = own = 0
        for p in np.unique(part["thread"] & PROCESS):
            mask = (part["thread"] & PROCESS) == p
            if (launches := of_process.get(int(p))) is not None:
                n, time = launches.within(union(part["start"][mask], part["end"][mask]))
                inside, kernel_time = inside + n, kernel_time + time
        for t in np.unique(part["thread"]):
            mask = part["thread"] == t
            if (launches := of_thread.get(int(t))) is not None:
                own += launches.within(union(part["start"][mask], part["end"][mask]))[0]
        found.append(
            RangeTime(
                name=trace.names[name],
                domain=trace.names[domain],
                style="push/pop" if style == PUSH_POP else "start/end",
                instances=spread(part.duration),
                kernels=inside,
                kernel_time=kernel_time,
                other_threads=inside - own,
                open=int(part["open"].sum()),
                attributed=bool(known.any()) or not len(trace.kernels),
            )
        )
    return tuple(sorted(found, key=lambda r: -r.instances.total))
