"""Limits that averages hide: one address, or memory on the other side of a bus."""

from __future__ import annotations

from ncukit.diagnose.call import Call
from ncukit.diagnose.facts import STEADY, Facts

HOT_SLICE = 60.0
"""[%] Use of the busiest L2 slice from which it limits."""

UNEVEN = 4.0
"""Busiest slice over the mean: evenly spread traffic stays far below."""

ONE_ADDRESS = (0.25, 1.0)
"""Atomics per L2 cycle that one address can take in all (0.3 to 0.8 were measured)."""

IDLE = 40.0
"""[%] All units are below this while one address or a bus limits."""

FROM_HOST = 4.0
"""Fills from system memory over those from device memory: the kernel lives on the host's memory."""

SOME_FILLS = 0.1
"""[%] of peak: fewer fills from system memory are parameters and flags."""


def hot_address(f: Facts) -> Call | None:
    """Many atomics at one address: one slice of L2 is full while the mean reads a few percent."""
    if f.shares.top >= IDLE or f.below("kernel_duration", STEADY):
        return None
    mean, hottest = f.number("l2_throughput_pct"), f.number("l2_busiest_slice_pct")
    atomics = f.number("l2_atomics_per_cycle")
    uneven = mean is not None and hottest is not None and hottest >= HOT_SLICE and hottest >= UNEVEN * mean
    contended = atomics is not None and ONE_ADDRESS[0] <= atomics <= ONE_ADDRESS[1]
    if not uneven and not contended:
        return None
    share = f.shares.units.get("l2")
    return Call(
        "memory-bound", "l2", "memory-bound/l2/hot-address", share, cap="high" if uneven else "medium"
    )


def system_memory(f: Facts) -> Call | None:
    """What L2 lacks comes from the host although no unit looks busy."""
    if f.shares.top >= IDLE or f.below("kernel_duration", STEADY):
        return None
    host, device = f.number("l2_fill_sysmem_pct"), f.number("l2_fill_device_pct")
    fills = host is not None and device is not None and host >= max(SOME_FILLS, FROM_HOST * device)
    host_misses, misses = f.number("l2_miss_sysmem_sectors"), f.number("l2_miss_device_sectors")
    missed = (
        not fills and f.at_least("l2_fill_sysmem_pct", SOME_FILLS)
        and host_misses is not None and misses is not None and host_misses > FROM_HOST * misses
    )  # fmt: skip
    if not fills and not missed:
        return None
    return Call("memory-bound", "sysmem", "memory-bound/sysmem", f.shares.units.get("sysmem"), cap="medium")
