"""Memory workload inside the SM: bank conflicts, wavefronts, asynchronous copies."""

from __future__ import annotations

import re

from ncukit.diagnose.places import listed, places
from ncukit.diagnose.rule import Found, View, rule
from ncukit.diagnose.rules.coalescing import EXCESS, IDEAL
from ncukit.diagnose.steps.grid import QUIET
from ncukit.model import Place
from ncukit.quantity import brief

CONFLICT = 1.5
"""Wavefronts over the ideal from which accesses conflict; arbitration alone stays below."""

PATTERN = 5.0
"""[%] Excess wavefronts below which the address pattern is clean and conflicts are arbitration."""

OVERLOADED = 2.0
"""Data-stage share over request share from which requests need several wavefronts (peaks differ by 2)."""

SINGLE = 1.1
"""Wavefronts over the ideal below which accesses do not conflict."""

BUSY_REQUESTS = 50.0
"""[%] Request rate (elapsed) from which the number of accesses is what costs."""

HALF_IDLE = 0.75
"""Data-stage share over request share below which requests are narrow; their peaks differ by 2."""

COUNTED = 25.0
"""[%] of shared wavefronts counted as conflicts beside a clean pattern: worth saying that they are none."""

STAGED = 1.0
"""[%] of instructions that store to shared memory: less is no staging of global data."""

WAITING = 20.0
"""[%] of warp latency waiting for loads: less leaves nothing for asynchronous copies to hide."""

SHARED_ATOMICS = 2.0
"""[%] of instructions: each takes as many passes as its lanes share an address."""

DIRECTIONS = ("load", "store")

LOADS = re.compile(r"^(LDS|LDSM)\b")
STORES = re.compile(r"^(STS|STSM|LDGSTS)\b")


@rule("bank-conflicts-loads", family="memory", needs=("shared_load_ways", "shared_load_bank_conflicts"))
def bank_conflicts_loads(k: View) -> Found | None:
    """Shared loads need several wavefronts because lanes hit the same bank."""
    return _conflicts(k, "load")


@rule("bank-conflicts-stores", family="memory", needs=("shared_store_ways", "shared_store_bank_conflicts"))
def bank_conflicts_stores(k: View) -> Found | None:
    """Shared stores need several wavefronts because lanes hit the same bank."""
    return _conflicts(k, "store")


def _conflicts(k: View, direction: str) -> Found | None:
    ways = k[f"shared_{direction}_ways"]
    pattern = k.get("shared_excess_share_pct")
    if ways < CONFLICT or (pattern is not None and pattern < PATTERN):
        return None
    conflicts, wavefronts = k[f"shared_{direction}_bank_conflicts"], k.get(f"shared_{direction}_wavefronts")
    lost = 100 * conflicts / wavefronts if wavefronts else 100 * (1 - 1 / ways)
    full = max(k.share("l1"), k.share("shared"))
    where = _where(k, LOADS if direction == "load" else STORES)
    return Found(
        f"Shared {direction}s conflict {brief(round(ways))} ways: {brief(lost, '%')} of their wavefronts "
        "are conflicts",
        k.weight("l1", "shared"),
        detail=f"The data stage they go through is {brief(full, '%')} busy."
        + ("" if full >= QUIET else " The conflicts are real and cost little here.")
        + (f" Of the excess wavefronts {listed(where)}." if where else ""),
        advice="Pad the rows of the tile by one element, or swizzle the index, so that lanes fall into "
        "different banks.",
        gain=k.relief(lost, "l1", "shared"),
        places=where,
    )


def _where(k: View, opcodes: re.Pattern[str]) -> tuple[Place, ...]:
    return places(
        k.source, lambda c: c.excess_wavefronts, "wavefront", lambda row: bool(opcodes.match(row.opcode))
    )


@rule("conflict-free", family="memory", needs=("shared_load_ways", "shared_excess_share_pct"))
def conflict_free(k: View) -> Found | None:
    """Shared memory is read without bank conflicts."""
    ways, pattern, stores = k["shared_load_ways"], k["shared_excess_share_pct"], k.get("shared_store_ways")
    if (
        not 0 < ways < SINGLE
        or pattern >= 1
        or (stores or 0.0) >= SINGLE
        or not k.get("shared_load_requests")
    ):
        return None
    return Found(
        f"Shared memory is free of bank conflicts: {brief(ways)} times the ideal wavefronts, and "
        f"{brief(pattern, '%')} of them because of the pattern",
        "info",
        advice="Padding or swizzling would change nothing.",
    )


@rule("bank-arbitration", family="memory", needs=("shared_bank_conflict_pct", "shared_excess_share_pct"))
def bank_arbitration(k: View) -> Found | None:
    """Conflicts are counted although no address pattern causes them."""
    counted, pattern = k["shared_bank_conflict_pct"], k["shared_excess_share_pct"]
    if (
        counted < COUNTED
        or pattern >= PATTERN
        or not (k.get("shared_load_requests") or k.get("shared_store_inst"))
    ):
        return None
    return Found(
        f"{brief(counted, '%')} of the shared wavefronts are counted as conflicts, but the address pattern "
        f"causes {brief(pattern, '%')}: the rest is arbitration with other traffic",
        "info",
        advice="Padding will not help: the counter includes waits for the data stage that others use.",
    )


@rule("shared-pattern", family="memory", needs=("shared_excess_share_pct",))
def shared_pattern(k: View) -> Found | None:
    """Share [%] of shared-memory wavefronts that the address pattern causes beyond the ideal."""
    excess = k["shared_excess_share_pct"]
    if excess < 25:  # a quarter: less is one unlucky instruction among many
        return None
    where = _where(k, re.compile(""))
    return Found(
        f"{brief(excess, '%')} of the shared-memory wavefronts are beyond what the address pattern needs "
        "at best",
        k.weight("l1", "shared"),
        advice="Pad or swizzle the shared array.",
        detail=f"Of the excess wavefronts {listed(where)}." if where else "",
        gain=k.relief(excess, "l1", "shared"),
        places=where,
    )


@rule("many-wavefronts", family="memory", needs=("lsu_wavefronts_pct", "lsu_requests_pct"))
def many_wavefronts(k: View) -> Found | None:
    """The L1 data stage is far busier [%] than its requests alone would make it."""
    data, requests = k["lsu_wavefronts_pct"], k["lsu_requests_pct"]
    if k.share("l1") < QUIET and k.share("shared") < QUIET:
        return None
    if not requests or data < OVERLOADED * requests:
        return None
    return Found(
        f"The L1 data stage is {brief(data, '%')} busy at {brief(requests, '%')} of the request rate "
        f"({brief(data / requests)} to 1): each request takes many wavefronts",
        k.weight("l1", "shared"),
        advice=_for_each_request(_conflicting(k), _scattered(k)),
    )


def _for_each_request(conflicting: bool | None, scattered: bool | None) -> str:
    """Return what makes a request take many wavefronts; what was not collected is None."""
    causes = []
    if conflicting:
        causes.append("Bank conflicts: pad or swizzle the shared array.")
    if scattered:
        causes.append("Scattered addresses: let neighbouring threads touch neighbouring global addresses.")
    if not causes and None in (conflicting, scattered):
        return (
            "Bank conflicts or scattered addresses: collect MemoryWorkloadAnalysis_Tables to tell them apart."
        )
    return " ".join(causes) or (
        "Neither bank conflicts nor scattered addresses: wide accesses take a wavefront for each 128 bytes. "
        "Keep operands in registers."
    )


def _conflicting(k: View) -> bool | None:
    """Return whether the pattern of shared accesses conflicts; None where it was not collected."""
    counted = [k.get(f"shared_{direction}_bank_conflicts") for direction in DIRECTIONS]
    if None in counted:
        return None
    ways = max(k.get(f"shared_{direction}_ways") or 1.0 for direction in DIRECTIONS)
    pattern = k.get("shared_excess_share_pct")
    return ways >= CONFLICT and (pattern is None or pattern >= PATTERN)


def _scattered(k: View) -> bool | None:
    """Return whether global accesses touch more sectors than they need; None where it was not collected."""
    if (excess := k.get("uncoalesced_excess_pct")) is not None:
        return excess >= EXCESS
    sectors = [k.get(f"global_{direction}_sectors_per_request") for direction in DIRECTIONS]
    return None if sectors == [None, None] else any(n is not None and n > 2 * IDEAL for n in sectors)


@rule("many-requests", family="memory", needs=("lsu_wavefronts_pct", "lsu_requests_pct"))
def many_requests(k: View) -> Found | None:
    """The load/store pipe takes a request in most cycles and its data stage is far from full."""
    data, requests = k["lsu_wavefronts_pct"], k["lsu_requests_pct"]
    if k.share("lsu") < QUIET or requests < BUSY_REQUESTS or data > HALF_IDLE * requests:
        return None
    return Found(
        f"The load/store pipe takes requests at {brief(requests, '%')} of its peak and its data stage moves "
        f"{brief(data, '%')}: many narrow accesses, one wavefront each",
        k.weight("lsu"),
        advice="Load 16 bytes a thread (float4), keep a tile in registers: fewer and wider accesses are the "
        "only way out.",
    )


@rule("bulk-copies", family="memory", needs=(("tma_load_bytes", "async_copy_bypass_bytes", "cp_async_inst"),))
def bulk_copies(k: View) -> Found | None:
    """Data reaches shared memory by TMA or cp.async, past registers and the usual load counters."""
    tma, bypass, copies = (k.get(id) for id in ("tma_load_bytes", "async_copy_bypass_bytes", "cp_async_inst"))
    if not tma and not bypass and not copies:
        return None
    by = (
        f"{brief(tma, 'byte')} by TMA"
        if tma
        else f"{brief(bypass, 'byte')} by cp.async"
        if bypass
        else "cp.async"
    )
    return Found(
        f"Global data is copied into shared memory asynchronously ({by})",
        "info",
        advice="These copies are not among the global-load counters; sectors per request above 16 are an "
        "artefact.",
    )


@rule(
    "stage-by-copy",
    family="memory",
    needs=(
        "compute_capability",
        "global_load_opcode_inst",
        "shared_store_opcode_inst",
        "cp_async_inst",
        "inst_executed",
    ),
)
def stage_by_copy(k: View) -> Found | None:
    """Global data goes through registers into shared memory although the GPU can copy it directly."""
    stores, loads = k["shared_store_opcode_inst"], k["global_load_opcode_inst"]
    if k["compute_capability"] < 80 or k["cp_async_inst"] > 0 or (k.get("tma_load_bytes") or 0) > 0:
        return None
    if not loads or 100 * stores < STAGED * k["inst_executed"] or stores < loads / 4:
        return None
    waits = k.facts.waits
    if waits is None or not waits.matter or (share := waits.of("global_memory_dependency")) < WAITING:
        return None
    k.get(waits.metric("global_memory_dependency"))
    return Found(
        f"{brief(loads)} global loads feed {brief(stores)} stores to shared memory through registers, and "
        f"{brief(share, '%')} of the warp latency waits for them",
        "low" if any(s.full for s in k.facts.shares.units.values()) else "medium",
        advice="Copy with cp.async (cuda::memcpy_async) or TMA into a second buffer while the first is used.",
    )


@rule("shared-atomics", family="memory", needs=("shared_atomic_inst", "inst_executed"))
def shared_atomics(k: View) -> Found | None:
    """Atomics on shared memory are a visible part of the instructions."""
    share = 100 * k["shared_atomic_inst"] / k["inst_executed"] if k["inst_executed"] else 0.0
    if share < SHARED_ATOMICS:
        return None
    where = places(k.source, lambda c: c.instructions, "inst", lambda row: row.opcode.startswith("ATOMS"))
    return Found(
        f"{brief(share, '%')} of the instructions are atomics on shared memory",
        k.weight("l1", "shared"),
        advice="Give each warp its own copy of the counters and add the copies at the end.",
        detail=f"Of them {listed(where)}." if where else "",
        places=where,
    )
