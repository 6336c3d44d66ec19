"""No unit is busy and the GPU is full: what do the warps wait for?"""

from __future__ import annotations

from ncukit.diagnose.call import Call, latency
from ncukit.diagnose.facts import Facts
from ncukit.diagnose.steps.between import SYNC, SYNC_STATES
from ncukit.diagnose.steps.grid import FEW_WARPS
from ncukit.diagnose.steps.idle import SHORT_LIVED, turnover
from ncukit.diagnose.waits import states
from ncukit.diagnose.words import listed

ALLOWS_MORE = 1.25
"""Warps the configuration allows over those resident: above this it is not the configuration."""

BARRIERS = 0.5
"""[%] of instructions: fewer block barriers cannot explain barrier stalls beside warp-group MMA."""

DEPENDENCY = 40.0
"""[%] of warp latency waiting for results: the chain of instructions limits."""

DEPENDENCIES = (
    "global_memory_dependency",
    "shared_memory_dependency",
    "fixed_latency_dependency",
    "constant_cache_miss",
)

RESOURCES = {
    "registers": "registers",
    "shared_mem": "shared memory",
    "warps": "the block size",
    "blocks": "the number of blocks an SM holds",
    "barriers": "barriers",
}


def synchronisation(f: Facts) -> Call | None:
    """Barriers and fences hold most of the latency; waiting for warp-group MMA only looks like it."""
    if f.waits is None or not f.waits.matter or f.waits.of(*SYNC_STATES) <= SYNC:
        return None
    if f.at_least("warpgroup_mma_inst", 1) and not f.at_least("inst_mix_barrier_pct", BARRIERS):
        return None
    return latency("synchronisation")


def block_turnover(f: Facts) -> Call | None:
    """Blocks end so soon that the SM is refilled too slowly."""
    if f.warp_specialised or not f.at_least("allowed_warps_per_scheduler", FEW_WARPS):
        return None
    return (
        latency("occupancy", "turnover") if turnover(f) and f.below("block_lifetime", SHORT_LIVED) else None
    )


def few_warps(f: Facts) -> Call | None:
    """Too few warps per scheduler to hide latency: by configuration, grid, or warps that leave early."""
    warps = f.number("warps_per_scheduler")
    if warps is None or warps > FEW_WARPS or f.warp_specialised:
        return None
    allowed, launched = f.number("allowed_warps_per_scheduler"), f.number("launched_warps_per_scheduler")
    if launched is not None and allowed is not None and launched < allowed and launched <= FEW_WARPS:
        return latency("small-grid", "warps")
    if allowed is None or allowed <= max(FEW_WARPS, ALLOWS_MORE * warps):
        return latency("occupancy", resource=limiting_resources(f))
    if turnover(f):
        return latency("imbalance", "warps", cap="medium")
    return latency("occupancy", resource=limiting_resources(f), cap="medium")


def limiting_resources(f: Facts) -> str:
    """Return in words what limits the resident blocks, ties included."""
    limiter = f.kernel.metrics.get("occupancy_limiter")
    names = limiter.value.split("+") if limiter is not None and isinstance(limiter.value, str) else []
    return listed([RESOURCES.get(name, name) for name in names]) if names else "the launch configuration"


def dependency(f: Facts) -> Call | None:
    """Warps wait for results they need: loads, shared memory, arithmetic."""
    if f.waits is None or not f.waits.matter or f.waits.of(*DEPENDENCIES) < DEPENDENCY:
        return None
    shares = {state: f.waits.of(state) for state in DEPENDENCIES}
    top = max(shares, key=lambda s: shares[s])
    variant = {"global_memory_dependency": "", "fixed_latency_dependency": "fixed"}.get(top, "")
    return latency("dependency", variant, state=states()[top][1])


def unknown(f: Facts) -> Call:
    """Latency-bound without a cause: stalls were not collected, or none stands out."""
    return latency(None, "" if f.waits is None else "mixed", cap="low" if f.waits is None else "medium")
