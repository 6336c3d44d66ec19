"""What the GPU and the CUDA calls did in a scope: kernels, copies, calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.model.trace import (
    UNKNOWN,
    CallTime,
    Columns,
    CopyTime,
    Direction,
    KernelTime,
    LaunchTime,
    ShapeTime,
    Trace,
)
from ncukit.trace.intervals import (
    Times,
    call_kind,
    kernel_kind,
    lengths_by,
    nothing,
    plain_call,
    spread,
    spreads_by,
    union,
)
from ncukit.trace.scope import Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


# ---- Copies by direction and memory, their speed, and what would help each; the network is not seen here

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


# ---- CUDA calls by name, the waits among them, and what it took to get kernels onto the GPU

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


# ---- The ranking of kernels, and which launches of each are steady: neither autotuning nor warm-up

CONFIGURATION = (
    *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"),
    *("registers", "static_shared", "dynamic_shared"),
)
RUN = 3
"""Autotuners try one configuration several times in a row; models alternate between theirs."""
WARM = 1.05
"""A first launch this much slower than the median of the later half is warm-up (clocks, caches, loading)."""
RANKED = 2000
"""Kernels beyond this many, by total time, get no steady statistics of their own."""
SHAPES = 500
"""Configurations of one kernel that are told apart, by total time."""


def ranking(scope: Scope, main: int | None) -> tuple[KernelTime, ...]:
    """Return the kernels of the region by total time; ``main`` is the device that shares refer to."""
    import numpy as np

    rows = scope.rows("kernels")
    if not len(rows):
        return ()
    names, trace = rows["name"], scope.trace
    others = scope.others[scope.inside["kernels"]]
    on_main = rows["device"] == main
    time = rows.take(on_main)
    busy = dict(zip(*(a.tolist() for a in lengths_by(time["name"], time["start"], time["end"])), strict=True))
    window = scope.windows[main].length if main is not None else 0
    config = configurations(rows)
    order = np.lexsort((rows["start"], launch_order(scope, rows), names))
    first = np.flatnonzero(np.concatenate(([True], np.diff(names[order]) != 0)))
    groups = dict(zip(names[order][first].tolist(), np.split(order, first[1:]), strict=True))
    duration = rows.duration
    all_launches = spreads_by(names, duration)
    found = []
    for i, (name, launches) in enumerate(sorted(all_launches.items(), key=lambda item: -item[1].total)):
        group = groups[name]
        kept, tuning, warmup = steady(config[group], duration[group]) if i < RANKED else (None, 0, 0)
        shapes, configured = _shapes(rows, config, group, kept)
        text = _text(trace, name)
        own = int(busy.get(name, 0))
        found.append(
            KernelTime(
                name=text,
                short=_text(trace, int(rows["short"][group[0]])) or text,
                kind=kernel_kind(text),
                launches=launches,
                steady=launches if kept is None else spread(duration[group][kept]),
                busy=own,
                share=100 * own / window if window else 0.0,
                bound=window / (window - own) if own < window else None,
                configurations=configured,
                other_threads=int(others[group].sum()),
                tuning=tuning,
                warmup=warmup,
                shapes=shapes,
            )
        )
    return tuple(found)


def _shapes(rows: Columns, config: Ints, group: Ints, kept: Mask | None) -> tuple[tuple[ShapeTime, ...], int]:
    """Return the configurations of the kernel with the launches ``group``, and how many it has in all."""
    import numpy as np

    if kept is None:
        return (), len(np.unique(config[group]))
    _, code = np.unique(config[group], return_inverse=True)
    duration = rows.duration[group]
    total = np.bincount(code, weights=duration)
    most = np.argsort(-total, kind="stable")[:SHAPES]
    chosen = np.isin(code, most) if len(total) > SHAPES else np.ones(len(code), np.bool_)
    every = spreads_by(code[chosen], duration[chosen])
    steadily = spreads_by(code[chosen & kept], duration[chosen & kept])
    order = np.lexsort((rows["start"][group], ~kept, code))
    first = group[order[np.searchsorted(code[order], np.arange(len(total)))]]
    columns = {name: rows[name][first].tolist() for name in (*CONFIGURATION, "start")}
    found = []
    for i in most.tolist():
        x, y, z, *rest = (columns[name][i] for name in CONFIGURATION)
        a, b, c, registers, static, dynamic = rest
        found.append(
            ShapeTime(
                (x, y, z),
                (a, b, c),
                registers,
                static,
                dynamic,
                every[i],
                steadily.get(i),
                columns["start"][i],
            )
        )
    return tuple(found), len(total)


def steady(config: Ints, duration: Ints) -> tuple[Mask, int, int]:
    """Return which launches of one kernel are steady, and how many were left out as tuning and as warm-up.

    ``config`` and ``duration`` [ns] are in launch order.  Tuning ends with the run of launches of the last
    configuration that is new, if the kernel then returns to older ones and the configurations came in runs.
    Warm-up are the first launches of a configuration, at most a quarter, that are slower than its later half.

    >>> import numpy as np
    >>> config = np.repeat([0, 1, 2, 1], [30, 30, 30, 10])
    >>> kept, tuning, warmup = steady(config, np.full(100, 5000))
    >>> int(kept.sum()), tuning, warmup
    (10, 90, 0)
    """
    import numpy as np

    kept = np.zeros(len(config), np.bool_)
    tuning = _tuning(config)
    kept[tuning:] = True
    rest = np.arange(tuning, len(config))
    order = rest[np.argsort(config[rest], kind="stable")]
    for group in np.split(order, np.flatnonzero(np.diff(config[order])) + 1):
        d = duration[group]
        limit = WARM * float(np.median(d[len(d) // 2 :]))
        slow = d[: max(2, len(d) // 4)] > limit
        if len(d) >= 4:
            kept[group[: int(np.argmin(slow)) if not slow.all() else len(slow)]] = False
    return kept, tuning, len(config) - tuning - int(kept.sum())


def _tuning(config: Ints) -> int:
    """Return how many launches at the beginning were autotuning."""
    import numpy as np

    _, seen = np.unique(config, return_index=True)
    if len(seen) < 2:
        return 0
    newest = int(seen.max())
    changed = np.flatnonzero(config[newest:] != config[newest])
    if not len(changed):
        return 0
    end = newest + int(changed[0])
    runs = 1 + int((np.diff(config[:end]) != 0).sum())
    return end if end >= RUN * runs else 0


def configurations(rows: Columns) -> Ints:
    """Return one number for each launch that is equal where grid, block, registers and shared memory are."""
    import numpy as np

    mixed = np.zeros(len(rows), np.uint64)
    for name in CONFIGURATION:
        mixed = (mixed ^ rows[name].astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def launch_order(scope: Scope, rows: Columns | None = None) -> Ints:
    """Return when the CPU launched each kernel of the region [ns], or its start where that is unknown."""
    import numpy as np

    rows = scope.rows("kernels") if rows is None else rows
    call = scope.call_of["kernels"][scope.inside["kernels"]]
    if not len(scope.trace.calls):
        return rows["start"]
    return np.where(call == UNKNOWN, rows["start"], scope.trace.calls["start"][call])


def collectives(kernels: tuple[KernelTime, ...]) -> tuple[KernelTime, ...]:
    """Return the kernels that communicate between GPUs."""
    return tuple(kernel for kernel in kernels if kernel.kind == "collective")


def _text(trace: Trace, name: int) -> str:
    return "(no name)" if name == UNKNOWN else trace.names[name]
