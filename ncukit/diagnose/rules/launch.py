"""Launch statistics: how many blocks, how many fit, how evenly they spread."""

from __future__ import annotations

from ncukit.diagnose.rule import Found, View, rule
from ncukit.diagnose.steps.grid import COVERED, ONE_WARP, QUIET
from ncukit.diagnose.steps.idle import FEW_WAVES, LONG_LIVED
from ncukit.diagnose.steps.latency import SHORT_LIVED, limiting_resources
from ncukit.diagnose.words import short
from ncukit.model.finding import Severity

GAP = 10.0
"""[points] Theoretical minus achieved occupancy worth naming (ncu's own rule)."""

PARTIAL_WAVE = 90.0
"""[%] Wave efficiency below which the last wave is visibly partial."""

VISIBLE_WAVES = 10.0
"""Waves from which a partial last one costs less than a tenth."""

VERY_FEW = 2.0
"""[warp] Warps per scheduler that expose nearly every latency."""

UNEVEN_SMS = 70.0
"""[%] Least busy SM over the busiest: below, the blocks are unequal or badly spread."""

SMALL_BLOCK = 64.0
"""[thread] Smaller blocks hit the block limit of the SM before its warp limit."""


def _spare(k: View) -> bool:
    """Return whether a unit or the issue slots are busy: then occupancy is not the limit."""
    return k.facts.shares.top >= QUIET


@rule("occupancy-limit", family="launch", needs=("theoretical_occupancy_pct", "occupancy_limiter"))
def occupancy_limit(k: View) -> Found | None:
    """What limits the blocks an SM can hold [%], ties included."""
    allowed, limiter = k["theoretical_occupancy_pct"], k.text("occupancy_limiter")
    if allowed >= 100 or not limiter:
        return None
    tie = "+" in limiter
    resources = limiting_resources(k.facts)
    k.get("registers_per_thread")
    k.get("shared_mem_allocated")
    harmless = _spare(k)
    severity: Severity = "info" if harmless else "medium" if allowed < 50 else "low"
    return Found(
        f"Occupancy is limited to {short(allowed, '%')} by {resources}",
        severity,
        detail=(
            f"{resources[0].upper()}{resources[1:]} bind together: relieving one alone changes nothing. "
            if tie
            else ""
        )
        + ("A unit is busy already: more warps would only queue for it." if harmless else ""),
        advice=""
        if harmless
        else f"Reduce {resources} until one more block fits, if warps are what is missing.",
    )


@rule("occupancy-gap", family="launch", needs=("theoretical_occupancy_pct", "achieved_occupancy_pct"))
def occupancy_gap(k: View) -> Found | None:
    """Achieved occupancy [%] stays well below what the launch allows."""
    gap = k["theoretical_occupancy_pct"] - k["achieved_occupancy_pct"]
    if gap < GAP:
        return None
    life = k.get("block_lifetime")
    short_lived = life is not None and life < SHORT_LIVED
    return Found(
        f"Achieved occupancy is {short(k['achieved_occupancy_pct'], '%')}, {short(gap)} points below the "
        f"{short(k['theoretical_occupancy_pct'], '%')} the launch allows",
        "info" if _spare(k) else "medium",
        detail=f"Blocks live {short(life)} cycles: the SM empties between them." if short_lived else "",
        advice="Give each block more work."
        if short_lived
        else "Make blocks and warps equally long, or the blocks smaller.",
    )


@rule("few-warps", family="launch", needs=(("warps_per_scheduler", "launched_warps_per_scheduler"),))
def few_warps(k: View) -> Found | None:
    """One or two warps per scheduler expose nearly every latency."""
    measured = k.get("warps_per_scheduler")
    warps = k["launched_warps_per_scheduler"] if measured is None else measured
    if warps > VERY_FEW:
        return None
    return Found(
        f"Each scheduler holds {warps:.1f} warps on average while its SM works",
        "info" if _spare(k) else "high",
        advice="More or larger blocks, or more independent work per warp, so that something can run during "
        "a wait.",
    )


@rule("small-grid", family="launch", needs=("blocks_per_sm", "grid_size", "usable_sm_count"))
def small_grid(k: View) -> Found | None:
    """Fewer blocks than SMs: some never start."""
    if k["blocks_per_sm"] >= COVERED:
        return None
    empty = k["usable_sm_count"] - k["grid_size"]
    return Found(
        f"The grid has {k['grid_size']:.0f} blocks for {k['usable_sm_count']:.0f} SMs: {empty:.0f} never "
        "start",
        "high",
        advice="Split the work over more blocks, batch several problems into one launch, or run launches "
        "side by side.",
        gain=(100 * (1 - k["blocks_per_sm"]), "global"),
    )


@rule("tail", family="launch", needs=("waves_per_sm", "wave_efficiency_pct"))
def tail(k: View) -> Found | None:
    """A partial last wave leaves SMs idle."""
    waves, whole = k["waves_per_sm"], k["wave_efficiency_pct"]
    if not 1 < waves < VISIBLE_WAVES or whole >= PARTIAL_WAVE:
        return None
    active = k.get("sm_active_pct")
    idle = None if active is None else 100 - active
    return Found(
        f"The grid makes {short(waves)} waves: the last one is partial"
        + ("" if idle is None else f", and SMs are idle for {short(idle, '%')} of the time"),
        "medium" if waves <= FEW_WAVES and (idle is None or idle >= GAP) else "low",
        advice="Choose a grid of whole waves, or a persistent kernel that takes its tiles from a queue.",
        gain=None if idle is None else (max(0.0, min(idle, 100 - whole)), "global"),
    )


@rule("block-shape", family="launch", needs=("block_size", "warps_per_block"))
def block_shape(k: View) -> Found | None:
    """The block is no multiple of 32 threads, or very small."""
    threads, warps = k["block_size"], k["warps_per_block"]
    empty = 32 * warps - threads
    if empty and warps:
        return Found(
            f"Blocks have {threads:.0f} threads: {empty:.0f} lanes of their {warps:.0f} warps never work",
            "high" if threads <= 16 else "medium",
            advice="Use a multiple of 32 threads a block.",
            gain=(100 * empty / (32 * warps), "local"),
        )
    if threads < SMALL_BLOCK and k.get("waves_per_sm") is not None:
        return Found(
            f"Blocks have only {threads:.0f} threads: the SM reaches its block limit before its warp limit",
            "info" if _spare(k) else "low",
            advice="Use 128 to 256 threads a block unless a larger one does not fit the problem.",
        )
    return None


@rule("one-block-per-sm", family="launch", needs=("resident_block_limit", "waves_per_sm", "sm_active_pct"))
def one_block_per_sm(k: View) -> Found | None:
    """Only one block fits an SM: it is empty between two of them."""
    if k["resident_block_limit"] >= 2 or k["waves_per_sm"] <= FEW_WAVES or k["sm_active_pct"] >= 95:
        return None
    if (k.get("block_lifetime") or 0.0) > LONG_LIVED:
        return None
    return Found(
        f"One block of {short(k.get('block_size'))} threads fits an SM at a time, and SMs are empty "
        f"{short(100 - k['sm_active_pct'], '%')} of the time between them",
        "high",
        advice="Use smaller blocks, so that a second one is resident while the first ends.",
        gain=(100 - k["sm_active_pct"], "global"),
    )


@rule("short-blocks", family="launch", needs=("block_lifetime", "waves_per_sm"))
def short_blocks(k: View) -> Found | None:
    """Blocks live for so few cycles that starting them is a visible part of the time."""
    life = k["block_lifetime"]
    if life >= SHORT_LIVED / 2 or k["waves_per_sm"] <= FEW_WAVES:
        return None
    return Found(
        f"A block lives {short(life)} cycles on average: its start and end are a visible part of that",
        "info" if _spare(k) else "medium",
        advice="Let each thread process several elements in a grid-stride loop, with fewer blocks.",
    )


@rule("uneven-sms", family="launch", needs=("sm_active_min_pct",))
def uneven_sms(k: View) -> Found | None:
    """The least busy SM works far less than the busiest [%]."""
    least = k["sm_active_min_pct"]
    if least >= UNEVEN_SMS or (k.get("blocks_per_sm") or 0.0) < COVERED:
        return None
    return Found(
        f"The least busy SM works {short(least, '%')} as long as the busiest",
        "medium",
        advice="Blocks take unequal time: order the long ones first, split them, or fetch work from a queue.",
    )


@rule(
    "one-warp-works",
    family="launch",
    needs=("sm_active_pct", "warps_per_scheduler", "usable_sm_count", "blocks_per_sm"),
)
def one_warp_works(k: View) -> Found | None:
    """A single warp does all the work while the other blocks leave at once."""
    one_sm = k["sm_active_pct"] * k["usable_sm_count"] <= 1.5 * 100
    if not one_sm or 4 * k["warps_per_scheduler"] > ONE_WARP or k["blocks_per_sm"] < COVERED:
        return None
    return Found(
        f"SMs are active {short(k['sm_active_pct'], '%')} of the time, one of {k['usable_sm_count']:.0f}, "
        f"with {short(4 * k['warps_per_scheduler'])} resident warps: one warp does all the work",
        "high",
        advice="Distribute the loop over threads and blocks; a guard like `if (i == 0)` makes the kernel "
        "serial.",
    )
