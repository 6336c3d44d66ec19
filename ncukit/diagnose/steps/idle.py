"""Were SMs without work for part of the time?"""

from __future__ import annotations

from ncukit.diagnose.call import Call, latency
from ncukit.diagnose.facts import SHORT, Facts
from ncukit.diagnose.steps.grid import QUIET, device_full
from ncukit.diagnose.waves import waves
from ncukit.model.shares import Share

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
