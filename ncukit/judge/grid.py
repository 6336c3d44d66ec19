"""Steps before any unit: was it measured, is the grid large, do SMs idle, does an average hide the limit?"""

from __future__ import annotations

from ncukit.judge.facts import SHORT, STEADY, TINY, Call, Facts, latency
from ncukit.judge.occupancy import waves
from ncukit.model.shares import Share

# ---- Is there a measurement, and does it cover both sides of the machine?


def failed(f: Facts) -> Call | None:
    """A failed launch is not judged."""
    return Call("failed", None, "failed", words={"why": f.kernel.failed}) if f.kernel.failed else None


def undetermined(f: Facts) -> Call | None:
    """Nothing was full so far: without both sides that proves nothing."""
    if f.shares.sm_side and f.shares.memory_side:
        return None
    sides = [
        side
        for side, known in (("the SMs", f.shares.sm_side), ("the memory system", f.shares.memory_side))
        if not known
    ]
    return Call("undetermined", None, "undetermined", words={"sides": " and ".join(sides)})


# ---- Is there enough work for the GPU? Decided by the launch configuration, with few counters or none

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


# ---- Were SMs without work for part of the time?

BUSY_SMS = 85.0
"""[%] Share of the time an SM has work below which the idle rest is worth more than any unit."""

NEARLY_FULL = 75.0
"""[%] A unit this full while SMs work, and above `QUIET` overall, is judged first."""

FEW_WAVES = 3.0
"""Waves up to which a partial last wave is a visible part of the time."""

MANY_WAVES = 10.0
"""Whole waves from which short blocks leave gaps that add up."""

LONG_LIVED = 20_000.0
"""[cycle] Blocks that live longer than this leave no visible gap when one follows another."""

SHORT_LIVED = 2000.0
"""[cycle] Blocks that live shorter than this spend a visible part of it starting and ending."""

TURNOVER = 0.7
"""Achieved over theoretical occupancy below which blocks end faster than they are replaced."""

RAMP = 5e-6
"""[s] Idle time in all that starting and ending a launch explains."""

RAMP_AT_MOST = 6e-6
"""[s] Idle time in all that starting and ending a launch explains at most."""

BEYOND = 5.0
"""[points] Idle time beyond waves and ramp from which, with no other cause left, blocks must be unequal."""

LEAST_BUSY = 70.0
"""[%] Least busy SM over the busiest: below, SMs have unequal work."""

UNEQUAL = 10.0
"""[%] Mean SM below the busiest: from here on SMs have unequal work."""


def empty_sms(f: Facts) -> Call | None:
    """Name why SMs were idle, where it was measured or follows; a start and an end alone explain little."""
    active = f.number("sm_active_pct")
    if active is None or active >= BUSY_SMS or device_full(f):
        return None
    if any(_busy_while_awake(s, f) for s in f.shares.units.values() if s.unit.cls):
        return None
    number, duration, short = f.number("waves_per_sm"), f.number("kernel_duration"), is_short(f)
    if number is not None and number < 1 and short:
        return latency("small-grid", "short")
    found = waves(f)
    if found is not None and found.explain(active):
        return latency("tail")
    if gaps := _gaps(f):
        return gaps
    if (hidden := hot_address(f) or system_memory(f)) is not None:  # before unequal work
        return hidden
    if unequal(f):
        return latency("imbalance", "sms")
    idle = 100 - active
    if duration is not None and idle / 100 * duration < RAMP:
        return latency(None, "ramp") if short else None
    counted = f.number("sm_active_min_pct") is not None or f.number("sm_imbalance_pct") is not None
    if not counted and duration and found is not None and _beyond(idle, found.least, duration):
        return latency("imbalance", "left", cap="medium")
    return latency(None, "ramp") if short else latency(None, "idle", cap="medium")


def is_short(f: Facts) -> bool:
    """Return whether start and end are a visible part of the launch."""
    return f.below("kernel_duration", SHORT)


def unequal(f: Facts) -> bool:
    """Return whether counters of single SMs say that they have unequal work."""
    return f.below("sm_active_min_pct", LEAST_BUSY) or f.at_least("sm_imbalance_pct", UNEQUAL)


def _gaps(f: Facts) -> Call | None:
    """Name SMs that are empty between blocks, which the number and the life of the blocks tell."""
    if f.at_least("waves_per_sm", FEW_WAVES) and f.below("resident_block_limit", 2):
        return None if f.at_least("block_lifetime", LONG_LIVED) else latency("occupancy", "one-block")
    if f.at_least("waves_per_sm", MANY_WAVES) and f.below("block_lifetime", SHORT_LIVED):
        return latency("occupancy", "turnover")
    return None


def _beyond(idle: float, least: float, duration: float) -> bool:
    """Return whether more is ``idle`` [%] than equal blocks and the start and end of a launch explain."""
    return idle - (100 - least) - 100 * RAMP_AT_MOST / duration >= BEYOND


def _busy_while_awake(share: Share, f: Facts) -> bool:
    """Return whether the unit was busy for most of the time, and nearly full while SMs had work."""
    active = (f.number("sm_active_pct") or 100.0) / 100
    awake = share.percent if share.unit.scope == "sm" else share.percent / active
    return awake >= NEARLY_FULL and share.elapsed >= QUIET


def turnover(f: Facts) -> bool:
    """Return whether far fewer warps were resident than the launch allows."""
    achieved, allowed = f.number("achieved_occupancy_pct"), f.number("theoretical_occupancy_pct")
    return achieved is not None and allowed is not None and achieved < TURNOVER * allowed


# ---- Limits that averages hide: one address, or memory on the other side of a bus

HOT_SLICE = 25.0
"""[%] Use of the busiest L2 slice from which it limits."""

UNEVEN = 8.0
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
    """Many atomics at one address: one slice of L2 works while the mean reads a few percent."""
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
