"""Scheduler and warp state: issue rate, eligible warps, what warps wait for, how full a warp is."""

from __future__ import annotations

from ncukit.catalog import load
from ncukit.diagnose.rule import Found, View, rule
from ncukit.diagnose.shares import COMPUTE_UNITS
from ncukit.diagnose.steps.full import ELIGIBLE
from ncukit.diagnose.steps.latency import BARRIERS
from ncukit.diagnose.waits import DISAGREE, states
from ncukit.diagnose.words import short
from ncukit.model.finding import Severity

LOW_ISSUE = 0.6
"""[warp/cycle] Issue rate below which a scheduler wastes a visible part of its slots (ncu's own rule)."""

DOMINANT = 30.0
"""[%] of warp latency from which one state is worth naming (ncu's own rule)."""

SECOND = 20.0
"""[%] of warp latency from which barriers, queues and supply are named even when another state leads."""

SUPPLY = 15.0
"""[%] of warp latency waiting for constants or instructions: a start-up that never ends."""

HALF_EMPTY = 24.0
"""[thread] Active threads per warp below which a quarter of the lanes is lost."""

PREDICATED = 6.0
"""[thread] Active threads per instruction that are predicated off."""

ANY_STALLS = (
    "stall_cycles_selected",
    "stall_samples_selected",
    "stall_cycles_global_memory_dependency",
    "stall_samples_global_memory_dependency",
)

NOTES = {
    "texture_queue_full": "On GPUs with few FP64 units this queue feeds them: look at the FP64 pipe first.",
}

PLAIN = {
    "drain": "finished warps wait for their last stores to leave",
    "dispatch": "the dispatcher held the instruction back",
    "misc": "no further reason was recorded",
    "constant_cache_miss": "waiting for a constant that was not cached",
}
"""States that the words of their category do not fit."""


@rule("low-issue", family="scheduler", needs=("warps_issued_per_scheduler",))
def low_issue(k: View) -> Found | None:
    """A scheduler issues far less than one instruction a cycle."""
    issued = k["warps_issued_per_scheduler"]
    if issued >= LOW_ISSUE:
        return None
    rate = f"{short(issued)} instructions a cycle" if issued else "nothing"
    eligible = k.get("warps_eligible_per_scheduler")
    warps = k.get("warps_active_per_scheduler")
    seen = (
        ""
        if eligible is None or warps is None
        else f": of {short(warps)} warps {short(eligible)} are eligible"
    )
    return Found(
        f"Each scheduler issues {rate}{seen}",
        "low" if _full(k) else "medium",
        advice="More warps, or more independent instructions within each.",
        gain=(100 * (1 - issued), "local"),
    )


@rule("well-fed", family="scheduler", needs=("warps_eligible_per_scheduler", "warps_issued_per_scheduler"))
def well_fed(k: View) -> Found | None:
    """More warps are ready than can issue: occupancy and latency are not the limit."""
    if k["warps_eligible_per_scheduler"] < ELIGIBLE or k["warps_issued_per_scheduler"] < LOW_ISSUE:
        return None
    return Found(
        f"{short(k['warps_eligible_per_scheduler'])} warps are ready for each issue slot and "
        f"{short(100 * k['warps_issued_per_scheduler'], '%')} of the slots are used: there are enough warps",
        "info",
        advice="Fewer instructions for the same work are the lever; more occupancy is not.",
    )


@rule("top-stall", family="scheduler", needs=(ANY_STALLS,))
def top_stall(k: View) -> Found | None:
    """One state holds most of the warp latency [%], and schedulers lack warps."""
    waits = k.facts.waits
    if waits is None or not waits.matter:
        return None
    state, share = waits.top()
    if share < DOMINANT:
        return None
    category, raw = states()[state]
    k.get(waits.metric(state))
    k.get(f"stall_share_{category}_pct")
    plain = PLAIN.get(state) or str(load().stalls[category]["plain"])
    return Found(
        f"{short(share, '%')} of the warp latency is {raw}: {plain[0].lower()}{plain[1:]}",
        "low" if _full(k) else "medium",
        detail=_note(k, state),
        advice=f"{load().stalls[category]['points_to']}.",
    )


def _note(k: View, state: str) -> str:
    if state == "global_memory_dependency" and k.facts.warp_specialised:
        return "Waits at mbarriers and sleeping warps count here as well: not proof of slow global loads."
    if state == "block_barrier" and (k.get("warpgroup_mma_inst") or 0) > 0:
        return "Waiting for warp-group MMA results is sampled as barrier too."
    return NOTES.get(state, "")


def _full(k: View) -> bool:
    return any(share.full for share in k.facts.shares.units.values())


@rule("barrier-stalls", family="scheduler", needs=(ANY_STALLS,))
def barrier_stalls(k: View) -> Found | None:
    """Warps wait at block barriers."""
    waits = k.facts.waits
    if waits is None or not waits.matter or (share := waits.of("block_barrier")) < SECOND:
        return None
    k.get(waits.metric("block_barrier"))
    wgmma = k.get("warpgroup_mma_inst") or 0
    if wgmma and (k.get("inst_mix_barrier_pct") or 0) < BARRIERS:
        return Found(
            f"{short(share, '%')} of the warp latency reads barrier, but the kernel hardly executes any: "
            "it waits for "
            "warp-group MMA results",
            "info",
            advice="Deepen the MMA pipeline; attribute the samples by instruction.",
        )
    return Found(
        f"{short(share, '%')} of the warp latency is spent at block barriers",
        "low" if _full(k) else "medium",
        advice="Fewer barriers, more equal work between them, or smaller blocks.",
    )


@rule("queue-full", family="scheduler", needs=(ANY_STALLS,))
def queue_full(k: View) -> Found | None:
    """Warps wait because the queue of memory instructions is full."""
    waits = k.facts.waits
    if waits is None or not waits.matter:
        return None
    queues = {s: waits.of(s) for s in ("global_queue_full", "shared_queue_full", "texture_queue_full")}
    state = max(queues, key=lambda s: queues[s])
    if queues[state] < SECOND:
        return None
    k.get(waits.metric(state))
    where = {
        "global_queue_full": "L1",
        "shared_queue_full": "L1, shared memory or the XU pipe",
        "texture_queue_full": "the texture path, which feeds FP64 on GPUs with few FP64 units",
    }[state]
    return Found(
        f"{short(queues[state], '%')} of the warp latency is {states()[state][1]}: too many instructions "
        f"for {where}",
        "medium" if max(k.share(u) for u in ("l1", "shared", "lsu", "xu", "fp64")) >= 60 else "low",
        advice="Fewer and wider accesses; less traffic to the same queue.",
    )


@rule("supply-stalls", family="scheduler", needs=(ANY_STALLS,))
def supply_stalls(k: View) -> Found | None:
    """Warps wait for constants or instructions to arrive."""
    waits = k.facts.waits
    if waits is None or not waits.matter:
        return None
    shares = {s: waits.of(s) for s in ("constant_cache_miss", "instruction_fetch")}
    state = max(shares, key=lambda s: shares[s])
    if shares[state] < SUPPLY:
        return None
    k.get(waits.metric(state))
    what = "constant-cache misses" if state == "constant_cache_miss" else "missing instructions"
    return Found(
        f"{short(shares[state], '%')} of the warp latency is waiting for {what}",
        "low",
        advice="Usual at the start of a short launch; in a long one, shrink the code or the constants it "
        "needs.",
    )


@rule("stalls-disagree", family="scheduler", needs=("stall_cycles_selected", "stall_samples_selected"))
def stalls_disagree(k: View) -> Found | None:
    """Counters and samples saw different executions."""
    apart = k.facts.waits.disagreement if k.facts.waits is not None else None
    if apart is None or apart < DISAGREE:
        return None
    for state in states():
        k.get(f"stall_cycles_{state}")
        k.get(f"stall_samples_{state}")
    return Found(
        f"Stall counters and stall samples differ by {short(apart, '%')}: the kernel did not do the same "
        "in every pass",
        "low",
        advice="Look for work that depends on timing or on what an earlier pass left behind; trust neither "
        "alone.",
    )


@rule("divergence", family="scheduler", needs=("active_threads_per_warp",))
def divergence(k: View) -> Found | None:
    """Only part of each warp's 32 threads is active."""
    threads = k["active_threads_per_warp"]
    if threads >= HALF_EMPTY:
        return None
    lost = 100 * (1 - threads / 32)
    severity: Severity = "high" if threads < 8 else "medium"
    return Found(
        f"{short(threads)} of 32 threads are active in a mean warp instruction: {short(lost, '%')} of the "
        "lanes are lost",
        severity,
        advice="Let the threads of a warp take the same branch and the same number of iterations; sort or "
        "bin the work.",
        gain=k.relief(lost, "issue", *COMPUTE_UNITS),
    )


@rule("predication", family="scheduler", needs=("active_threads_per_warp", "predicated_on_threads_per_warp"))
def predication(k: View) -> Found | None:
    """Active threads execute instructions that are predicated off for them."""
    off = k["active_threads_per_warp"] - k["predicated_on_threads_per_warp"]
    if off < PREDICATED:
        return None
    return Found(
        f"{short(off)} of {short(k['active_threads_per_warp'])} active threads are predicated off in a "
        "mean instruction",
        "low",
        advice="Short branches became predicates: skip whole warps instead where the condition is uniform.",
        gain=(100 * off / k["active_threads_per_warp"], "local"),
    )
