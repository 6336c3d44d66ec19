"""The JSON of ``ncukit timeline``: schema ``ncukit.timeline/1``; times in seconds, shares in percent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ncukit.media import dumps
from ncukit.model.diagnosis import Evidence
from ncukit.model.trace import (
    UNKNOWN,
    CallTime,
    CopyTime,
    DeviceTime,
    KernelTime,
    LaunchChoice,
    Match,
    RangeTime,
    Region,
    Spread,
    Timeline,
)

SCHEMA = "ncukit.timeline/1"


def timeline_text(timeline: Timeline, choice: LaunchChoice | None = None, why_not: str = "") -> str:
    """Return the JSON of a timeline on one line; ``choice`` is the launch for ncu, ``why_not`` why none."""
    return dumps(timeline_data(timeline, choice, why_not))


def timeline_data(
    timeline: Timeline, choice: LaunchChoice | None = None, why_not: str = ""
) -> dict[str, Any]:
    """Return a timeline as JSON data."""
    t = timeline
    return {
        "schema": SCHEMA,
        "file": t.file.path,
        "source": {
            "format": t.file.format,
            "tool": t.file.tool,
            "schema": t.file.schema,
            "size": t.file.size,
        },
        "range": t.range,
        "window": {
            "start": _s(t.windows[0][0]) if t.windows else None,
            "end": _s(t.windows[-1][1]) if t.windows else None,
            "length": _s(sum(end - start for start, end in t.windows)),
            "pieces": len(t.windows),
        },
        "main_device": t.main_device,
        "devices": [_device(device) for device in t.devices],
        "kernels": [_kernel(kernel) for kernel in t.kernels],
        "kernel_total": _s(t.kernel_total),
        "copies": [_copy(copy) for copy in t.copies],
        "memsets": None if t.memsets is None else _spread(t.memsets),
        "calls": [_call(call) for call in t.calls],
        "waits": [_call(call) | {"idle": _s(call.idle)} for call in t.waits],
        "launches": {
            "kernels": t.launches.kernels,
            "traced": t.launches.traced,
            "calls": t.launches.calls,
            "cpu": _s(t.launches.cpu),
            "latency": None if t.launches.latency is None else _spread(t.launches.latency),
            "graph_kernels": t.launches.graph_kernels,
        },
        "ranges": [_range(found) for found in t.ranges],
        "graphs": [{"graph": graph.graph, **_spread(graph.runs)} for graph in t.graphs],
        "counters": [asdict(counter) for counter in t.counters],
        "region": _region(t.region),
        "launch": None if choice is None else _choice(choice),
        "launch_reason": why_not or None,
        "notes": list(t.notes),
    }


def region_data(timeline: Timeline) -> dict[str, Any]:
    """Return the region of a trace as JSON data, for beside the launches of a report."""
    main = next(d for d in timeline.devices if d.id == timeline.main_device)
    return {
        "file": timeline.file.path,
        "range": timeline.range,
        "span": _s(main.span),
        "busy": _s(main.busy),
        "kernel_total": _s(timeline.kernel_total),
        **_region(timeline.region),
    }


def traced_data(match: Match | None) -> dict[str, Any] | None:
    """Return the traced kernel of a launch as JSON data; None where the trace does not hold it."""
    if match is None:
        return None
    kernel = match.kernel
    return {
        "name": kernel.name,
        "matched_by": list(match.by),
        "n": kernel.launches.n,
        "total": _s(kernel.launches.total),
        "share": kernel.share,
        "max_speedup": kernel.bound,
        "same_shape": None if match.shape is None else match.shape.launches.n,
        "launch": _spread(match.launches),
    }


def _s(nanoseconds: float | None) -> float | None:
    """Return seconds; a whole number of nanoseconds comes back exactly by multiplying and rounding."""
    return None if nanoseconds is None else nanoseconds / 1e9


def _spread(spread: Spread) -> dict[str, Any]:
    return {
        "n": spread.n,
        "total": _s(spread.total),
        "median": _s(spread.median),
        "min": _s(spread.min),
        "max": _s(spread.max),
        "spread": _s(spread.iqr),
    }


def _device(d: DeviceTime) -> dict[str, Any]:
    return {
        "id": d.id,
        "name": d.name,
        "compute_capability": d.compute_capability,
        "start": _s(d.start),
        "span": _s(d.span),
        "busy": _s(d.busy),
        "sum": _s(d.sum),
        "gaps": {"copy": _s(d.copy), "empty": _s(d.empty)},
        "foreign": _s(d.foreign),
        "launches": d.launches,
        "copies": d.copies,
        "copy_busy": _s(d.copy_busy),
        "longest_gap": {"start": _s(d.longest_gap[0]), "length": _s(d.longest_gap[1])},
        "streams": [
            {"context": _known(s.context), "stream": s.stream, "n": s.n, "busy": _s(s.busy)}
            for s in d.streams
        ],
    }


def _kernel(k: KernelTime) -> dict[str, Any]:
    return {
        "name": k.name,
        "short": k.short,
        "kind": k.kind,
        **_spread(k.launches),
        "steady": {**_spread(k.steady), "tuning": k.tuning, "warmup": k.warmup},
        "busy": _s(k.busy),
        "share": k.share,
        "max_speedup": k.bound,
        "configurations": k.configurations,
        "other_threads": k.other_threads,
    }


def _copy(c: CopyTime) -> dict[str, Any]:
    return {
        "direction": c.direction,
        "source": c.source,
        "target": c.target,
        "n": c.n,
        "bytes": c.bytes,
        "total": _s(c.total),
        "bandwidth": c.bandwidth,
        "median_bytes": c.median_bytes,
        "hidden": _s(c.hidden),
        "fix": c.fix,
    }


def _call(c: CallTime) -> dict[str, Any]:
    return {"name": c.name, "kind": c.kind, **_spread(c.calls)}


def _range(r: RangeTime) -> dict[str, Any]:
    return {
        "name": r.name,
        "domain": r.domain,
        "style": r.style,
        **_spread(r.instances),
        "kernels": r.kernels,
        "kernel_time": _s(r.kernel_time),
        "other_threads": r.other_threads,
        "open": r.open,
        "attributed": r.attributed,
    }


def _region(r: Region) -> dict[str, Any]:
    return {
        "class": r.cls,
        "share": r.share,
        "shares": dict(r.shares),
        "confidence": r.confidence,
        "claim": r.claim,
        "evidence": [_evidence(e) for e in r.evidence],
        "against": [_evidence(e) for e in r.against],
        "experiment": None if r.experiment is None else asdict(r.experiment),
        "max_speedup": r.bound,
        "missing": list(r.missing),
        "undecidable": [f"{cls}: {why}" for cls, why in r.undecidable],
    }


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _evidence(e: Evidence) -> dict[str, Any]:
    return {"metric": e.metric, "value": e.value, "unit": e.unit, "text": e.text}


def _choice(choice: LaunchChoice) -> dict[str, Any]:
    times = {"start": _s(choice.launch.start), "duration": _s(choice.launch.duration)}
    launch = asdict(choice.launch) | times
    launch |= {key: _known(launch[key]) for key in ("registers", "static_shared", "dynamic_shared")}
    launch |= {key: [_known(size) for size in launch[key]] for key in ("grid", "block")}
    candidates = [asdict(c) | {"total": _s(c.total)} for c in choice.runners_up]
    return {
        **launch,
        "ncu": list(choice.selection),
        "reasons": list(choice.reasons),
        "cautions": list(choice.cautions),
        "runners_up": candidates,
    }
