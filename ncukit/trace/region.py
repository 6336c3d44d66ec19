"""What a trace says about a region: where the time went, what limits it, which launch deserves ncu."""

from __future__ import annotations

from collections.abc import Mapping

from ncukit.errors import UsageError
from ncukit.media import listed
from ncukit.model.diagnosis import Confidence, Evidence
from ncukit.model.trace import (
    CAUSE_WORDS,
    CallTime,
    CopyTime,
    DeviceTime,
    GraphTime,
    KernelTime,
    LaunchTime,
    Region,
    Timeline,
    Trace,
)
from ncukit.quantity import faster
from ncukit.record import dataclass
from ncukit.trace.activity import calls, collectives, copies, launches, ranking, working_time
from ncukit.trace.causes import ALLOCATE, Causes, causes, experiment
from ncukit.trace.intervals import spread, spreads_by
from ncukit.trace.scope import Scope, devices, in_range, main_device, ranges, runs_torch, whole

# ---- Name what limits the region, with the evidence, what speaks against it, and the next experiment

KERNEL_BOUND = 80.0
"""From here on kernels are what there is to improve [%]."""
CAUSE = 20.0
"""A cause that takes less is not what limits the region, if kernels take the larger part [%]."""
FEW = 10
"""With fewer launches the trace shows set-up, not a steady state."""
ONE_OFF = 50.0
"""One gap that holds this much of the empty time is an event, not a pattern [%]."""

CLASSES = {
    "communication": "communication-bound",
    "transfer": "transfer-bound",
    "synchronisation": "synchronisation-bound",
    "launch": "launch-bound",
    "input": "input-bound",
    "allocator": "allocator-bound",
}
"""The class that each cause makes; what is missing here leaves the region undetermined."""

UNDECIDABLE = (
    ("capacity-bound", "needs a second trace with another problem or batch size"),
    ("scheduler-bound", "needs the scheduler's own log; a trace does not show what a process waited for"),
)

ALLOCATING = 3
"""Calls named whose number is to fall."""


@dataclass(frozen=True)
class Facts:
    """What the classification looks at, all of the main device."""

    causes: Causes
    device: DeviceTime
    kernels: tuple[KernelTime, ...]
    copies: tuple[CopyTime, ...]
    calls: tuple[CallTime, ...]
    launches: LaunchTime
    graphs: int = 0


def classify(facts: Facts) -> Region:
    """Return the region's class: the largest cause, unless kernels fill the time.

    Kernels from 80 % up are the limit.  Else the largest other cause is, if it takes at least 20 % or kernels
    take less than half.  Causes without class (set-up, dependencies, untraced calls) leave it undetermined.
    """
    causes = facts.causes
    shares = {name: causes.share(name) for name in causes.time}
    cause = limit(shares)
    cls = "kernel-bound" if cause == "kernel" else CLASSES.get(cause, "undetermined")
    share = shares[cause]
    lost = causes.time[cause]
    bound = causes.window / (causes.window - lost) if lost < causes.window else None
    top = next((k for k in facts.kernels if k.kind == "compute"), facts.kernels[0] if facts.kernels else None)
    copy = facts.copies[0] if facts.copies else None
    allocating = [call.name for call in facts.calls if call.kind == "allocator"][:ALLOCATING]
    words = {
        "allocate": ALLOCATE[runs_torch(kernel.name for kernel in facts.kernels)],
        "allocating": listed(allocating) if allocating else "cudaMalloc and cudaFree",
        "kernel": top.short if top else "the graph's kernels",
        "kernel_bound": faster(top.bound) if top else "faster by an unknown amount",
        "fix": (copy.fix[0].upper() + copy.fix[1:])
        if copy
        else "Do not clear memory that is overwritten anyway",
    }
    return Region(
        cls=cls,
        share=share,
        shares=shares,
        confidence=_confidence(cls, share, facts),
        claim=_claim(cls, cause, share, facts, top),
        evidence=_evidence(facts, shares, cause, top),
        against=_against(facts, shares, cause),
        experiment=experiment(cls, share, bound, words),
        bound=None if cause == "kernel" else bound,
        missing=_missing(cls, cause, facts),
        undecidable=UNDECIDABLE,
    )


def limit(shares: Mapping[str, float]) -> str:
    """Return the cause that limits a region with these ``shares`` [%] of its time.

    >>> limit({"kernel": 16.7, "launch": 83.3, "transfer": 0, "communication": 0, "synchronisation": 0,
    ...        "input": 0, "allocator": 0, "setup": 0})
    'launch'
    """
    if shares["kernel"] >= KERNEL_BOUND:
        return "kernel"
    known = max(CLASSES, key=lambda name: shares[name])
    other = max(
        (name for name in shares if name not in CLASSES and name != "kernel"), key=lambda n: shares[n]
    )
    if shares[other] >= 50 or (shares[other] > shares[known] and shares["kernel"] < 50):
        return other
    return known if shares[known] >= CAUSE or shares["kernel"] < 50 else "kernel"


def _confidence(cls: str, share: float, facts: Facts) -> Confidence:
    if cls == "undetermined" or facts.device.launches < FEW or not facts.causes.calls_traced:
        return "low"
    one_off = _one_off(facts)
    if cls != "kernel-bound" and one_off is not None and one_off >= ONE_OFF:
        return "low"
    return "high" if share >= 50 and facts.device.launches >= 100 else "medium"


def _one_off(facts: Facts) -> float | None:
    """Share of the empty time that lies in its longest gap [%]; None with few gaps."""
    if facts.causes.gaps < FEW or not facts.device.empty:
        return None
    return 100 * facts.device.longest_gap[1] / facts.device.empty


def _claim(cls: str, cause: str, share: float, facts: Facts, top: KernelTime | None) -> str:
    if cls == "kernel-bound":
        name = f", {top.short} alone {top.share:.1f} %" if top else ""
        return f"Kernels run {share:.1f} % of the time{name}."
    if cls == "undetermined":
        return (
            f"The trace does not show what limits the region: {share:.1f} % of the time {CAUSE_WORDS[cause]}."
        )
    return f"For {share:.1f} % of the time {CAUSE_WORDS[cause]}."


def _evidence(
    facts: Facts, shares: dict[str, float], cause: str, top: KernelTime | None
) -> tuple[Evidence, ...]:
    device, launches = facts.device, facts.launches
    busy = 100 * device.busy / device.span if device.span else 0.0
    found = [
        Evidence("gpu_busy", busy, "%", f"of the region some kernel runs ({device.launches:,} launched)"),
        Evidence("gpu_empty", _of(device.empty, device), "%", "of the region nothing runs on the GPU"),
    ]
    if cause != "kernel":
        found.append(Evidence(f"cause_{cause}", shares[cause], "%", f"of the region {CAUSE_WORDS[cause]}"))
    if cause == "launch" and launches.latency is not None:
        found.append(
            Evidence(
                "launch_latency", launches.latency.median / 1e9, "s", "median from launch call to kernel"
            )
        )
    if cause == "launch":
        found += [
            Evidence(
                "launch_cpu_time", c.calls.median / 1e9, "s", f"of CPU for one of {c.calls.n:,} {c.name}"
            )
            for c in facts.calls
            if c.kind == "launch"
        ][:2]
    if cause in ("launch", "kernel") and top is not None:
        found.append(
            Evidence("kernel_median", top.steady.median / 1e9, "s", f"a steady launch of {top.short}")
        )
    if cause == "synchronisation":
        found += [
            Evidence("wait", c.calls.total / 1e9, "s", f"in {_calls(c.calls.n)} of {c.name}")
            for c in facts.calls
            if c.kind == "wait"
        ][:3]
    if cause == "allocator":
        found += [
            Evidence("allocator", c.calls.total / 1e9, "s", f"in {_calls(c.calls.n)} of {c.name}")
            for c in facts.calls
            if c.kind == "allocator"
        ][:3]
    if cause == "transfer":
        found += [Evidence("copy", c.total / 1e9, "s", f"in {_copies(c)}") for c in facts.copies[:3]]
    if cause == "communication":
        found += [
            Evidence("collective", k.launches.total / 1e9, "s", f"{k.launches.n:,} launches of {k.short}")
            for k in facts.kernels
            if k.kind == "collective"
        ][:3]
    return tuple(found)


def _calls(n: int) -> str:
    return "1 call" if n == 1 else f"{n:,} calls"


def _copies(c: CopyTime) -> str:
    """Return "24 copies to the device, from pageable memory"."""
    number = "1 copy" if c.n == 1 else f"{c.n:,} copies"
    if c.direction == "h2d":
        return f"{number} to the device, from {c.source} memory"
    if c.direction == "d2h":
        return f"{number} to the host, into {c.target} memory"
    return f"{number} {_WAYS.get(c.direction, 'of unknown direction')}"


_WAYS = {"d2d": "within a device", "peer": "between GPUs", "h2h": "on the host"}


def _against(facts: Facts, shares: dict[str, float], cause: str) -> tuple[Evidence, ...]:
    """Return the other causes, also those that came out clean, and what weakens the verdict."""
    found = []
    if (one_off := _one_off(facts)) is not None and one_off >= ONE_OFF:
        text = "of the empty time is one gap: an event such as compilation; look at the steady part (--range)"
        found.append(Evidence("longest_gap", one_off, "%", text))
    if facts.device.launches < FEW:
        n = facts.device.launches
        text = f"{'launch' if n == 1 else 'launches'} only: this is set-up, not a steady state"
        found.append(Evidence("launches", facts.device.launches, "", text))
    if facts.graphs:
        text = "graph executions were traced as a whole: their kernels and gaps are not seen"
        found.append(Evidence("graphs", facts.graphs, "", text))
    rest = sorted((n for n in (*CLASSES, "kernel") if n != cause), key=lambda name: -shares[name])
    found += [
        Evidence(f"cause_{name}", shares[name], "%", f"of the region {CAUSE_WORDS[name]}") for name in rest
    ]
    return tuple(found)


def _missing(cls: str, cause: str, facts: Facts) -> tuple[str, ...]:
    found = []
    if not facts.causes.calls_traced:
        found.append("CUDA calls (nsys --trace=cuda): without them a wait cannot be told from a late launch")
    if facts.graphs:
        found.append("the kernels inside CUDA graphs (nsys --cuda-graph-trace=node)")
    if cls == "undetermined" and cause in ("setup", "profiler", "foreign", "dependency"):
        found.append("a steady region: mark the loop with NVTX after warm-up and pass --range NAME")
    return tuple(found)


def _of(time: int, device: DeviceTime) -> float:
    return 100 * time / device.span if device.span else 0.0


# ---- What a trace says about a region: where the time went, what limits it, which launch deserves ncu
# `analyse` does all of it from a `Trace`; the modules hold one question each. Durations are whole
# nanoseconds.


def analyse(trace: Trace, range: str | None = None) -> Timeline:
    """Return what ``trace`` says: of all of it, or of what was launched inside the NVTX range ``range``.

    Raises:
        UsageError: there is no such range, or nothing was launched in it.
    """
    scope = whole(trace) if range is None else in_range(trace, range)
    return describe(scope)


def describe(scope: Scope) -> Timeline:
    """Return what the trace says about ``scope``."""
    trace = scope.trace
    found = devices(scope)
    main = main_device(found)
    if main is None:
        raise UsageError("nothing ran on a GPU in this trace", "Trace a program that launches kernels.")
    device = next(d for d in found if d.id == main)
    kernel_times = {d.id: scope.kernel_time(d.id, all_work=True) for d in found}
    ranked = ranking(scope, main)
    copied = copies(scope, kernel_times)
    called = calls(scope, working_time(scope))
    launched = launches(scope)
    graphs = scope.rows("graphs")
    memsets = scope.rows("memsets")
    facts = Facts(causes(scope, main), device, ranked, copied, called, launched, len(graphs))
    window = scope.windows[main]
    marked, left_out = ranges(trace, scope.call_of["kernels"])
    return Timeline(
        file=trace.file,
        range=scope.range,
        windows=tuple(zip(window.start.tolist(), window.end.tolist(), strict=True)),
        main_device=main,
        devices=found,
        kernels=ranked,
        copies=copied,
        calls=called,
        launches=launched,
        ranges=marked,
        graphs=tuple(
            GraphTime(graph, runs) for graph, runs in spreads_by(graphs["graph"], graphs.duration).items()
        ),
        region=classify(facts),
        collectives=collectives(ranked),
        memsets=spread(memsets.duration) if len(memsets) else None,
        counters=trace.counters,
        notes=(*trace.notes, *scope.notes, *_notes(scope, left_out)),
    )


def _notes(scope: Scope, ranges_left_out: int) -> tuple[str, ...]:
    found = []
    if ranges_left_out:
        found.append(f"{ranges_left_out:,} names of NVTX ranges with less time are left out")
    if len(scope.rows("graphs")) and not len(scope.rows("kernels")):
        found.append(
            "all kernels ran inside CUDA graphs, which were traced as a whole: trace again with "
            "--cuda-graph-trace=node to see them"
        )
    elif not len(scope.rows("kernels")):
        found.append("no kernel ran, only copies and memory sets")
    if len(scope.windows) > 1:
        found.append("several GPUs: shares and class are those of the main device")
    return tuple(found)
