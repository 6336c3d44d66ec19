"""Were SMs without work for part of the time?"""

from __future__ import annotations

from ncukit.diagnose.call import Call, latency
from ncukit.diagnose.facts import SHORT, Facts
from ncukit.diagnose.shares import Share
from ncukit.diagnose.steps.grid import QUIET, device_full

BUSY_SMS = 85.0
"""[%] Share of the time an SM has work below which the idle rest is worth more than any unit."""

NEARLY_FULL = 75.0
"""[%] A unit this full while SMs work, and above `QUIET` overall, is judged first."""

FEW_WAVES = 3.0
"""Waves up to which a partial last wave is a visible part of the time."""

WHOLE_WAVES = 95.0
"""[%] Wave efficiency from which the last wave is whole: idle SMs then have another cause."""

LONG_LIVED = 20_000.0
"""[cycle] Blocks that live longer than this leave no visible gap when one follows another."""

TURNOVER = 0.7
"""Achieved over theoretical occupancy below which blocks end faster than they are replaced."""


def empty_sms(f: Facts) -> Call | None:
    """Name why SMs were idle: last wave, unequal blocks, or blocks that leave the SM empty between them."""
    if not f.below("sm_active_pct", BUSY_SMS) or device_full(f):
        return None
    if any(_busy_while_awake(s, f) for s in f.shares.units.values() if s.unit.cls):
        return None
    waves, short = f.number("waves_per_sm"), f.below("kernel_duration", SHORT)
    if waves is None:
        return latency("imbalance", "sms", cap="medium")
    if waves < 1:
        return latency("small-grid", "short") if short else latency("imbalance", "sms")
    if waves <= FEW_WAVES:
        whole = f.at_least("wave_efficiency_pct", WHOLE_WAVES)
        return latency("imbalance", "sms") if whole else latency("tail")
    if f.below("resident_block_limit", 2) and not f.at_least("block_lifetime", LONG_LIVED):
        return latency("occupancy", "one-block")
    if not short:
        return latency("imbalance", "sms")
    return latency("occupancy", "turnover") if turnover(f) else latency(None, "ramp")


def _busy_while_awake(share: Share, f: Facts) -> bool:
    """Return whether the unit was busy for most of the time, and nearly full while SMs had work."""
    active = (f.number("sm_active_pct") or 100.0) / 100
    awake = share.percent if share.unit.scope == "sm" else share.percent / active
    return awake >= NEARLY_FULL and share.elapsed >= QUIET


def turnover(f: Facts) -> bool:
    """Return whether far fewer warps were resident than the launch allows."""
    achieved, allowed = f.number("achieved_occupancy_pct"), f.number("theoretical_occupancy_pct")
    return achieved is not None and allowed is not None and achieved < TURNOVER * allowed
