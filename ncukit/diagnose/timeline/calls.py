"""CUDA calls by name, the waits among them, and what it took to get kernels onto the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.timeline.intervals import Times, lengths_by, nothing
from ncukit.diagnose.timeline.names import call_kind, plain_call
from ncukit.diagnose.timeline.scope import Scope
from ncukit.diagnose.timeline.statistics import spread, spreads_by
from ncukit.model.timeline import CallTime, LaunchTime
from ncukit.model.trace import UNKNOWN, Columns, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SYNCS = {1: "event synchronisation", 3: "stream synchronisation", 4: "context synchronisation"}
"""Kinds of CUPTI synchronisation records in which the CPU waits (2 is a wait of a stream)."""


class Named:
    """Calls by plain name and kind; what a wrapper library recorded around a call is not a call itself."""

    def __init__(self, trace: Trace, calls: Columns) -> None:
        import numpy as np

        wrapper = (calls["class"] > 1).astype(np.int64)
        unique, inverse = np.unique(calls["name"] * 2 + wrapper, return_inverse=True)
        texts = ["(no name)" if u < 0 else plain_call(trace.names[int(u) // 2]) for u in unique]
        labels = [f"{t} (wrapper)" if u >= 0 and u % 2 else t for t, u in zip(texts, unique, strict=True)]
        self.names = tuple(dict.fromkeys(labels))
        self.kinds = tuple("wrapper" if n.endswith(" (wrapper)") else call_kind(n) for n in self.names)
        self.of = np.array([self.names.index(label) for label in labels], np.int64)[inverse]
        """For each call, the position of its name."""

    def is_kind(self, *kinds: str) -> NDArray[np.bool_]:
        """Return which calls are of one of the ``kinds``."""
        import numpy as np

        return np.isin(self.of, [i for i, kind in enumerate(self.kinds) if kind in kinds])


def calls(scope: Scope, working: Times) -> tuple[CallTime, ...]:
    """Return the region's CUDA calls by name, longest total first.

    ``working`` is when any GPU worked: waiting while none did is time in which nothing went on.
    """
    trace, rows = scope.trace, scope.trace.calls.take(scope.calls)
    if not len(rows):
        return _syncs(scope, working)
    named = Named(trace, rows)
    found = []
    for k, durations in spreads_by(named.of, rows.duration).items():
        idle = None
        if named.kinds[k] == "wait":
            part = rows.take(named.of == k)
            idle = int((part.duration - working.within(part["start"], part["end"])).sum())
        found.append(CallTime(named.names[k], named.kinds[k], durations, idle))
    return tuple(sorted(found, key=lambda call: -call.calls.total))


def _syncs(scope: Scope, working: Times) -> tuple[CallTime, ...]:
    """Return the waits from the synchronisation records, where CUDA calls were not traced."""
    rows = scope.trace.syncs
    if scope.range is not None or not len(rows):
        return ()
    found = []
    for kind, durations in spreads_by(rows["kind"], rows.duration).items():
        part = rows.take(rows["kind"] == kind)
        if kind in _SYNCS:
            idle = part.duration - working.within(part["start"], part["end"])
            found.append(CallTime(_SYNCS[kind], "wait", durations, int(idle.sum())))
    return tuple(sorted(found, key=lambda call: -call.calls.total))


def launches(scope: Scope) -> LaunchTime:
    """Return launch latency and the CPU time that launching took.

    Latency is from the start of the call to the start of the kernel, for the first kernel of each call: on a
    busy GPU it contains the time in the queue.
    """
    import numpy as np

    trace, kernels = scope.trace, scope.rows("kernels")
    call = scope.call_of["kernels"][scope.inside["kernels"]]
    known = call != UNKNOWN
    rows = trace.calls.take(scope.calls)
    launching = rows.take(Named(trace, rows).is_kind("launch"))
    cpu = lengths_by(launching["thread"], launching["start"], launching["end"])[1].sum()
    latency = None
    if known.any():
        order = np.flatnonzero(known)[np.argsort(kernels["start"][known], kind="stable")]
        _, first = np.unique(call[order], return_index=True)
        latency = spread(kernels["start"][order[first]] - trace.calls["start"][call[order[first]]])
    graph = int((kernels["graph_node"] > 0).sum())
    return LaunchTime(len(kernels), int(known.sum()), len(launching), int(cpu), latency, graph)


def working_time(scope: Scope) -> Times:
    """Return when any GPU worked on anything, inside the region or not."""
    found = nothing()
    for device in scope.windows:
        for time in (scope.kernel_time(device, all_work=True), scope.copy_time(device, all_work=True)):
            found = found | time
    return found
