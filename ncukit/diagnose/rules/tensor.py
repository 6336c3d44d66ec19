"""Tensor cores: used or not (counters decide, never names), how well; FP64 on cut-down parts."""

from __future__ import annotations

from ncukit.diagnose.rule import Found, View, rule
from ncukit.diagnose.shares import TENSOR_TYPES
from ncukit.diagnose.words import short

FEW_FP64 = 4.0
"""[inst/cycle] FP64 multiply-adds per SM and cycle: parts cut down to 1/32 or 1/64 start 2."""

VISIBLE_FP64 = 20.0
"""[%] FP64 pipe use from which double precision is worth a look on such parts."""

HALF_READ = 1.6
"""Operations over pipe use, both in percent, from which the pipe counter reads about half."""

WELL_USED = 60.0
"""[%] of the dense tensor peak that good kernels exceed."""

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
        f"Tensor cores work{of}, at {short(share.value, '%')} of {peak}",
        "info" if well else "low",
        advice="" if well else "Feed them: larger tiles, deeper copies, fewer instructions around each MMA.",
    )


@rule("tensor-pipe-without-mma", family="tensor", needs=("pipe_tensor_pct", "tensor_inst"))
def tensor_pipe_without_mma(k: View) -> Found | None:
    """The tensor pipe shows use [%] although no tensor instruction ran."""
    if k["tensor_inst"] > 0 or k["pipe_tensor_pct"] <= 0:
        return None
    return Found(
        f"The tensor pipe reads {short(k['pipe_tensor_pct'], '%')} without a single MMA: packed-half "
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
        f"{short(half, 'FLOP')} of half-precision arithmetic run without tensor cores",
        "low",
        advice="If it is a matrix product, use MMA; elementwise work stays where it is.",
    )


@rule("mma-where-wgmma", family="tensor", needs=("compute_capability", "warp_mma_inst", "warpgroup_mma_inst"))
def mma_where_wgmma(k: View) -> Found | None:
    """Warp-level MMA on a GPU whose full rate needs warp-group MMA."""
    if k["compute_capability"] != 90 or k["warp_mma_inst"] <= 0 or k["warpgroup_mma_inst"] > 0:
        return None
    return Found(
        f"{short(k['warp_mma_inst'])} warp-level MMAs and no warp-group MMA: these reach two thirds of "
        "this GPU's peak",
        "medium" if k.share("tensor") >= 40 else "low",
        advice="Use wgmma (CUTLASS 3, Triton 3) where the tile allows it.",
    )


@rule("tensor-pipe-reads-half", family="tensor", needs=("tensor_busy_pct",))
def tensor_pipe_reads_half(k: View) -> Found | None:
    """The tensor-pipe counter [%] of GeForce boards reads half of operations over peak."""
    share, pipe = k.facts.shares.units.get("tensor"), k["tensor_busy_pct"]
    if share is None or pipe < 5 or (k.get("compute_capability") or 0) not in (86, 89, 120):
        return None
    if share.metric == "tensor_busy_pct":
        if "GeForce" not in k.text("gpu_name"):
            return None
        return Found(
            f"The tensor pipe reads {short(pipe, '%')}; with FP32 accumulation a GeForce may be up to "
            "twice as busy",
            "low",
            advice="Collect the operation counters (SpeedOfLight_HierarchicalTensorRooflineChart) to tell.",
        )
    if share.percent < HALF_READ * pipe:
        return None
    pipe *= share.elapsed / share.percent  # both of the whole time
    return Found(
        f"Tensor operations reach {short(share.elapsed, '%')} of the dense peak although the pipe counter "
        f"reads {short(pipe, '%')}",
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
        f"The FP64 pipe is {short(k.share('fp64'), '%')} busy on a GPU that starts "
        f"{short(k['fp64_units_per_sm'])} FP64 "
        "multiply-adds a cycle and SM",
        k.weight("fp64"),
        advice="Look for double literals and functions (1.0 for 1.0f, pow for powf); use float where the "
        "accuracy allows.",
    )
