"""Small diagnosed launches for the tests of the pages; numbers as a real report has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncukit.judge.ledger import FactsOnDemand
from ncukit.model import (
    Check,
    Diagnosis,
    Evidence,
    Finding,
    Kernel,
    Point,
    ReportFile,
    Roof,
    Roofline,
    RuleResult,
    Skipped,
    Value,
    Verdict,
)
from ncukit.model.diagnosis import CodePlace, Expected, Trial
from tests.builders import kernel, raw_kernel

FILE = ReportFile("/home/someone/runs/transpose.ncu-rep", 568_389, "c5a0c08e60ab" + "0" * 52, launches=1)
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'`${x}{{7*7}}"
    "\u202egnp.exe\u2066\x00\x1b[31m\u2028\ud800<!--"
)
"""What a name in a report may hold: markup, quotes, templates, marks that reorder, controls, a surrogate."""

_TRANSPOSE: dict[str, Any] = {
    "gpu_name": "NVIDIA RTX A4500",
    "compute_capability": 86,
    "sm_count": 56,
    "kernel_duration": 0.001417472,
    "sm_clock": 1.05e9,
    "sm_clock_max": 1.65e9,
    "dram_clock": 7.59e9,
    "dram_clock_max": 8.0e9,
    "l2_cache_size": 5 * 2**20,
    "replay_passes": 42,
    "sm_throughput_pct": 22.6,
    "memory_throughput_pct": 90.2,
    "l1_throughput_pct": 90.5,
    "l2_throughput_pct": 26.6,
    "dram_throughput_pct": 61.9,
    "issue_slot_utilization_pct": 7.1,
    "achieved_occupancy_pct": 93.9,
    "theoretical_occupancy_pct": 100.0,
    "sm_active_pct": 99.7,
    "pipe_lsu_pct": 22.7,
    "pipe_alu_pct": 3.8,
    "pipe_fp64_pct": 0,
    "pipe_tma_pct": Value(
        "pipe_tma_pct",
        None,
        "%",
        reason="not on this GPU (CC 8.6); absent: below CC 9.0",
        lack="absent",
        short="not on this GPU",
    ),
    "dram_bytes": 534_000_000,
    "dram_read_bytes": 268_000_000,
    "dram_write_bytes": 266_000_000,
    "dram_bandwidth": 376e9,
    "peak_dram_bandwidth": 607e9,
    "shared_bytes": Value("shared_bytes", 9.04e9, "byte", "estimate", ("l1tex__wavefronts.sum",)),
    "shared_bank_conflict_pct": Value(
        "shared_bank_conflict_pct", 92.0, "%", "derived", ("a.sum", "b.sum"), formula="{a.sum}/{b.sum}*100"
    ),
    "shared_wavefronts": 70_700_000,
    "l1_hit_rate_pct": 0,
    "l1_sectors": 16_800_000,
    "l2_hit_rate_from_l1_pct": 50.0,
    "l2_write_hit_rate_pct": Value(
        "l2_write_hit_rate_pct", 152.0, "%", "exact", ("x.pct",), "unreliable: above 100 %", reliable=False
    ),
    "global_load_sectors_per_request": 4.0,
    "grid_size": 65_536,
    "block_size": 256,
    "grid_dim_x": 256,
    "grid_dim_y": 256,
    "grid_dim_z": 1,
    "block_dim_x": 32,
    "block_dim_y": 8,
    "block_dim_z": 1,
    "registers_per_thread": 24,
    "shared_mem_allocated": 5120,
    "waves_per_sm": 195.0,
    "warps_issued_per_scheduler": 0.0709,
    "warp_cycles_per_issued_instruction": 158.5,
    "stall_cycles_shared_queue_full": 83.8,
    "stall_cycles_global_memory_dependency": 23.1,
    "stall_cycles_block_barrier": 22.2,
    "stall_cycles_selected": 1.0,
    "stall_samples_shared_queue_full": 43_130,
    "stall_samples_global_memory_dependency": 12_519,
    "stall_samples_block_barrier": 10_520,
    "pc_samples": 81_376,
    "pc_sampling_interval": 1024,
    "pc_samples_dropped_bytes": 0,
    "inst_executed": 23_600_000,
    "inst_issued": 23_620_000,
    "inst_mix_integer_pct": 40.0,
    "inst_mix_global_memory_pct": 17.8,
    "flops_total": 0,
}

RULES = (
    RuleResult(
        "SharedMemoryConflicts",
        "Shared Memory Conflicts",
        "MemoryWorkloadAnalysis_Tables",
        (("optimization", "Shared Load Bank Conflicts", "See @section:SourceCounters:Source Counters@."),),
        87.2,
        "global",
    ),
    RuleResult(
        "HighPipeUtilization",
        "High Pipe Utilization",
        "ComputeWorkloadAnalysis",
        (("optimization", "Low Utilization", "All compute pipelines are under-utilized."),),
        96.2,
        "local",
    ),
    RuleResult("Empty", "Empty", "X", (("none", "", ""),)),
    RuleResult(
        "PCSamplingData",
        "PC sampling data",
        "SourceCounters",
        (
            (
                "error",
                "",
                'Traceback (most recent call last):\n  File "/opt/nvidia/ncu/sections/x.py"\nKeyError',
            ),
        ),
    ),
)

EXPERIMENT = Trial(
    "Pad the shared tile by one column",
    "-   __shared__ float tile[TILE][TILE];\n+   __shared__ float tile[TILE][TILE + 1];",
    "A row of 33 words puts the elements of a column into different banks.",
    "About 1.0 ms instead of 1.42 ms.",
    "`shared_load_bank_conflicts` goes to 0.",
    "the conflicts go to 0 and the clean time improves by less than 5 %.",
    "128 B more shared memory a block.",
    ("ncu --set full -o padded ./transpose", "ncukit compare transpose.ncu-rep padded.ncu-rep"),
    "pad-shared",
    1.42,
    checks=(
        Expected("shared_load_bank_conflicts", "<=", 0.1, "base"),
        Expected("clean_time", "<=", 0.95, "base"),
    ),
    places=(CodePlace("transpose.cu", 21, 0x210),),
)

VERDICT = Verdict(
    "memory-bound",
    "shared",
    "high",
    "Bank conflicts on shared-memory loads saturate the L1 data pipe",
    (
        Evidence(
            "l1_throughput_pct",
            90.5,
            "%",
            "of peak: the L1/TEX data pipe",
            "limit",
            "the L1/TEX data pipe",
        ),
        Evidence("shared_bank_conflict_pct", 92.0, "%", "of the wavefronts are `conflicts`"),
    ),
    (Evidence("dram_throughput_pct", 61.9, "%", "of DRAM peak: not the limit now"),),
    EXPERIMENT,
)

INSTRUCTIONS = Roofline(
    (
        Point("inst", "dram", 23.6e6, 534e6, 0.0441, 16.6e9, 26.8e9, 235e9, 607e9, "exact", ("inst.sum",)),
        Point("inst", "l2", 23.6e6, 537e6, 0.0439, 16.6e9, None, 235e9, None, "exact", ("inst.sum",)),
        Point("inst", "l1", 23.6e6, 537e6, 0.0439, 16.6e9, 235e9, 235e9, 7.52e12, "estimate", ("inst.sum",)),
    ),
    (
        Roof("compute", "inst", 235e9, "derived"),
        Roof("bandwidth", "dram", 607e9, "exact"),
        Roof("bandwidth", "l1", 7.52e12, "derived"),
    ),
    (Check("below-roof", True, "Every point lies on or below its roof."),),
    ("No l2 roof: not collected.",),
)

FLOPS = Roofline(
    (
        Point("fp64", "dram", 1.75e8, 9.5e6, 18.3, 123.5e9, 235e9, 235e9, 607e9, "derived", ("f64.sum",)),
        Point("fp32", "dram", 9.5e6, 9.5e6, 0.99, 6.7e9, 602e9, 15e12, 607e9, "derived", ("f32.sum",)),
    ),
    (
        Roof("compute", "fp64", 235e9, "exact"),
        Roof("compute", "fp32", 15e12, "exact"),
        Roof("bandwidth", "dram", 607e9, "exact"),
    ),
    (Check("pipe", False, "fp64 reaches more than its pipe: suspect the convention."),),
)


def transpose(index: int = 0, name: str = "transposeCoalesced", **changed: Any) -> Diagnosis:
    """Return a launch with counters of every family, limited by shared memory; ``changed`` metrics aside."""
    made = launch(index, name, **changed)
    values = {"shared_bank_conflict_pct": made.metrics["shared_bank_conflict_pct"]}
    found = Finding(
        "bank-conflicts", "memory", "Shared loads are 32-way bank conflicts", "high", "32 wavefronts a load.",
        "Pad or swizzle.", values, "transpose.cu:95", 40.0, "global",
    )  # fmt: skip
    skipped = (Skipped("divergence", "scheduler", "needs `active_threads_per_warp`: not collected"),)
    return Diagnosis(made, INSTRUCTIONS, VERDICT, (found,), skipped, facts=FactsOnDemand(made))


def launch(index: int = 0, name: str = "transposeCoalesced", **changed: Any) -> Kernel:
    """Return the launch of :func:`transpose`, without any conclusion."""
    raw = raw_kernel(
        name,
        {"a.sum": 65_011_712, "b.sum": 70_664_192, "test": 1, "x.pct": 152.04},
        index=index,
        demangled=f"void {name}<32, float>(float *, float *, int, int)",
        sections=("SpeedOfLight", "WarpStateStats"),
        rules=RULES,
        nvtx=("step 3",),
    )
    breakdowns = {
        "memory_throughput_pct": {"l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 90.2}
    }
    return kernel(raw=raw, file=FILE.path, breakdowns=breakdowns, **{**_TRANSPOSE, **changed})


def undetermined(index: int = 0) -> Diagnosis:
    """Return a launch of which only the duration and its shape were collected."""
    raw = raw_kernel("transposeMatrix", {"test": 1}, index=index)
    made = kernel(
        raw=raw,
        gpu_name="NVIDIA GeForce RTX 5060 Ti",
        compute_capability=120,
        kernel_duration=6.1e-5,
        grid_size=4096,
    )
    verdict = Verdict(
        "undetermined",
        None,
        "low",
        "What limits this launch cannot be said from this report",
        missing=("Throughputs: `--section SpeedOfLight`", "Stall reasons: `--section WarpStateStats`"),
    )
    return Diagnosis(
        made,
        Roofline(missing=("No FLOP point: floating-point work is unknown.",)),
        verdict,
        facts=FactsOnDemand(made),
    )


def failed(index: int = 0) -> Diagnosis:
    """Return a launch whose collection failed: NaN duration, peaks of 0, one counter that looks valid."""
    metrics = {
        "gpu__time_duration.sum": float("nan"),
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": float("nan"),
        "dram__bytes.sum.peak_sustained": 0.0,
        "smsp__maximum_warps_avg_per_active_cycle": 1.0,
        "launch__grid_size": 128,
    }
    reason = "the profiling pass failed: the duration is not a number"
    raw = raw_kernel("nodeByPoint5", metrics, index=index, rules=RULES)
    why = f"failed pass: {reason}"
    lost = Value("kernel_duration", None, "s", reason=why, lack="failed", short="failed pass")
    made = kernel(
        raw=raw,
        failed=reason,
        gpu_name="NVIDIA A100",
        compute_capability=80,
        grid_size=128,
        kernel_duration=lost,
    )
    return Diagnosis(made, Roofline(), Verdict("failed", None, "low", "The launch has no valid measurement"))


def fp64(index: int = 0) -> Diagnosis:
    """Return a launch with two precisions, limited by the fp64 pipe."""
    made = launch(index, "sobel", pipe_fp64_pct=86.4, flops_total=1.8e8)
    verdict = Verdict(
        "compute-bound",
        "fp64",
        "high",
        "The FP64 pipe is full",
        (
            Evidence(
                "pipe_fp64_pct",
                86.4,
                "%",
                "of peak: FP64 pipe, while an SM has work",
                "limit",
                "FP64 pipe",
                "active",
            ),
        ),
    )
    return Diagnosis(made, FLOPS, verdict, facts=FactsOnDemand(made))


def many(count: int) -> list[Diagnosis]:
    """Return ``count`` launches of five kernels, of different length."""
    names = ("rej_uniform", "cbd", "ntt", "invntt", "copy")
    found = []
    for i in range(count):
        change = {"kernel_duration": (1 + (i * 7919) % 997) * 1e-6, "dram_throughput_pct": float(i % 90)}
        one = transpose(i, names[i % len(names)], **change)
        points = tuple(
            replace(p, intensity=(p.intensity or 0) * (1 + i % 13), achieved=(p.achieved or 0) / (1 + i % 7))
            for p in one.roofline.points
        )
        found.append(replace(one, roofline=replace(one.roofline, points=points)))
    return found


H100: dict[str, Any] = {
    "compute_capability": 90,
    "max_warps_per_sm": 64,
    "shared_mem_driver": 1024,
    "shared_mem_config": 233_472,
    "shared_mem_static": 0,
    "shared_mem_dynamic": 0,
    "achieved_occupancy_pct": 70.0,
}
H100_LIMITS = {
    "max_registers_per_sm": 65_536,
    "max_registers_per_thread": 255,
    "max_threads_per_block": 1024,
    "max_blocks_per_sm": 32,
    "max_shared_mem_per_sm": 233_472,
    "max_shared_mem_per_block": 232_448,
    "reserved_shared_mem": 1024,
}
"""An H100 as its attributes describe it: metrics, and what only signals hold."""

_SERIES = {
    "pmsampling:dram__throughput.avg.pct_of_peak_sustained_elapsed": (
        tuple(range(0, 400_000, 1000)),
        tuple(float(20 + n % 60) for n in range(400)),
    )
}


def charted() -> Diagnosis:
    """Return a launch with every chart: memory, issue slots, occupancy, counters over time."""
    made = kernel(
        raw=raw_kernel("transpose", series=_SERIES),
        signals={
            **H100_LIMITS,
            "global_load_bytes": 268_000_000,
            "link_global_load_pct": 2.5,
            "shared_load_bytes": 9_000_000_000,
            "link_shared_load_pct": 84.6,
            "link_dram_read_pct": 31.0,
        },
        **{
            **H100,
            "kernel_duration": 1.4e-3,
            "block_size": 256,
            "registers_per_thread": 80,
            "sm_active_pct": 97.0,
            "warps_issued_per_scheduler": 0.07,
            "stall_cycles_shared_queue_full": 83.8,
            "stall_cycles_global_memory_dependency": 23.1,
            "l1_throughput_pct": 90.5,
            "dram_throughput_pct": 61.9,
            "dram_read_bytes": 268_000_000,
            "dram_write_bytes": 0,
            "l1_hit_rate_pct": 0.2,
            "l2_hit_rate_from_l1_pct": 50.0,
            "shared_bank_conflict_pct": 92.0,
        },
    )
    return Diagnosis(made, INSTRUCTIONS, VERDICT, facts=FactsOnDemand(made))
