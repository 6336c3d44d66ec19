"""What warps wait for: the stall states, and the instructions and lines that make them wait."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncukit.judge.elimination import BARRIERS
from ncukit.judge.places import first_place, places, waits
from ncukit.judge.rule import Found, View, rule
from ncukit.judge.shares import advice, states
from ncukit.media import listed as in_words
from ncukit.metrics import load
from ncukit.model import Place
from ncukit.quantity import brief

if TYPE_CHECKING:
    from ncukit.model.source import SourceView

DOMINANT = 30.0
"""[%] of warp latency from which one state is worth naming (ncu's own rule)."""

SECOND = 20.0
"""[%] of warp latency from which barriers, queues and supply are named even when another state leads."""

SUPPLY = 15.0
"""[%] of warp latency waiting for constants or instructions: a start-up that never ends."""

FETCH = 5.0
"""[%] of warp latency from which the second of the two supplies is named beside the first."""

HOT = 10.0
"""[%] of the samples at one line or instruction: a tenth of the waiting is worth a look."""

MOSTLY = 30.0
"""[%] of the samples in a state that one kind of instruction must cause to be named."""

POLLED = 5.0
"""[%] of the samples that wait for polled addresses: less is the start of a block."""

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
    "block_barrier": "waiting for the other warps of the block",
    "memory_fence": "waiting for a memory fence",
    "sleeping": "asleep on purpose",
}
"""States that the words of their category do not fit."""

MBARRIER = re.compile(r"^(SYNCS|NANOSLEEP)\b")
GROUP_MMA = re.compile(r"^(WARPGROUP|[HIQB]GMMA)\b")
POLL = re.compile(r"^(LDG|LD)\b.*\bSTRONG\b")


@rule("top-stall", family="scheduler", needs=(ANY_STALLS,))
def top_stall(k: View) -> Found | None:
    """One state holds most of the warp latency [%], and schedulers lack warps."""
    found = k.facts.waits
    if found is None or not found.matter:
        return None
    state, share = found.top()
    if share < DOMINANT:
        return None
    category, raw = states()[state]
    k.get(found.metric(state))
    k.get("warp_cycles_per_issued_instruction" if found.source == "counters" else "pc_samples")
    plain = PLAIN.get(state) or str(load().stalls[category]["plain"])
    where = _waits(k, raw)
    return Found(
        f"{brief(share, '%')} of the warp latency is {raw}: {plain[0].lower()}{plain[1:]}",
        "low" if _full(k) else "medium",
        detail=" ".join(
            filter(None, (_note(k, state), f"By samples, {first_place(where)}." if where else ""))
        ),
        advice=advice(state),
        places=where,
    )


def _waits(k: View, *raw: str) -> tuple[Place, ...]:
    return () if k.source is None else waits(k.source, raw)


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
    found = k.facts.waits
    if found is None or not found.matter or (share := found.of("block_barrier")) < SECOND:
        return None
    k.get(found.metric("block_barrier"))
    wgmma = k.get("warpgroup_mma_inst") or 0
    where = _waits(k, "barrier")
    if wgmma and (k.get("inst_mix_barrier_pct") or 0) < BARRIERS:
        return Found(
            f"{brief(share, '%')} of the warp latency reads barrier, but the kernel hardly executes any: "
            "it waits for warp-group MMA results",
            "info",
            advice="Deepen the MMA pipeline; attribute the samples by instruction.",
            places=where,
        )
    return Found(
        f"{brief(share, '%')} of the warp latency is spent at block barriers",
        "low" if _full(k) else "medium",
        advice="Fewer barriers, more equal work between them, or smaller blocks.",
        detail=f"By samples, {first_place(where)}." if where else "",
        places=where,
    )


@rule("queue-full", family="scheduler", needs=(ANY_STALLS,))
def queue_full(k: View) -> Found | None:
    """Warps wait because the queue of memory instructions is full."""
    found = k.facts.waits
    if found is None or not found.matter:
        return None
    queues = {s: found.of(s) for s in ("global_queue_full", "shared_queue_full", "texture_queue_full")}
    state = max(queues, key=lambda s: queues[s])
    if queues[state] < SECOND:
        return None
    k.get(found.metric(state))
    where = {
        "global_queue_full": "L1",
        "shared_queue_full": "L1, shared memory or the XU pipe",
        "texture_queue_full": "the texture path, which feeds FP64 on GPUs with few FP64 units",
    }[state]
    raw = states()[state][1]
    lines = _waits(k, raw)
    return Found(
        f"{brief(queues[state], '%')} of the warp latency is {raw}: too many instructions for {where}",
        "medium" if max(k.share(u) for u in ("l1", "shared", "lsu", "xu", "fp64")) >= 60 else "low",
        advice="Fewer and wider accesses; less traffic to the same queue.",
        detail=f"By samples, {first_place(lines)}." if lines else "",
        places=lines,
    )


@rule("supply-stalls", family="scheduler", needs=(ANY_STALLS,))
def supply_stalls(k: View) -> Found | None:
    """Warps wait for constants or instructions to arrive."""
    found = k.facts.waits
    if found is None or not found.matter:
        return None
    words = {"constant_cache_miss": "constant-cache misses", "instruction_fetch": "missing instructions"}
    shares = {state: found.of(state) for state in words}
    if sum(shares.values()) < SUPPLY:
        return None
    ordered = [s for s in sorted(words, key=lambda s: -shares[s]) if shares[s] >= FETCH]
    for state in ordered:
        k.get(found.metric(state))
    parts = [f"{brief(shares[state], '%')} {words[state]}" for state in ordered]
    return Found(
        f"Warps wait for what they execute: of the warp latency {in_words(parts)}",
        "low",
        advice="Usual at the start of a short launch; in a long one, shrink the code or the constants it "
        "needs.",
    )


@rule("hot-line", family="source", needs=("@samples",))
def hot_line(k: View) -> Found | None:
    """One line, or one instruction, holds a tenth of the samples or more."""
    view = k.source
    assert view is not None
    where = waits(view)
    if not where or where[0].share < HOT or (k.facts.waits is not None and not k.facts.waits.matter):
        return None
    k.get("pc_samples")
    first = where[0]
    what = "samples in which nothing was issued" if view.basis == "waiting" else "stall samples"
    at = first.source or f"the instruction at +0x{first.offset:x}"
    return Found(
        f"{brief(first.share, '%')} of the {what} lead to {at}" + (f": {first.text}" if first.text else ""),
        "low" if _full(k) else "medium",
        advice=_advice(view, first),
        detail=f"{first.note[0].upper()}{first.note[1:]}." if first.note else "",
        places=where,
    )


def _advice(view: SourceView, place: Place) -> str:
    """Return what the commonest state among the samples that lead to ``place`` points to."""
    rows = [i for i, row in enumerate(view.rows) if (view.place(row) or "") == (place.source or "")]
    if place.source is None:
        rows = [i for i, row in enumerate(view.rows) if row.offset == place.offset]
    led = {*rows, *(i for i, row in enumerate(view.rows) if row.producer in rows)}
    counts: dict[str, int] = {}
    for i in led:
        for state, n in view.rows[i].cost.states.items():
            counts[state] = counts.get(state, 0) + n
    return advice(max(counts, key=lambda c: counts[c], default=""))


@rule("mbarrier-waits", family="scheduler", needs=("@samples", "@code"))
def mbarrier_waits(k: View) -> Found | None:
    """Waits at asynchronous barriers are sampled as long_scoreboard: nothing about global loads."""
    view = k.source
    assert view is not None
    total = view.total.states.get("long_scoreboard", 0)
    waiting, asleep = 0, 0
    for row in view.rows:
        n = row.cost.states.get("long_scoreboard", 0)
        cause = row if row.producer is None else view.rows[row.producer]
        if n and (MBARRIER.match(row.opcode) or MBARRIER.match(cause.opcode)):
            waiting += n
            asleep += n if row.opcode.startswith("NANOSLEEP") else 0
    if not total or 100 * waiting < MOSTLY * total:
        return None
    k.get("mbarrier_inst")
    k.get("stall_samples_global_memory_dependency")
    idle = f", {brief(100 * asleep / total, '%')} in warps that sleep there" if asleep else ""
    return Found(
        f"{brief(100 * waiting / total, '%')} of the long_scoreboard samples wait at mbarriers{idle}: for "
        "data of asynchronous copies or for free buffers, not for global loads",
        "info",
        advice="Ask who waits: a consumer on a full barrier means the memory side limits, a producer on an "
        "empty one means the consumer does.",
        places=waits(view, ("long_scoreboard",)),
    )


@rule("group-mma-waits", family="tensor", needs=("@samples", "@code"))
def group_mma_waits(k: View) -> Found | None:
    """Waits for warp-group MMA results are sampled as barrier, at WARPGROUP instructions."""
    view = k.source
    assert view is not None
    total = view.amount(view.total)
    rows = [row for row in view.rows if GROUP_MMA.match(row.opcode)]
    samples = sum(view.amount(row.cost) for row in rows)
    barrier = sum(row.cost.states.get("barrier", 0) for row in rows)
    if not total or 100 * samples < SECOND * total:
        return None
    k.get("warpgroup_mma_inst")
    return Found(
        f"{brief(100 * samples / total, '%')} of the samples wait for warp-group MMA results "
        f"({brief(100 * barrier / total, '%')} of all are labelled barrier, at WARPGROUP.DEPBAR)",
        "info" if k.share("tensor") >= 60 else "low",
        advice="Keep one more wgmma in flight before waiting (wgmma.wait_group 1), or give each consumer a "
        "larger tile.",
        places=places(view, view.amount, "sample", lambda row: bool(GROUP_MMA.match(row.opcode))),
    )


@rule("polling", family="scheduler", needs=("@samples", "@code"))
def polling(k: View) -> Found | None:
    """Warps read an address again and again until another block has written it."""
    view = k.source
    assert view is not None
    polled = {i for i, row in enumerate(view.rows) if POLL.match(row.opcode) and row.cost.instructions}
    led = [row for i, row in enumerate(view.rows) if i in polled or row.producer in polled]
    total, samples = view.amount(view.total), sum(view.amount(row.cost) for row in led)
    barrier = 100 * view.total.states.get("barrier", 0) / total if total else 0.0
    if not polled or not total or (100 * samples < POLLED * total and barrier < SECOND):
        return None
    k.get("stall_samples_block_barrier")
    waiting = (
        f" while {brief(barrier, '%')} of the samples stand at a block barrier" if barrier >= SECOND else ""
    )
    return Found(
        f"The kernel polls memory ({view.rows[min(polled)].opcode}): {brief(100 * samples / total, '%')} of "
        f"the samples wait for it{waiting}",
        "medium" if barrier >= SECOND else "low",
        advice="A decoupled look-back or a flag makes blocks wait for each other: let a whole warp look "
        "back, give each block more items, or reduce in two passes.",
        places=places(view, lambda c: c.instructions, "inst", lambda row: bool(POLL.match(row.opcode))),
    )
