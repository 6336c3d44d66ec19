"""What a trace of torch's profiler says in all: operators, kernels, memory, use of the GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ncukit.errors import UsageError
from ncukit.media import argument
from ncukit.model.ops import Deserving, DeviceMemory, Operator, Ops, Spike, TorchTrace, Utilisation
from ncukit.model.trace import UNKNOWN, Timeline
from ncukit.quantity import faster, time
from ncukit.trace.intervals import Times
from ncukit.trace.launch_choice import Request, choose_launch
from ncukit.trace.operators import Nest, keys, nest, operators, owners
from ncukit.trace.region import describe
from ncukit.trace.scope import Scope, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


# ---- Which kernel of the operators deserves ncu, and the command that profiles it

WORTH = 5.0
"""[%] of the region: less is not worth a kernel's profile before the rest was looked at."""
LITTLE = "; look at the timeline first (`ncukit timeline`)"
ANY_PROGRAM = ("--", "python", "YOUR_SCRIPT.py")
"""What stands for the program, of which a trace does not tell the command."""


def deserving(scope: Scope, found: Sequence[Operator], program: Sequence[str] = ()) -> Deserving:
    """Return the kernel that deserves ncu; ``program`` are the words after ``ncukit profile``.

    A trace that was made elsewhere does not hold them: then the command has a place for them.
    """
    if not len(scope.trace.kernels):
        return Deserving(why_not="no kernel ran on a GPU in this trace: ncu has nothing to measure")
    timeline = describe(scope)
    try:
        chosen = choose_launch(scope, Request(), timeline)
    except UsageError as error:
        return Deserving(why_not=f"{error.message}. {error.hint}")
    name = chosen.launch.name
    every = sum(kernel.launches.total for kernel in timeline.kernels)
    share = next((100 * k.launches.total / every for k in timeline.kernels if k.name == name and every), None)
    launchers = sorted(
        ((use.total, operator.name) for operator in found for use in operator.kernels if use.name == name),
        reverse=True,
    )
    options = dict(zip(chosen.selection[::2], chosen.selection[1::2], strict=True))
    words = ["ncukit", "profile", "--gpu-kernel", options["--kernel-name"], *(program or ANY_PROGRAM)]
    return Deserving(
        kernel=name,
        short=chosen.launch.short,
        operator=launchers[0][1] if launchers else "",
        share=share,
        command=" ".join(argument(each) for each in words),
        reasons=(*chosen.reasons, *_worth(timeline, name), *(f"caution: {text}" for text in chosen.cautions)),
        others=chosen.runners_up,
    )


def _worth(timeline: Timeline, name: str) -> list[str]:
    """Return what the region could gain from the kernel at most, and where to look if that is little."""
    kernel = next((k for k in timeline.kernels if k.name == name), None)
    if kernel is None or kernel.bound is None:
        return []
    share = f"it takes {kernel.share:.1f} % of the region"
    said = f"{share}: without it the region would be {faster(kernel.bound)}"
    return [said + (LITTLE if kernel.share < WORTH else "")]


# ---- The totals of torch's own table beside those of the trace

SLACK = 0.01
"""Share by which sums may differ: torch rounds each event to its microsecond in some versions."""


def against_torch(ops: Ops, result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return how the sums of ``ops`` compare with torch's own; ``result`` is from the measured child.

    Only operators that both know are compared: torch's table also has annotations and kernels.  It counts a
    call that is nothing but a call of the same name once, so only its larger counts mean that some are lost.
    """
    own: Mapping[str, list[float]] = result.get("own") or {}
    calls: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    device: Counter[str] = Counter()
    for operator in ops.operators:
        calls[operator.name] += operator.calls
        cpu[operator.name] += operator.cpu_self
        device[operator.name] += operator.device_self
    known = [name for name in own if name in calls]
    if not known:
        return ()
    found = []
    if different := [name for name in known if int(own[name][0]) > calls[name]]:
        name = different[0]
        found.append(
            f"torch's own table counts {int(own[name][0]):,} calls of {name}, the trace {calls[name]:,}"
            + (f"; so for {len(different):,} operators" if len(different) > 1 else "")
        )
    called = str(result.get("device_time", "device_time_total"))
    sums = [("self_cpu_time_total", 2, cpu)]
    if ops.attribution.n:
        sums.append((f"self_{called}", 4, device))
    for name, place, mine in sums:
        theirs, ours = (
            round(1000 * sum(own[k][place] for k in known)),
            sum(mine[k] for k in known),
        )
        agrees = abs(theirs - ours) <= SLACK * max(theirs, ours, 1)
        verb = "agrees with" if agrees else "differs from"
        found.append(f"torch's own {name}, {time(theirs)}, {verb} the sum of the trace, {time(ours)}")
    return tuple(found)


# ---- What the allocators of a traced program did: peaks, the largest rises, and when they asked the driver

SPIKES = 5
"""Rises that are shown for each device."""
NO_OPERATOR = "(no operator)"


def memory(trace: TorchTrace, nest: Nest) -> tuple[DeviceMemory, ...]:
    """Return each device's allocator, GPUs first; () where the profiler did not record allocations."""
    import numpy as np

    rows, names = trace.memory, trace.trace.names
    owner = nest.innermost(rows["thread"], rows["start"])
    named = trace.operators["name"][nest.order] if len(nest) else np.empty(0, np.int64)
    begin = int(rows["start"].min()) if len(rows) else 0

    def operator(row: int) -> str:
        return names[int(named[owner[row]])] if owner[row] != UNKNOWN else NO_OPERATOR

    found = []
    for device in sorted(np.unique(rows["device"]).tolist(), key=lambda d: (d == UNKNOWN, d)):
        mine = np.flatnonzero(rows["device"] == device)
        allocated, reserved = _known(rows["allocated"][mine]), _known(rows["reserved"][mine])
        if device == UNKNOWN:
            reserved = None  # the CPU's allocator keeps nothing back
        grown = np.diff(reserved, prepend=reserved[:1]) if reserved is not None else np.zeros(len(mine), int)
        peak = int(np.argmax(allocated)) if allocated is not None else 0
        bytes = rows["bytes"][mine]
        largest = np.argsort(-np.maximum(bytes, grown), kind="stable")[:SPIKES]
        found.append(
            DeviceMemory(
                device=device,
                events=len(mine),
                peak_allocated=None if allocated is None else int(allocated.max()),
                peak_reserved=None if reserved is None else int(reserved.max()),
                peak_at=int(rows["start"][mine[peak]]) - begin,
                peak_operator=operator(int(mine[peak])) if allocated is not None else "",
                first_allocated=None if allocated is None else int(allocated[0] - bytes[0]),
                last_allocated=None if allocated is None else int(allocated[-1]),
                growths=int((grown > 0).sum()),
                spikes=tuple(
                    Spike(
                        device=device,
                        at=int(rows["start"][mine[i]]) - begin,
                        bytes=int(bytes[i]),
                        allocated=int(rows["allocated"][mine[i]]),
                        reserved=int(rows["reserved"][mine[i]]),
                        operator=operator(int(mine[i])),
                        grew=max(0, int(grown[i])),
                    )
                    for i in largest.tolist()
                    if bytes[i] > 0 or grown[i] > 0
                ),
            )
        )
    return tuple(found)


def _known(values: Ints) -> Ints | None:
    """Return ``values``, None where the trace does not say them all."""
    return values if len(values) and bool((values != UNKNOWN).all()) else None


# ---- How busy a GPU was: what the trace proves, and what a tool that samples could have shown

WINDOW = 1_000_000_000 // 6
"""[ns] ``nvidia-smi`` averages over between 1/6 s and 1 s, depending on the GPU (NVML, nvmlUtilization_t)."""
LAUNCH_GAP = 1_000
"""[ns] Shorter stretches without work come between any two kernels."""


def utilisation(scope: Scope) -> tuple[Utilisation, ...]:
    """Return how busy each GPU was, from its first work to its last."""
    found = []
    for device, window in sorted(scope.windows.items()):
        if not window.length:
            continue
        kernels, empty = scope.kernel_time(device), gaps(scope, device)
        long = empty.end - empty.start >= LAUNCH_GAP
        lengths = (empty.end - empty.start)[long]
        low, high = sampled(kernels, int(window.start[0]), int(window.end[-1]))
        found.append(
            Utilisation(
                device=device,
                span=window.length,
                busy=100 * (kernels & window).length / window.length,
                gaps=len(lengths),
                gap_time=empty.length,
                longest_gap=int(lengths.max()) if len(lengths) else 0,
                window=WINDOW,
                low=low,
                high=high,
                occupancy=_occupancy(scope, device),
            )
        )
    return tuple(found)


def gaps(scope: Scope, device: int) -> Times:
    """Return when nothing ran on ``device``: neither kernel, copy nor memory set."""
    return scope.windows[device] - (scope.kernel_time(device) | scope.copy_time(device))


def sampled(busy: Times, start: int, end: int, window: int = WINDOW) -> tuple[float | None, float | None]:
    """Return the least and the most busy ``window`` [ns] between ``start`` and ``end`` [%].

    Windows begin at ``start``; the rest that fills none is left out.  (None, None) where none fits.

    >>> from ncukit.trace.intervals import union
    >>> sampled(union([0, 30], [10, 50]), 0, 45, window=20)
    (50.0, 50.0)
    """
    import numpy as np

    count = (end - start) // window
    if count < 1:
        return None, None
    # Between two windows in which something begins or ends all are alike: their neighbours stand for them.
    edges = (np.concatenate((busy.start, busy.end, [start])) - start) // window
    numbers = np.unique(np.clip(np.concatenate((edges - 1, edges, edges + 1)), 0, count - 1))
    begin = start + numbers * window
    shares = 100 * busy.within(begin, begin + window) / window
    return float(shares.min()), float(shares.max())


def _occupancy(scope: Scope, device: int) -> float | None:
    """Return the profiler's estimate of achieved occupancy [%], weighted by time; None where it says none."""
    rows = scope.rows("kernels", device)
    if "occupancy" not in rows or not len(rows):
        return None
    known: NDArray[np.bool_] = rows["occupancy"] != UNKNOWN
    time = rows.duration[known]
    return float((rows["occupancy"][known] * time).sum() / time.sum()) if time.sum() else None


# ---- What a trace of torch's profiler says about operators: their time, their kernels, their memory
# `analyse` does all of it; the modules hold one question each. Durations are whole nanoseconds.

Sort = Literal["device", "self-device", "cpu", "self-cpu"]
SORTS: Mapping[Sort, Callable[[Operator], tuple[int, int]]] = {
    "device": lambda o: (-o.device_total, -o.device_self),
    "self-device": lambda o: (-o.device_self, -o.device_total),
    "cpu": lambda o: (-o.cpu_total, -o.cpu_self),
    "self-cpu": lambda o: (-o.cpu_self, -o.cpu_total),
}


def analyse_operators(trace: TorchTrace, program: Sequence[str] = ()) -> Ops:
    """Return what ``trace`` says about operators, by device time, or without a GPU by CPU time of their own.

    ``program`` are the words after ``ncukit profile`` that run the traced program, where they are known.
    """
    distinct, which = keys(trace.operators)
    made = nest(trace.operators, which)
    owned = owners(trace, made)
    found = operators(trace, made, distinct, owned)
    scope = whole(trace.trace)
    on_gpu = bool(trace.trace.gpu_work)
    rows = trace.operators
    span = int(rows["end"].max() - rows["start"].min()) if len(rows) else 0
    gpus = trace.trace.gpus
    used = sorted({*trace.trace.kernels["device"].tolist(), *trace.trace.copies["device"].tolist()})
    return Ops(
        file=trace.trace.file,
        torch=said if isinstance(said := trace.head.get("pytorch_version"), str) else None,
        sorted_by="device" if on_gpu else "cpu",
        span=span,
        operators=ordered(found, "device" if on_gpu else "self-cpu"),
        attribution=owned.attribution,
        recorded=trace.recorded,
        utilisation=utilisation(scope),
        memory=memory(trace, made),
        deserving=deserving(scope, found, program),
        gpus=tuple((gpus[d].name or "GPU without name") if d in gpus else "GPU not described" for d in used),
        notes=(*trace.trace.notes, *_notes(trace, owned.attribution.without_call)),
    )


def ordered(found: Sequence[Operator], sort: Sort) -> tuple[Operator, ...]:
    """Return operators by ``sort``, the largest first; those that are equal by name and shapes."""
    by = SORTS[sort]
    return tuple(sorted(found, key=lambda o: (*by(o), o.name, o.shapes, o.types)))


def _notes(trace: TorchTrace, without_call: int) -> list[str]:
    found = []
    if not trace.trace.gpu_work:
        found.append("nothing ran on a GPU: operators are ordered by CPU time of their own")
    if len(trace.operators) and not trace.recorded["shapes"]:
        found.append("the trace has no input shapes: record with record_shapes=True")
    if not len(trace.operators):
        found.append("the trace has no operators: record with ProfilerActivity.CPU as well")
    if without_call:
        found.append(f"GPU work whose launch call is not in the trace: {without_call:,} of the pieces")
    return found
