"""Source counters: what the instructions are."""

from __future__ import annotations

from ncukit.diagnose.rule import Found, View, rule
from ncukit.diagnose.steps.full import MOSTLY_MOVES
from ncukit.diagnose.words import short

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


@rule("debug-build", family="source", needs=("inst_mix_mov_pct",))
def debug_build(k: View) -> Found | None:
    """The code was built without optimisation."""
    if k["inst_mix_mov_pct"] < MOSTLY_MOVES:
        return None
    return Found(
        f"{short(k['inst_mix_mov_pct'], '%')} of the instructions are MOV: this is a debug build",
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
    kinds = ("inst_mix_fp32_pct", "inst_mix_fp64_pct", "inst_mix_fp16_pct", "inst_mix_tensor_pct")
    math = sum(k.get(id) or 0.0 for id in kinds)
    if accesses < MANY_ACCESSES or accesses <= math:
        return None
    return Found(
        f"{short(accesses, '%')} of the instructions access memory, {short(math, '%')} are floating-point "
        "or tensor math",
        k.weight("lsu", "l1", "shared"),
        advice="Keep a tile in registers and reuse each loaded value; use 128-bit accesses.",
    )


@rule("integer-overhead", family="source", needs=("inst_mix_integer_pct",))
def integer_overhead(k: View) -> Found | None:
    """Most instructions are integer: addresses and indices, or integer work itself."""
    integer = k["inst_mix_integer_pct"]
    if integer < INTEGER:
        return None
    kinds = ("inst_mix_fp32_pct", "inst_mix_fp64_pct", "inst_mix_fp16_pct", "inst_mix_tensor_pct")
    math = sum(k.get(id) or 0.0 for id in kinds)
    return Found(
        f"{short(integer, '%')} of the instructions are integer, {short(math, '%')} are floating-point or "
        "tensor math",
        "medium" if max(k.share("int"), k.share("issue")) >= 60 else "low",
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
    return Found(
        f"{short(share, '%')} of the instructions convert between types; XU pipe {short(k.share('xu'), '%')}",
        "medium" if busy >= 40 else "low",
        advice="Convert once and keep the wide type, or convert in packed form.",
    )


@rule("special-functions", family="source", needs=("inst_mix_special_function_pct",))
def special_functions(k: View) -> Found | None:
    """Many instructions go to the special-function (XU) pipe."""
    share = k["inst_mix_special_function_pct"]
    if share < SPECIAL or k.share("xu") < 40:
        return None
    return Found(
        f"{short(share, '%')} of the instructions are special functions; the XU pipe is "
        f"{short(k.share('xu'), '%')} busy",
        k.weight("xu"),
        advice="Replace some by polynomials on the FMA pipe, or share results between threads.",
    )


@rule("frequent-barriers", family="source", needs=("inst_mix_barrier_pct",))
def frequent_barriers(k: View) -> Found | None:
    """Block barriers are a visible part of the instructions."""
    if k["inst_mix_barrier_pct"] < FREQUENT_BARRIERS:
        return None
    return Found(
        f"{short(k['inst_mix_barrier_pct'], '%')} of the instructions are block barriers",
        "medium",
        advice="Synchronise warps instead of blocks where possible; let one barrier serve more work.",
    )


@rule("branch-divergence", family="source", needs=("branch_efficiency_pct", "divergent_branches"))
def branch_divergence(k: View) -> Found | None:
    """Threads of a warp take different branch targets."""
    if not k["divergent_branches"] or k["branch_efficiency_pct"] >= UNIFORM_BRANCHES:
        return None
    return Found(
        f"Threads agree on only {short(k['branch_efficiency_pct'], '%')} of the branch targets",
        "medium",
        advice="Make the condition the same for all threads of a warp, or sort the work by it.",
    )
