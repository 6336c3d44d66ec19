"""Read a trace of Nsight Systems: an sqlite export, or a .nsys-rep or .qdrep that nsys exports first.

The file itself is never changed and nothing is written beside it.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ncukit.errors import ReportEmpty, ReportError, ReportFormatError, ReportNotFound
from ncukit.media import word
from ncukit.model.trace import Columns, Gpu, Trace, TraceFile
from ncukit.report import container
from ncukit.trace import nsys_events
from ncukit.trace.nsys_events import SYNTHETIC, Database

SQLITE = b"SQLite format 3\0"
REPORT = b"NVIDIA Tegra Profiler Report "
NCU = b"NVR\0"

_NEW_HEAD = re.compile(rb"Profiler Report (\d{4})@(\d+)@(\d+)@(\d+)")
_VERSION = re.compile(rb"(?<![\d.])(20\d\d\.\d+\.\d+\.\d+)-[0-9a-f]{6,}")
_TAIL = 1 << 20
_GIVE = "Give the .nsys-rep that nsys wrote, or its export: nsys export --type sqlite REPORT.nsys-rep"

Export = Callable[[Path, Path], None]
"""Exports the report at the first path as sqlite to the second, or raises a ToolError."""


def open_trace(path: str | Path, export: Export | None = None, *, force: bool = False) -> Trace:
    """Return the events of the trace at ``path``.

    ``export`` turns a .nsys-rep into sqlite (None: the nsys that ncukit finds); ``force`` reads an export
    whose schema is unknown.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it is no trace of Nsight Systems, damaged, or of an unknown schema.
        ReportEmpty: it is one, but nothing ran on a GPU; the hint lists the possible reasons in order.
        ToolError: a .nsys-rep cannot be exported because nsys is missing, too old or failed.
    """
    path = Path(path)
    head = _head(path)
    if head.startswith(SQLITE):
        return read_export(path, path, "sqlite", force=force)
    if not head.startswith(REPORT[:-1]):
        raise _other(path, head)
    with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
        target = Path(folder) / "trace.sqlite"
        (export or exporter())(path, target)
        return read_export(target, path, "qdrep" if path.suffix == ".qdrep" else "nsys-rep", force=force)


def report_version(path: Path) -> str | None:
    """Return the version of nsys that wrote the report at ``path``, None where the file does not show it.

    Reports of 2025 say it in their first line, older ones near their end.
    """
    with path.open("rb") as file:
        if match := _NEW_HEAD.search(file.read(96)):
            return ".".join(part.decode() for part in match.groups())
        file.seek(max(0, path.stat().st_size - _TAIL))
        found = _VERSION.findall(file.read(_TAIL))
    return found[-1].decode() if found else None


def read_export(database: Path, named: Path, format: str, *, force: bool = False) -> Trace:
    """Return the events of the sqlite export ``database``, which stands for the file ``named``.

    Raises:
        ReportError: as for `open_trace`; the messages name ``named``.
    """
    try:
        db = Database(database)
        try:
            return _read(db, named, format, force)
        except (ValueError, TypeError, OverflowError) as error:
            text = f"{database} is damaged: a column holds what cannot be in it ({error})"
            raise ReportFormatError(database, text, "Copy it again, or export it again.") from error
        finally:
            db.close()
    except ReportError as error:
        if database == named:
            raise
        message = error.message.replace(str(database), str(named))
        raise type(error)(named, message, error.hint, code=error.code) from error


def _read(db: Database, named: Path, format: str, force: bool) -> Trace:
    tool, schema = db.check_schema(force)
    synthetic = db.metadata().get(SYNTHETIC)
    notes: list[str] = []
    names = nsys_events.Names()
    kinds = {kind: nsys_events.rows(db, kind, names, notes) for kind in nsys_events.WHAT}
    last = max((int(rows["end"].max()) for rows in kinds.values() if len(rows)), default=0)
    ranges = nsys_events.ranges(db, names, notes, last)
    if schema is None:
        notes.append("the export says no schema version (nsys 2021 or older): read by looking at its columns")
    _to_physical(db, kinds)
    trace = Trace(
        TraceFile(str(named), named.stat().st_size, format, tool, schema, synthetic),
        kernels=kinds["kernels"],
        copies=kinds["copies"],
        memsets=kinds["memsets"],
        graphs=kinds["graphs"],
        calls=kinds["calls"],
        syncs=kinds["syncs"],
        ranges=ranges,
        overheads=kinds["overheads"],
        names=names.texts(),
        gpus=_gpus(db),
        processes={int(k): str(v) for k, v in nsys_events.pairs(db, "PROCESSES", "globalPid", "name")},
        threads=_threads(db),
        counters=nsys_events.counters(db),
        started=next((int(k) for k, _ in nsys_events.pairs(db, *_SESSION)), None),
        notes=tuple(notes),
    )
    if not trace.gpu_work:
        raise _nothing_ran(db, named, trace)
    return trace


_SESSION = ("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "utcEpochNs")


def _gpus(db: Database) -> dict[int, Gpu]:
    """Return the GPUs by the id that device columns use, without those of other vendors."""
    info = db.table("TARGET_INFO_GPU")
    found: dict[int, Gpu] = {}
    if info is not None:
        columns = db.columns(info)
        pick = {
            key: next((columns[c.lower()] for c in names if c.lower() in columns), None)
            for key, names in _GPU_COLUMNS.items()
        }
        parts = ", ".join("NULL" if name is None else f'"{name}"' for name in pick.values())
        for row in db.query(f'SELECT {parts} FROM "{info}"'):
            said = dict(zip(pick, row, strict=True))
            if said["id"] is None or (pick["major"] and not said["major"]):
                continue
            cc = None if said["major"] is None else f"{said['major']}.{said['minor'] or 0}"
            bandwidth = float(said["bandwidth"]) if said["bandwidth"] else None
            gpu = Gpu(int(said["id"]), said["name"], cc, said["sms"] or None, bandwidth, said["uuid"])
            found.setdefault(gpu.id, gpu)
    older = db.table("TARGET_INFO_CUDA_GPU")
    if older is not None and db.has(older, *_OLDER_GPU_COLUMNS):
        for row in db.query(f'SELECT {", ".join(_OLDER_GPU_COLUMNS)} FROM "{older}"'):
            id, name, major, minor, sms, kilobytes = row
            bandwidth = kilobytes * 1000.0 if kilobytes else None
            found[int(id)] = Gpu(int(id), name, f"{major}.{minor}", sms, bandwidth)
    return found


_OLDER_GPU_COLUMNS = (
    "deviceId",
    "name",
    "computeCapabilityMajor",
    "computeCapabilityMinor",
    "numMultiprocessors",
    "globalMemoryBandwidth",
)
_GPU_COLUMNS = {
    "id": ("id", "deviceId"),
    "name": ("name",),
    "major": ("computeMajor",),
    "minor": ("computeMinor",),
    "sms": ("smCount",),
    "bandwidth": ("memoryBandwidth",),
    "uuid": ("uuid",),
}


def _to_physical(db: Database, kinds: dict[str, Columns]) -> None:
    """Replace each process's own device numbers (CUDA_VISIBLE_DEVICES) by those of the machine's GPUs."""
    import numpy as np

    table = db.table("TARGET_INFO_CUDA_DEVICE")
    if table is None or not db.has(table, "gpuId", "cudaId", "pid"):
        return
    moved = [
        (int(pid), int(own), int(gpu))
        for gpu, own, pid in db.query(f'SELECT gpuId, cudaId, pid FROM "{table}"')
        if None not in (gpu, own, pid) and gpu != own
    ]
    if not moved:
        return
    for kind, rows in kinds.items():
        if "device" not in rows:
            continue
        columns, pid = dict(rows.columns), (rows["process"] >> 24) & 0xFFFFFF
        for name in ("device", "source_device", "target_device"):
            if name in rows:
                new = rows[name].copy()
                for process, own, gpu in moved:
                    new = np.where((pid == process) & (rows[name] == own), gpu, new)
                columns[name] = new
        kinds[kind] = Columns(columns)


def _threads(db: Database) -> dict[int, str]:
    named = nsys_events.pairs(db, "ThreadNames", "globalTid", "nameId")
    ids = {int(thread): int(name) for thread, name in named if name is not None}
    texts = db.strings(ids.values()) if len(ids) < 100_000 else {}
    return {thread: texts[id] for thread, id in ids.items() if id in texts}


def _nothing_ran(db: Database, path: Path, trace: Trace) -> ReportEmpty:
    """Return the error of a trace without GPU work: the likeliest reason first, from what the trace shows."""
    calls, said = trace.calls, db.metadata()
    failed = _failed_calls(trace)
    launched = sum("Launch" in trace.names[int(i)] for i in calls["name"] if i >= 0) if len(calls) else 0
    reasons = [
        (not trace.gpus, "nsys saw no GPU on that machine, or its driver was not loaded"),
        (bool(failed), f"CUDA itself failed: {failed}"),
        (said.get("PROCESS_0:COLLECT_CUDA_TRACE") == "false", _NOT_TRACED),
        (
            len(calls) > 0 and not launched,
            f"the program launched nothing: {len(calls):,} CUDA calls were traced, none of them a launch",
        ),
        (
            len(calls) > 0,
            f"{len(calls):,} CUDA calls were traced ({launched:,} launches) but nothing on the GPU: WSL, a "
            "virtual GPU or another profiler kept CUPTI from recording, or the process was killed before it "
            "could flush",
        ),
        (not len(calls), "the program used the CPU only (no visible device, a CPU build of its framework)"),
        (not len(calls), _NOT_TRACED),
        (True, "the kernels ran outside the recorded window (--capture-range, --delay, --duration)"),
        (True, "they ran in a process that nsys did not follow (--trace-fork-before-exec=true)"),
    ]
    listed = list(dict.fromkeys(text for holds, text in reasons if holds))
    numbered = "; ".join(f"({i}) {text}" for i, text in enumerate(listed, 1))
    hint = f"Possible reasons, likeliest first: {numbered}."
    return ReportEmpty(path, f"no GPU kernel ran in {path}", hint, code="no-gpu-kernel")


_NOT_TRACED = "CUDA was not traced: run nsys with --trace=cuda,nvtx"


def _failed_calls(trace: Trace) -> str:
    calls: Columns = trace.calls
    if not len(calls):
        return ""
    bad = calls.take(calls["returned"] != 0)
    counted = Counter(zip(bad["name"].tolist(), bad["returned"].tolist(), strict=True))
    if not counted:
        return ""
    (name, code), n = counted.most_common(1)[0]
    return f"{trace.names[name]} returned error {code} ({n:,} times)"


def _head(path: Path) -> bytes:
    container.refuse_pipe(path)
    try:
        with path.open("rb") as file:
            head = file.read(container.HEAD)
    except FileNotFoundError as error:
        raise ReportNotFound(path, f"there is no file {path}", "Check the path.") from error
    except IsADirectoryError as error:
        raise ReportFormatError(path, f"{path} is a folder", _GIVE) from error
    except OSError as error:
        raise ReportNotFound(path, f"{path} cannot be read: {error.strerror}") from error
    if not head:
        raise ReportFormatError(path, f"{path} is empty", "The copy or the recording failed: make it again.")
    return head


def _other(path: Path, head: bytes) -> ReportFormatError:
    """Return the error of a file that is no trace, by what it is."""
    if head.startswith(NCU):
        what, hint = (
            "a report of Nsight Compute (ncu), not of Nsight Systems",
            f"Try: ncukit show {word(path)}",
        )
    elif path.suffix == ".qdstrm":
        what, hint = (
            "a raw recording of nsys that was never imported",
            f"Import it: QdstrmImporter -i {word(path)}",
        )
    else:
        found = container.identify(head)
        keep = "LFS" in found.what or "compressed" in found.what or "archive" in found.what
        what = found.what.replace("the report itself", "the trace itself")
        named = found.advice(path).replace("> report.ncu-rep", "> report.nsys-rep")
        hint = named if keep else _GIVE
        if "unknown format" in what:
            what = "not a trace of Nsight Systems"
    return ReportFormatError(path, f"{path} is {what}", hint)


def exporter(nsys: str | Path | None = None) -> Export:
    """Return what exports a report with ``nsys`` (None: the one that ncukit finds)."""

    def export(path: Path, target: Path) -> None:
        from ncukit.run.tools.nsys import export_sqlite

        export_sqlite(path, target, nsys=nsys, written_by=report_version(path))

    return export
