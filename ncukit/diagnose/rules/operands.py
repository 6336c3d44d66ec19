"""Tensor cores: how their operands arrive, and whether the pipe's use is theirs at all."""

from __future__ import annotations

import re

from ncukit.diagnose.places import listed, places
from ncukit.diagnose.rule import Found, Gain, View, rule
from ncukit.diagnose.rules.coalescing import access_width
from ncukit.diagnose.shares import TENSOR_WITHOUT_OPCODES
from ncukit.diagnose.steps.grid import QUIET
from ncukit.quantity import brief

FULL_WIDTH = 0.75
"""Share of the global loads that are 16 bytes wide in a kernel whose operands are aligned."""

ALIGNED = re.compile(r"align(\d+)\b")
"""Alignment [element] in the names of CUTLASS kernels: a hint, no proof."""

GLOBAL_LOADS = re.compile(r"^(LDG|LDGSTS)\b")

VISIBLE_PIPE = 0.5
"""[%] Use of the tensor pipe worth a word: less is a handful of constants."""


@rule("tensor-alignment", family="tensor", needs=("tensor_inst", "@code"))
def tensor_alignment(k: View) -> Found | None:
    """Operands of MMA are loaded in less than 16 bytes a thread: rows are not aligned."""
    assert k.source is not None
    rows = [row for row in k.source.rows if GLOBAL_LOADS.match(row.opcode) and row.cost.instructions]
    count = sum(row.cost.instructions or 0 for row in rows)
    if not k["tensor_inst"] or not count or (k.get("tma_load_bytes") or 0) > 0:
        return None
    wide = sum(row.cost.instructions or 0 for row in rows if access_width(row.opcode) == 16)
    if wide >= FULL_WIDTH * count:
        return None
    named = ALIGNED.search(k.facts.kernel.demangled)
    hint = f" Its name says alignment to {named[1]} elements." if named else ""
    where = places(
        k.source,
        lambda c: c.instructions,
        "inst",
        lambda row: bool(GLOBAL_LOADS.match(row.opcode)) and access_width(row.opcode) < 16,
    )
    return Found(
        f"Only {brief(100 * wide / count, '%')} of the global loads of this MMA kernel are 16 bytes wide",
        "medium" if k.share("lsu") >= 40 or (named is not None and int(named[1]) < 8) else "low",
        advice="Make leading dimensions multiples of 16 bytes (8 half elements) and align the pointers; pad "
        "odd shapes.",
        detail=(f"Of the narrow loads {listed(where)}." if where else "") + hint,
        gain=Gain(
            100 * (1 - wide / count) * 0.75,
            "local",
            "of the load instructions, if 4-byte loads became 16-byte ones",
        ),
        places=where,
    )


@rule("tensor-pipe-untold", family="tensor", needs=("tensor_busy_pct",))
def tensor_pipe_untold(k: View) -> Found | None:
    """The tensor pipe is little used, and nothing tells whether by MMA."""
    pipe = k["tensor_busy_pct"]
    if k.get("tensor_inst") is not None or "tensor" in k.facts.shares.units:
        return None
    if not VISIBLE_PIPE <= pipe < TENSOR_WITHOUT_OPCODES:
        return None
    return Found(
        f"The tensor pipe is {brief(pipe, '%')} busy; whether with MMA or with packed-half constants was not "
        "collected",
        "info",
        advice="Collect opcodes (section InstructionStats) to tell: if it is MMA, it is far from its peak.",
    )


@rule(
    "unstaged-operands",
    family="tensor",
    needs=("shared_mem_static", "shared_mem_dynamic", ("tensor_inst", "tensor_busy_pct")),
)
def unstaged_operands(k: View) -> Found | None:
    """A kernel on the tensor pipe allocates no shared memory: nothing is staged or shared in a block."""
    counted, pipe = k.get("tensor_inst"), k.get("tensor_busy_pct") or 0.0
    used = counted > 0 if counted is not None else pipe >= VISIBLE_PIPE
    if not used or k["shared_mem_static"] + k["shared_mem_dynamic"] > 0:
        return None
    way = max(k.share(unit) for unit in ("l1", "lsu", "l2", "dram"))
    if way < QUIET:
        return None
    return Found(
        "No shared memory is allocated: the operands of MMA come straight from global memory, each warp "
        f"fetching its own, and what they pass is {brief(way, '%')} busy",
        k.weight("l1", "lsu", "l2", "dram"),
        advice="Stage tiles in shared memory (cp.async from compute capability 8.0 on), so that the warps of "
        "a block share them.",
        detail="" if counted else "That the tensor pipe ran MMA is not proven: no opcodes were collected.",
    )
