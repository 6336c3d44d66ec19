"""The tables of a timeline: devices, kernels, copies, waits, ranges, CUDA calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.model.trace import CallTime, CopyTime, DeviceTime, KernelTime, RangeTime, Spread, Timeline
from ncukit.quantity import factor
from ncukit.render.cells import plain
from ncukit.render.line import Line, line
from ncukit.render.timeline.figures import Figures
from ncukit.render.words import plural, shorten

SHOWN = 50
"""Kernels, calls and ranges in the page's tables; the JSON has all."""
SYNTHETIC = "These events were written by a program to show the page; no GPU was traced. "
WAYS = {
    "h2d": "to device",
    "d2h": "to host",
    "d2d": "within a device",
    "peer": "between GPUs",
    "h2h": "host to host",
    "unknown": "unknown direction",
}


def main_of(timeline: Timeline) -> DeviceTime:
    """Return the device that shares refer to."""
    return next(d for d in timeline.devices if d.id == timeline.main_device)


def notes(timeline: Timeline) -> list[Line]:
    """Return what was odd about the trace; first that nobody recorded it, if that is so."""
    made = timeline.file.synthetic
    return [line(note) for note in ((SYNTHETIC + made,) if made else ()) + timeline.notes]


def gpu_name(d: DeviceTime) -> str:
    """Return the name of a device with its compute capability, as far as the trace says."""
    cc = f", CC {d.compute_capability}" if d.compute_capability else ""
    return f"{d.name or 'GPU without name'}{cc}"


def device(d: DeviceTime, figures: Figures) -> dict[str, Any]:
    """Return the table of shares of one device, and its streams."""
    key = f"d{d.id}_"
    start, length = d.longest_gap
    gap: list[Any] = []
    if length:
        gap = [
            "longest ",
            figures.time(f"{key}gap", length, "Longest time in which nothing ran"),
            ", at ",
            figures.time(f"{key}gap_at", start - d.start, "From the beginning of the region"),
        ]
    hidden = d.copy_busy - d.copy
    beside: list[Any] = []
    if d.copies:
        beside = [
            "1 copy or memory set; " if d.copies == 1 else f"{d.copies:,} copies and memory sets; ",
            figures.time(f"{key}hidden", max(0, hidden), "Copies while a kernel ran"),
            " beside kernels",
        ]
    rows = [
        ("Kernels run", d.busy, line(plural(d.launches, "launch")), "Union of all kernels"),
        ("Only copies run", d.copy, line(*beside), "Copies or memory sets while no kernel ran"),
        ("GPU empty", d.empty, line(*gap), "Neither kernel, copy nor memory set"),
    ]
    if d.foreign:
        rows.append(
            ("Other kernels run", d.foreign, line("launched outside the range"), "Not of this region")
        )
    busiest = sorted(d.streams, key=lambda s: -s.busy)[:SHOWN]
    return {
        "id": d.id,
        "name": gpu_name(d),
        "span": figures.time(f"{key}span", d.span, "From the first work to the last, or the range's windows"),
        "sum": figures.time(f"{key}sum", d.sum, "Sum of all kernels: above the busy time where they overlap"),
        "rows": [
            {
                "name": name,
                "share": figures.share(f"{key}{i}", time, d.span, meaning),
                "time": figures.time(f"{key}{i}t", time, meaning),
                "note": note,
                "hot": False,
            }
            for i, (name, time, note, meaning) in enumerate(rows)
        ],
        "streams": [
            {
                "name": f"stream {s.stream}, context {s.context}",
                "n": plural(s.n, "launch"),
                "busy": figures.time(f"{key}s{i}", s.busy, "Union of the stream's kernels"),
                "share": figures.share(f"{key}s{i}p", s.busy, d.span, "Of the device's region"),
            }
            for i, s in enumerate(busiest)
        ],
    }


def kernels(found: Sequence[KernelTime], figures: Figures) -> list[dict[str, Any]]:
    """Return the ranking of kernels."""
    rows = []
    for i, k in enumerate(found[:SHOWN]):
        left_out = [f"{n} {what}" for n, what in ((k.tuning, "tuning"), (k.warmup, "warm-up")) if n]
        rows.append(
            {
                "name": shorten(k.short, 60),
                "order": k.launches.total,
                "whole": k.name if k.name != k.short else "",
                "kind": "" if k.kind == "compute" else k.kind,
                "total": figures.time(f"k{i}t", k.launches.total, "Sum of all its launches"),
                "share": figures.of(f"k{i}s", k.share, "%", "Union of its launches, of the region"),
                "n": f"{k.launches.n:,}",
                "steady": f"{k.steady.n:,}" + (f" ({', '.join(left_out)} left out)" if left_out else ""),
                "median": figures.time(f"k{i}m", k.steady.median, f"Median of {k.steady.n:,} steady ones"),
                "range": quantity.span(k.launches.min / 1e9, k.launches.max / 1e9, "s"),
                "spread": figures.time(f"k{i}i", k.steady.iqr, "Distance of the quartiles"),
                "bound": quantity.MISSING if k.bound is None else f"{factor(k.bound)} ×",
                "threads": f"{k.other_threads:,}" if k.other_threads else "",
            }
        )
    return rows


def copy(i: int, c: CopyTime, figures: Figures) -> dict[str, Any]:
    """Return one row of the copies."""
    return {
        "way": WAYS[c.direction],
        "memory": f"{c.source} → {c.target}",
        "n": f"{c.n:,}",
        "bytes": figures.of(f"c{i}b", c.bytes, "byte", "Bytes of all its copies"),
        "usual": figures.of(f"c{i}u", c.median_bytes, "byte", "Median size of a copy"),
        "total": figures.time(f"c{i}t", c.total, "Sum of all its copies"),
        "bandwidth": figures.of(f"c{i}w", c.bandwidth, "byte/s", "Bytes over the time of the copies"),
        "hidden": figures.share(f"c{i}h", c.hidden, c.total, "Ran beside kernels of the same device"),
        "fix": c.fix,
    }


def memsets(found: Spread | None, figures: Figures) -> Line:
    """Return a sentence about memory sets, nothing where there are none."""
    if found is None:
        return []
    time = figures.time("memsets", found.total, "Sum of all memory sets")
    return line(f"{plural(found.n, 'memory set')} took ", time, " in all.")


def launches(timeline: Timeline, figures: Figures) -> Line:
    """Return a sentence about getting kernels onto the GPU."""
    found, main = timeline.launches, main_of(timeline)
    if not found.calls:
        return line("The CUDA calls that launched the kernels are not in the trace.")
    said: list[Any] = [
        f"{plural(found.calls, 'launch call')} took ",
        figures.time("launch_cpu", found.cpu, "CPU time in launch calls, nested calls once"),
        " of CPU, ",
        figures.share("launch_cpu_share", found.cpu, main.span, "CPU time in launch calls over the region"),
        " of the region.",
    ]
    if found.latency is not None:
        said += [
            " From call to kernel: median ",
            figures.time("latency", found.latency.median, "From the start of the call to that of the kernel"),
            f", {quantity.span(found.latency.min / 1e9, found.latency.max / 1e9, 's')}; on a busy GPU this "
            "is the time in its queue.",
        ]
    return line(*said)


def wait(i: int, c: CallTime, span: int, figures: Figures) -> dict[str, Any]:
    """Return one row of the waits."""
    return {
        "name": c.name,
        "n": f"{c.calls.n:,}",
        "total": figures.time(f"w{i}t", c.calls.total, "Sum over all calls and threads"),
        "share": figures.share(f"w{i}s", c.calls.total, span, "Over the time of the region; threads add up"),
        "median": figures.time(f"w{i}m", c.calls.median, "Median of one call"),
        "max": figures.time(f"w{i}x", c.calls.max, "Longest call"),
        "idle": figures.time(f"w{i}i", c.idle or 0, "Part in which no GPU worked"),
    }


def call(i: int, c: CallTime, figures: Figures) -> dict[str, Any]:
    """Return one row of the CUDA calls."""
    return {
        "name": c.name,
        "kind": c.kind,
        "n": f"{c.calls.n:,}",
        "total": figures.time(f"a{i}t", c.calls.total, "Sum of all calls"),
        "median": figures.time(f"a{i}m", c.calls.median, "Median of one call"),
        "max": figures.time(f"a{i}x", c.calls.max, "Longest call"),
    }


def range_row(i: int, r: RangeTime, figures: Figures) -> dict[str, Any]:
    """Return one row of the NVTX ranges."""
    unknown = "not attributed: the CUDA calls were not traced"
    said = [f"{r.other_threads:,} from other threads"] if r.other_threads else []
    said += [f"{r.open:,} still open at the end"] if r.open else []
    return {
        "name": shorten(r.name, 90),
        "domain": shorten(r.domain, 40),
        "style": r.style,
        "n": f"{r.instances.n:,}",
        "total": figures.time(f"r{i}t", r.instances.total, "CPU time between begin and end, all instances"),
        "median": figures.time(f"r{i}m", r.instances.median, "Median of one instance"),
        "kernels": f"{r.kernels:,}" if r.attributed else "–",
        "kernel_time": figures.time(f"r{i}k", r.kernel_time, "Sum of the kernels launched inside")
        if r.attributed
        else plain(quantity.MISSING),
        "note": unknown if not r.attributed else ", ".join(said),
    }
