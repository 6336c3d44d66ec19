"""Occupancy: what limits the resident blocks, what one more would need, how much is reached."""

from __future__ import annotations

from ncukit.diagnose.occupancy import occupancy
from ncukit.diagnose.rule import Found, Gain, View, rule
from ncukit.diagnose.steps.grid import QUIET
from ncukit.diagnose.steps.idle import FEW_WAVES, LONG_LIVED, SHORT_LIVED
from ncukit.diagnose.steps.latency import limiting_resources
from ncukit.diagnose.words import listed
from ncukit.model.finding import Severity
from ncukit.model.occupancy import Occupancy
from ncukit.quantity import brief

GAP = 10.0
"""[points] Theoretical minus achieved occupancy worth naming (ncu's own rule)."""

REACHED = 0.95
"""Warps launched over warps that fit below which the grid, not its blocks, keeps the SMs empty."""

FILLED = 90.0
"""[%] Achieved occupancy from which more warps cannot be had."""

VERY_FEW = 2.0
"""[warp] Warps per scheduler that expose nearly every latency."""

NEEDS = {
    "registers": "{:.0f} registers a thread (now {:.0f})",
    "shared_mem": "{:,.0f} bytes of shared memory (now {:,.0f})",
    "warps": "{:.0f} threads a block (now {:.0f})",
}
NOW = {"registers": "registers_per_thread", "warps": "block_size"}


def spare(k: View) -> bool:
    """Return whether a unit or the issue slots are busy: then occupancy is not the limit."""
    return k.facts.shares.top >= QUIET


@rule("occupancy-limit", family="launch", needs=("theoretical_occupancy_pct", "occupancy_limiter"))
def occupancy_limit(k: View) -> Found | None:
    """What limits the blocks an SM can hold [%], ties included, and what one more block would need."""
    allowed, limiter = k["theoretical_occupancy_pct"], k.text("occupancy_limiter")
    if allowed >= 100 or not limiter:
        return None
    tie = "+" in limiter
    resources = limiting_resources(k.facts)
    k.get("registers_per_thread")
    k.get("shared_mem_allocated")
    harmless = spare(k)
    severity: Severity = "info" if harmless else "medium" if allowed < 50 else "low"
    found = None if harmless else occupancy(k.facts.kernel, curves=False)
    blocks, achieved = k.get("resident_block_limit"), k.get("achieved_occupancy_pct")
    fit = f" ({_blocks(blocks)} an SM)" if blocks and blocks >= 1 else ""
    return Found(
        f"Occupancy is limited to {brief(allowed, '%')}{fit} by {resources}",
        severity,
        detail=(f"{brief(achieved, '%')} are achieved. " if achieved is not None else "")
        + (
            f"{resources[0].upper()}{resources[1:]} bind together: relieving one alone changes nothing. "
            if tie
            else ""
        )
        + ("A unit is busy already: more warps would only queue for it." if harmless else ""),
        advice=""
        if harmless
        else f"Reduce {resources} until one more block fits, if warps are what is missing{_next(k, found)}.",
    )


def _blocks(count: float) -> str:
    return "1 block" if round(count) == 1 else f"{count:.0f} blocks"


def _next(k: View, found: Occupancy | None) -> str:
    """Return what one more block would need of every resource that binds."""
    if found is None:
        return ""
    now = {**{r: k.facts.number(id) for r, id in NOW.items()}, "shared_mem": _asked(k)}
    needs = [
        NEEDS[limit.resource].format(limit.next_at, now[limit.resource])
        for limit in found.limits
        if limit.binds and limit.next_at is not None and now.get(limit.resource) is not None
    ]
    return f": {listed(needs)}" if needs else ""


def _asked(k: View) -> float | None:
    parts = [k.facts.number("shared_mem_static"), k.facts.number("shared_mem_dynamic")]
    return None if None in parts else sum(n for n in parts if n is not None)


@rule(
    "carve-out",
    family="launch",
    needs=("shared_mem_config", "max_shared_mem_per_sm", "theoretical_occupancy_pct", "occupancy_limiter"),
)
def carve_out(k: View) -> Found | None:
    """The shared-memory carve-out of the run, not the SM, limits the resident blocks."""
    used, largest = k["shared_mem_config"], k["max_shared_mem_per_sm"]
    found = occupancy(k.facts.kernel, curves=False) if used < largest else None
    if found is None or found.blocks_at_largest is None or found.blocks_at_largest <= found.blocks:
        return None
    if not any(limit.resource == "shared_mem" and limit.binds for limit in found.limits):
        return None
    return Found(
        f"The carve-out of {brief(used / 1024)} KiB shared memory limits an SM to {found.blocks} blocks; "
        f"with {brief(largest / 1024)} KiB {found.blocks_at_largest} would fit",
        "info" if spare(k) else "medium",
        advice="Ask for more with cudaFuncAttributePreferredSharedMemoryCarveout; L1 shrinks by as much.",
        gain=None,
    )


@rule("occupancy-gap", family="launch", needs=("theoretical_occupancy_pct", "achieved_occupancy_pct"))
def occupancy_gap(k: View) -> Found | None:
    """Achieved occupancy [%] stays well below what the launch allows."""
    gap = k["theoretical_occupancy_pct"] - k["achieved_occupancy_pct"]
    if gap < GAP:
        return None
    life = k.get("block_lifetime")
    launched, allowed = k.get("launched_warps_per_scheduler"), k.get("allowed_warps_per_scheduler")
    small = launched is not None and allowed is not None and launched <= allowed * REACHED
    short_lived = not small and life is not None and life < SHORT_LIVED
    return Found(
        f"Achieved occupancy is {brief(k['achieved_occupancy_pct'], '%')}, {brief(gap)} points below the "
        f"{brief(k['theoretical_occupancy_pct'], '%')} the launch allows",
        "info" if spare(k) else "medium",
        detail=f"Blocks live {brief(life)} cycles: the SM empties between them." if short_lived else "",
        advice="Give the SMs more blocks: the grid brings fewer warps than fit."
        if small
        else "Give each block more work."
        if short_lived
        else "Make blocks and warps equally long, or the blocks smaller.",
    )


@rule("well-filled", family="launch", needs=("achieved_occupancy_pct",))
def well_filled(k: View) -> Found | None:
    """The SMs hold nearly all the warps they can [%]."""
    achieved = k["achieved_occupancy_pct"]
    if achieved < FILLED:
        return None
    return Found(
        f"Achieved occupancy is {brief(achieved, '%')}: the SMs hold nearly all the warps they can",
        "info",
        advice="More occupancy is no lever here; what the warps do, or wait for, is.",
    )


@rule("few-warps", family="launch", needs=(("warps_per_scheduler", "launched_warps_per_scheduler"),))
def few_warps(k: View) -> Found | None:
    """One or two warps per scheduler expose nearly every latency."""
    measured = k.get("warps_per_scheduler")
    warps = k["launched_warps_per_scheduler"] if measured is None else measured
    if warps > VERY_FEW:
        return None
    design = " A warp-specialised kernel means to run with few." if k.facts.warp_specialised else ""
    return Found(
        f"Each scheduler holds {warps:.1f} warps on average while its SM works",
        "info" if spare(k) else "high",
        advice="More or larger blocks, or more independent work per warp, so that something can run during "
        "a wait.",
        detail=design.strip(),
    )


@rule("one-block-per-sm", family="launch", needs=("resident_block_limit", "waves_per_sm", "sm_active_pct"))
def one_block_per_sm(k: View) -> Found | None:
    """Only one block fits an SM: it is empty between two of them."""
    if k["resident_block_limit"] >= 2 or k["waves_per_sm"] <= FEW_WAVES or k["sm_active_pct"] >= 95:
        return None
    if (k.get("block_lifetime") or 0.0) > LONG_LIVED:
        return None
    return Found(
        f"One block of {brief(k.get('block_size'))} threads fits an SM at a time, and SMs are empty "
        f"{brief(100 - k['sm_active_pct'], '%')} of the time between them",
        "high",
        advice="Use smaller blocks, so that a second one is resident while the first ends.",
        gain=Gain(100 - k["sm_active_pct"], "global", "the time in which a mean SM has no block"),
    )
