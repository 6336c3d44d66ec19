"""Were SMs without work for part of the time?"""

from __future__ import annotations

from ncukit.diagnose.call import Call, latency
from ncukit.diagnose.facts import SHORT, Facts
from ncukit.diagnose.steps.grid import QUIET, device_full

BUSY_SMS = 85.0
"""[%] Share of the time an SM has work below which the idle rest is worth more than any unit."""

NEARLY_FULL = 75.0
"""[%] An SM unit this full while it works, and above `QUIET` overall, is judged first."""

FEW_WAVES = 3.0
"""Waves up to which a partial last wave is a visible part of the time."""

WHOLE_WAVES = 95.0
"""[%] Wave efficiency from which the last wave is whole: idle SMs then have another cause."""

TURNOVER = 0.7
"""Achieved over theoretical occupancy below which blocks end faster than they are replaced."""


def empty_sms(f: Facts) -> Call | None:
    """Name why SMs were idle: last wave, unequal blocks, or blocks that leave the SM empty between them."""
    if not f.below("sm_active_pct", BUSY_SMS) or device_full(f):
        return None
    inner = (s for s in f.shares.units.values() if s.unit.scope == "sm" and s.unit.cls)
    if any(s.percent >= NEARLY_FULL and s.elapsed >= QUIET for s in inner):
        return None
    waves, short = f.number("waves_per_sm"), f.below("kernel_duration", SHORT)
    if waves is None:
        return latency("imbalance", "sms", cap="medium")
    if waves < 1:
        return latency("small-grid", "short") if short else latency("imbalance", "sms")
    if waves <= FEW_WAVES:
        whole = f.at_least("wave_efficiency_pct", WHOLE_WAVES)
        return latency("imbalance", "sms") if whole else latency("tail")
    if f.below("resident_block_limit", 2):
        return latency("occupancy", "one-block")
    if not short:
        return latency("imbalance", "sms")
    return latency("occupancy", "turnover") if turnover(f) else latency(None, "ramp")


def turnover(f: Facts) -> bool:
    """Return whether far fewer warps were resident than the launch allows."""
    achieved, allowed = f.number("achieved_occupancy_pct"), f.number("theoretical_occupancy_pct")
    return achieved is not None and allowed is not None and achieved < TURNOVER * allowed
