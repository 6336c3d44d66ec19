"""Write nsys exports for tests: tables and columns of a real export, rows from the test.

The layout is that of nsys 2023.4 (schema 3.7); like there, a table without rows does not exist.  Stock
``nsys stats`` reads the files, which is how the tests check them.  Times are nanoseconds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_PLACE = "start end deviceId contextId greenContextId streamId correlationId globalPid"
TABLES = {  # name -> columns; * marks text, ~ a real, everything else is an integer
    "StringIds": "id value*",
    "PROCESSES": "globalPid pid name*",
    "ThreadNames": "nameId priority globalTid",
    "META_DATA_EXPORT": "name* value*",
    "META_DATA_CAPTURE": "name* value*",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime* localTime*",
    "TARGET_INFO_GPU": "vmId id name* busLocation* isDiscrete l2CacheSize totalMemory memoryBandwidth "
    "clockRate smCount pwGpuId uuid* luid chipName* cuDevice computeMajor computeMinor smMajor smMinor",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId returnValue "
    "callchainId",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_PLACE} demangledName shortName mangledName launchType cacheConfig "
    "registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory "
    "localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_PLACE} bytes copyKind deprecatedSrcId srcKind dstKind srcDeviceId "
    "srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_PLACE} value bytes graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_PLACE} syncType eventId",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_PLACE} graphId graphExecId",
    "NVTX_EVENTS": "start end eventType rangeId category color text* globalTid endGlobalTid textId domainId "
    "uint64Value int64Value doubleValue~ uint32Value int32Value floatValue~ jsonTextId jsonText*",
    "PROFILER_OVERHEAD": "start end globalTid nameId returnValue",
    "GPU_METRICS": "timestamp typeId metricId value",
    "TARGET_INFO_GPU_METRICS": "typeId sourceId typeName* metricId metricName*",
    "ENUM_CUDA_MEMCPY_OPER": "id name* label*",
    "ENUM_CUDA_MEM_KIND": "id name* label*",
}
COPY_KINDS = {"h2d": 1, "d2h": 2, "d2d": 8, "h2h": 9, "peer": 10}
_COPIES = (
    (1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
    (2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
    (8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
    (9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"),
    (10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"),
)
_MEMORIES = ((0, "PAGEABLE", "Pageable"), (1, "PINNED", "Pinned"), (2, "DEVICE", "Device"))
LAUNCH, COPY, COPY_ASYNC = "cudaLaunchKernel_v7000", "cudaMemcpy_v3020", "cudaMemcpyAsync_v3020"

Call = tuple[str, int, int]
"""Name, start and end of the CUDA call that caused a piece of work."""


class Builder:
    """Collects the events of a trace; the default of every ``pid`` and ``tid`` is one process."""

    def __init__(
        self, *, gpus: Iterable[int] = (0,), product: str = "2023.4.4.54", schema: str | None = "3.7.2"
    ) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}
        self._correlation = 0
        if schema is not None:
            self.add("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value=product)
            self.add("META_DATA_EXPORT", name="EXPORT_SCHEMA_VERSION", value=schema)
        self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000 * 10**9)
        for gpu in gpus:
            self.add(
                "TARGET_INFO_GPU",
                **{"vmId": 1 << 48, "id": gpu, "name": "NVIDIA Test GPU", "smCount": 132, "cuDevice": gpu},
                **{"computeMajor": 9, "computeMinor": 0, "memoryBandwidth": 10**12, "isDiscrete": 1},
            )
        for id, name, label in _COPIES:
            self.add("ENUM_CUDA_MEMCPY_OPER", id=id, name=name, label=label)
        for id, name, label in _MEMORIES:
            self.add("ENUM_CUDA_MEM_KIND", id=id, name=f"CUDA_MEMOPR_MEMORY_KIND_{name}", label=label)

    def add(self, table: str, **row: Any) -> None:
        """Add a row; what is left out is NULL."""
        self.rows.setdefault(table, []).append(row)

    def string(self, text: str) -> int:
        """Return the id of ``text`` in StringIds."""
        return self._strings.setdefault(text, len(self._strings) + 1)

    def api(
        self,
        name: str,
        start: int,
        end: int,
        *,
        pid: int = 4242,
        tid: int | None = None,
        correlation: int | None = None,
        returned: int = 0,
        cls: int | None = None,
    ) -> int:
        """Add a CUDA call and return its correlation id."""
        if correlation is None:
            self._correlation += 1
            correlation = self._correlation
        driver = name.startswith("cu") and not name.startswith("cuda")
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=start,
            end=end,
            eventClass=int(driver) if cls is None else cls,
            globalTid=thread(pid, tid),
            correlationId=correlation,
            nameId=self.string(name),
            returnValue=returned,
        )
        return correlation

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        *,
        call: Call | None = None,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (32, 1, 1),
        short: str | None = None,
        registers: int = 32,
        shared: tuple[int, int] = (0, 0),
        **place: Any,
    ) -> None:
        """Add a kernel; ``call`` launches it, ``place`` says where (device, stream, pid, node, ...)."""
        node = place.pop("node", None)
        short = short or name.split("(")[0].split("<")[0].split()[-1].split("::")[-1]
        self.add(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            **self._place(start, end, call, **place),
            demangledName=self.string(name),
            shortName=self.string(short),
            mangledName=self.string(f"_Z{len(short)}{short}v"),
            launchType=1,
            registersPerThread=registers,
            **dict(zip(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), grid + block, strict=True)),
            staticSharedMemory=shared[0],
            dynamicSharedMemory=shared[1],
            localMemoryPerThread=0,
            localMemoryTotal=0,
            gridId=len(self.rows.get("CUPTI_ACTIVITY_KIND_KERNEL", ())) + 1,
            graphNodeId=node,
        )

    def copy(
        self,
        way: str,
        size: int,
        start: int,
        end: int,
        *,
        call: Call | None = None,
        pinned: bool = False,
        between: tuple[int, int] | None = None,
        **place: Any,
    ) -> None:
        """Add a copy: ``way`` is a key of COPY_KINDS, ``between`` are the devices of a peer copy."""
        host = 1 if pinned else 0
        source, target = between or (None, None)
        self.add(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            **self._place(start, end, call, **place),
            bytes=size,
            copyKind=COPY_KINDS[way],
            srcKind=host if way in ("h2d", "h2h") else 2,
            dstKind=host if way in ("d2h", "h2h") else 2,
            srcDeviceId=source,
            dstDeviceId=target,
        )

    def memset(self, size: int, start: int, end: int, *, call: Call | None = None, **place: Any) -> None:
        """Add a memory set."""
        row = self._place(start, end, call, **place)
        self.add("CUPTI_ACTIVITY_KIND_MEMSET", **row, value=0, bytes=size, memKind=2)

    def graph(self, id: int, start: int, end: int, *, call: Call | None = None, **place: Any) -> None:
        """Add the execution of a CUDA graph that was traced as a whole."""
        row = self._place(start, end, call, **place)
        self.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", **row, graphId=id, graphExecId=id)

    def nvtx(
        self,
        text: str,
        start: int,
        end: int | None,
        *,
        type: int = 59,
        domain: int = 0,
        registered: bool = False,
        pid: int = 4242,
        tid: int | None = None,
    ) -> None:
        """Add a range: 59 push/pop, 60 start/end (34 mark, 75 domain); registered text is in StringIds."""
        said = {"textId": self.string(text)} if registered else {"text": text}
        row = {
            "start": start,
            "end": end,
            "eventType": type,
            "domainId": domain,
            "globalTid": thread(pid, tid),
        }
        self.add("NVTX_EVENTS", **row, **said)

    def _place(
        self,
        start: int,
        end: int,
        call: Call | None,
        *,
        device: int = 0,
        stream: int = 7,
        context: int = 1,
        pid: int = 4242,
        tid: int | None = None,
        correlation: int | None = None,
    ) -> dict[str, Any]:
        if call is not None:
            correlation = self.api(*call, pid=pid, tid=tid, correlation=correlation)
        return {
            **{"start": start, "end": end, "deviceId": device, "contextId": context, "streamId": stream},
            **{"correlationId": correlation, "globalPid": process(pid)},
        }

    def write(
        self,
        path: Path,
        *,
        renamed: dict[str, str] | None = None,
        without: Iterable[tuple[str, str]] = (),
    ) -> Path:
        """Write the file; ``renamed`` maps tables to new names, ``without`` are (table, column) left out."""
        rows = dict(self.rows)
        rows["StringIds"] = [{"id": id, "value": text} for text, id in self._strings.items()]
        db = sqlite3.connect(path)
        for table, columns in TABLES.items():
            if not rows.get(table):
                continue
            kinds = {
                c.rstrip("*~"): {"*": "TEXT", "~": "REAL"}.get(c[-1], "INTEGER") for c in columns.split()
            }
            unknown = {name for row in rows[table] for name in row} - set(kinds)
            assert not unknown, (table, unknown)
            names = [name for name in kinds if (table, name) not in without]
            keys = {"StringIds": "id"}
            typed = [f'"{n}" {kinds[n]}{" PRIMARY KEY" if keys.get(table) == n else ""}' for n in names]
            target = (renamed or {}).get(table, table)
            db.execute(f'CREATE TABLE "{target}" ({", ".join(typed)})')
            marks = ",".join("?" * len(names))
            db.executemany(
                f'INSERT INTO "{target}" VALUES ({marks})',
                ([row.get(n) for n in names] for row in rows[table]),
            )
        db.commit()
        db.close()
        return path


def process(pid: int) -> int:
    """Return the global id of a process."""
    return 1 << 48 | pid << 24


def thread(pid: int, tid: int | None = None) -> int:
    """Return the global id of a thread; None is the main thread of the process."""
    return process(pid) | (pid if tid is None else tid)
