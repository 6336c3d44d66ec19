"""Time and memory of ``ncukit timeline`` on a long trace: bar 20 s and 2 GB for 1,000,000 kernels.

    python benchmarks/timeline.py [KERNELS] [--keep FILE]

It runs in one thread, so its CPU time is what it takes on an idle machine: that is judged.
The trace looks like training: bursts of short kernels on four streams with their launch calls, copies, waits,
NVTX ranges per iteration, 300 different kernels.
"""

from __future__ import annotations

import argparse
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

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


def measure(argv: list[str]) -> tuple[float, float, int]:
    """Run ``argv`` and return its wall time [s], its CPU time [s] and its peak memory [byte]."""
    start = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(argv)}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="write the trace here and keep it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "long.sqlite"
        write(path, options.kernels)
        print(f"{options.kernels:,} kernels, {path.stat().st_size / 1e6:.0f} MB")
        page = str(Path(folder) / "page.html")
        ncukit = [sys.executable, "-m", "ncukit", "timeline", str(path)]
        missed = False
        runs = {"--json": ["--json"], "--range": ["--range", "step", "--json"], "-o": ["-o", page]}
        for name, extra in runs.items():
            seconds, cpu, peak = measure([*ncukit, *extra])
            missed |= options.kernels <= 1_000_000 and (cpu > BAR_SECONDS or peak > BAR_BYTES)
            print(f"  {name:8} {seconds:6.2f} s ({cpu:5.2f} s of CPU)  {peak / 1e9:5.2f} GB peak")
        print(f"  page {Path(page).stat().st_size / 1e3:.0f} kB")
    bar = f"{BAR_SECONDS:.0f} s and {BAR_BYTES / 1e9:.0f} GB for 1,000,000"
    print(f"bar: {bar}: {'missed' if missed else 'met'}")
    sys.exit(missed)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
