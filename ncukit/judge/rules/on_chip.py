"""Rules on shared and local memory: bank conflicts, wavefronts, asynchronous copies, spills."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncukit.judge.grid import QUIET
from ncukit.judge.places import first_place, places
from ncukit.judge.rule import Found, View, rule
from ncukit.judge.rules.global_memory import EXCESS, IDEAL
from ncukit.model import Place
from ncukit.model.diagnosis import Severity
from ncukit.quantity import brief

if TYPE_CHECKING:
    from ncukit.model.source import Cost


# ---- Memory workload inside the SM: bank conflicts, wavefronts, asynchronous copies

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
        + (f" Of the excess wavefronts {first_place(where)}." if where else ""),
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
        detail=f"Of the excess wavefronts {first_place(where)}." if where else "",
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
        detail=f"Of them {first_place(where)}." if where else "",
        places=where,
    )


# ---- Local memory: spills, stack arrays, and telling them apart

LEADS = 50.0
"""[%] of the sectors between L1 and L2: then the first thing to change, whatever the class."""

VISIBLE = 5.0
"""[%] of L1's or L2's sectors from which local memory is more than a rare path."""

FULL_REGISTERS = 200.0
"""[register/thread] Near the limit of 255 the compiler has most likely run out of registers."""

LOCAL = re.compile(r"^(LDL|STL)\b")
STACK = re.compile(r"\[R1(\+-?0x[0-9a-f]+)?\]")
"""An address that is known when the code is compiled."""

ARGUMENTS = 10
"""Local accesses that one call of a function may need for what it is given and gives back."""

MOSTLY = 80.0
"""[%] of the local accesses from which their kind is told by how they are addressed."""


def _weight(k: View) -> tuple[Severity, float | None]:
    share = k.get("l2_local_share_pct")
    inner = k.get("l1_local_share_pct")
    if share is not None and share >= LEADS:
        return "high", share
    if max(share or 0.0, inner or 0.0) >= VISIBLE:
        return "medium", share if share is not None and share >= VISIBLE else inner
    return "low", share


def _instructions(k: View) -> float:
    return (k.get("local_load_inst") or 0.0) + (k.get("local_store_inst") or 0.0)


def _local_where(k: View) -> tuple[Place, ...]:
    return places(k.source, _accesses, "inst", lambda row: bool(LOCAL.match(row.opcode)))


def _accesses(cost: Cost) -> int | None:
    return cost.instructions


@rule("register-spills", family="memory", needs=("marked_spill_inst",))
def register_spills(k: View) -> Found | None:
    """Instructions that the compiler marked as register spills ran."""
    spills, shared = k["marked_spill_inst"], k.get("shared_spill_inst") or 0.0
    if spills <= 0 and shared <= 0:
        return None
    severity, share = _weight(k)
    traffic = f", local memory is {brief(share, '%')} of the cache traffic" if share else ""
    into = f", {brief(shared)} of them into shared memory" if shared else ""
    where = _local_where(k)
    return Found(
        f"Registers spill: {brief(spills + shared)} spill instructions ran{into}{traffic}",
        severity,
        advice="Allow more registers (launch bounds, -maxrregcount), or keep fewer values alive at once.",
        detail=f"Of the local accesses {first_place(where)}." if where else "",
        gain=None if share is None else k.relief(share, "l1", "l2"),
        places=where,
    )


@rule("local-memory", family="memory", needs=(("local_load_inst", "local_store_inst", "l1_local_share_pct"),))
def local_memory(k: View) -> Found | None:
    """Local memory is in use; only a spill counter can call it spilling."""
    instructions, spills = _instructions(k), k.get("marked_spill_inst")
    severity, share = _weight(k)
    if (instructions <= 0 and not share) or (spills is not None and spills > 0):
        return None
    registers = k.get("registers_per_thread")
    if spills is not None:
        kind, advice = (
            "and none of it is register spilling: stack arrays or slow-path functions",
            "Index local arrays with constants only, or move them to shared memory; more registers would "
            "not help.",
        )
    elif (fixed := _fixed(k)) is not None and fixed >= MOSTLY:
        likely = (
            "register spills, or arguments of called functions"
            if _calls(k)
            else "most likely register spills"
        )
        near = f" at {registers:.0f} registers a thread" if registers is not None else ""
        kind, advice = (
            f"{brief(fixed, '%')} of it at fixed offsets from the stack pointer: {likely}{near}",
            "Look for spill stores in `ptxas -v`; allow more registers (launch bounds, -maxrregcount) or "
            "keep fewer values alive.",
        )
    elif fixed is not None and fixed < 100 - MOSTLY:
        kind, advice = (
            "mostly at computed addresses: an array on the stack, not spilling",
            "Index local arrays with constants only, or move them to shared memory; more registers would "
            "not help.",
        )
    elif registers is not None and registers >= FULL_REGISTERS:
        kind, advice = (
            f"a possible register spill at {registers:.0f} registers a thread",
            "Look for spill stores in `ptxas -v`; if there are some, allow more registers or keep fewer "
            "values alive.",
        )
    else:
        kind, advice = (
            "most likely a stack array or a slow path of sin and cos, not spilling",
            "Index local arrays with constants only; check `ptxas -v` for a stack frame.",
        )
    where = _local_where(k)
    return Found(
        f"Local memory is in use{_counted(k, instructions, share)}, {kind}",
        severity,
        advice=advice,
        detail=f"Of the local accesses {first_place(where)}." if where else "",
        gain=None if share is None else k.relief(share, "l1", "l2"),
        places=where,
    )


def _fixed(k: View) -> float | None:
    """Return how much [%] of the local accesses is at constant offsets from the stack pointer R1.

    The compiler keeps an array that it indexes with constants in registers, so such accesses are spills, or
    arguments of a called function.  None without the code.
    """
    rows = [] if k.source is None else [row for row in k.source.rows if LOCAL.match(row.opcode)]
    total = sum(row.cost.instructions or 0 for row in rows)
    if not total:
        return None
    return 100 * sum(row.cost.instructions or 0 for row in rows if STACK.search(row.text)) / total


def _calls(k: View) -> bool:
    """Return whether functions are called so often that the local accesses can be what they are given."""
    rows = () if k.source is None else k.source.rows
    calls = sum(row.cost.instructions or 0 for row in rows if row.opcode.startswith("CALL"))
    return calls * ARGUMENTS >= sum(row.cost.instructions or 0 for row in rows if LOCAL.match(row.opcode))


def _counted(k: View, instructions: float, share: float | None) -> str:
    """Return how much of it there is; few instructions beside much traffic are a counter that missed."""
    words = []
    mix = k.get("local_inst_share_pct")
    if instructions > FEW:
        part = f", {brief(mix, '%')} of all" if mix is not None else ""
        words.append(f"{brief(instructions)} instructions{part}")
    if share:
        words.append(f"{brief(share, '%')} of the cache traffic")
    return f" ({'; '.join(words)})" if words else ""


FEW = 8.0
"""[inst] Fewer local accesses than this are not worth a number."""
