"""Comparisons for tests: launches from neutral metrics, put side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncukit.comparison import compare
from ncukit.comparison.baseline import side_of
from ncukit.comparison.pairs import Steering
from ncukit.metrics import load
from ncukit.model import Kernel, Value
from ncukit.model.comparison import Comparison, Pair, Row
from tests.builders import kernel, raw_kernel

A100 = {"gpu_name": "A100", "compute_capability": 80, "sm_count": 108, "max_warps_per_sm": 64}
H100 = {"gpu_name": "H100", "compute_capability": 90, "sm_count": 132, "max_warps_per_sm": 64}
T4 = {"gpu_name": "T4", "compute_capability": 75, "sm_count": 40, "max_warps_per_sm": 32}
RTX = {"gpu_name": "RTX 4090", "compute_capability": 89, "sm_count": 128, "max_warps_per_sm": 48}
SPILL = {
    **A100,
    "kernel_duration": 1.00e-3,
    "registers_per_thread": 168,
    "block_size": 384,
    "theoretical_occupancy_pct": 18.75,
    "occupancy_limiter": "registers+shared_mem",
    "local_memory_bytes": 0,
    "local_store_inst": 0,
    "inst_executed": 1_000_000,
}
"""The base of a change that frees registers in vain: shared memory limits as well."""
SPILLED = {
    **SPILL,
    "kernel_duration": 1.31e-3,
    "registers_per_thread": 80,
    "occupancy_limiter": "shared_mem",
    "local_memory_bytes": 4400 * 384,
    "local_store_inst": 25_000,
    "inst_executed": 1_100_000,
}


def launch(
    name: str = "k",
    index: int = 0,
    *,
    nvtx: tuple[str, ...] = (),
    demangled: str | None = None,
    signals: Mapping[str, Any] | None = None,
    breakdowns: Mapping[str, Mapping[str, float]] | None = None,
    failed: str | None = None,
    **neutral: Any,
) -> Kernel:
    """Return a launch on an A100, unless told otherwise."""
    raw = raw_kernel(name, index=index, nvtx=nvtx, demangled=demangled)
    return kernel(raw=raw, signals=signals, breakdowns=breakdowns, failed=failed, **{**A100, **neutral})


def compared(
    base: list[Kernel] | Kernel,
    other: list[Kernel] | Kernel,
    *,
    match: tuple[str, ...] = (),
    elements: tuple[float, ...] = (),
) -> Comparison:
    """Return launches against launches."""
    sides = [
        side_of(some if isinstance(some, list) else [some], label, apart="order" in match)
        for some, label in ((base, "before.ncu-rep"), (other, "after.ncu-rep"))
    ]
    return compare(sides[0], sides[1:], steering=Steering.of(match), elements=elements)


def pair_of(base: Mapping[str, Any], other: Mapping[str, Any], **options: Any) -> Pair:
    """Return the one pair of two launches."""
    (pair,) = compared(launch(**base), launch(**other), **options).pairs
    return pair


def row_of(id: str, base: Mapping[str, Any], other: Mapping[str, Any]) -> Row:
    """Return one row of two launches."""
    row = pair_of(base, other).row(id)
    assert row is not None
    return row


def unknown(id: str, reason: str) -> Value:
    """Return a value that a report does not hold."""
    return Value(id, None, load().metrics[id].unit, reason=reason)
