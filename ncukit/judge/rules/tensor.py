"""Rules on tensor cores and FP64: used or not, how well, how their operands arrive."""

from __future__ import annotations

import re

from ncukit.judge.grid import QUIET
from ncukit.judge.places import first_place, places
from ncukit.judge.rule import Found, Gain, View, rule
from ncukit.judge.rules.global_memory import access_width
from ncukit.judge.shares import TENSOR_WITHOUT_OPCODES, states
from ncukit.metrics import load
from ncukit.metrics.evaluation import tensor_dtype
from ncukit.metrics.expression import OPCODES_FULL
from ncukit.model.shares import HALF_READ, TENSOR_TYPES
from ncukit.quantity import brief

# ---- Tensor cores: used or not (counters decide, never names), how well; FP64 on cut-down parts

FEW_FP64 = 4.0
"""[inst/cycle] FP64 multiply-adds per SM and cycle: parts cut down to 1/32 or 1/64 start 2."""

VISIBLE_FP64 = 20.0
"""[%] FP64 pipe use from which double precision is worth a look on such parts."""

WELL_USED = 60.0
"""[%] of the dense tensor peak that good kernels exceed."""

MATTERS = 2.0
"""[%] of the instructions that are MMA from which tensor cores are what the kernel is about."""

TCGEN05 = (100, 101, 103, 110)
"""Compute capabilities x 10 whose full rate needs tcgen05 MMA; CC 12.x has none."""

SLOWER = {90: ("two thirds", "wgmma (CUTLASS 3, Triton 3)"), 100: ("a quarter", "tcgen05 MMA")}
"""What warp-level MMA reaches of the peak, and what reaches all of it, by compute capability x 10."""

TENSOR_COUNTS = (
    "tensor_inst",
    "flops_tensor_fp16",
    "flops_tensor_bf16",
    "flops_tensor_int8",
    "pipe_tensor_pct",
)


@rule("tensor-use", family="tensor", needs=(TENSOR_COUNTS,))
def tensor_use(k: View) -> Found | None:
    """Tensor cores are used, for which type, at which share [%] of the dense peak."""
    share = k.facts.shares.units.get("tensor")
    if share is None:
        return None
    types = [t for t in TENSOR_TYPES if (k.get(f"flops_tensor_{t}") or 0) > 0]
    k.share("tensor")
    of = f" on {', '.join(t.upper() for t in types)}" if types else ""
    peak = "their pipe" if share.metric == "tensor_busy_pct" else "the dense peak"
    well = share.percent >= WELL_USED
    return Found(
        f"Tensor cores work{of}, at {brief(share.value, '%')} of {peak}",
        "info" if well else "low",
        advice="" if well else "Feed them: larger tiles, deeper copies, fewer instructions around each MMA.",
        detail=_opcodes(k),
    )


def _opcodes(k: View) -> str:
    """Return the tensor opcodes that ran, most first, with their count and input type."""
    opcodes = load().opcodes
    ran = [
        (str(opcode), float(count))
        for opcode, count in k.facts.kernel.raw.instances.get(OPCODES_FULL, ())
        if count and opcodes.class_of(str(opcode).split(".")[0]) == "tensor"
    ]
    if not ran:
        return ""
    ran.sort(key=lambda item: -item[1])
    rest = f" and {len(ran) - 3} more kinds" if len(ran) > 3 else ""
    said = [f"{brief(count)} {opcode} ({_type(opcode)})" for opcode, count in ran[:3]]
    return f"By opcode: {', '.join(said)}{rest}."


def _type(opcode: str) -> str:
    name, *modifiers = opcode.split(".")
    found = tensor_dtype(name, modifiers)
    return "type in a descriptor" if found == "unknown" else found.upper()


@rule("tensor-feeding", family="tensor", needs=("inst_mix_tensor_pct", "tensor_busy_pct"))
def tensor_feeding(k: View) -> Found | None:
    """Tensor cores have work and are not full: what keeps them waiting."""
    share = k.facts.shares.units.get("tensor")
    if share is None or share.percent >= WELL_USED or k["inst_mix_tensor_pct"] < MATTERS:
        return None
    others = [s for s in k.facts.shares.ranked() if s.unit.id not in ("tensor", "issue")]
    busiest = max(others, key=lambda s: s.percent, default=None)
    waits = k.facts.waits
    said = []
    if busiest is not None:
        k.share(busiest.unit.id)
        said.append(f"{busiest.name} is at {brief(busiest.percent, '%')}")
    if waits is not None and waits.matter:
        state, held = waits.top()
        k.get(waits.metric(state))
        said.append(f"{brief(held, '%')} of the warp latency is {states()[state][1]}")
    if not said:
        return None
    return Found(
        f"Tensor cores are {brief(share.percent, '%')} busy: {' and '.join(said)}",
        "medium" if (k.get("blocks_per_sm") or 1.0) >= 0.9 else "low",
        advice="Relieve what is named: larger tiles for L2 and DRAM, more stages for latency, fewer "
        "instructions around each MMA for the ALU.",
        gain=Gain(
            100 * (1 - share.percent / WELL_USED),
            "local",
            f"until the tensor cores are {WELL_USED:.0f} % busy, which good kernels exceed",
        ),
    )


@rule("tensor-pipe-without-mma", family="tensor", needs=("pipe_tensor_pct", "tensor_inst"))
def tensor_pipe_without_mma(k: View) -> Found | None:
    """The tensor pipe shows use [%] although no tensor instruction ran."""
    if k["tensor_inst"] > 0 or k["pipe_tensor_pct"] <= 0:
        return None
    return Found(
        f"The tensor pipe reads {brief(k['pipe_tensor_pct'], '%')} without a single MMA: packed-half "
        "constants run on it",
        "info",
        advice="The kernel does not use tensor cores.",
    )


@rule("half-math-without-tensor", family="tensor", needs=("tensor_inst", "flops_fp16", "flops_fp32"))
def half_math_without_tensor(k: View) -> Found | None:
    """Half-precision multiply-adds run on the ordinary pipes."""
    half, single = k["flops_fp16"], k["flops_fp32"]
    if k["tensor_inst"] > 0 or half <= single or half == 0:
        return None
    return Found(
        f"{brief(half, 'FLOP')} of half-precision arithmetic run without tensor cores",
        "low",
        advice="If it is a matrix product, use MMA; elementwise work stays where it is.",
    )


@rule("fp32-without-tensor", family="tensor", needs=("tensor_inst", "flops_fp32", "inst_mix_fp32_pct"))
def fp32_without_tensor(k: View) -> Found | None:
    """FP32 multiply-adds fill the FMA pipe on a GPU whose tensor cores take TF32."""
    if k["tensor_inst"] > 0 or k["inst_mix_fp32_pct"] < 50 or k.share("fp32") < 60:
        return None
    tensor, ordinary = k.get("peak_flop_rate_tensor_tf32"), k.get("peak_flop_rate_fp32")
    if not tensor or not ordinary or tensor < 2 * ordinary:
        return None
    return Found(
        f"{brief(k['flops_fp32'], 'FLOP')} of FP32 fill the FMA pipe ({brief(k.share('fp32'), '%')}), while "
        f"TF32 tensor cores could do {brief(tensor / ordinary)} times as many a second",
        "low",
        advice="If it is a matrix product and ten bits of mantissa will do, use TF32 MMA; elementwise work "
        "stays where it is.",
        gain=Gain(
            100 * (1 - ordinary / tensor), "local", "of the FMA pipe's work, at the ratio of the two peaks"
        ),
    )


@rule("mma-where-wgmma", family="tensor", needs=("compute_capability", "warp_mma_inst", "warpgroup_mma_inst"))
def mma_where_wgmma(k: View) -> Found | None:
    """Warp-level MMA on a GPU whose full rate needs warp-group or tcgen05 MMA."""
    cc = int(k["compute_capability"])
    known = SLOWER.get(100 if cc in TCGEN05 else cc)
    wider = k["warpgroup_mma_inst"] + (k.get("tcgen05_mma_inst") or 0)
    if known is None or k["warp_mma_inst"] <= 0 or wider > 0:
        return None
    part, better = known
    return Found(
        f"{brief(k['warp_mma_inst'])} warp-level MMAs and no wider one: these reach {part} of "
        "this GPU's peak",
        "medium" if k.share("tensor") >= 40 else "low",
        advice=f"Use {better} where the tile allows it.",
        gain=Gain(
            33.3 if cc == 90 else 75.0, "local", f"of the MMA's own time: warp-level MMA reaches {part}"
        ),
    )


@rule("tensor-pipe-reads-half", family="tensor", needs=("tensor_busy_pct",))
def tensor_pipe_reads_half(k: View) -> Found | None:
    """The tensor-pipe counter [%] of GeForce boards reads half of operations over peak."""
    share, pipe = k.facts.shares.units.get("tensor"), k["tensor_busy_pct"]
    if share is None or pipe < 5 or (k.get("compute_capability") or 0) not in (86, 89, 120):
        return None
    if share.metric == "tensor_busy_pct":
        counted = any(k.get(f"tensor_{kind}_share_pct") for kind in TENSOR_TYPES)
        if counted or "GeForce" not in k.text("gpu_name"):
            return None
        return Found(
            f"The tensor pipe reads {brief(pipe, '%')}; with FP32 accumulation a GeForce may be up to "
            "twice as busy",
            "low",
            advice="Collect the operation counters (SpeedOfLight_HierarchicalTensorRooflineChart) to tell.",
        )
    if share.percent < HALF_READ * pipe:
        return None
    pipe *= share.elapsed / share.percent  # both of the whole time
    return Found(
        f"Tensor operations reach {brief(share.elapsed, '%')} of the dense peak although the pipe counter "
        f"reads {brief(pipe, '%')}",
        "info",
        advice="Judge by operations: with FP32 accumulation the pipe of a GeForce runs at half rate.",
    )


@rule(
    "fp64-on-cut-down-part", family="tensor", needs=("fp64_units_per_sm", ("pipe_fp64_pct", "fp64_busy_pct"))
)
def fp64_on_cut_down_part(k: View) -> Found | None:
    """Double precision on a GPU with few FP64 units."""
    if k["fp64_units_per_sm"] > FEW_FP64 or k.share("fp64") < VISIBLE_FP64:
        return None
    return Found(
        f"The FP64 pipe is {brief(k.share('fp64'), '%')} busy on a GPU that starts "
        f"{brief(k['fp64_units_per_sm'])} FP64 "
        "multiply-adds a cycle and SM",
        k.weight("fp64"),
        advice="Look for double literals and functions (1.0 for 1.0f, pow for powf); use float where the "
        "accuracy allows.",
    )


# ---- Tensor cores: how their operands arrive, and whether the pipe's use is theirs at all

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
        detail=(f"Of the narrow loads {first_place(where)}." if where else "") + hint,
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
