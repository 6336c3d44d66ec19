"""``ncukit timeline`` on a long trace: bar 20 s and 2 GB for 1,000,000 kernels.

It runs in one thread, so its CPU time is what it takes on an idle machine: that is judged.
The trace looks like training: bursts of short kernels on four streams with their launch calls, copies, waits,
NVTX ranges per iteration, 300 different kernels.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import NCUKIT, Row, amount, measured
from benchmarks.readers import Setting

KERNELS = 1_000_000
BAR_SECONDS, BAR_BYTES = 20.0, 2e9
NAMES = 300
ITERATION = 500
KERNEL = (
    *("start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid"),
    *("demangledName", "shortName", "mangledName", "launchType", "cacheConfig", "registersPerThread"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"),
    *("localMemoryPerThread", "localMemoryTotal", "gridId", "sharedMemoryExecuted", "graphNodeId"),
    "sharedMemoryLimitConfig",
)
CALL = ("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callchainId")
COPY = (
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"),
    *("bytes", "copyKind", "srcKind", "dstKind"),
)


def write(path: Path, kernels: int) -> None:
    """Write a trace with ``kernels`` kernels to ``path``."""
    rng = np.random.default_rng(7)
    process = 1 << 48 | 4242 << 24
    launched = np.cumsum(rng.integers(4000, 9000, kernels)) + np.arange(kernels) // ITERATION * 2_000_000
    started = np.maximum.accumulate(launched + 6000)
    ended = started + rng.integers(1500, 20_000, kernels)
    name = rng.integers(0, NAMES, kernels) + 10
    grid = 1 << (name % 12)
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")

    def fill(table: str, columns: Sequence[str], values: dict[str, object]) -> None:
        db.execute(f"CREATE TABLE {table} ({', '.join(f'{c} INTEGER' for c in columns)})")
        n = max(len(v) for v in values.values() if isinstance(v, np.ndarray))
        lists = [v.tolist() if isinstance(v := values.get(c), np.ndarray) else [v] * n for c in columns]
        db.executemany(
            f"INSERT INTO {table} VALUES ({','.join('?' * len(columns))})", zip(*lists, strict=True)
        )

    fill(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        KERNEL,
        {
            **{"start": started, "end": ended, "deviceId": 0, "contextId": 1, "globalPid": process},
            **{"streamId": 7 + np.arange(kernels) % 4, "correlationId": np.arange(kernels) + 1},
            **{"demangledName": name, "shortName": name + NAMES, "registersPerThread": 32, "gridX": grid},
            **{"gridY": 1, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1, "launchType": 1},
            **{"staticSharedMemory": 0, "dynamicSharedMemory": 0, "gridId": np.arange(kernels)},
        },
    )
    steps = np.arange(0, kernels, ITERATION)
    waits = launched[np.minimum(steps + ITERATION - 1, kernels - 1)] + 5000
    fill(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        CALL,
        {
            "start": np.concatenate((launched, waits)),
            "end": np.concatenate((launched + 3500, waits + 1_000_000)),
            "eventClass": 0,
            "globalTid": process | 4242,
            "correlationId": np.arange(kernels + len(steps)) + 1,
            "nameId": np.concatenate((np.full(kernels, 1), np.full(len(steps), 2))),
            "returnValue": 0,
        },
    )
    copies = started[steps] - 3000
    fill(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        COPY,
        {
            **{"start": copies, "end": copies + 2500, "deviceId": 0, "contextId": 1, "streamId": 7},
            **{"globalPid": process, "bytes": 1 << 20, "copyKind": 1, "srcKind": 0, "dstKind": 2},
        },
    )
    db.execute(
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
        "globalTid INTEGER, textId INTEGER, domainId INTEGER)"
    )
    rows = (
        (int(launched[i]) - 10, int(wait) + 1_000_500, 59, "step", process | 4242, None, 0)
        for i, wait in zip(steps, waits, strict=True)
    )
    db.executemany("INSERT INTO NVTX_EVENTS VALUES (?,?,?,?,?,?,?)", rows)
    db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    texts = [(1, "cudaLaunchKernel_v7000"), (2, "cudaStreamSynchronize_v3020")]
    texts += [(10 + i, f"void ns::kernel_{i}<float, {i}>(float*, int)") for i in range(NAMES)]
    texts += [(10 + NAMES + i, f"kernel_{i}") for i in range(NAMES)]
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", texts)
    db.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
    db.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.7.2')")
    db.commit()
    db.close()


def timeline(setting: Setting) -> Iterator[Row]:
    """Sum up a whole trace, one range of it, and write its page."""
    kernels = 20_000 if setting.quick else KERNELS
    path = setting.folder / "long.sqlite"
    write(path, kernels)
    runs = {
        "--json": ("--json",),
        "--range": ("--range", "step", "--json"),
        "page": ("-o", str(setting.folder / "page.html")),
    }
    for name, words in runs.items():
        cost = measured([*NCUKIT, "timeline", path, *words])
        yield Row(
            f"timeline, {kernels:,} kernels, {name}",
            f"{amount(cost.cpu, 's')} of CPU, {amount(cost.peak, 'byte')}",
            bar=f"{BAR_SECONDS:.0f} s, {amount(BAR_BYTES, 'byte')}",
            met=cost.cpu <= BAR_SECONDS and cost.peak <= BAR_BYTES,
        )
