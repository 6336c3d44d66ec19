"""Is there enough work for the GPU? Decided by the launch configuration, with few counters or none."""

from __future__ import annotations

from ncukit.diagnose.call import Call, latency
from ncukit.diagnose.facts import TINY, Facts

COVERED = 0.9
"""Blocks per SM below which SMs stay empty; 64 blocks on 68 SMs are one block an SM by design."""

HALF_A_WAVE = 0.5
"""Waves below which few warps per scheduler come from the grid, not from the kernel."""

FEW_WARPS = 4.0
"""[warp] Warps per scheduler that cannot hide the latency of loads."""

QUIET = 60.0
"""[%] No unit is near its limit below this share of peak."""

ONE_WARP = 1.5
"""[warp] Resident warps on an SM up to which one warp works alone."""


def device_full(f: Facts) -> bool:
    """Return whether DRAM or L2 is full: then more blocks would not help, however few there are."""
    return any(s.full for s in f.shares.units.values() if s.unit.id in ("dram", "l2"))


def serial(f: Facts) -> Call | None:
    """One SM works with one warp although the grid covers the GPU: the other blocks leave at once."""
    active, sms, warps = (f.number(id) for id in ("sm_active_pct", "usable_sm_count", "warps_per_scheduler"))
    if active is None or not sms or warps is None or not f.at_least("blocks_per_sm", COVERED):
        return None
    alone = active <= 1.5 * 100 / sms and 4 * warps <= ONE_WARP
    return latency("imbalance", "serial") if alone and sms > 1 else None


def small(f: Facts) -> Call | None:
    """Fewer blocks than SMs, or so few warps that nothing can be hidden."""
    if device_full(f):
        return None
    if f.below("blocks_per_sm", COVERED):
        return latency("small-grid")
    if f.number("usable_sm_count") is None and f.below("grid_size", 2):
        return latency("small-grid", "one")  # no GPU that ncu profiles has a single SM
    warps = f.number("warps_per_scheduler")
    if warps is None:
        warps = f.number("launched_warps_per_scheduler")
    quiet = f.shares.top < QUIET
    if f.below("waves_per_sm", HALF_A_WAVE) and quiet and (warps is None or warps <= FEW_WARPS):
        return latency("small-grid", "warps")
    return None


def over_at_once(f: Facts) -> Call | None:
    """A launch of a few microseconds: launch latency is all that was measured."""
    busiest = max((s.elapsed for s in f.shares.units.values() if s.unit.cls), default=None)
    if busiest is not None and busiest < QUIET and f.below("kernel_duration", TINY):
        return latency("small-grid", "short")
    return None
