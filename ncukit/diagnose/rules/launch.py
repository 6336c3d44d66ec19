"""Launch statistics: how many blocks, how many fit, how evenly they spread."""

from __future__ import annotations

import math

from ncukit.diagnose.rule import Found, Gain, View, rule
from ncukit.diagnose.rules.occupancy import spare
from ncukit.diagnose.steps.grid import COVERED, HALF_A_WAVE, ONE_WARP
from ncukit.diagnose.steps.idle import FEW_WAVES, SHORT_LIVED
from ncukit.diagnose.waves import waves as waves_of
from ncukit.diagnose.words import counted
from ncukit.quantity import brief

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
