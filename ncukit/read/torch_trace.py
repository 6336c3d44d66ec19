"""Read a trace of torch's profiler (Chrome JSON, plain or gzip) into the same rows as one of nsys.

It says less than nsys: no CUDA call outside torch's sight, shared memory only as a sum, no NVTX.  What it
does not say is unknown here.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ncukit.errors import ReportEmpty, ReportFormatError, ReportNotFound
from ncukit.model.trace import UNKNOWN, Columns, Gpu, Trace, TraceFile
from ncukit.read.nsys_events import Names

GZIP = b"\x1f\x8b"
_CALLS = ("cuda_runtime", "cuda_driver", "runtime")
_WORK = {
    "kernel": "kernels",
    "gpu_memcpy": "copies",
    "memcpy": "copies",
    "gpu_memset": "memsets",
    "memset": "memsets",
}
_COPY = re.compile(r"(?P<kind>HtoD|DtoH|DtoD|HtoH|PtoP)(?: \((?P<source>\w+) -> (?P<target>\w+)\))?")
_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "HtoH": 9, "PtoP": 10}
_MEMORY = {"Pageable": 0, "Pinned": 1, "Device": 2, "Array": 3, "Managed": 4, "Host": 0}
_PUSH_POP = 59

_FIELDS = {
    "kernels": (
        *("device", "context", "stream", "process", "correlation", "name", "short", "mangled", "launch"),
        *("registers", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
        *("static_shared", "dynamic_shared", "graph_node"),
    ),
    "copies": (
        *("device", "context", "stream", "process", "correlation", "bytes", "kind", "source", "target"),
        *("source_device", "target_device", "graph_node"),
    ),
    "memsets": ("device", "context", "stream", "process", "correlation", "bytes", "graph_node"),
    "graphs": ("device", "context", "stream", "process", "correlation", "graph"),
    "calls": ("thread", "correlation", "name", "class", "returned"),
    "syncs": ("device", "context", "stream", "process", "correlation", "kind"),
    "overheads": ("thread",),
    "ranges": ("thread", "end_thread", "name", "domain", "style", "open"),
}
Row = dict[str, int]


def read_torch_trace(path: str | Path) -> Trace:
    """Return the events of the torch trace at ``path``.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it is no trace of torch's profiler, or damaged.
        ReportEmpty: nothing ran on a GPU in it (code ``no-gpu-kernel``).
    """
    path = Path(path)
    data = _json(path)
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise ReportFormatError(
            path, f"{path} is no trace of torch's profiler", "give a trace with traceEvents"
        )
    names = Names()
    rows: dict[str, list[Row]] = {kind: [] for kind in _FIELDS}
    complete = [e for e in events if isinstance(e, dict) and e.get("ph") == "X" and _timed(e)]
    process = _process(complete)
    skipped = 0
    for event in complete:
        try:
            _add(event, names, rows, process)
        except (TypeError, ValueError, OverflowError):
            skipped += 1
    notes = ["from torch's profiler: only CUDA calls and ranges that torch saw; shared memory is not split"]
    if skipped:
        notes.append(f"{skipped:,} events could not be read and were left out")
    head = data if isinstance(data, dict) else {}
    columns: dict[str, Any] = {kind: _columns(kind, found) for kind, found in rows.items()}
    trace = Trace(
        TraceFile(str(path), path.stat().st_size, "torch", "torch", str(head.get("schemaVersion", ""))),
        **columns,
        names=names.texts(),
        gpus=_gpus(head.get("deviceProperties")),
        processes={process: "python"},
        notes=tuple(notes),
    )
    if not trace.gpu_work:
        raise ReportEmpty(
            path,
            f"no GPU kernel ran in {path}",
            "the program used the CPU only, or the profiler was not told to record CUDA",
            code="no-gpu-kernel",
        )
    return trace


def function_name(demangled: str) -> str:
    """Return the name of a kernel without return type, namespaces, templates and parameters.

    >>> function_name("void at::native::(anonymous namespace)::fill<float>(int, float*)")
    'fill'
    """
    text = demangled.replace("(anonymous namespace)::", "")
    head = re.match(r"[^<(]*", text)
    found = head[0].strip() if head else text
    return (found.split(" ")[-1].split("::")[-1] if found else "") or demangled


def _json(path: Path) -> Any:
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise ReportNotFound(path, f"there is no file {path}", "check the path") from error
    except OSError as error:
        raise ReportNotFound(path, f"{path} cannot be read: {error.strerror}") from error
    try:
        return json.loads(gzip.decompress(raw) if raw.startswith(GZIP) else raw)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise ReportFormatError(
            path, f"{path} is no whole trace of torch's profiler: {error}", "copy it again, or trace again"
        ) from error


def _timed(event: Mapping[str, Any]) -> bool:
    return isinstance(event.get("ts"), int | float) and isinstance(event.get("dur"), int | float)


def _process(events: Iterable[Mapping[str, Any]]) -> int:
    """Return the process that made the CUDA calls, as nsys writes it."""
    for event in events:
        if event.get("cat", "").lower() in (*_CALLS, "cpu_op") and isinstance(event.get("pid"), int):
            return int(event["pid"]) << 24
    return 1 << 24


def _add(event: Mapping[str, Any], names: Names, rows: Mapping[str, list[Row]], process: int) -> None:
    kind = str(event.get("cat", "")).lower()
    args = event.get("args") or {}
    start = round(event["ts"] * 1000)
    row: Row = {"start": start, "end": start + round(event["dur"] * 1000)}
    name = str(event.get("name", ""))
    if kind in _WORK:
        row |= {
            "device": int(args.get("device", UNKNOWN)),
            "context": int(args.get("context", UNKNOWN)),
            "stream": int(args.get("stream", UNKNOWN)),
            "process": process,
            "correlation": int(args.get("correlation", UNKNOWN)),
        }
        if kind == "kernel":
            row |= _kernel(name, args, names)
        elif _WORK[kind] == "copies":
            row |= _copy(name, args)
        else:
            row |= {"bytes": int(args.get("bytes", 0))}
        rows[_WORK[kind]].append(row)
    elif kind in _CALLS:
        thread = process | int(event.get("tid", 0)) & 0xFFFFFF
        correlation = int(args.get("correlation", UNKNOWN))
        rows["calls"].append(
            row
            | {
                "thread": thread,
                "correlation": correlation,
                "name": names.position(name),
                "class": 0,
                "returned": 0,
            }
        )
    elif kind == "user_annotation":
        thread = process | int(event.get("tid", 0)) & 0xFFFFFF
        rows["ranges"].append(
            row
            | {
                "thread": thread,
                "end_thread": thread,
                "name": names.position(name),
                "style": _PUSH_POP,
                "open": 0,
            }
        )


def _kernel(name: str, args: Mapping[str, Any], names: Names) -> Row:
    found: Row = {
        "name": names.position(name),
        "short": names.position(function_name(name)),
        "registers": int(args.get("registers per thread", UNKNOWN)),
    }
    for what in ("grid", "block"):
        dims = args.get(what) or (UNKNOWN,) * 3
        found |= {f"{what}_{axis}": int(value) for axis, value in zip("xyz", dims, strict=True)}
    return found


def _copy(name: str, args: Mapping[str, Any]) -> Row:
    found: Row = {"bytes": int(args.get("bytes", args.get("size", 0)))}
    if match := _COPY.search(name):
        found["kind"] = _KINDS[match["kind"]]
        for what in ("source", "target"):
            found[what] = _MEMORY.get(match[what] or "", UNKNOWN)
    return found


def _columns(kind: str, rows: list[Row]) -> Columns:
    import numpy as np

    ordered = sorted(rows, key=lambda row: row["start"])
    fields = ("start", "end", *_FIELDS[kind])
    return Columns(
        {
            field: np.fromiter((row.get(field, UNKNOWN) for row in ordered), np.int64, len(ordered))
            for field in fields
        }
    )


def _gpus(properties: Any) -> dict[int, Gpu]:
    found: dict[int, Gpu] = {}
    for entry in properties if isinstance(properties, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("id"), int):
            major, minor = entry.get("computeMajor"), entry.get("computeMinor", 0)
            cc = None if major is None else f"{major}.{minor}"
            found[entry["id"]] = Gpu(entry["id"], entry.get("name"), cc, entry.get("numSms"))
    return found
