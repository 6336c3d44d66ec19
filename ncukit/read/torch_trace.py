"""Read a trace of torch's profiler (Chrome JSON, plain or gzip) into the same rows as one of nsys.

It says less than nsys: no CUDA call outside torch's sight, shared memory only as a sum, no NVTX.  What it
does not say is unknown here.  What only torch says comes beside it: operators, allocations, Python functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from ncukit.errors import ReportEmpty, ReportFormatError
from ncukit.model.ops import TorchTrace
from ncukit.model.trace import UNKNOWN, Columns, Gpu, Trace, TraceFile
from ncukit.read.json_events import Events
from ncukit.read.nsys_events import Names
from ncukit.read.torch_events import FIELDS, Maker, Table

_T = TypeVar("_T")
_HEAD = (
    *("schemaVersion", "distributedInfo", "deviceProperties", "host_name", "traceName", "trace_id"),
    *("cupti_version", "cuda_runtime_version", "cuda_driver_version", "baseTimeNanoseconds"),
    *("with_stack", "with_flops", "with_modules", "profile_memory", "record_shapes"),
    *("pytorch_version", "nccl_environment"),
)


def read_torch_trace(path: str | Path) -> Trace:
    """Return the GPU's work and the CUDA calls of the torch trace at ``path``.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it is no trace of torch's profiler, or damaged.
        ReportEmpty: nothing ran on a GPU in it (code ``no-gpu-kernel``).
    """
    trace = _read(Path(path)).trace
    if not trace.gpu_work:
        raise ReportEmpty(
            path,
            f"no GPU kernel ran in {path}",
            "the program used the CPU only, or the profiler was not told to record CUDA; "
            "`ncukit ops` shows its operators",
            code="no-gpu-kernel",
        )
    return trace


def read_torch(path: str | Path) -> TorchTrace:
    """Return everything of the torch trace at ``path``; one of a CPU alone will do.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it is no trace of torch's profiler, or damaged.
        ReportEmpty: it holds neither an operator nor work of a GPU.
    """
    found = _read(Path(path))
    if not len(found.operators) and not found.trace.gpu_work:
        raise ReportEmpty(
            path,
            f"{path} holds neither an operator nor work of a GPU, among {found.events:,} events",
            "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] around real steps",
        )
    return found


def _read(path: Path) -> TorchTrace:
    events = Events(path)
    names = Names()
    tables = {kind: Table(fields) for kind, fields in FIELDS.items()}
    maker = Maker(names, tables)
    skipped = 0
    for event in events:
        if not isinstance(event, dict) or event.get("ph") not in ("X", "i"):
            continue
        try:
            maker.add(event)
        except (TypeError, ValueError, OverflowError, AttributeError):
            skipped += 1
    if events.count and not maker.known and not maker.backward and "schemaVersion" not in events.head:
        said = ", ".join(sorted(maker.foreign)[:5])
        raise ReportFormatError(
            path,
            f"{path} is a Chrome trace, but not of torch's profiler: none of its {events.count:,} events "
            f"has a category of torch's" + (f" (there is: {said})" if said else ""),
            "give the file that torch.profiler's export_chrome_trace() wrote",
        )
    notes = ["from torch's profiler: only CUDA calls and ranges that torch saw; shared memory is not split"]
    if skipped:
        notes.append(f"{skipped:,} events could not be read and were left out")
    if maker.backward:
        notes.append(f"left out, because they end before they begin: {maker.backward:,} events")
    process = maker.process or 1 << 24
    columns = _of_process({kind: table.columns() for kind, table in tables.items()}, process)
    extra = {kind: columns.pop(kind) for kind in ("operators", "memory", "frames")}
    columns["copies"], lost = _sized(columns["copies"], maker.sizes)
    if lost:
        notes.append(f"{lost:,} copies do not say how many bytes they moved: they count as none")
    trace = Trace(
        TraceFile(
            str(path), path.stat().st_size, "torch", "torch", str(events.head.get("schemaVersion", ""))
        ),
        **columns,
        names=names.texts(),
        gpus=_gpus(events.head.get("deviceProperties")),
        processes={process: "python"},
        notes=tuple(notes),
    )
    head = {key: events.head[key] for key in _HEAD if key in events.head}
    return TorchTrace(trace, **extra, head=head, events=events.count)


def _sized(copies: Columns, sizes: Mapping[int, int]) -> tuple[Columns, int]:
    """Return copies with the sizes that only their calls tell (ROCm), and how many still have none."""
    import numpy as np

    known = np.array([sizes.get(c, UNKNOWN) for c in copies["correlation"].tolist()], np.int64)
    bytes = np.where(copies["bytes"] == UNKNOWN, known, copies["bytes"])
    return Columns({**copies.columns, "bytes": np.maximum(bytes, 0)}), int((bytes == UNKNOWN).sum())


def _of_process(columns: Mapping[str, Columns], process: int) -> dict[str, Any]:
    """Return the columns with threads and work as those of ``process``, as nsys numbers them."""
    import numpy as np

    found: dict[str, Any] = {}
    for kind, rows in columns.items():
        changed = dict(rows.columns)
        for field in ("thread", "end_thread"):
            if field in rows:
                changed[field] = rows[field] | process
        if "process" in rows:
            changed["process"] = np.full(len(rows), process, np.int64)
        found[kind] = Columns(changed)
    return found


def _gpus(properties: Any) -> dict[int, Gpu]:
    found: dict[int, Gpu] = {}
    for entry in properties if isinstance(properties, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("id"), int):
            name = _of(str, entry, "name")
            major, minor = _of(int, entry, "computeMajor"), _of(int, entry, "computeMinor") or 0
            amd = (name or "").startswith(("AMD", "Radeon"))
            cc = None if major is None or amd else f"{major}.{minor}"
            found[entry["id"]] = Gpu(entry["id"], name, cc, _of(int, entry, "numSms"))
    return found


def _of(kind: type[_T], entry: Mapping[str, Any], key: str) -> _T | None:
    """Return what ``entry`` says under ``key``, None where that is missing or of another kind."""
    value = entry.get(key)
    return value if isinstance(value, kind) else None
