"""Write traces as versions of torch's profiler write them; times are microseconds, as in those files.

The flavours differ in what the real files differ in: names of categories, what an External id means, whole or
fractional times, what a copy says about itself.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

FLAVOURS = ("1.8", "1.13", "2.13", "rocm")
_CATEGORIES = {
    "1.8": {"op": "Operator", "call": "Runtime", "kernel": "Kernel", "copy": "Memcpy", "memset": "Memset"},
    "1.13": {
        "op": "cpu_op",
        "call": "cuda_runtime",
        "kernel": "kernel",
        "copy": "gpu_memcpy",
        "memset": "gpu_memset",
    },
}
ZERO = {
    "1.8": 1_600_000_000_000_000,
    "1.13": 1_682_725_898_000_000,
    "2.13": 5_135_960_681_000,
    "rocm": 4_203_669_603,
}
PID, GPU = 4037, "NVIDIA H100 80GB HBM3"


class TorchBuilder:
    """Collects the events of a trace; the default of every ``tid`` is the main thread."""

    def __init__(self, flavour: str = "2.13", *, rank: int | None = None, world: int | None = None) -> None:
        self.flavour = flavour
        self.events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": PID, "args": {}}]
        self.head: dict[str, Any] = {"schemaVersion": 1, "displayTimeUnit": "ms"}
        if flavour != "1.8":
            name, major = ("AMD Radeon Graphics", 9) if flavour == "rocm" else (GPU, 9)
            self.head["deviceProperties"] = [
                {"id": self.device, "name": name, "computeMajor": major, "computeMinor": 0, "numSms": 132}
            ]
        if rank is not None:
            self.head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world or 2}
        self._ops = 0
        self._correlation = 5000
        self._launched: dict[int, int] = {}

    @property
    def device(self) -> int:
        """The GPU of the trace; ROCm's files count theirs otherwise."""
        return 2 if self.flavour == "rocm" else 0

    def op(
        self,
        name: str,
        start: float,
        dur: float,
        *,
        tid: int = PID,
        shapes: list[Any] | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Add an operator and return its External id."""
        self._ops += 1
        args: dict[str, Any] = {"External id": self._ops}
        if shapes is not None:
            args |= {"Input Dims": shapes, "Input type": types or ["float"] * len(shapes)}
        self._span("op", name, start, dur, tid, args)
        return self._ops

    def launch(
        self,
        name: str,
        call: float,
        start: float,
        dur: float,
        *,
        op: int | None = None,
        tid: int = PID,
        stream: int = 7,
        traced: bool = True,
        **args: Any,
    ) -> None:
        """Add a kernel and, if ``traced``, the call that launched it from operator ``op``."""
        correlation = self._next(op)
        if traced:
            self.call(
                "hipLaunchKernel" if self.flavour == "rocm" else "cudaLaunchKernel", call, 2, correlation, tid
            )
        shape = {"registers per thread": 32, "grid": [64, 1, 1], "block": [128, 1, 1], "shared memory": 0}
        shape["est. achieved occupancy %"] = 50
        extra = {"kind": "Dispatch Kernel"} if self.flavour == "rocm" else shape
        self._work("kernel", name, start, dur, correlation, stream, extra | args)

    def copy(
        self, call: float, start: float, dur: float, bytes: int, *, op: int | None = None, wait: float = 0
    ) -> None:
        """Add a copy to the device and its call, which blocks for ``wait`` if that is given."""
        correlation = self._next(op)
        if self.flavour == "rocm":
            args: dict[str, Any] = {"size": str(bytes), "kind": "1"}
            self.call("hipMemcpyWithStream", call, wait or 3, correlation, **args)
            self._work("copy", "Memcpy HtoD (Host -> Device)", start, dur, correlation, 0, {"kind": "HtoD"})
            return
        self.call("cudaMemcpy" if wait else "cudaMemcpyAsync", call, wait or 3, correlation)
        said = {"bytes": bytes, "memory bandwidth (GB/s)": 1.5}
        self._work("copy", "Memcpy HtoD (Pageable -> Device)", start, dur, correlation, 7, said)

    def memset(self, call: float, start: float, dur: float, bytes: int, *, op: int | None = None) -> None:
        """Add a memory set and its call."""
        correlation = self._next(op)
        self.call("hipMemsetAsync" if self.flavour == "rocm" else "cudaMemsetAsync", call, 2, correlation)
        self._work("memset", "Memset (Device)", start, dur, correlation, 7, {"bytes": bytes})

    def call(
        self, name: str, start: float, dur: float, correlation: int = 0, tid: int = PID, **args: Any
    ) -> None:
        """Add a call of CUDA or HIP."""
        external = self._launched.get(correlation, correlation)
        said = {self._external: external, "correlation": correlation, "cbid": 211, **args}
        self._span("call", name, start, dur, tid, said)

    def memory(self, at: float, bytes: int, allocated: int, reserved: int, device: int = 0) -> None:
        """Add an allocation, or with negative ``bytes`` a release; ``device`` -1 is the CPU."""
        args = {"Bytes": bytes, "Total Allocated": allocated, "Total Reserved": reserved, "Addr": 1}
        args |= {"Device Type": int(device >= 0), "Device Id": device}
        self._add({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]"}, at, PID, args)

    def frame(self, name: str, start: float, dur: float) -> None:
        """Add a Python function."""
        self.events.append(self._event("python_function", name, start, dur, PID, {"Python id": 1}))

    def annotation(self, name: str, start: float, dur: float) -> None:
        """Add a range."""
        self.events.append(self._event("user_annotation", name, start, dur, PID, {}))

    def write(self, path: Path) -> Path:
        """Write the trace; packed where the name says so."""
        text = json.dumps({**self.head, "traceEvents": self.events}).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        return path

    @property
    def _external(self) -> str:
        return "external id" if self.flavour == "1.8" else "External id"

    def _next(self, op: int | None) -> int:
        self._correlation += 1
        if self.flavour in ("2.13", "rocm") and op is not None:  # older: the correlation itself
            self._launched[self._correlation] = op
        return self._correlation

    def _work(
        self,
        what: str,
        name: str,
        start: float,
        dur: float,
        correlation: int,
        stream: int,
        args: dict[str, Any],
    ) -> None:
        place = {"device": self.device, "context": 1, "stream": stream, "correlation": correlation}
        place[self._external] = self._launched.get(correlation, correlation)
        self._span(what, name, start, dur, stream, {**place, **args}, pid=self.device)

    def _span(
        self, what: str, name: str, start: float, dur: float, tid: int, args: dict[str, Any], pid: int = PID
    ) -> None:
        categories = _CATEGORIES.get(self.flavour, _CATEGORIES["1.13"])
        self.events.append(self._event(categories[what], name, start, dur, tid, args, pid))

    def _event(
        self, cat: str, name: str, start: float, dur: float, tid: int, args: dict[str, Any], pid: int = PID
    ) -> dict[str, Any]:
        event = {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": self._at(start),
            "dur": dur,
        }
        return {**event, "args": args}

    def _add(self, event: dict[str, Any], at: float, tid: int, args: dict[str, Any]) -> None:
        self.events.append({**event, "pid": PID, "tid": tid, "ts": self._at(at), "args": args})

    def _at(self, time: float) -> float:
        return ZERO[self.flavour] + time


def training(flavour: str = "2.13", steps: int = 3, **options: Any) -> TorchBuilder:
    """Return a small training: each step copies, multiplies, waits for a scalar, and goes backward.

    On the GPU each step takes 10 (copy) + 30 + 20 (two kernels of addmm) + 5 (memset) + 40 (backward).
    """
    b = TorchBuilder(flavour, **options)
    for step in range(steps):
        t = step * 1000.0
        b.op("aten::to", t, 60, shapes=[[64, 32]])
        copy = b.op("aten::copy_", t + 10, 40, shapes=[[64, 32], [64, 32]])
        b.copy(t + 15, t + 20, 10, 8192, op=copy, wait=20)
        b.op("aten::linear", t + 100, 100, shapes=[[64, 32], [16, 32], [16]])
        addmm = b.op("aten::addmm", t + 110, 80, shapes=[[16], [64, 32], [32, 16]])
        b.memset(t + 115, t + 130, 5, 512, op=addmm)
        b.launch("void gemm<float>(float*)", t + 120, t + 140, 30, op=addmm)
        b.launch("splitKreduce_kernel(int)", t + 130, t + 170, 20, op=addmm)
        b.op("aten::item", t + 250, 100)
        b.call("hipDeviceSynchronize" if flavour == "rocm" else "cudaStreamSynchronize", t + 260, 80)
        b.op("autograd::engine::evaluate_function: AddmmBackward0", t + 400, 100, tid=99)
        mm = b.op("aten::mm", t + 420, 50, tid=99, shapes=[[32, 64], [64, 16]])
        b.launch("void gemm<float>(float*)", t + 430, t + 440, 40, op=mm, tid=99)
    return b
