"""Operators as one plain view: every word and number that the page and the terminal show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from ncukit import quantity
from ncukit.model.ops import DeviceMemory, Operator, Ops
from ncukit.render.cells import Cell, plain
from ncukit.render.line import Line, code, line
from ncukit.render.ops.busy import utilisation
from ncukit.render.ops.hosts import host
from ncukit.render.timeline.ending import ended
from ncukit.render.timeline.figures import Figures
from ncukit.render.view.provenance import this_page
from ncukit.render.words import plural, shorten

TOP = 20
"""Operators that are shown unless the user says otherwise."""
KERNELS = 3
"""Kernels named below each operator; the JSON has all."""
NOT_A_BENCHMARK = (
    "Times are from a run under torch's profiler, which slows every operator on the CPU: trust shares and "
    "the GPU's own times, not the length of the whole."
)
SORTED = {
    "device": "device time, also of operators inside",
    "self-device": "device time of their own",
    "cpu": "CPU time, also of operators inside",
    "self-cpu": "CPU time of their own",
}


def page_view(
    ops: Ops,
    *,
    sort: str = "",
    top: int | None = TOP,
    kept: str = "",
    sha256: str = "",
    generated: str = "",
    command: str = "",
) -> dict[str, Any]:
    """Return the view of operators that are ordered by ``sort``; ``kept`` is where the trace lies.

    ``top`` operators are shown, None for all of them.
    """
    figures = Figures()
    order = sort or ("device" if ops.sorted_by == "device" else "self-cpu")
    shown = ops.operators[:top]
    view = {
        "kind": "ops",
        "title": f"Operators of {PurePath(ops.file.path).name}, ncukit",
        "brand": "operators",
        "heading": {"name": PurePath(ops.file.path).name, "range": "operators and their kernels"},
        "facts": _facts(ops, figures),
        "on_gpu": ops.sorted_by == "device",
        "sorted": line(f"By {SORTED[order]}", "." if ops.sorted_by == "device" else _no_gpu(order)),
        "rows": [_operator(i, o, ops, figures) for i, o in enumerate(shown)],
        "more": len(ops.operators) - len(shown),
        "attribution": _attribution(ops, figures),
        "waits": [_wait(i, o, figures) for i, o in enumerate(_waiting(ops.operators)[:10])],
        "busy": [utilisation(u, figures) for u in ops.utilisation],
        "memory": [_memory(i, m, figures) for i, m in enumerate(ops.memory)],
        "no_memory": line(_NO_MEMORY) if not ops.memory else [],
        "deserving": _deserving(ops, figures),
        "host": host(ops.host, figures),
        "checks": [line(text) for text in ops.checks],
        "notes": [line(note) for note in ops.notes],
        "provenance": _provenance(ops, kept, sha256, generated, command),
        "footer": NOT_A_BENCHMARK,
    }
    return ended(view, CONTENTS, figures)


CONTENTS: tuple[tuple[str, str, str | None], ...] = (
    ("ncu", "What to profile", None),
    ("operators", "Operators", None),
    ("busy", "GPU busy", "busy"),
    ("host", "Host", "host"),
    ("waits", "Waits", "waits"),
    ("memory", "Memory", None),
    ("provenance", "Provenance", None),
)
_NO_MEMORY = (
    "Allocations were not recorded: a trace has them with `profile_memory=True`, "
    "which `ncukit ops SCRIPT.py` sets."
)


def _no_gpu(order: str) -> str:
    return ", because nothing ran on a GPU." if order == "self-cpu" else "; nothing ran on a GPU."


def _facts(ops: Ops, figures: Figures) -> list[dict[str, Any]]:
    calls, pieces = sum(o.calls for o in ops.operators), ops.attribution.n
    work = figures.time("work", ops.attribution.work, "Sum of all kernels, copies and memory sets")
    span = figures.time("span", ops.span, "From the first operator to the end of the last")
    rows = [
        ("gpu", "GPU", line("; ".join(dict.fromkeys(ops.gpus)) or "no GPU had work")),
        ("operators", "Operators", line(f"{len(ops.operators):,}, {plural(calls, 'call')}")),
        (
            "work",
            "GPU work",
            line(f"{plural(pieces, 'piece')}, ", work) if pieces else line("none"),
        ),
        ("traced", "Traced", line(span)),
        ("benchmark", "Not a benchmark", line("profiled run")),
    ]
    return [{"id": id, "name": name, "text": text} for id, name, text in rows]


def _operator(i: int, o: Operator, ops: Ops, figures: Figures) -> dict[str, Any]:
    whole = ops.attribution.work if ops.sorted_by == "device" else ops.cpu_self
    own = o.device_self if ops.sorted_by == "device" else o.cpu_self
    return {
        "name": shorten(o.name, 60),
        "whole": o.name if len(o.name) > 60 else "",
        "inputs": shorten(o.shapes, 80),
        "types": shorten(o.types, 60),
        "device": figures.time(f"o{i}d", o.device_total, "GPU work, also of operators inside"),
        "device_self": figures.time(f"o{i}e", o.device_self, "What it launched itself"),
        "share": figures.share(f"o{i}s", own, whole, "Of its own, of all operators and what none launched"),
        "order": own,
        "device_order": o.device_total,
        "cpu": figures.time(f"o{i}c", o.cpu_total, "CPU time between begin and end, all calls"),
        "cpu_self": figures.time(f"o{i}p", o.cpu_self, "CPU time without operators inside"),
        "cpu_order": o.cpu_self,
        "n": f"{o.calls:,}",
        "launched": _launched(o),
        "kernels": [
            {
                "name": shorten(k.short, 60),
                "whole": k.name if k.name != k.short else "",
                "n": f"{k.n:,}",
                "total": figures.time(f"o{i}k{j}", k.total, f"Sum of {k.n:,} launches by this operator"),
            }
            for j, k in enumerate(o.kernels[:KERNELS])
        ],
        "more_kernels": max(0, len(o.kernels) - KERNELS),
        "copies": _copies(i, o, figures),
    }


def _launched(o: Operator) -> str:
    """Return what it launched itself, in few characters: kernels, c copies, s memory sets."""
    parts = [
        f"{n:,}{letter}" for n, letter in ((o.kernel_launches, ""), (o.copies, "c"), (o.memsets, "s")) if n
    ]
    return " + ".join(parts) or quantity.MISSING


def _copies(i: int, o: Operator, figures: Figures) -> Line:
    if not o.copies:
        return []
    time = figures.time(f"o{i}ct", o.copy_time, "Sum of its copies")
    size = figures.of(f"o{i}cb", o.copy_bytes, "byte", "Bytes of its copies")
    if o.copies == 1:
        return line("1 copy of ", size, " in ", time)
    return line(f"{o.copies:,} copies, together ", size, " in ", time)


def _attribution(ops: Ops, figures: Figures) -> Line:
    a = ops.attribution
    if not a.n:
        return line("No kernel, copy or memory set is in the trace.")
    said: list[Any] = ["All GPU work adds up to ", figures.time("w", a.work, "Overlaps count twice"), ": "]
    for key, value, words, meaning in (
        ("call", a.by_call, " found its operator by the call that launched it", "Same correlation id"),
        ("id", a.by_id, " by torch's External id", "Its launch call is missing, or outside operators"),
        ("none", a.outside, " was launched by no traced operator", "Outside of all operators"),
    ):
        if value or key == "call":
            said += [figures.time(f"by_{key}", value, meaning), words, ", "]
    said[-1] = "."
    return line(*said)


def _waiting(found: Sequence[Operator]) -> list[Operator]:
    return sorted((o for o in found if o.waits), key=lambda o: -o.waits)


def _wait(i: int, o: Operator, figures: Figures) -> dict[str, Any]:
    return {
        "name": shorten(o.name, 60),
        "inputs": shorten(o.shapes, 60),
        "n": f"{o.wait_calls:,}",
        "total": figures.time(f"wait{i}", o.waits, "Time of the calls in which the CPU waited for the GPU"),
    }


def _memory(i: int, m: DeviceMemory, figures: Figures) -> dict[str, Any]:
    def size(key: str, value: int | None, meaning: str) -> Cell:
        if value is None:
            return plain("not said")
        tip = figures.of(f"m{i}{key}", value, "byte", meaning)
        return {**tip, "text": quantity.short(value, "byte", capacity=True)}

    return {
        "device": "CPU" if m.device < 0 else f"GPU {m.device}",
        "events": plural(m.events, "event"),
        "peak": size("p", m.peak_allocated, "Largest amount in use at once"),
        "reserved": size("r", m.peak_reserved, "Largest amount that the allocator held")
        if m.device >= 0
        else plain(quantity.MISSING),
        "at": figures.time(f"m{i}at", m.peak_at, "After the first allocation of the trace"),
        "operator": shorten(m.peak_operator, 60),
        "growths": f"{m.growths:,}" if m.device >= 0 else quantity.MISSING,
        "change": _change(m),
        "spikes": [
            {
                "operator": shorten(s.operator, 60),
                "bytes": size(f"s{j}", s.bytes, "One allocation"),
                "allocated": size(f"a{j}", s.allocated, "In use after it"),
                "grew": size(f"g{j}", s.grew, "The allocator asked the driver for it") if s.grew else None,
                "at": figures.time(f"m{i}t{j}", s.at, "After the first allocation of the trace"),
            }
            for j, s in enumerate(m.spikes)
        ],
    }


def _change(m: DeviceMemory) -> str:
    if m.first_allocated is None or m.last_allocated is None:
        return "the trace does not say how much was in use"
    more = m.last_allocated - m.first_allocated
    word = "more" if more > 0 else "less"
    if not more:
        return "as much in use at the end as at the start"
    return (
        f"{quantity.short(abs(more), 'byte', capacity=True)} {word} in use at the end than at the start: "
        "whether that grows needs several steps, `ncukit probe allocator`"
    )


def _deserving(ops: Ops, figures: Figures) -> dict[str, Any]:
    d = ops.deserving
    if not d.command:
        return {"command": "", "why_not": line(d.why_not), "rows": [], "others": []}
    rows = [
        ("kernel", "Kernel", line(code(shorten(d.short, 80)))),
        *([("operator", "Operator", line(code(shorten(d.operator, 80))))] if d.operator else []),
        (
            "share",
            "Share",
            line(figures.of("deserving", d.share, "%", "Of the time of all kernels"), " of all kernel time"),
        ),
        *(("why", "Why" if i == 0 else "", line(text)) for i, text in enumerate(d.reasons)),
    ]
    return {
        "command": d.command,
        "why_not": [],
        "rows": [{"id": id, "name": name, "text": text} for id, name, text in rows],
        "others": [
            {
                "name": shorten(c.name, 80),
                "n": f"{c.n:,}",
                "total": figures.time(f"other{i}", c.total, "Sum of all its launches"),
                "share": figures.of(f"other{i}s", c.share, "%", "Of the time of all kernels"),
                "why": c.why_not,
            }
            for i, c in enumerate(d.others)
        ],
    }


def _provenance(ops: Ops, kept: str, sha256: str, generated: str, command: str) -> list[dict[str, Any]]:
    recorded = [name for name, there in ops.recorded.items() if there]
    rows: list[tuple[str, Line]] = [
        ("Trace", line(code(PurePath(ops.file.path).name), f", {ops.file.size:,} bytes")),
        *([("sha256", line(code(sha256)))] if sha256 else []),
        *([("Torch", line(ops.torch))] if ops.torch else []),
        ("Recorded", line(", ".join(recorded) or "neither shapes, allocations nor stacks")),
        *(
            [("For Perfetto", line("open ", code(PurePath(kept).name), " in ui.perfetto.dev"))]
            if kept
            else []
        ),
        ("Times", line(NOT_A_BENCHMARK)),
        *(("Reading", line(note)) for note in ops.notes),
    ]
    return [*({"name": name, "text": text} for name, text in rows), this_page(command, generated)]
