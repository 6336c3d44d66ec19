"""The kernels of the samples, and the class and limiter that each is made to have."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.synthetic.description import Access, Kernel, Limit
from tests.synthetic.gpu import A100, H100
from tests.synthetic.program import Instruction


@dataclass(frozen=True)
class Sample:
    """A report: its launches, and for each the (class, limiter) that a diagnosis must find."""

    name: str
    about: str
    launches: tuple[Kernel, ...]
    expected: tuple[tuple[str, str], ...]


def _sum_path(i: Instruction) -> tuple[int, int, int] | None:
    """Return who executes an instruction of ``row_sum``, whose eight warps end in one thread."""
    if i.offset > 0x310:
        return 1, 1, 1
    if i.opcode == "EXIT":
        return 8, 256, 255
    if i.predicate == "@!P0" and i.offset > 0x1C0:
        return 8, 256, 8
    return None


GEMM = Kernel(
    "gemm",
    "_Z4gemmPKtS0_Ptii",
    "gemm(const unsigned short *, const unsigned short *, unsigned short *, int, int)",
    A100,
    grid=(64, 32, 1),
    block=(256, 1, 1),
    registers=174,
    shared_dynamic=73728,
    trips=8192 // 32,
    limit=Limit("tensor", 0.9),
    access={
        r"LDGSTS": Access(16, 16, 4, 4),
        r"LDSM": Access(wavefronts=4, ideal_wavefronts=4),
        r"STG": Access(8, 4, 1, 1),
    },
    l2_hit=0.92,
    write_back=0.5,
    occupancy=0.98,
    stalls={
        "math_pipe_throttle": 0.46,
        "wait": 0.2,
        "not_selected": 0.1,
        "barrier": 0.07,
        "short_scoreboard": 0.06,
        "long_scoreboard": 0.04,
        "mio_throttle": 0.03,
        "dispatch_stall": 0.02,
        "no_instruction": 0.015,
        "branch_resolving": 0.004,
        "drain": 0.001,
    },
)

COPY = Kernel(
    "copy",
    "_Z4copyPK6float4PS_",
    "copy(const float4 *, float4 *)",
    H100,
    grid=(65536, 1, 1),
    block=(256, 1, 1),
    registers=30,
    limit=Limit("dram", 0.915),
    occupancy=0.88,
    stalls={
        "long_scoreboard": 0.86,
        "lg_throttle": 0.05,
        "wait": 0.02,
        "drain": 0.03,
        "imc_miss": 0.01,
        "short_scoreboard": 0.01,
        "no_instruction": 0.01,
        "not_selected": 0.005,
        "dispatch_stall": 0.005,
    },
)

TRANSPOSE = Kernel(
    "transpose",
    "_Z9transposePKfPfi",
    "transpose(const float *, float *, int)",
    H100,
    grid=(256, 256, 1),
    block=(32, 8, 1),
    registers=28,
    shared_static=4096,
    limit=Limit("l1", 0.94),
    access={r"LDS": Access(wavefronts=32, ideal_wavefronts=1)},
    occupancy=0.93,
    stalls={
        "short_scoreboard": 0.46,
        "mio_throttle": 0.24,
        "barrier": 0.12,
        "long_scoreboard": 0.12,
        "lg_throttle": 0.02,
        "wait": 0.015,
        "drain": 0.01,
        "imc_miss": 0.005,
        "no_instruction": 0.005,
        "not_selected": 0.003,
        "dispatch_stall": 0.002,
    },
)

TRANSPOSE_PADDED = replace(
    TRANSPOSE,
    mangled="_Z16transpose_paddedPKfPfi",
    demangled="transpose_padded(const float *, float *, int)",
    shared_static=4224,
    limit=Limit("dram", 0.89),
    access={},
    occupancy=0.9,
    stalls={
        "long_scoreboard": 0.62,
        "barrier": 0.22,
        "lg_throttle": 0.05,
        "short_scoreboard": 0.04,
        "drain": 0.03,
        "wait": 0.02,
        "imc_miss": 0.01,
        "no_instruction": 0.005,
        "not_selected": 0.003,
        "dispatch_stall": 0.002,
    },
)

ROW_SUM = Kernel(
    "row_sum",
    "_Z7row_sumPKfPfi",
    "row_sum(const float *, float *, int)",
    H100,
    grid=(16, 1, 1),
    block=(256, 1, 1),
    registers=14,
    shared_static=32,
    trips=65536 // 256,
    path=_sum_path,
    limit=Limit("latency", cycles=72.0),
    access={
        r"STG": Access(1, 1, 1, 1),
        r"LDS": Access(wavefronts=1, ideal_wavefronts=1),
        r"STS": Access(wavefronts=1, ideal_wavefronts=1),
    },
    stalls={
        "long_scoreboard": 0.93,
        "wait": 0.04,
        "branch_resolving": 0.01,
        "no_instruction": 0.006,
        "short_scoreboard": 0.005,
        "barrier": 0.004,
        "imc_miss": 0.002,
        "not_selected": 0.002,
        "dispatch_stall": 0.001,
    },
)

HORNER = Kernel(
    "horner",
    "_Z6hornerPK6float4PS_iff",
    "horner(const float4 *, float4 *, int, float, float)",
    H100,
    grid=(4224, 1, 1),
    block=(256, 1, 1),
    registers=29,
    trips=64,
    limit=Limit("fma", 0.88),
    occupancy=0.96,
    stalls={
        "not_selected": 0.56,
        "wait": 0.22,
        "math_pipe_throttle": 0.12,
        "dispatch_stall": 0.05,
        "no_instruction": 0.02,
        "long_scoreboard": 0.02,
        "branch_resolving": 0.01,
    },
)

TENSOR = ("compute-bound", "tensor")
DRAM = ("memory-bound", "dram")
SHARED = ("memory-bound", "shared")
SMALL = ("latency-bound", "small-grid")
FP32 = ("compute-bound", "fp32")

SAMPLES = (
    Sample(
        "gemm-tensor", "FP16 GEMM, 8192 x 8192 x 8192, on the tensor cores of an A100", (GEMM,), (TENSOR,)
    ),
    Sample("copy-dram", "Copy of 1 GiB at the speed of the device memory of an H100", (COPY,), (DRAM,)),
    Sample(
        "transpose-bank-conflicts",
        "Transpose of 8192 x 8192 floats, every column of the tile in one bank",
        (TRANSPOSE,),
        (SHARED,),
    ),
    Sample("row-sum-small-grid", "Sums of 16 rows on a GPU with 132 SMs", (ROW_SUM,), (SMALL,)),
    Sample("horner-fp32", "Polynomials by Horner's rule: FFMA and little else", (HORNER,), (FP32,)),
    Sample(
        "several-launches",
        "One step of a program: copy, transpose without bank conflicts, polynomials, a small sum",
        (
            replace(COPY, grid=(16384, 1, 1), ranges=("step", "load")),
            replace(TRANSPOSE_PADDED, ranges=("step", "layout")),
            replace(HORNER, trips=32, ranges=("step", "compute")),
            replace(ROW_SUM, ranges=("step", "check")),
        ),
        (DRAM, DRAM, FP32, SMALL),
    ),
)
