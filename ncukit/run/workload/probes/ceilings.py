"""Ceilings as measured: how fast a large copy and large matrix products run here, without any profiler.

They lie below the peaks of the data sheet; on a roofline they are drawn dashed and marked "measured".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ncukit.run.workload import timing
from ncukit.run.workload.timing import Device, Stopwatch, summarise

COPY = {"cuda": (256 << 20, 1 << 30), "cpu": (64 << 20,)}
"""[byte] copied: far more than any cache holds."""
SIZES = {"cuda": (4096, 8192), "cpu": (1024,)}
"""Edges of the matrices: large enough to fill every unit."""
TYPES = {
    "cuda": (("fp32", "fp32"), ("tf32", "tensor_tf32"), ("fp16", "tensor_fp16"), ("bf16", "tensor_bf16")),
    "cpu": (("fp32", "fp32"),),
}
"""Data type -> precision of the roofline that it measures."""
SAMPLES = 20


def copy() -> dict[str, Any]:
    """Return the bandwidth of a device-to-device copy [byte/s]: the median of the best size."""
    import torch

    kind = _kind(torch)
    rows = []
    for size in COPY[kind]:
        source = torch.ones(size // 4, dtype=torch.float32, device=kind)
        target = torch.empty_like(source)

        def run(source: Any = source, target: Any = target) -> Any:
            return target.copy_(source)

        rows.append({"bytes": size, "moved": 2 * size, **_timed(run, 2 * size, "bandwidth")})
        del source, target
    best = max(rows, key=lambda row: float(row["bandwidth"]))
    return _answer(torch, kind, {"bandwidth": best["bandwidth"], "level": "dram", "sizes": rows})


def matmul() -> dict[str, Any]:
    """Return the rates of square matrix products by data type [FLOP/s]: the median of the best size."""
    import torch

    kind, rows = _kind(torch), []
    before = torch.get_float32_matmul_precision()
    try:
        for dtype, precision in TYPES[kind]:
            torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
            rows += list(_products(torch, kind, dtype, precision))
    finally:
        torch.set_float32_matmul_precision(before)
    best = {
        row["precision"]: max(r["rate"] for r in rows if r["precision"] == row["precision"]) for row in rows
    }
    return _answer(torch, kind, {"rates": best, "products": rows})


def _products(torch: Any, kind: str, dtype: str, precision: str) -> Iterator[dict[str, Any]]:
    types = {"fp16": torch.float16, "bf16": torch.bfloat16}
    if kind == "cuda" and dtype in ("tf32", "bf16") and torch.cuda.get_device_capability() < (8, 0):
        return
    for n in SIZES[kind]:
        a, b = (torch.randn(n, n, device=kind, dtype=torch.float32) for _ in range(2))
        a, b = (x.to(types.get(dtype, torch.float32)) for x in (a, b))
        out = torch.empty_like(a)

        def run(a: Any = a, b: Any = b, out: Any = out) -> Any:
            return torch.matmul(a, b, out=out)

        yield {"dtype": dtype, "precision": precision, "n": n, **_timed(run, 2.0 * n**3, "rate")}
        del a, b, out


def _timed(run: Callable[[], Any], work: float, name: str) -> dict[str, Any]:
    """Return time and rate of ``run``, which does ``work``, warm, by the best clock there is."""
    Stopwatch(run).warm_up(1)
    watch = Stopwatch(run, Device.current(), flush=False)
    warm = watch.warm_up()
    samples, _ = watch.samples(warm.last, SAMPLES)
    summary = summarise(samples)
    return {
        name: work / summary.median,
        "median": summary.median,
        "iqr": summary.iqr,
        "n_samples": summary.n,
        "timer": watch.timer,
        "settled": warm.settled,
    }


def _answer(torch: Any, kind: str, result: dict[str, Any]) -> dict[str, Any]:
    device = Device.current() if kind == "cuda" else None
    facts = None if device is None else device.facts
    notes = []
    if kind == "cpu":
        notes.append("this measures the CPU: torch sees no CUDA GPU, so it is no ceiling of one")
    watched = timing.read(facts.uuid if facts else None)
    if watched.get("throttled"):
        notes.append(
            f"the GPU is throttled ({', '.join(watched['throttled'])}): the ceiling is lower than it can be"
        )
    return {
        "state": "done",
        "notes": notes,
        "result": {
            "measured": kind,
            "device": {
                "name": facts.name if facts else _cpu(),
                "uuid": facts.uuid if facts else None,
                "compute_capability": f"{facts.cc[0]}.{facts.cc[1]}" if facts else None,
            },
            "torch": str(torch.__version__),
            "clocks": watched,
            **result,
        },
    }


def _kind(torch: Any) -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _cpu() -> str:
    import platform

    return platform.processor() or platform.machine() or "CPU"
