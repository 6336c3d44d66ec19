"""Where the region's time went, by cause, and the next experiment for each class of a region."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ncukit.model.diagnosis import Experiment
from ncukit.model.trace import UNKNOWN, Columns, Trace
from ncukit.quantity import faster
from ncukit.record import dataclass
from ncukit.trace.activity import Named
from ncukit.trace.intervals import Times, kernel_kind, nothing, union
from ncukit.trace.scope import KINDS, Scope, empty_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


# ---- Split the region's time on its main device by cause; every nanosecond has exactly one
#  While something runs the cause is what runs: kernels before collectives before copies.  While nothing
# runs, the next piece of work says why it is late: what its launching thread did until it made the call
# (waited, allocated, set something up, served nsys, was outside CUDA), and how long the call then took to
# reach the GPU.
#
# A wait is blamed only for what removing it could give back.  Without the wait, the CPU would have prepared
# the next work while the GPU still ran: of the CPU's work after the wait, as much is hidden as the GPU had
# run before.  What exceeds that would stay, and is blamed on launching or on input.

CAUSES = (
    "kernel",
    "communication",
    "transfer",
    "synchronisation",
    "launch",
    "input",
    "allocator",
    "setup",
    "profiler",
    "dependency",
    "foreign",
    "unknown",
)
LONG_PAUSE = 2_000_000
"""The launching thread stayed outside CUDA for longer than any framework needs between two launches [ns]."""
SLOW_CALL = 1_000_000
"""A launch call of this length loads a module or compiles; launching itself takes microseconds [ns]."""
HANDOVER = 20_000
"""A kernel that was launched in time starts within this after the one before it [ns]; later it waited."""


@dataclass(frozen=True)
class Causes:
    """The time of the region by cause [ns], in the order of `CAUSES`."""

    device: int
    window: int
    time: dict[str, int]
    gaps: int
    """Stretches in which nothing ran."""
    after_wait: int
    """Of them, those that began while the CPU waited."""
    calls_traced: bool

    def share(self, cause: str) -> float:
        """Share of the region [%]."""
        return 100 * self.time[cause] / self.window if self.window else 0.0


def causes(scope: Scope, device: int) -> Causes:
    """Return what the region's time on ``device`` went into."""
    compute, collective = _kernel_times(scope, device)
    kernels = scope.kernel_time(device)
    every = scope.kernel_time(device, all_work=True)
    copies = scope.copy_time(device, all_work=True)
    time = dict.fromkeys(CAUSES, 0)
    time["communication"] = (collective - compute).length
    time["kernel"] = kernels.length - time["communication"]
    time["foreign"] = (every - kernels).length
    time["transfer"] = (copies - every).length
    empty = empty_time(scope, device)
    after_wait = _explain(scope, device, empty, every | copies, time)
    traced = bool(len(scope.trace.calls))
    return Causes(device, scope.windows[device].length, time, len(empty), after_wait, traced)


def _kernel_times(scope: Scope, device: int) -> tuple[Times, Times]:
    """Return when kernels that compute (and graphs, whose contents are unknown) ran, and when collectives."""
    import numpy as np

    rows = scope.rows("kernels", device)
    unique, inverse = np.unique(rows["name"], return_inverse=True)
    kinds = [kernel_kind(scope.trace.names[int(i)]) if i != UNKNOWN else "compute" for i in unique]
    talks = np.array([kind == "collective" for kind in kinds], np.bool_)[inverse]
    graphs = scope.rows("graphs", device)
    compute = union(rows["start"][~talks], rows["end"][~talks]) | union(graphs["start"], graphs["end"])
    collective = union(rows["start"][talks], rows["end"][talks])
    if scope.range is None:
        return compute, collective
    return compute & scope.windows[device], collective & scope.windows[device]


def _explain(scope: Scope, device: int, empty: Times, running: Times, time: dict[str, int]) -> int:
    """Add the ``empty`` time to its causes in ``time``; return how many stretches began during a wait."""
    import numpy as np

    if not len(empty):
        return 0
    call = _next_calls(scope, device, empty.end)
    if not len(scope.trace.calls):
        short = (empty.end - empty.start) < LONG_PAUSE
        lengths = empty.end - empty.start
        time["launch"] += int(lengths[short].sum())
        time["unknown"] += int(lengths[~short].sum())
        return 0
    calls = scope.trace.calls
    called = np.where(call == UNKNOWN, empty.end, calls["start"][call])
    done = np.where(call == UNKNOWN, empty.end, calls["end"][call])
    thread = np.where(
        call == UNKNOWN, _launcher(calls["thread"][call[call != UNKNOWN]]), calls["thread"][call]
    )
    ready = (call != UNKNOWN) & (called <= empty.start)
    waiting = empty.end - empty.start
    handover = ready & (waiting <= HANDOVER)
    time["launch"] += int(waiting[handover].sum())
    time["dependency"] += int(waiting[ready & ~handover].sum())
    late = ~ready
    parts = _Parts(len(empty))
    for t in np.unique(thread[late]):
        mask = late & (thread == t)
        parts.fill(
            mask, Host(scope.trace, int(t)), empty.start[mask], called[mask], done[mask], empty.end[mask]
        )
    return parts.settle(empty, running, late, time)


def _launcher(threads: Ints) -> int:
    """Return the thread that launches most, for work whose own call is unknown."""
    import numpy as np

    if not len(threads):
        return UNKNOWN
    unique, n = np.unique(threads, return_counts=True)
    return int(unique[np.argmax(n)])


def _next_calls(scope: Scope, device: int, at: Ints) -> Ints:
    """Return for each time the call that launched the next work on ``device``, -1 where that is unknown."""
    import numpy as np

    starts, calls = [], []
    for kind in KINDS:
        rows: Columns = getattr(scope.trace, kind)
        mask = rows["device"] == device
        starts.append(rows["start"][mask])
        calls.append(scope.call_of[kind][mask])
    start, call = np.concatenate(starts), np.concatenate(calls)
    order = np.argsort(start, kind="stable")
    start, call = start[order], call[order]
    place = np.searchsorted(start, at, side="left")
    found = np.where(place < len(start), call[np.minimum(place, len(start) - 1)], UNKNOWN)
    exact = (place < len(start)) & (start[np.minimum(place, len(start) - 1)] == at)
    return np.where(exact, found, UNKNOWN)


class Host:
    """What one thread of the CPU did, as sets of time; thread -1 is unknown and stands for all threads."""

    def __init__(self, trace: Trace, thread: int) -> None:
        calls = trace.calls
        if thread != UNKNOWN:
            calls = calls.take(calls["thread"] == thread)
        named = Named(trace, calls)
        own = trace.overheads
        if thread != UNKNOWN:
            own = own.take(own["thread"] == thread)

        def times(*kinds: str) -> Times:
            mask = named.is_kind(*kinds)
            return union(calls["start"][mask], calls["end"][mask])

        self.profiler = union(own["start"], own["end"])
        self.waits = times("wait") - self.profiler
        self.allocator = times("allocator") - (self.profiler | self.waits)
        taken = self.profiler | self.waits | self.allocator
        quick = named.is_kind("launch", "submit") & (calls.duration < SLOW_CALL)
        self.launch = union(calls["start"][quick], calls["end"][quick]) - taken
        taken = taken | self.launch
        self.setup = times("setup", "launch", "submit") - taken
        self.busy = taken | self.setup
        self.pauses = _long(self.busy)


def _long(busy: Times) -> Times:
    """Return the pauses between calls that are longer than any launch path."""
    if len(busy) < 2:
        return nothing()
    start, end = busy.end[:-1], busy.start[1:]
    long = (end - start) >= LONG_PAUSE
    return Times(start[long], end[long])


class _Parts:
    """The parts of each empty stretch before work that was launched late [ns]."""

    NAMES = ("waiting", "allocator", "setup", "profiler", "launch", "input", "latency")

    def __init__(self, n: int) -> None:
        import numpy as np

        self.part = {name: np.zeros(n, np.int64) for name in self.NAMES}
        self.after_wait = np.zeros(n, np.bool_)

    def fill(
        self, mask: NDArray[np.bool_], host: Host, start: Ints, called: Ints, done: Ints, end: Ints
    ) -> None:
        """Split [``start``, ``end``) of the stretches in ``mask`` by what ``host`` did until it launched."""
        import numpy as np

        part = self.part
        part["waiting"][mask] = host.waits.within(start, called)
        part["allocator"][mask] = host.allocator.within(start, called)
        part["profiler"][mask] = host.profiler.within(start, called)
        outside = (called - start) - host.busy.within(start, called)
        pauses = host.pauses.within(start, called)
        part["input"][mask] = pauses
        in_call = np.minimum(done, end) - called
        loading = np.where(done - called >= SLOW_CALL, in_call, 0)
        part["setup"][mask] = host.setup.within(start, called) + loading
        part["launch"][mask] = host.launch.within(start, called) + outside - pauses + in_call - loading
        part["latency"][mask] = end - called - in_call
        self.after_wait[mask] = host.waits.covers(start)

    def settle(self, empty: Times, running: Times, late: NDArray[np.bool_], time: dict[str, int]) -> int:
        """Add the parts to ``time``: after a wait, what its removal could hide goes to the wait."""
        import numpy as np

        part, after = self.part, self.after_wait & late
        time["synchronisation"] += int(part["waiting"].sum()) + int(part["latency"][after].sum())
        time["launch"] += int(part["latency"][~after].sum())
        for name in ("allocator", "setup", "profiler"):
            time[name] += int(part[name].sum())
        work = part["launch"] + part["input"]
        hidden = np.zeros(len(work), np.int64)
        places = np.flatnonzero(after)
        if len(places):
            since = np.concatenate(([np.iinfo(np.int64).min // 4], empty.end[places][:-1]))
            ran = running.within(since, empty.start[places])
            hidden[places] = np.minimum(ran, work[places])
        from_input = np.where(work > 0, part["input"] * hidden // np.maximum(work, 1), 0)
        time["synchronisation"] += int(hidden.sum())
        time["input"] += int((part["input"] - from_input).sum())
        time["launch"] += int((part["launch"] - (hidden - from_input)).sum())
        return len(places)


# ---- The next experiment for each class of a region, as data: one change, and what would disprove it

AGAIN = (
    "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node -o after YOUR_PROGRAM",
    "ncukit timeline after.nsys-rep",
)

ALLOCATE = {
    False: "Allocate all buffers once, before the loop, and use them again; in streams cudaMallocAsync takes "
    "them from a pool.",
    True: "Allocate all buffers before the loop, or let the caching allocator keep them "
    "(PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, no empty_cache()).",
}
"""How to allocate once, by whether PyTorch runs."""

TITLES = {
    "launch-bound": "Replay the launches as one CUDA graph",
    "synchronisation-bound": "Take the waits out of the loop",
    "transfer-bound": "Pin the memory and copy beside the kernels",
    "input-bound": "Feed the region one cached input",
    "communication-bound": "Run the region without its collectives",
    "allocator-bound": "Allocate once, before the loop",
    "kernel-bound": "Profile the longest kernel with ncu",
}

_EXPERIMENTS: Mapping[str, Mapping[str, str]] = {
    "launch-bound": {
        "change": "Capture the region once and replay it (torch.cuda.CUDAGraph, torch.compile(mode="
        "'reduce-overhead'), cudaStreamBeginCapture). Where shapes change, fuse the short kernels instead.",
        "why": "The GPU is without work {share:.1f} % of the time because the next launch comes late.",
        "watch": "empty gaps of the device, then the clean time",
        "disproved_if": "the empty share falls but the clean time does not, or a graph does not lower it",
        "cost": "static shapes and addresses inside the graph",
    },
    "synchronisation-bound": {
        "change": "Remove the synchronising calls inside the loop (.item(), .cpu(), print of a tensor, "
        "cudaDeviceSynchronize, blocking copies), and synchronise once after it.",
        "why": "After each wait the GPU stays dry until the CPU has prepared the next work: {share:.1f} % of "
        "the time.",
        "watch": "waits and empty gaps, then the clean time",
        "disproved_if": "the waits are gone and the empty share stays, or the results change",
        "cost": "values arrive later on the CPU; more memory is in flight",
    },
    "transfer-bound": {
        "change": "{fix}.",
        "why": "For {share:.1f} % of the time a copy or memory set runs and no kernel does.",
        "watch": "the copy share of the gaps and the bandwidth of the copies, then the clean time",
        "disproved_if": "the copies run beside kernels, or faster, and the clean time stays",
        "cost": "pinned memory, and one more buffer",
    },
    "input-bound": {
        "change": "Build one input before the loop and use it in every iteration (a diagnosis, not a fix).",
        "why": "The launching thread is outside CUDA for {share:.1f} % of the time, in long pauses.",
        "watch": "the clean time of the loop with the cached input",
        "disproved_if": "the clean time stays: then the CPU is busy with something else, not with input",
        "cost": "none; if confirmed: more loader workers, prefetching, preprocessing on the GPU",
    },
    "communication-bound": {
        "change": "Run the same region with one GPU, or with the collectives replaced by no-ops.",
        "why": "For {share:.1f} % of the time only collectives run. They contain the wait for slower ranks, "
        "which one rank's trace cannot tell from transfer.",
        "watch": "the clean time without the collectives; the start of the same collective on every rank",
        "disproved_if": "the clean time without them falls by much less than their share",
        "cost": "wrong results in the test run; if confirmed: overlap, larger buckets, fewer bytes",
    },
    "allocator-bound": {
        "change": "{allocate}",
        "why": "The GPU is without work {share:.1f} % of the time while the CPU allocates or frees memory.",
        "watch": "calls of {allocating} inside the region, then the clean time",
        "disproved_if": "the calls are gone and the empty share stays",
        "cost": "memory stays reserved",
    },
    "kernel-bound": {
        "change": "Measure {kernel} with ncu before changing anything.",
        "why": "Kernels run {share:.1f} % of the time: only faster kernels make the region faster.",
        "watch": "the clean time of the region",
        "disproved_if": "the kernel gets faster by its own time and the region does not",
        "cost": "ncu runs the launch again for each pass",
    },
}


def experiment(cls: str, share: float, bound: float | None, facts: Mapping[str, str]) -> Experiment | None:
    """Return the experiment for class ``cls``, None where none is known.

    ``share`` [%] and ``bound`` (the most that the region could gain) fill the words, ``facts`` the names.
    """
    words = _EXPERIMENTS.get(cls)
    if words is None:
        return None
    said = {key: text.format(share=share, **facts) for key, text in words.items()}
    most = "" if bound is None else f"{faster(bound)}, if all of it goes and nothing else gets worse"
    if cls == "kernel-bound":
        most = f"{facts['kernel_bound']} if it took no time"
    return Experiment(title=TITLES[cls], expect=most, run=AGAIN if cls != "kernel-bound" else (), **said)
