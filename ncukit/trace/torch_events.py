"""Traces of torch's profiler as the same rows as those of nsys."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from ncukit.errors import ReportEmpty, ReportFormatError
from ncukit.model.ops import TorchTrace
from ncukit.model.trace import UNKNOWN, Columns, Gpu, Trace, TraceFile
from ncukit.run.tools.names import function_of
from ncukit.trace.events import Events
from ncukit.trace.nsys_events import Names

# ---- Events of torch's profiler as rows of whole numbers; names and categories differ by version of torch

_CALLS = ("cuda_runtime", "cuda_driver", "runtime")
_WORK = {
    "kernel": "kernels",
    "gpu_memcpy": "copies",
    "memcpy": "copies",
    "gpu_memset": "memsets",
    "memset": "memsets",
}
_COPY = re.compile(r"(?P<kind>HtoD|DtoH|DtoD|HtoH|PtoP)(?: \((?P<source>\w+) -> (?P<target>\w+)\))?")
_ROCM_COPY = re.compile(r"Copy(Host|Device)To(Host|Device)")
_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "HtoH": 9, "PtoP": 10}
_MEMORY = {"Pageable": 0, "Pinned": 1, "Device": 2, "Array": 3, "Managed": 4, "Host": 0}
_PUSH_POP = 59

_PLACE = ("device", "context", "stream", "process", "correlation")
_GROUP = ("collective", "group", "sequence", "bytes")
FIELDS = {
    "kernels": (
        *(*_PLACE, "name", "short", "mangled", "launch", "registers"),
        *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
        *("static_shared", "dynamic_shared", "graph_node", "external", "occupancy", *_GROUP),
    ),
    "copies": (
        *(*_PLACE, "bytes", "kind", "source", "target"),
        *("source_device", "target_device", "graph_node", "external"),
    ),
    "memsets": (*_PLACE, "bytes", "graph_node", "external"),
    "graphs": (*_PLACE, "graph"),
    "calls": ("thread", "correlation", "name", "class", "returned", "external"),
    "syncs": (*_PLACE, "kind"),
    "overheads": ("thread",),
    "ranges": ("thread", "end_thread", "name", "domain", "style", "open"),
    "operators": ("thread", "external", "name", "shapes", "types", "sequence"),
    "memory": ("thread", "device", "bytes", "allocated", "reserved"),
    "frames": ("thread", "name"),
}
_OPERATORS = ("cpu_op", "operator")
_SYNCS = {"Event Sync": 1, "Stream Wait Event": 2, "Stream Sync": 3, "Context Sync": 4}
_SIZES = {"Byte": 1, "Char": 1, "Bool": 1, "Half": 2, "BFloat16": 2, "Short": 2, "Float": 4, "Int": 4}
_SIZES |= {"Double": 8, "Long": 8, "Float8_e4m3fn": 1, "Float8_e5m2": 1}
"""[byte] of an element by the dtype of a collective."""
Row = dict[str, int]


class Table:
    """Rows of one kind: whole numbers, one after another, so that millions fit."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.fields = ("start", "end", *fields)
        self._data = array("q")

    def add(self, row: Row) -> None:
        """Add a row; what it lacks is unknown."""
        self._data += array("q", [row.get(field, UNKNOWN) for field in self.fields])

    def columns(self) -> Columns:
        """Return the rows ordered by start."""
        import numpy as np

        rows = np.frombuffer(self._data, np.int64).reshape(-1, len(self.fields))
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return Columns({field: np.ascontiguousarray(rows[:, i]) for i, field in enumerate(self.fields)})


class Maker:
    """Turns events into rows.

    ``process`` is the first that made CUDA calls or ran operators, ``sizes`` [byte] what calls of ROCm say
    about their copies, by correlation; ``foreign`` are categories that mean nothing here, ``backward`` counts
    events that end before they begin.
    """

    def __init__(self, names: Names, tables: Mapping[str, Table]) -> None:
        self.names = names
        self.tables = tables
        self.process = 0
        self.known = False
        self.foreign: set[str] = set()
        self.sizes: dict[int, int] = {}
        self.backward = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """Add what the event is, if it is anything that is kept."""
        kind = str(event.get("cat", "")).lower()
        if event["ph"] == "i":
            if event.get("name") == "[memory]":
                self._memory(event)
            return
        if not isinstance(event.get("ts"), int | float) or not isinstance(event.get("dur"), int | float):
            return
        if event["dur"] < 0:
            self.backward += 1
            return
        args = event.get("args") or {}
        start = round(event["ts"] * 1000)
        row: Row = {"start": start, "end": start + round(event["dur"] * 1000)}
        name = str(event.get("name", ""))
        if kind in _WORK:
            self._work(_WORK[kind], name, args, row)
        elif kind in _CALLS:
            self._seen(event)
            row |= {"thread": _thread(event), "correlation": _number(args, "correlation")}
            if "size" in args:
                self.sizes[row["correlation"]] = int(args["size"])
            row |= {"name": self.names.position(name), "class": 0, "returned": 0}
            self._put("calls", row | {"external": _number(args, "External id", "external id")})
        elif kind in _OPERATORS:
            self._seen(event)
            self._operator(name, args, row | {"thread": _thread(event)})
        elif kind == "user_annotation":
            row |= {"thread": _thread(event), "end_thread": _thread(event), "style": _PUSH_POP, "open": 0}
            self._put("ranges", row | {"name": self.names.position(name)})
        elif kind == "python_function":
            self._put("frames", row | {"thread": _thread(event), "name": self.names.position(name)})
        elif kind == "cuda_sync":
            row |= {"kind": _SYNCS.get(str(args.get("cuda_sync_kind", name)), UNKNOWN)}
            self._put("syncs", row | {field: _number(args, field) for field in _PLACE if field != "process"})
        elif kind and len(self.foreign) < 100:
            self.foreign.add(kind)

    def _put(self, table: str, row: Row) -> None:
        self.tables[table].add(row)
        self.known = True

    def _seen(self, event: Mapping[str, Any]) -> None:
        pid = event.get("pid")
        if not self.process and isinstance(pid, int) and 0 <= pid < 1 << 32:
            self.process = pid << 24

    def _work(self, table: str, name: str, args: Mapping[str, Any], row: Row) -> None:
        row |= {field: _number(args, field) for field in _PLACE if field != "process"}
        row["external"] = _number(args, "External id", "external id")
        if table == "kernels":
            row |= _kernel(name, args, self.names) | _collective(args, self.names)
        elif table == "copies":
            row |= _copy(name, args)
        else:
            row["bytes"] = int(args.get("bytes", 0))
        self._put(table, row)

    def _operator(self, name: str, args: Mapping[str, Any], row: Row) -> None:
        row |= {"name": self.names.position(name), "external": _number(args, "External id", "external id")}
        row["sequence"] = _number(args, "Sequence number")
        shapes = args.get("Input Dims", args.get("Input dims"))
        types = args.get("Input type")
        if isinstance(shapes, list):
            row["shapes"] = self.names.position(shapes_text(shapes, types))
        if isinstance(types, list):
            row["types"] = self.names.position(", ".join(str(t) for t in types if t and t != "Scalar"))
        self._put("operators", row)

    def _memory(self, event: Mapping[str, Any]) -> None:
        args = event["args"]
        at = round(event["ts"] * 1000)
        device = int(args["Device Id"]) if int(args.get("Device Type", 0)) else UNKNOWN
        row = {
            "start": at,
            "end": at,
            "thread": _thread(event),
            "device": device,
            "bytes": int(args["Bytes"]),
        }
        row["allocated"] = _number(args, "Total Allocated")
        self._put("memory", row | {"reserved": _number(args, "Total Reserved")})


def shapes_text(shapes: list[Any], types: Any = None) -> str:
    """Return the shapes of an operator's inputs; a scalar is ``()``, what is no tensor is left out.

    >>> shapes_text([[32, 64], [], []], ["float", "", "Scalar"]), shapes_text([[]], ["float"])
    ('32x64', '()')
    """
    known = types if isinstance(types, list) and len(types) == len(shapes) else [True] * len(shapes)
    found = []
    for shape, kind in zip(shapes, known, strict=True):
        if isinstance(shape, list) and shape and all(isinstance(size, int) for size in shape):
            found.append("x".join(map(str, shape)))
        elif shape:
            found.append(str(shape).replace(" ", ""))  # a list of tensors
        elif kind and kind not in ("Scalar", "ScalarList") and types is not None:
            found.append("()")
    return ", ".join(found)


def _thread(event: Mapping[str, Any]) -> int:
    return int(event.get("tid", 0)) & 0xFFFFFF


def _number(args: Mapping[str, Any], *names: str) -> int:
    """Return the first of ``names`` that is a number."""
    for name in names:
        if isinstance(value := args.get(name), int | float) and not isinstance(value, bool):
            return int(value)
    return UNKNOWN


def _kernel(name: str, args: Mapping[str, Any], names: Names) -> Row:
    found: Row = {
        "name": names.position(name),
        "short": names.position(function_of(name)),
        "registers": _number(args, "registers per thread"),
        "occupancy": _number(args, "est. achieved occupancy %"),
    }
    for what in ("grid", "block"):
        dims = args.get(what) or (UNKNOWN,) * 3
        found |= {f"{what}_{axis}": int(value) for axis, value in zip("xyz", dims, strict=True)}
    return found


def _copy(name: str, args: Mapping[str, Any]) -> Row:
    found: Row = {"bytes": _number(args, "bytes", "size")}
    name = _ROCM_COPY.sub(lambda match: f"{match[1][0]}to{match[2][0]}", name)
    if match := _COPY.search(name):
        found["kind"] = _KINDS[match["kind"]]
        for what in ("source", "target"):
            found[what] = _MEMORY.get(match[what] or "", UNKNOWN)
    return found


def _collective(args: Mapping[str, Any], names: Names) -> Row:
    """Return what newer traces say of a kernel of NCCL: its collective, group, number and message [byte]."""
    name = args.get("Collective name")
    if not isinstance(name, str) or not name:
        return {}
    found: Row = {"collective": names.position(name), "sequence": _number(args, "Seq", "Sequence number")}
    group = args.get("Process Group Name", args.get("Process Group Ranks", ""))
    found["group"] = names.position(str(group))
    elements, size = _number(args, "In msg nelems"), _SIZES.get(str(args.get("dtype", "")))
    if elements != UNKNOWN and size:
        found["bytes"] = elements * size
    return found


# ---- Read a trace of torch's profiler (Chrome JSON, plain or gzip) into the same rows as one of nsys
# It says less than nsys: no CUDA call outside torch's sight, shared memory only as a sum, no NVTX. What it
# does not say is unknown here. What only torch says comes beside it: operators, allocations, Python
# functions.

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
