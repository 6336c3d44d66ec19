"""No unit is busy and the GPU is full: what do the warps wait for?"""

from __future__ import annotations

from ncukit.diagnose.call import Call, latency
from ncukit.diagnose.facts import Facts
from ncukit.diagnose.steps.between import SYNC, SYNC_STATES
from ncukit.diagnose.steps.grid import FEW_WARPS, QUIET
from ncukit.diagnose.steps.idle import SHORT_LIVED, turnover
from ncukit.diagnose.waits import Waits, states
from ncukit.diagnose.words import listed

ALLOWS_MORE = 1.25
"""Warps the configuration allows over those resident: above this it is not the configuration."""

BARRIERS = 0.5
"""[%] of instructions: fewer block barriers cannot explain barrier stalls beside warp-group MMA."""

DEPENDENCY = 40.0
"""[%] of warp latency waiting for results: the chain of instructions limits."""

EMPTY_SLOTS = 40.0
"""[%] of the issue slots from which waiting is worth a look although a unit is busy."""

SCATTERED = 16.0
"""[sector/request] Half of the lanes or more go elsewhere: each access takes many passes."""

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


def nothing_full(f: Facts) -> bool:
    """Return whether waiting can be the limit: every unit has room, or schedulers often issue nothing."""
    issue = f.shares.get("issue")
    return f.shares.top < QUIET or (issue is not None and issue <= 100 - EMPTY_SLOTS)


def synchronisation(f: Facts) -> Call | None:
    """Barriers and fences hold most of the latency; waiting for warp-group MMA only looks like it."""
    if f.waits is None or not f.waits.matter or f.waits.of(*SYNC_STATES) <= SYNC or not nothing_full(f):
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
    if warps is None or warps > FEW_WARPS or f.warp_specialised or not nothing_full(f):
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
    if f.waits is None or not f.waits.matter or not nothing_full(f):
        return None
    if f.waits.of(*DEPENDENCIES) < DEPENDENCY:
        return _one_state(f, f.waits)
    shares = {state: f.waits.of(state) for state in DEPENDENCIES}
    top = max(shares, key=lambda s: shares[s])
    variant = {"global_memory_dependency": "", "fixed_latency_dependency": "fixed"}.get(top, "")
    return latency("dependency", variant, state=states()[top][1])


def _one_state(f: Facts, found: Waits) -> Call | None:
    """Name the state that holds most of the latency, a queue as well; barriers were judged before."""
    state, share = found.top()
    if share < DEPENDENCY or state in (*SYNC_STATES, "misc"):
        return None
    if state == "global_queue_full":
        for kind in ("load", "store"):
            if f.at_least(f"global_{kind}_sectors_per_request", SCATTERED):
                return Call(
                    "memory-bound",
                    "l1",
                    f"memory-bound/l1/queue-{kind}s",
                    f.shares.units.get("l1"),
                    cap="medium",
                )
    return latency("dependency", "state", state=states()[state][1])


def unknown(f: Facts) -> Call:
    """Latency-bound without a cause: stalls were not collected, or none stands out."""
    if not nothing_full(f):
        return latency(None, "busy", cap="low")
    return latency(None, "" if f.waits is None else "mixed", cap="low" if f.waits is None else "medium")
