"""Which part of a trace is looked at: all of it, or what was launched inside an NVTX range.

Work belongs to a range when the CUDA call that launched it began inside; it may run later.  So the window of
a range reaches from its start to the end of its last work on the GPU.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ncukit.diagnose.timeline.intervals import Times, nothing, span, union
from ncukit.errors import UsageError
from ncukit.model.trace import UNKNOWN, Columns, Trace
from ncukit.record import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

KINDS = ("kernels", "copies", "memsets", "graphs")
"""Work of a GPU."""
PROCESS = ~0xFFFFFF
"""The process of a thread id: its low 24 bits are the thread."""


@dataclass(frozen=True, eq=False)
class Scope:
    """A region of a trace: its work, the calls that launched it, and its time on each device."""

    trace: Trace
    range: str | None
    call_of: Mapping[str, Ints]
    """For each kind of work, the row in ``trace.calls`` that launched it, or -1."""
    inside: Mapping[str, Mask]
    """For each kind of work, which rows belong to the region."""
    calls: Mask
    """Which CUDA calls belong to the region."""
    others: Mask
    """Which kernels of the region were launched by a thread other than the range's."""
    windows: Mapping[int, Times]
    """Time of the region on each device."""
    notes: tuple[str, ...] = ()
    _known: dict[tuple[str, int, bool], Times] = field(default_factory=dict)

    def rows(self, kind: str, device: int | None = None) -> Columns:
        """Return the region's work of a kind, of all devices or of one."""
        rows: Columns = getattr(self.trace, kind)
        mask = self.inside[kind]
        if device is not None:
            mask = mask & (rows["device"] == device)
        return rows if mask.all() else rows.take(mask)

    def kernel_time(self, device: int, *, all_work: bool = False) -> Times:
        """Return when kernels, or graphs traced as a whole, ran on ``device``, within the windows."""
        return self._time("kernels graphs", device, all_work)

    def copy_time(self, device: int, *, all_work: bool = False) -> Times:
        """Return when copies or memory sets ran on ``device``, within the windows."""
        return self._time("copies memsets", device, all_work)

    def _time(self, kinds: str, device: int, all_work: bool) -> Times:
        all_work = all_work and self.range is not None  # without a range all work is the region's
        key = (kinds, device, all_work)
        if key not in self._known:
            self._known[key] = self._union(kinds, device, all_work)
        return self._known[key]

    def _union(self, kinds: str, device: int, all_work: bool) -> Times:
        found = nothing()
        for kind in kinds.split():
            rows: Columns = getattr(self.trace, kind)
            mask = rows["device"] == device
            if not all_work:
                mask = mask & self.inside[kind]
            found = found | union(rows["start"][mask], rows["end"][mask])
        return found if self.range is None else found & self.windows[device]


def whole(trace: Trace) -> Scope:
    """Return the whole trace as the region: on each device from its first work to its last."""
    import numpy as np

    windows: dict[int, Times] = {}
    for kind in KINDS:
        rows: Columns = getattr(trace, kind)
        for device in np.unique(rows["device"]):
            mask = rows["device"] == device
            new = union(rows["start"][mask], rows["end"][mask])
            windows[int(device)] = span(windows.get(int(device), nothing()), new)
    return Scope(
        trace,
        None,
        {kind: launching_calls(trace.calls, getattr(trace, kind)) for kind in KINDS},
        {kind: np.ones(len(getattr(trace, kind)), np.bool_) for kind in KINDS},
        np.ones(len(trace.calls), np.bool_),
        np.zeros(len(trace.kernels), np.bool_),
        windows,
    )


def in_range(trace: Trace, name: str) -> Scope:
    """Return what was launched inside all instances of the NVTX range ``name`` (or ``domain@name``).

    Launches from other threads of the same process count, and are marked.

    Raises:
        UsageError: there is no such range (the hint names the nearest), or nothing was launched in it.
    """
    import numpy as np

    rows = trace.ranges.take(matching(trace, name))
    times = {
        int(process): union(rows["start"][mask], rows["end"][mask])
        for process in np.unique(rows["thread"] & PROCESS)
        if (mask := (rows["thread"] & PROCESS) == process).any()
    }
    own = {
        int(thread): union(rows["start"][mask], rows["end"][mask])
        for thread in np.unique(rows["thread"])
        if (mask := rows["thread"] == thread).any()
    }
    call_of = {kind: launching_calls(trace.calls, getattr(trace, kind)) for kind in KINDS}
    inside, reach, guessed = {}, {p: t.end.copy() for p, t in times.items()}, 0
    for kind in KINDS:
        work: Columns = getattr(trace, kind)
        launched = _launch_times(trace, work, call_of[kind])
        mask = np.zeros(len(work), np.bool_)
        for process, time in times.items():
            part = time.covers(launched) & ((work["process"] == process) | (work["process"] == UNKNOWN))
            at = np.searchsorted(time.start, launched[part], side="right") - 1
            np.maximum.at(reach[process], at, work["end"][part])
            mask |= part
        inside[kind] = mask
        guessed += int((mask & (call_of[kind] == UNKNOWN)).sum())
    if not any(mask.any() for mask in inside.values()):
        raise UsageError(
            f"nothing was launched on a GPU inside the range {name!r}",
            "The range may stand around other work, or the CUDA calls were not traced (--trace=cuda,nvtx).",
        )
    windows: dict[int, Times] = {}
    for process, time in times.items():
        window = union(time.start, np.maximum(time.end, reach[process]))
        for kind in KINDS:
            work = getattr(trace, kind)
            for device in np.unique(work["device"][inside[kind]]):
                if ((work["device"] == device) & inside[kind] & _of(work, process)).any():
                    windows[int(device)] = windows.get(int(device), nothing()) | window
    note = f"{guessed:,} GPU operations without a traced launch call were placed by when they ran"
    return Scope(
        trace,
        name,
        call_of,
        inside,
        _calls_inside(trace.calls, times),
        _by_others(trace, call_of["kernels"], inside["kernels"], own),
        windows,
        (note,) if guessed else (),
    )


_RANGES = {
    "nsys": ("NVTX range", "mark the region and trace with --trace=cuda,nvtx"),
    "torch": ("annotation", "mark the region with torch.profiler.record_function"),
}
"""What marks a region in a trace of each tool, and how to get it."""


def launching_calls(calls: Columns, work: Columns) -> Ints:
    """Return for each row of ``work`` the row of the CUDA call that launched it, -1 where there is none.

    Correlation ids are unique only within a process.  Where nested calls share an id (a wrapper's own event
    around CUDA's) the CUDA call wins, then the earliest.
    """
    import numpy as np

    if not len(calls) or not len(work):
        return np.full(len(work), UNKNOWN, np.int64)
    call_process = calls["thread"] & PROCESS
    processes = np.unique(call_process)
    of = work["process"]
    if len(processes) == 1:
        of = np.where(of == UNKNOWN, processes[0], of)
    place = np.minimum(np.searchsorted(processes, of), len(processes) - 1)
    known = (processes[place] == of) & (work["correlation"] != UNKNOWN)
    key = np.where(known, (place << 32) | (work["correlation"] & 0xFFFFFFFF), UNKNOWN)
    call_key = (np.searchsorted(processes, call_process) << 32) | (calls["correlation"] & 0xFFFFFFFF)
    foreign = (calls["class"] > 1).astype(np.int64)
    order = np.lexsort((calls["start"], foreign, call_key))
    ordered = call_key[order]
    first = np.minimum(np.searchsorted(ordered, key), len(ordered) - 1)
    return np.where(ordered[first] == key, order[first], UNKNOWN)


def _launch_times(trace: Trace, work: Columns, call: Ints) -> Ints:
    """Return when each row was launched, or when it started where the call is unknown [ns]."""
    import numpy as np

    if not len(trace.calls):
        return work["start"]
    return np.where(call == UNKNOWN, work["start"], trace.calls["start"][call])


def matching(trace: Trace, name: str) -> Mask:
    """Return which ranges are called ``name`` (or ``domain@name``).

    Raises:
        UsageError: none is; the hint names the nearest.
    """
    import numpy as np

    domain, at, plain = name.partition("@")
    names, rows = trace.names, trace.ranges
    mask: Mask = np.isin(rows["name"], [i for i, text in enumerate(names) if text == name])
    if not mask.any() and at:
        of_name = np.isin(rows["name"], [i for i, text in enumerate(names) if text == plain])
        mask = of_name & np.isin(rows["domain"], [i for i, text in enumerate(names) if text == domain])
    if not mask.any():
        known = sorted({names[int(i)] for i in np.unique(rows["name"])})
        near = difflib.get_close_matches(name, known, 5, 0.3) or known[:5]
        what, how = _RANGES["torch" if trace.file.format == "torch" else "nsys"]
        hint = (
            f"The trace has {len(known):,} ranges, nearest: {', '.join(near)}."
            if near
            else f"The trace has no {what}s: {how}."
        )
        raise UsageError(f"there is no {what} {name!r}", hint)
    return mask


def _of(work: Columns, process: int) -> Mask:
    mask: Mask = (work["process"] == process) | (work["process"] == UNKNOWN)
    return mask


def _calls_inside(calls: Columns, times: Mapping[int, Times]) -> Mask:
    import numpy as np

    mask = np.zeros(len(calls), np.bool_)
    for process, time in times.items():
        mask |= ((calls["thread"] & PROCESS) == process) & time.covers(calls["start"])
    return mask


def _by_others(trace: Trace, call: Ints, inside: Mask, own: Mapping[int, Times]) -> Mask:
    """Return which kernels inside were launched by a thread that was not itself in the range."""
    mask: Mask = inside & (call != UNKNOWN)
    if not mask.any():
        return mask
    thread, start = trace.calls["thread"][call], trace.calls["start"][call]
    for owner, time in own.items():
        mask = mask & ~((thread == owner) & time.covers(start))
    return mask
