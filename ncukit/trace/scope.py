"""Which part of a trace is looked at, and where its time went on each GPU, stream and NVTX range."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ncukit.errors import UsageError
from ncukit.model.trace import UNKNOWN, Columns, DeviceTime, Gpu, RangeTime, StreamTime, Trace
from ncukit.record import dataclass
from ncukit.trace.intervals import Times, lengths_by, nothing, span, spreads_by, union, union_by

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


# ---- What a trace tells of the GPUs and of the framework in it

AMD = ("these kernels ran on an AMD GPU: ncu measures NVIDIA GPUs", "Use rocprofv3.")
"""What is wrong, and what to do."""

_TORCH = re.compile(r"\b(at|c10|torch)::|^triton_")


def is_amd(gpus: Iterable[str | None], names: Iterable[str]) -> bool:
    """Return whether a trace is of AMD GPUs: they are called so, or have no name and there are calls of HIP.

    >>> is_amd(["NVIDIA L4"], ["cudaLaunchKernel"]), is_amd([None], ["hipLaunchKernel"])
    (False, True)
    """
    if known := [gpu for gpu in gpus if gpu]:
        return all(gpu.startswith(("AMD", "Radeon")) for gpu in known)
    return any(name.startswith("hip") for name in names)


def runs_torch(kernels: Iterable[str]) -> bool:
    """Return whether kernels of PyTorch, or those that its compiler writes, are among ``kernels``.

    >>> runs_torch(["void at::native::fill(int)"]), runs_torch(["sgemm(float*)"])
    (True, False)
    """
    return any(_TORCH.search(name) for name in kernels)


# ---- Which part of a trace is looked at: all of it, or what was launched inside an NVTX range
#  Work belongs to a range when the CUDA call that launched it began inside; it may run later.  So the
# window of a range reaches from its start to the end of its last work on the GPU.

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


# ---- Where the region's time went on each GPU: kernels, copies, nothing; and on each stream


def devices(scope: Scope) -> tuple[DeviceTime, ...]:
    """Return the time of the region on each device that worked in it, by id."""
    return tuple(_device(scope, device) for device in sorted(scope.windows))


def main_device(found: tuple[DeviceTime, ...]) -> int | None:
    """Return the device that shares refer to: the one with the most kernel time, then copy time."""
    best = max(found, key=lambda d: (d.busy, d.copy_busy, -d.id), default=None)
    return None if best is None else best.id


def empty_time(scope: Scope, device: int) -> Times:
    """Return when ``device`` had nothing to do within the region."""
    kernels = scope.kernel_time(device, all_work=True)
    return scope.windows[device] - (kernels | scope.copy_time(device, all_work=True))


def _device(scope: Scope, device: int) -> DeviceTime:
    import numpy as np

    window = scope.windows[device]
    kernels, copies = scope.kernel_time(device), scope.copy_time(device)
    every = scope.kernel_time(device, all_work=True)
    idle = window - every
    empty = idle - scope.copy_time(device, all_work=True)
    lengths = empty.end - empty.start
    longest = int(np.argmax(lengths)) if len(empty) else None
    rows = scope.rows("kernels", device)
    gpu = scope.trace.gpus.get(device, Gpu(device))
    return DeviceTime(
        id=device,
        name=gpu.name,
        compute_capability=gpu.compute_capability,
        start=int(window.start[0]) if len(window) else 0,
        span=window.length,
        busy=kernels.length,
        sum=int(rows.duration.sum()),
        copy=idle.length - empty.length,
        empty=empty.length,
        foreign=(every - kernels).length,
        launches=len(rows),
        copies=len(scope.rows("copies", device)) + len(scope.rows("memsets", device)),
        copy_busy=copies.length,
        longest_gap=(0, 0) if longest is None else (int(empty.start[longest]), int(lengths[longest])),
        streams=_streams(scope, device),
    )


def _streams(scope: Scope, device: int) -> tuple[StreamTime, ...]:
    """Return the kernels of each stream; the number of a stream means nothing without device and context."""
    import numpy as np

    rows = scope.rows("kernels", device)
    if not len(rows):
        return ()
    of_stream, first = numbered(rows["process"], rows["context"], rows["stream"])
    n = np.bincount(of_stream)
    _, busy = lengths_by(of_stream, rows["start"], rows["end"])
    return tuple(
        StreamTime(device, int(rows["context"][row]), int(rows["stream"][row]), int(n[i]), int(busy[i]))
        for i, row in enumerate(first)
    )


def numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """Return for each row the number of its combination of values, and a row that shows each combination.

    >>> import numpy as np
    >>> of, first = numbered(np.array([7, 7, 8]), np.array([1, 1, 1]))
    >>> of.tolist(), first.tolist()
    ([0, 0, 1], [0, 2])
    """
    import numpy as np

    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, position = np.unique(column, return_inverse=True)
        _, code = np.unique(code * len(values) + position, return_inverse=True)
    _, first = np.unique(code, return_index=True)
    return code, first


# ---- NVTX ranges: how often, how long, and which kernels were launched inside, also by other threads

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
