"""Rules on what the instructions are, and on what the report lacks."""

from __future__ import annotations

import re

from ncukit.judge.elimination import MOSTLY_MOVES
from ncukit.judge.facts import Facts
from ncukit.judge.places import first_place, places
from ncukit.judge.rule import Found, Gain, View, rule
from ncukit.media import listed
from ncukit.model import Place
from ncukit.quantity import brief

# ---- Source counters: what the instructions are

MANY_ACCESSES = 25.0
"""[%] of instructions that access memory: one in four is more than tiled code needs."""

INTEGER = 40.0
"""[%] of integer instructions beside floating-point work: address arithmetic."""

CONVERSIONS = 10.0
"""[%] of conversions: they run on the slow XU pipe, or decode packed formats on the ALU."""

FREQUENT_BARRIERS = 5.0
"""[%] of instructions that are block barriers."""

SPECIAL = 10.0
"""[%] of special functions: four lanes a cycle and scheduler at most."""

UNIFORM_BRANCHES = 80.0
"""[%] of branch targets on which all active threads agree."""

GENERIC = 25.0
"""[%] of the accesses to memory: a few are normal where a pointer's space is unknown."""

CONVERTS = re.compile(r"^(I2F|I2FP|F2I|F2IP|F2F|F2FP|I2I|I2IP|FRND)\b")
INTEGER_WORK = re.compile(r"^(IMAD|IADD3?|LEA|LOP3?|SHF|SHL|SHR|ISETP|IMNMX|PRMT|VIADD\w*|LEA32I)\b")
MATH = ("inst_mix_fp32_pct", "inst_mix_fp64_pct", "inst_mix_fp16_pct", "inst_mix_tensor_pct")


def _where(k: View, opcodes: re.Pattern[str]) -> tuple[Place, ...]:
    return places(k.source, lambda c: c.instructions, "inst", lambda row: bool(opcodes.match(row.opcode)))


@rule("debug-build", family="source", needs=("inst_mix_mov_pct",))
def debug_build(k: View) -> Found | None:
    """The code was built without optimisation."""
    if k["inst_mix_mov_pct"] < MOSTLY_MOVES:
        return None
    return Found(
        f"{brief(k['inst_mix_mov_pct'], '%')} of the instructions are MOV: this is a debug build",
        "high",
        advice="Build without -G and profile again; nothing below holds for the optimised code.",
    )


@rule(
    "loads-outnumber-math",
    family="source",
    needs=("inst_mix_shared_memory_pct", "inst_mix_global_memory_pct"),
)
def loads_outnumber_math(k: View) -> Found | None:
    """Memory instructions outnumber the arithmetic they feed."""
    accesses = k["inst_mix_shared_memory_pct"] + k["inst_mix_global_memory_pct"]
    math = sum(k.get(id) or 0.0 for id in MATH)
    if accesses < MANY_ACCESSES or accesses <= math:
        return None
    each = f": {brief(accesses / math)} accesses for each of them" if math >= 1 else ""
    return Found(
        f"{brief(accesses, '%')} of the instructions access memory, {brief(math, '%')} are floating-point "
        f"or tensor math{each}",
        k.weight("lsu", "l1", "shared"),
        advice="Keep a tile in registers and reuse each loaded value; use 128-bit accesses.",
    )


@rule("integer-overhead", family="source", needs=("inst_mix_integer_pct",))
def integer_overhead(k: View) -> Found | None:
    """Most instructions are integer: addresses and indices, or integer work itself."""
    integer = k["inst_mix_integer_pct"]
    if integer < INTEGER:
        return None
    math = sum(k.get(id) or 0.0 for id in MATH)
    each = f": {brief(integer / math)} for each of them" if math >= 1 else ""
    where = _where(k, INTEGER_WORK)
    busy = max(k.share("int"), k.share("issue"))
    return Found(
        f"{brief(integer, '%')} of the instructions are integer, {brief(math, '%')} are floating-point or "
        f"tensor math{each}",
        "medium" if busy >= 60 else "low",
        detail=f"Of the integer instructions {first_place(where)}." if where else "",
        gain=Gain(max(0.0, integer - math), "local", "of the instructions, if no more were integer than math")
        if math >= 1
        else None,
        places=where,
        advice="Hoist index arithmetic out of the loop, unroll, use 32-bit offsets."
        if math >= 1
        else "Integer work is the work here: count operations per element.",
    )


@rule("conversions", family="source", needs=("inst_mix_conversion_pct",))
def conversions(k: View) -> Found | None:
    """Many instructions convert between types."""
    share = k["inst_mix_conversion_pct"]
    if share < CONVERSIONS:
        return None
    busy = max(k.share("xu"), k.share("int"))
    where = _where(k, CONVERTS)
    rows = () if k.source is None else k.source.rows
    used = sorted({row.opcode.split(".")[0] for row in rows if CONVERTS.match(row.opcode)})
    which = f" ({', '.join(used)})" if used else ""
    return Found(
        f"{brief(share, '%')} of the instructions convert between types{which}; XU pipe "
        f"{brief(k.share('xu'), '%')}",
        "medium" if busy >= 40 else "low",
        advice="Convert once and keep the wide type, or convert in packed form.",
        detail=f"Of the conversions {first_place(where)}." if where else "",
        gain=Gain(share, "local", "of the instructions, if none converted"),
        places=where,
    )


@rule("special-functions", family="source", needs=("inst_mix_special_function_pct",))
def special_functions(k: View) -> Found | None:
    """Many instructions go to the special-function (XU) pipe."""
    share = k["inst_mix_special_function_pct"]
    if share < SPECIAL or k.share("xu") < 40:
        return None
    return Found(
        f"{brief(share, '%')} of the instructions are special functions; the XU pipe is "
        f"{brief(k.share('xu'), '%')} busy",
        k.weight("xu"),
        advice="Replace some by polynomials on the FMA pipe, or share results between threads.",
    )


@rule("frequent-barriers", family="source", needs=("inst_mix_barrier_pct",))
def frequent_barriers(k: View) -> Found | None:
    """Block barriers are a visible part of the instructions."""
    if k["inst_mix_barrier_pct"] < FREQUENT_BARRIERS:
        return None
    return Found(
        f"{brief(k['inst_mix_barrier_pct'], '%')} of the instructions are block barriers",
        "medium",
        advice="Synchronise warps instead of blocks where possible; let one barrier serve more work.",
    )


@rule("branch-divergence", family="source", needs=("branch_efficiency_pct", "divergent_branches"))
def branch_divergence(k: View) -> Found | None:
    """Threads of a warp take different branch targets."""
    if not k["divergent_branches"] or k["branch_efficiency_pct"] >= UNIFORM_BRANCHES:
        return None
    where = places(k.source, lambda c: c.divergent, "branch")
    return Found(
        f"Threads agree on only {brief(k['branch_efficiency_pct'], '%')} of the branch targets",
        "medium",
        advice="Make the condition the same for all threads of a warp, or sort the work by it.",
        detail=f"Of the divergent branches {first_place(where)}." if where else "",
        places=where,
    )


@rule("generic-accesses", family="source", needs=("generic_access_inst", "global_opcode_inst"))
def generic_accesses(k: View) -> Found | None:
    """Memory is accessed through generic addresses, whose space the hardware finds out each time."""
    generic, typed = k["generic_access_inst"], k["global_opcode_inst"]
    if not generic or 100 * generic < GENERIC * (generic + typed):
        return None
    where = _where(k, re.compile(r"^(LD|ST)\b"))
    return Found(
        f"{brief(generic)} loads and stores are generic (LD, ST), {brief(typed)} are global (LDG, STG)",
        "low",
        advice="Let the compiler see the space: pass pointers straight to the kernel, mark them "
        "__restrict__, avoid device-side allocation.",
        detail=f"Of the generic accesses {first_place(where)}." if where else "",
        places=where,
    )


# ---- What the report does not hold, as far as it would decide

MEASURED = {
    "kernel_duration": "the duration",
    "waves_per_sm": "the launch configuration",
    "achieved_occupancy_pct": "the achieved occupancy",
    "inst_executed": "instruction counts",
    "dram_bytes": "DRAM bytes",
    "global_load_sectors_per_request": "sectors a request",
}
"""What may be there although nothing says how busy anything was."""

PROFILE = "Profile with --set full, or at least --section SpeedOfLight --section WarpStateStats."


@rule("nothing-measured", family="speed_of_light", needs=())
def nothing_measured(k: View) -> Found | None:
    """Neither throughputs nor stall reasons were collected."""
    if k.facts.shares.units or k.facts.waits is not None:
        return None
    has = [word for id, word in MEASURED.items() if k.get(id) is not None]
    return Found(
        "Neither throughputs, pipes nor stall reasons were collected"
        + (f", only {listed(has)}" if has else ", and no duration either"),
        "info",
        advice=PROFILE,
    )


@rule("partly-measured", family="speed_of_light", needs=())
def partly_measured(k: View) -> Found | None:
    """Part of what decides was not collected, or this GPU does not count it."""
    if not k.facts.shares.units and k.facts.waits is None:
        return None  # nothing-measured says it
    lacking = {what: _is_absent(k.facts, id) for what, id in _lacking(k.facts)}
    if not lacking:
        return None
    for id in MEASURED:
        k.get(id)
    absent = [what for what, is_absent in lacking.items() if is_absent]
    uncollected = [what for what in lacking if what not in absent]
    known = "not translated from the names of ncu before 2020.2" if _old(k.facts) else "not collected"
    said = [f"{known}: {listed(uncollected)}"] if uncollected else []
    said += [f"not counted on this GPU: {listed(absent)}"] if absent else []
    return Found(
        "; ".join(said),
        "info",
        advice=PROFILE if uncollected else "Judge by what this GPU counts: launch, occupancy and issue rate.",
    )


def _lacking(f: Facts) -> list[tuple[str, str]]:
    """Return what would be needed to judge this launch, and a metric that would tell."""
    found = []
    if f.number("kernel_duration") is None:
        found.append(("the duration", "kernel_duration"))
    if not f.shares.sm_side:
        found.append(("compute throughput", "sm_throughput_pct"))
    if not f.shares.memory_side:
        found.append(("memory throughput", "memory_throughput_pct"))
    if "dram" not in f.shares.units:
        found.append(("DRAM throughput", "dram_throughput_pct"))
    if f.waits is None and not any(share.full for share in f.shares.units.values()):
        found.append(("stall reasons", "stall_cycles_global_memory_dependency"))
    return found


def _old(f: Facts) -> bool:
    """Return whether ncu named its counters as before 2020.2: without an operation behind a dot."""
    value = f.kernel.signals.get("issue_busy_pct")
    return value is not None and value.known and not any("." in name for name in value.sources)


def _is_absent(f: Facts, id: str) -> bool:
    value = f.kernel.metrics.get(id)
    return value is not None and value.status == "absent"
