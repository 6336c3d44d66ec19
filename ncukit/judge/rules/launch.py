"""Rules on the launch: how many blocks there are, how many fit, what limits them."""

from __future__ import annotations

import math

from ncukit.judge.elimination import limiting_resources
from ncukit.judge.grid import COVERED, FEW_WAVES, HALF_A_WAVE, LONG_LIVED, ONE_WARP, QUIET, SHORT_LIVED
from ncukit.judge.occupancy import occupancy
from ncukit.judge.occupancy import waves as waves_of
from ncukit.judge.rule import Found, Gain, View, rule
from ncukit.media import counted, listed
from ncukit.model.diagnosis import Severity
from ncukit.model.shares import Occupancy
from ncukit.quantity import brief

# ---- Occupancy: what limits the resident blocks, what one more would need, how much is reached

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


# ---- Launch statistics: how many blocks, how many fit, how evenly they spread

IDLE = 10.0
"""[%] of the time without work from which a partial wave matters."""

PARTIAL_WAVE = 90.0
"""[%] Wave efficiency below which the last wave is visibly partial."""

ALL_WHOLE = 99.0
"""[%] Wave efficiency from which there is no partial wave to speak of."""

VISIBLE_WAVES = 10.0
"""Waves from which a partial last one costs less than a tenth."""

UNEVEN_SMS = 70.0
"""[%] Least busy SM over the busiest: below, the blocks are unequal or badly spread."""

MORE_WAVES = 1.2
"""Waves of clusters over waves of blocks from which clusters visibly keep blocks waiting."""

WHOLE_WAVE = 0.95
"""Waves from which the grid fills the GPU."""

FEW_INSTRUCTIONS = 40.0
"""[inst] A copy or fill of one element needs 15 to 30: half of it is the same however much a thread does."""

SMALL_BLOCK = 64.0
"""[thread] Smaller blocks hit the block limit of the SM before its warp limit."""


@rule("small-grid", family="launch", needs=("blocks_per_sm", "grid_size", "usable_sm_count"))
def small_grid(k: View) -> Found | None:
    """Fewer blocks than SMs: some never start."""
    if k["blocks_per_sm"] >= COVERED:
        return None
    empty, waves = k["usable_sm_count"] - k["grid_size"], k.get("waves_per_sm")
    blocks = "1 block" if k["grid_size"] == 1 else f"{k['grid_size']:.0f} blocks"
    return Found(
        f"The grid has {blocks} for {k['usable_sm_count']:.0f} SMs: {empty:.0f} never start",
        "high",
        advice="Split the work over more blocks, batch several problems into one launch, or run launches "
        "side by side.",
        gain=Gain(
            100 * (1 - k["blocks_per_sm"]),
            "global",
            "the share of SMs without a block, if the work divides evenly; what more blocks on the other "
            "SMs would hide is not in it",
        ),
        detail="" if waves is None else f"That is {brief(waves)} of a wave of blocks that fit at once.",
    )


@rule("part-wave", family="launch", needs=("waves_per_sm", "grid_size", "blocks_per_sm"))
def part_wave(k: View) -> Found | None:
    """Every SM has a block, and could hold more of them than there are."""
    waves = k["waves_per_sm"]
    if waves >= WHOLE_WAVE or k["blocks_per_sm"] < COVERED:
        return None
    warps = k.get("launched_warps_per_scheduler")
    seen = "" if warps is None else f": {brief(warps)} warps a scheduler at most"
    design = "Few warps are the design of a warp-specialised kernel." if k.facts.warp_specialised else ""
    why = "A unit is busy already: more warps would only queue for it." if spare(k) else design
    return Found(
        f"The grid of {k['grid_size']:.0f} blocks fills {brief(waves)} of a wave{seen}",
        "info" if why else "medium" if waves < HALF_A_WAVE else "low",
        advice="More or smaller blocks would give every SM more warps to switch between.",
        detail=why,
    )


@rule("little-work", family="launch", needs=("inst_executed", "warps_per_block", "grid_size", "waves_per_sm"))
def little_work(k: View) -> Found | None:
    """A warp executes so few instructions that starting and ending it is most of its life."""
    warps = k["warps_per_block"] * k["grid_size"]
    each = k["inst_executed"] / warps if warps else math.inf
    if not 0 < each < FEW_INSTRUCTIONS or k["waves_per_sm"] <= FEW_WAVES:
        return None
    return Found(
        f"A warp executes {brief(each)} instructions in all: most are index arithmetic, start and end",
        "info" if any(s.full for s in k.facts.shares.units.values()) else "low",
        advice="Let each thread process several elements in a grid-stride loop, with fewer blocks.",
    )


@rule("tail", family="launch", needs=("waves_per_sm", "wave_efficiency_pct"))
def tail(k: View) -> Found | None:
    """A partial last wave leaves SMs idle; with few waves even a whole one cannot even out unequal blocks."""
    waves, whole = k["waves_per_sm"], k["wave_efficiency_pct"]
    if not 1 < waves < VISIBLE_WAVES or (whole >= PARTIAL_WAVE and (waves > FEW_WAVES or whole > ALL_WHOLE)):
        return None
    if whole >= PARTIAL_WAVE:
        return Found(
            f"The grid makes {brief(waves)} waves, the last one nearly whole: few blocks follow each other",
            "info",
            advice="Smaller blocks, or more of them, would even out blocks that take unequal time.",
        )
    active = k.get("sm_active_pct")
    found = waves_of(k.facts)
    if active is None or found is None:
        return Found(
            f"The grid makes {brief(waves)} waves: the last one is partial",
            "low",
            advice="Choose a grid of whole waves, or a persistent kernel that takes its tiles from a queue.",
        )
    idle, leftover = 100 - active, counted(found.leftover, "block")
    if not found.explain(active) or idle < IDLE:
        return Found(
            f"The grid makes {brief(waves)} waves: the last one is partial, with {leftover} for "
            f"{found.sms} SMs",
            "info",
            advice="A grid of whole waves would gain little here.",
            detail=f"SMs are idle {brief(idle, '%')} of the time; equal blocks would leave them idle "
            f"{brief(100 - found.in_waves, '%')} of it.",
        )
    return Found(
        f"The last of {brief(waves)} waves has {leftover} for {found.sms} SMs, and SMs are idle for "
        f"{brief(idle, '%')} of the time",
        "medium" if waves <= FEW_WAVES else "low",
        advice="Choose a grid of whole waves, or a persistent kernel that takes its tiles from a queue.",
        gain=Gain(idle, "global", "the idle time, which the blocks of the last wave explain"),
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
            gain=Gain(
                100 * empty / (32 * warps), "local", "of the lanes, which stay empty in every instruction"
            ),
        )
    if threads < SMALL_BLOCK and k.get("waves_per_sm") is not None:
        return Found(
            f"Blocks have only {threads:.0f} threads: the SM reaches its block limit before its warp limit",
            "info" if spare(k) else "low",
            advice="Use 128 to 256 threads a block unless a larger one does not fit the problem.",
        )
    return None


@rule("short-blocks", family="launch", needs=("block_lifetime", "waves_per_sm"))
def short_blocks(k: View) -> Found | None:
    """Blocks live for so few cycles that starting them is a visible part of the time."""
    life = k["block_lifetime"]
    if life >= SHORT_LIVED / 2 or k["waves_per_sm"] <= FEW_WAVES:
        return None
    return Found(
        f"A block lives {brief(life)} cycles on average: its start and end are a visible part of that",
        "info" if spare(k) else "medium",
        advice="Let each thread process several elements in a grid-stride loop, with fewer blocks.",
    )


@rule("uneven-sms", family="launch", needs=("sm_active_min_pct",))
def uneven_sms(k: View) -> Found | None:
    """The least busy SM works far less than the busiest [%]."""
    least = k["sm_active_min_pct"]
    if least >= UNEVEN_SMS or (k.get("blocks_per_sm") or 0.0) < COVERED:
        return None
    return Found(
        f"The least busy SM works {brief(least, '%')} as long as the busiest",
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
        f"SMs are active {brief(k['sm_active_pct'], '%')} of the time, one of {k['usable_sm_count']:.0f}, "
        f"with {brief(4 * k['warps_per_scheduler'])} resident warps: one warp does all the work",
        "high",
        advice="Distribute the loop over threads and blocks; a guard like `if (i == 0)` makes the kernel "
        "serial.",
    )


@rule("clusters", family="launch", needs=("cluster_size", "cluster_max_active", "waves_per_sm", "grid_size"))
def clusters(k: View) -> Found | None:
    """Clusters of blocks must fit one GPC whole: fewer blocks run at once than SMs could hold."""
    size, active = k["cluster_size"], k["cluster_max_active"]
    if size <= 1 or not active:
        return None
    waves = k["grid_size"] / size / active
    if waves < k["waves_per_sm"] * MORE_WAVES:
        return None
    return Found(
        f"In clusters of {size:.0f} blocks the grid makes {brief(waves)} waves, by blocks alone "
        f"{brief(k['waves_per_sm'])}: {active:.0f} clusters fit the GPU at once",
        "low" if waves > 1 else "info",
        advice="Use smaller clusters, or a size that divides the SMs of a GPC.",
    )
