"""Sound inputs of every kind, as bytes: real ones where the shared folder is there, else made here."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from ncukit.model.experiment import Conclusion
from ncukit.model.run import Compared, Isolation, OutputFile, Run, StepRecord, Timing
from tests.builders import TARGET
from tests.conftest import CHECKOUT, shared_folder
from tests.torch_builder import training

SAMPLES = CHECKOUT / "reports" / "samples"
COPY = SAMPLES / "copy-dram.ncu-rep"

CSV = b""""ID","Process Name","Kernel Name","Grid Size","Block Size","sm__cycles_active.avg","dram__bytes.sum"
"","","","","","cycle","Kbyte"
"0","app","void gemm<float>(float*, int)","(128, 1, 1)","(256, 1, 1)","123,456.5","78.9"
"1","app","reduce","(1, 1, 1)","(32, 1, 1)","9.5","0"
"""
SETTINGS = b"""[compare]
fail_on = ["dram_bytes > +5%", "kernel_duration > 1.02x"]
allow_unknown = false
baselines = "baselines"
"""
NCCL = b"""starting training
node1:101:101 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.
NCCL version 2.21.5+cuda12.4
node1:101:222 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>
node1:101:222 [0] NCCL INFO Using network Socket
node1:101:222 [0] NCCL INFO comm 0x55 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL 0
node1:101:222 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct
node1:101:222 [0] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels
node1:101:222 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer
"""


def _real(folder: str, pattern: str, limit: int = 200_000) -> list[bytes]:
    found = sorted((shared_folder() / "reports" / folder).glob(pattern))
    return [path.read_bytes() for path in found if path.stat().st_size <= limit]


@cache
def reports() -> list[bytes]:
    """Return small reports: the samples, and real ones of several versions of ncu."""
    return [*synthetic(), *_real("ncu", "*-rep*", 120_000)]


@cache
def synthetic() -> list[bytes]:
    """Return the samples."""
    return [path.read_bytes() for path in sorted(SAMPLES.glob("*.ncu-rep"))]


@cache
def compressed() -> list[bytes]:
    """Return samples as ``.ncu-repz``."""
    return [_compressed(data) for data in synthetic()[:3]]


def _compressed(data: bytes) -> bytes:
    """Compress ``data`` in a process of its own: where pyarrow is loaded, ncukit forks no reader."""
    program = (
        "import sys, pyarrow;"
        "sys.stdout.buffer.write(pyarrow.compress(sys.stdin.buffer.read(), codec='zstd', asbytes=True))"
    )
    return subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=True).stdout


@cache
def exports() -> list[bytes]:
    """Return exports of nsys."""
    return [(SAMPLES / "gemm-tensor.sqlite").read_bytes(), *_real("nsys", "trace-*.sqlite", 400_000)]


@cache
def printed() -> list[bytes]:
    """Return what ``ncu --csv`` prints."""
    return [CSV, *_real("csv", "*")]


@cache
def torch_traces() -> list[bytes]:
    """Return traces of torch's profiler: synthetic ones of two versions, small real ones."""
    with tempfile.TemporaryDirectory() as folder:
        made = [
            training(flavour, steps=2).write(Path(folder, f"{flavour}.json")).read_bytes()
            for flavour in ("1.13", "2.13")
        ]
    real = [gzip.decompress(data) for data in _real("torch", "*.gz")]
    return [*made, *(data for data in real if len(data) < 3_000_000)]


def gzipped() -> list[bytes]:
    """Return the same traces, compressed as torch writes them."""
    return [gzip.compress(data, mtime=0) for data in torch_traces()[:2]]


def run_record() -> Run:
    """Return the record of a whole run with most of what one can hold."""
    timing = StepRecord("timing", "done", ("python", "child.py"), 0, 1.5, attempts=1)
    file = OutputFile("profile.ncu-rep", COPY.stat().st_size, "0" * 64)
    counters = StepRecord("counters", "done", ("ncu", "--set", "full"), 0, 3.25, (file,), attempts=2)
    failure = {"code": "busy", "message": "another profiler", "hint": "end it", "evidence": "in use"}
    timeline = StepRecord("timeline", "failed", ("nsys",), 1, 0.5, failure=failure, notes=("retried",))
    return Run(
        "2026-01-01T00:00:00Z",
        "0.1.0",
        {**TARGET, "params": {"n": "64"}, "source": "my_kernel.py", "pattern": "gemm"},
        {"preset": "standard", "kernel": "gemm", "range": None, "allow_collective": False},
        tools={"ncu": {"path": "/usr/bin/ncu", "version": "2025.1.0.0"}},
        gpu={"name": "NVIDIA H100", "uuid": "GPU-0", "compute_capability": "9.0", "memory": 1 << 36},
        driver={"kernel": "580.1", "cuda": "13.0", "problem": None},
        git={"revision": "0123abc", "modified": False},
        environment={"variables": {"WORLD_SIZE": "2"}, "withheld": ["TOKEN"]},
        clock_control="base",
        cache_control="all",
        steps=(timing, timeline, counters),
        isolation=Isolation("proven", "the same", (Compared("grid", "1x1x1", "1x1x1", True),), 0, 0, 1),
        notes=("a note",),
        status="incomplete",
        error=failure,
    )


def timing_record() -> Timing:
    """Return a clean timing with most of what one can hold."""
    return Timing(
        "cuda-events",
        3,
        1.5e-3,
        1e-5,
        1.4e-3,
        1.6e-3,
        (1.5e-3, 1.4e-3, 1.6e-3),
        correctness={"state": "passed", "detail": "all", "tolerance": 1e-3, "error": 0.5, "elements": 64},
        params={"n": 64},
        clocks={"before": {"sm_clock": 1e9, "temperature": 50, "throttled": []}, "after": None},
        device={"name": "NVIDIA H100", "uuid": "GPU-0", "compute_capability": "9.0"},
        model={"name": "copy", "flop": {"fp32": 64}, "dtype": "fp32", "read": 4096, "written": 4096},
        frameworks={"torch": "2.9.0"},
    )


def _encoded(document: Any) -> list[bytes]:
    return [json.dumps(document, indent=1).encode()]


def records() -> list[bytes]:
    """Return a sound ``run.json``."""
    return _encoded(run_record().as_dict())


def timings() -> list[bytes]:
    """Return a sound ``timing.json``."""
    return _encoded(timing_record().as_dict())


@cache
def experiments() -> list[bytes]:
    """Return a sound ``experiment.json``."""
    from dataclasses import replace

    from tests.test_experiment_conclusion import TOKEN, decoded, gaps, ran

    said = Conclusion("supported", "Supported.", "It would be so.", ("few pairs",))
    values = {TOKEN.metric: 1e-3}
    pairs = tuple(replace(one, values=values) for one in ran().repetitions)
    whole = replace(
        ran(),
        repetitions=pairs,
        effects=(decoded(TOKEN, 0.7),),
        observed=(gaps(2e-2, 1e-3),),
        conclusion=said,
    )
    return _encoded(whole.as_dict())


@cache
def baselines() -> list[bytes]:
    """Return the baseline of a sample."""
    import ncukit.api as api

    with tempfile.TemporaryDirectory() as folder:
        return [Path(api.set_baseline("main", COPY, folder=folder)).read_bytes()]


def ceilings() -> list[bytes]:
    """Return measured ceilings."""
    device = {"name": "NVIDIA A40", "uuid": None, "compute_capability": None}
    common = {"measured": "cuda", "device": device, "torch": ""}
    probes = [
        {"name": "copy", "result": {**common, "bandwidth": 3e11, "level": "dram", "sizes": []}},
        {"name": "matmul", "result": {**common, "rates": {"fp32": 9e12}, "products": []}},
    ]
    said = {"state": "done", "reason": "", "hint": "", "notes": []}
    return _encoded({"schema": "ncukit.probe/1", "probes": [{**probe, **said} for probe in probes]})
