"""The analysed window as a trace that Perfetto and chrome://tracing open (Trace Event Format, JSON)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ncukit.files import beside
from ncukit.media import dumps
from ncukit.model.trace import UNKNOWN, Columns
from ncukit.trace.activity import Named
from ncukit.trace.scope import KINDS, PROCESS, Scope

GPU = 1_000_000
"""Process numbers from here on are GPUs: a process of the system has a smaller one."""
_LABELS = {"kernels": "kernel", "copies": "copy", "memsets": "memory set", "graphs": "graph"}
_LEVEL = 4


def write_trace(path: str | Path, scope: Scope, *, force: bool = False) -> Path:
    """Write the events of ``scope`` to ``path`` and return it; a name that ends in .gz is compressed.

    Times are microseconds from the beginning of the window; each launch call points to what it launched.

    Raises:
        UsageError: the file exists and ``force`` is not set, or it cannot be written.
    """
    path = Path(path)
    with beside(path, force=force) as name, name.open("wb") as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed:
                _write(packed, scope)
        else:
            _write(raw, scope)
    return path


def _write(file: IO[bytes] | gzip.GzipFile, scope: Scope) -> None:
    file.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')
    separator = b""
    for event in events(scope):
        text = dumps(event, separators=(",", ":"))
        file.write(separator + text.encode())
        separator = b",\n"
    file.write(b"\n]}\n")


def events(scope: Scope) -> Iterator[dict[str, Any]]:
    """Yield the events of ``scope``: names of processes and threads, GPU work, CUDA calls, NVTX ranges."""
    zero = min(int(window.start[0]) for window in scope.windows.values())
    yield from _names(scope)
    for kind in KINDS:
        yield from _work(scope, kind, zero)
    yield from _calls(scope, zero)
    yield from _ranges(scope, zero)


def _names(scope: Scope) -> Iterator[dict[str, Any]]:
    import numpy as np

    trace = scope.trace
    for device in scope.windows:
        gpu = trace.gpus.get(device)
        name = f"GPU {device}" + (f": {gpu.name}" if gpu and gpu.name else "")
        yield {"ph": "M", "name": "process_name", "pid": GPU + device, "args": {"name": name}}
    for process in np.unique(trace.calls["thread"][scope.calls] & PROCESS).tolist():
        name = trace.processes.get(process, f"process {_pid(process)}")
        yield {"ph": "M", "name": "process_name", "pid": _pid(process), "args": {"name": name}}
    for thread in np.unique(trace.calls["thread"][scope.calls]).tolist():
        if thread in trace.threads:
            yield {
                **{"ph": "M", "name": "thread_name", "pid": _pid(thread), "tid": thread & 0xFFFFFF},
                "args": {"name": trace.threads[thread]},
            }


def _work(scope: Scope, kind: str, zero: int) -> Iterator[dict[str, Any]]:
    rows = scope.rows(kind)
    call = scope.call_of[kind][scope.inside[kind]].tolist()
    extra = [name for name in ("bytes", "registers", "graph") if name in rows]
    columns = {name: rows[name].tolist() for name in ("start", "end", "device", "stream", *extra)}
    labels = rows["name"].tolist() if "name" in rows else [UNKNOWN] * len(rows)
    begins, threads = scope.trace.calls["start"].tolist(), scope.trace.calls["thread"].tolist()
    traced = scope.calls.tolist()
    flow = {"kernels": 0, "copies": 1, "memsets": 2, "graphs": 3}[kind]
    for i, label in enumerate(labels):
        name = _LABELS[kind] if label == UNKNOWN else scope.trace.names[label]
        at = (columns["start"][i] - zero) / 1e3
        place = {"pid": GPU + columns["device"][i], "tid": columns["stream"][i]}
        yield {
            **{"ph": "X", "cat": _LABELS[kind], "name": name, "ts": at, **place},
            "dur": (columns["end"][i] - columns["start"][i]) / 1e3,
            "args": {key: columns[key][i] for key in extra},
        }
        if call[i] != UNKNOWN and traced[call[i]]:
            arrow = {"cat": "launch", "name": "launch", "id": i * 4 + flow}
            begin, thread = begins[call[i]], threads[call[i]]
            yield {
                **{"ph": "s", **arrow, "ts": (begin - zero) / 1e3},
                **{"pid": _pid(thread), "tid": thread & 0xFFFFFF},
            }
            yield {"ph": "f", "bp": "e", **arrow, "ts": at, **place}


def _calls(scope: Scope, zero: int) -> Iterator[dict[str, Any]]:
    rows = scope.trace.calls.take(scope.calls)
    named = Named(scope.trace, rows)
    for i, (thread, start, end) in enumerate(_threads(rows)):
        yield {
            **{"ph": "X", "cat": f"cuda {named.kinds[named.of[i]]}", "name": named.names[named.of[i]]},
            **{"pid": _pid(thread), "tid": thread & 0xFFFFFF},
            **{"ts": (start - zero) / 1e3, "dur": (end - start) / 1e3},
        }


def _ranges(scope: Scope, zero: int) -> Iterator[dict[str, Any]]:
    low = min(int(window.start[0]) for window in scope.windows.values())
    high = max(int(window.end[-1]) for window in scope.windows.values())
    rows = scope.trace.ranges
    rows = rows.take((rows["end"] >= low) & (rows["start"] <= high))
    names, styles = rows["name"].tolist(), rows["style"].tolist()
    for i, (thread, start, end) in enumerate(_threads(rows)):
        name, place = scope.trace.names[names[i]], {"pid": _pid(thread), "tid": thread & 0xFFFFFF}
        if styles[i] == 59:
            yield {
                **{"ph": "X", "cat": "nvtx", "name": name, **place},
                **{"ts": (start - zero) / 1e3, "dur": (end - start) / 1e3},
            }
        else:  # start/end ranges may overlap without nesting, which only asynchronous events may
            for phase, at in (("b", start), ("e", end)):
                yield {"ph": phase, "cat": "nvtx", "name": name, "id": i, **place, "ts": (at - zero) / 1e3}


def _threads(rows: Columns) -> Iterator[tuple[int, int, int]]:
    return zip(rows["thread"].tolist(), rows["start"].tolist(), rows["end"].tolist(), strict=True)


def _pid(thread: int) -> int:
    return (thread >> 24) & 0xFFFFFF
