"""Every rule: trips, stays quiet, and is skipped with the reason when a needed metric is not there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from ncukit.judge import RULES
from ncukit.judge.facts import Facts
from ncukit.judge.rule import SPECIAL, Rule, apply_rules, entries, rule
from ncukit.judge.shares import WORKING, advice, states
from ncukit.metrics import load
from ncukit.metrics.expression import OPCODES_FULL
from ncukit.model import Finding, Kernel, Skipped, Value
from tests import builders

Launch = dict[str, Any]


def launch(breakdowns: dict[str, dict[str, float]] | None = None, **values: Any) -> Kernel:
    """Return a launch from metrics and signals by id; ``code`` are rows of `builders.code`."""
    rows, opcodes = values.pop("code", ()), values.pop("opcodes", {})
    instances = {"instances": {OPCODES_FULL: tuple(opcodes.items())}} if opcodes else {}
    raw = builders.raw_kernel(**(builders.code(*rows) if rows else {}), **instances)
    signals = {id: value for id, value in values.items() if id in load().signals}
    neutral = {id: value for id, value in values.items() if id not in signals}
    return builders.kernel(raw=raw, signals=signals, breakdowns=breakdowns, **neutral)


def outcome(id: str, kernel: Kernel) -> Finding | Skipped | None:
    return RULES[id].apply(Facts.of(kernel))


@dataclass
class Case:
    """A launch that trips the rule, one that does not, and a part of the finding's title."""

    trips: Launch
    quiet: Launch
    says: str
    also_quiet: list[Launch] = field(default_factory=list)


STALLS = {"stall_cycles_selected": 1.0, "warps_issued_per_scheduler": 0.2}
FULL_L1 = {"l1_throughput_pct": 90.0, "dram_throughput_pct": 40.0}
STAGED = {
    "compute_capability": 80,
    "global_load_opcode_inst": 5e4,
    "shared_store_opcode_inst": 5e4,
    "cp_async_inst": 0.0,
    "inst_executed": 1e6,
}
ON_H100 = {
    "compute_capability": 90,
    "max_warps_per_sm": 64,
    "block_size": 256,
    "registers_per_thread": 32,
    "shared_mem_static": 0,
    "shared_mem_driver": 1024,
    "reserved_shared_mem": 1024,
    "max_registers_per_sm": 65_536,
    "max_blocks_per_sm": 32,
    "max_shared_mem_per_sm": 233_472,
    "theoretical_occupancy_pct": 25.0,
    "occupancy_limiter": "shared_mem",
}
FMA = {"tensor_inst": 0.0, "flops_fp32": 1e12, "inst_mix_fp32_pct": 70.0, "pipe_fma_pct": 85.0}
WAIT = {"long_scoreboard": 900}
CONFLICTS = {"shared_load_bank_conflicts": 31e6, "shared_load_wavefronts": 32e6}

CASES: dict[str, Case] = {
    # speed of light
    "busiest-unit": Case(
        {"dram_throughput_pct": 91.0}, {"dram_throughput_pct": 40.0}, "DRAM is the busiest unit"
    ),
    "nothing-busy": Case(
        {"sm_throughput_pct": 12.0, "memory_throughput_pct": 18.0},
        {"sm_throughput_pct": 12.0, "memory_throughput_pct": 88.0},
        "No unit is busy",
    ),
    "one-number-twice": Case(
        {
            "sm_throughput_pct": 91.4,
            "memory_throughput_pct": 91.4,
            "breakdowns": {
                "sm_throughput_pct": {"sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed": 91.4},
                "memory_throughput_pct": {"l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed": 91.4},
            },
        },
        {
            "sm_throughput_pct": 91.4,
            "memory_throughput_pct": 91.4,
            "breakdowns": {
                "sm_throughput_pct": {"sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed": 91.4},
                "memory_throughput_pct": {"dram__cycles_active.avg.pct_of_peak_sustained_elapsed": 91.4},
            },
        },
        "both are the load/store pipe",
    ),
    "leading-metrics": Case(
        {
            "sm_throughput_pct": 88.0,
            "memory_throughput_pct": 40.0,
            "breakdowns": {
                "sm_throughput_pct": {"sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed": 88.0},
                "memory_throughput_pct": {"lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 40.0},
            },
        },
        {"sm_throughput_pct": 88.0},
        "Compute throughput (88.0\u202f%) is its ALU pipe and memory throughput (40.0\u202f%) is its L2 data",
    ),
    "nothing-measured": Case(
        {"kernel_duration": 6e-5, "waves_per_sm": 4.0},
        {"kernel_duration": 6e-5, "dram_throughput_pct": 3.0},
        "only the duration and the launch configuration",
    ),
    "intensity": Case(
        {
            "arithmetic_intensity_dram": 0.0835,
            "ridge_point_fp32_dram": 14.9,
            "flops_total": 1e9,
            "tensor_inst": 0.0,
        },
        {
            "arithmetic_intensity_dram": 0.0,
            "ridge_point_fp32_dram": 14.9,
            "flops_total": 0.0,
            "tensor_inst": 0.0,
        },
        "0.0835 FLOP for each byte of DRAM traffic, below the 14.9",
        [  # tensor work has a roof of its own, and may run where opcodes were not collected
            {
                "arithmetic_intensity_dram": 9.0,
                "ridge_point_fp32_dram": 14.9,
                "flops_total": 1e9,
                "tensor_inst": 5.0,
            },
            {"arithmetic_intensity_dram": 9.0, "ridge_point_fp32_dram": 14.9, "flops_total": 1e9},
        ],
    ),
    "partly-measured": Case(
        {"kernel_duration": 6e-5, "sm_throughput_pct": 40.0, "memory_throughput_pct": 50.0},
        {
            "kernel_duration": 6e-5,
            "sm_throughput_pct": 40.0,
            "memory_throughput_pct": 50.0,
            "dram_throughput_pct": 50.0,
            **STALLS,
            **{"stall_cycles_global_memory_dependency": 4.0},
        },
        "Not collected: DRAM throughput and stall reasons",
        [
            {"kernel_duration": 6e-5},  # nothing-measured says it
            {  # why warps wait does not matter where a unit is full
                "kernel_duration": 6e-5,
                "sm_throughput_pct": 20.0,
                "memory_throughput_pct": 92.0,
                "dram_throughput_pct": 92.0,
            },
        ],
    ),
    "coalesced": Case(
        {
            "uncoalesced_excess_pct": 0.0,
            "uncoalesced_excess_sectors": 0.0,
            "global_load_sectors_per_request": 4.0,
            "global_store_sectors_per_request": 8.0,
        },
        {
            "uncoalesced_excess_pct": 12.0,
            "uncoalesced_excess_sectors": 1e6,
            "global_load_sectors_per_request": 4.5,
        },
        "sectors a request: 4 for loads and 8 for stores",
        [{"uncoalesced_excess_pct": 0.0, "uncoalesced_excess_sectors": 0.0}],  # no access at all
    ),
    "conflict-free": Case(
        {"shared_load_ways": 1.0, "shared_excess_share_pct": 0.0, "shared_load_requests": 1e6},
        {"shared_load_ways": 2.0, "shared_excess_share_pct": 50.0, "shared_load_requests": 1e6},
        "free of bank conflicts",
        [
            {"shared_load_ways": 1.0, "shared_excess_share_pct": 0.0, "shared_load_requests": 0.0},
            {
                "shared_load_ways": 1.0,
                "shared_store_ways": 16.0,
                "shared_excess_share_pct": 0.0,
                "shared_load_requests": 1e6,
            },
        ],
    ),
    "many-requests": Case(
        {"lsu_wavefronts_pct": 49.4, "lsu_requests_pct": 97.7, "pipe_lsu_pct": 98.3},
        {"lsu_wavefronts_pct": 96.0, "lsu_requests_pct": 12.0, "pipe_lsu_pct": 12.0},  # many wavefronts each
        "requests at 97.7",
        [{"lsu_wavefronts_pct": 96.0, "lsu_requests_pct": 97.0, "pipe_lsu_pct": 97.0}],  # wide: both full
    ),
    "well-filled": Case(
        {"achieved_occupancy_pct": 99.4}, {"achieved_occupancy_pct": 63.0}, "occupancy is 99.4\u202f%"
    ),
    "part-wave": Case(
        {
            "waves_per_sm": 0.167,
            "grid_size": 80.0,
            "blocks_per_sm": 1.0,
            "launched_warps_per_scheduler": 2.0,
        },
        {"waves_per_sm": 4.0, "grid_size": 1920.0, "blocks_per_sm": 24.0},
        "80 blocks fills 0.167 of a wave: 2 warps a scheduler",
        [{"waves_per_sm": 0.01, "grid_size": 1.0, "blocks_per_sm": 0.0125}],  # small-grid says it
    ),
    "little-work": Case(
        {"inst_executed": 8e6, "warps_per_block": 8.0, "grid_size": 65_536.0, "waves_per_sm": 100.0},
        {"inst_executed": 8e9, "warps_per_block": 8.0, "grid_size": 65_536.0, "waves_per_sm": 100.0},
        "executes 15.3 instructions",
        [{"inst_executed": 100.0, "warps_per_block": 8.0, "grid_size": 1.0, "waves_per_sm": 0.01}],
    ),
    "reads-served": Case(
        {"dram_read_bytes": 8.4e6, "global_load_bytes": 33.6e6},
        {"dram_read_bytes": 33e6, "global_load_bytes": 33.6e6},
        "caches serve 75.0",
        [{"dram_read_bytes": 8.4e6, "global_load_bytes": 33.6e6, "moved_per_asked": 0.3}],
    ),
    "tensor-pipe-untold": Case(
        {"tensor_busy_pct": 6.0},
        {"tensor_busy_pct": 6.0, "tensor_inst": 0.0},
        "6.0\u202f% busy; whether with MMA",
        [{"tensor_busy_pct": 45.0}, {"tensor_busy_pct": 0.1}],
    ),
    "unstaged-operands": Case(
        {
            "shared_mem_static": 0.0,
            "shared_mem_dynamic": 0.0,
            "tensor_inst": 1e6,
            "l1_throughput_pct": 99.0,
        },
        {
            "shared_mem_static": 16_384.0,
            "shared_mem_dynamic": 0.0,
            "tensor_inst": 1e6,
            "l1_throughput_pct": 99.0,
        },
        "No shared memory is allocated",
        [
            {  # no MMA ran
                "shared_mem_static": 0.0,
                "shared_mem_dynamic": 0.0,
                "tensor_inst": 0.0,
                "tensor_busy_pct": 2.0,
                "l1_throughput_pct": 99.0,
            },
            {  # and nothing on the way is busy
                "shared_mem_static": 0.0,
                "shared_mem_dynamic": 0.0,
                "tensor_inst": 1e6,
                "l1_throughput_pct": 20.0,
            },
        ],
    ),
    "idle-sms": Case({"sm_active_pct": 62.0}, {"sm_active_pct": 98.0}, "idle for 38.0"),
    "over-at-once": Case({"kernel_duration": 3.2e-6}, {"kernel_duration": 1e-3}, "launch latency"),
    "sm-clock": Case(
        {"sm_clock_share_pct": 64.0, "sm_clock": 1.05e9}, {"sm_clock_share_pct": 98.0}, "1.05\u202fGHz"
    ),
    "dram-clock": Case(
        {"dram_clock_share_pct": 75.0, "dram_clock": 7.89e9, "kernel_duration": 1e-3},
        {"dram_clock_share_pct": 99.0, "kernel_duration": 1e-3},
        "75.0",
        [{"dram_clock_share_pct": 75.0, "kernel_duration": 3e-6}],  # too short for a clock
    ),
    # memory
    "uncoalesced-loads": Case(
        {"global_load_sectors_per_request": 32.0, "global_load_bytes_per_sector": 4.0, **FULL_L1},
        {"global_load_sectors_per_request": 8.0, "global_load_bytes_per_sector": 32.0},
        "32 sectors a request and use 4 of 32 bytes",
        [{"global_load_sectors_per_request": 24.0, "cp_async_inst": 1000.0}],  # the artefact of cp.async
    ),
    "uncoalesced-stores": Case(
        {"global_store_sectors_per_request": 32.0, "l2_throughput_pct": 91.0},
        {"global_store_sectors_per_request": 4.0},
        "32 sectors a request",
    ),
    "excess-sectors": Case({"uncoalesced_excess_pct": 88.8}, {"uncoalesced_excess_pct": 12.0}, "88.8"),
    "partial-writes": Case(
        {
            "global_store_bytes_per_sector": 8.0,
            "written_per_stored": 4.0,
            "global_store_sectors": 1e6,
            "global_load_sectors": 1e6,
            "dram_throughput_pct": 80.0,
            "dram_write_share_pct": 60.0,
        },
        # L2 merged the partial sectors before it wrote them back
        {"global_store_bytes_per_sector": 8.0, "written_per_stored": 1.05, "global_store_sectors": 1e6},
        "fill 8 of the 32 bytes of a sector, and DRAM is written 4 times",
        [
            {  # hardly any stores
                "global_store_bytes_per_sector": 8.0,
                "written_per_stored": 4.0,
                "global_store_sectors": 1e3,
                "global_load_sectors": 1e6,
            }
        ],
    ),
    "narrow-accesses": Case(
        {"code": (("LDG.E.U8 R1, [R2.64]", {"inst": 900}), ("STG.E.U8 [R4.64], R1", {"inst": 100}))},
        {"code": (("LDG.E.128 R4, [R2.64]", {"inst": 900}), ("STG.E.128 [R8.64], R4", {"inst": 100}))},
        "moves 1 bytes with each global access",
        [{"code": (("LDG.E R1, [R2.64]", {"inst": 900}),), "pipe_lsu_pct": 20.0}],  # few: 4 bytes are fine
    ),
    "working-set": Case(
        {
            "l2_hit_rate_from_l1_pct": 12.0,
            "read_per_l2_size": 40.0,
            "dram_read_bytes": 1e9,
            "global_load_useful_bytes": 4e9,
            "dram_throughput_pct": 85.0,
            "l2_cache_size": 25e6,
        },
        {
            "l2_hit_rate_from_l1_pct": 85.0,
            "read_per_l2_size": 40.0,
            "dram_read_bytes": 1e9,
            "global_load_useful_bytes": 4e9,
        },
        "40 times the 25\u202fMB of L2: data leaves before it is used again",
        [
            {  # the pattern comes first
                "l2_hit_rate_from_l1_pct": 12.0,
                "read_per_l2_size": 40.0,
                "dram_read_bytes": 1e9,
                "global_load_useful_bytes": 4e9,
                "dram_throughput_pct": 85.0,
                "uncoalesced_excess_pct": 70.0,
            }
        ],
    ),
    "cold-cache": Case(
        {"read_per_l2_size": 0.3, "dram_read_bytes": 12e6, "dram_throughput_pct": 70.0, "l2_cache_size": 4e7},
        {"read_per_l2_size": 9.0, "dram_read_bytes": 4e8, "dram_throughput_pct": 70.0},
        "12\u202fMB read from DRAM would fit the 40\u202fMB of L2",
        [  # a fill: warm caches save no write
            {
                "read_per_l2_size": 0.01,
                "dram_read_bytes": 256,
                "dram_throughput_pct": 90.0,
                "dram_write_share_pct": 99.9,
            }
        ],
    ),
    "reads-beyond-misses": Case(
        {"read_per_missed": 1.9, "l2_miss_device_sectors": 1e6, "dram_throughput_pct": 80.0},
        {"read_per_missed": 1.0, "l2_miss_device_sectors": 1e6, "dram_throughput_pct": 80.0},
        "1.9 times what the kernel's own requests missed",
        [
            {  # measured directly: sector-promotion says it
                "read_per_missed": 1.9,
                "l2_miss_device_sectors": 1e6,
                "dram_throughput_pct": 80.0,
                "l2_promoted_miss_pct": 90.0,
            }
        ],
    ),
    "useful-bytes": Case(
        {"moved_per_asked": 4.0, "asked_bytes": 1e9, "dram_bytes": 4e9, "dram_throughput_pct": 90.0},
        {"moved_per_asked": 1.02, "asked_bytes": 1e9, "dram_bytes": 1.02e9, "dram_throughput_pct": 90.0},
        "asked for 1\u202fGB and DRAM moved 4\u202fGB: 4 times as much",
        [  # what cp.async copies is not among what threads ask for
            {
                "moved_per_asked": 4.0,
                "asked_bytes": 1e9,
                "dram_bytes": 4e9,
                "dram_throughput_pct": 90.0,
                "cp_async_inst": 1e6,
            }
        ],
    ),
    "which-bytes": Case(
        {
            "dram_write_share_pct": 34.0,
            "dram_bytes": 2e9,
            "dram_throughput_pct": 67.0,
            "l2_local_share_pct": 95.0,
        },
        {"dram_write_share_pct": 34.0, "dram_bytes": 2e9, "dram_throughput_pct": 30.0},
        "66.0\u202f% reads, 34.0\u202f% writes; local memory is 95.0",
    ),
    "miss-destinations": Case(
        {
            "l2_remote_miss_pct": 30.0,
            "l2_miss_peer_sectors": 3e5,
            "l2_miss_sysmem_sectors": 0.0,
            "l2_miss_sectors": 1e6,
        },
        {
            "l2_remote_miss_pct": 0.0,
            "l2_miss_peer_sectors": 0.0,
            "l2_miss_sysmem_sectors": 0.0,
            "l2_miss_sectors": 1e6,
        },
        "70.0\u202f% go to device memory, 30.0\u202f% to other GPUs, 0\u202f% to the host",
        [
            {  # parameters of a tiny launch
                "l2_remote_miss_pct": 50.0,
                "l2_miss_peer_sectors": 0.0,
                "l2_miss_sysmem_sectors": 8.0,
                "l2_miss_sectors": 16.0,
            }
        ],
    ),
    "atomic-traffic": Case(
        {"l2_atomic_share_pct": 45.0, "l2_atomics": 2e7},
        {"l2_atomic_share_pct": 0.5, "l2_atomics": 2e4},
        "45.0\u202f% of the requests at L2 are atomics",
    ),
    "bank-arbitration": Case(
        {"shared_bank_conflict_pct": 40.0, "shared_excess_share_pct": 0.0, "shared_load_requests": 1e6},
        {"shared_bank_conflict_pct": 40.0, "shared_excess_share_pct": 60.0, "shared_load_requests": 1e6},
        "the rest is arbitration",
        [{"shared_bank_conflict_pct": 40.0, "shared_excess_share_pct": 0.0, "shared_load_requests": 0.0}],
    ),
    "stage-by-copy": Case(
        {**STAGED, **STALLS, "stall_cycles_global_memory_dependency": 9.0},
        {**STAGED, **STALLS, "stall_cycles_global_memory_dependency": 9.0, "compute_capability": 75},
        "through registers, and 90.0",
        [
            {**STAGED, **STALLS, "stall_cycles_global_memory_dependency": 9.0, "cp_async_inst": 5e4},
            {**STAGED, **STALLS, "stall_cycles_global_memory_dependency": 0.1},  # nothing to hide
        ],
    ),
    "shared-atomics": Case(
        {"shared_atomic_inst": 5e4, "inst_executed": 1e6},
        {"shared_atomic_inst": 5.0, "inst_executed": 1e6},
        "5.0\u202f% of the instructions are atomics on shared memory",
    ),
    "l2-misses": Case(
        {"l2_hit_rate_from_l1_pct": 0.8, "dram_throughput_pct": 90.0},
        {"l2_hit_rate_from_l1_pct": 0.8, "dram_throughput_pct": 10.0},
        "0.8\u202f% of the sectors L1 asks for hit in L2",
    ),
    "close-data": Case(
        {"l1_hit_rate_pct": 95.0, "dram_throughput_pct": 9.0, "pipe_lsu_pct": 84.0},
        {"l1_hit_rate_pct": 95.0, "dram_throughput_pct": 9.0, "pipe_lsu_pct": 20.0},
        "accesses themselves",
    ),
    "l2-fabric": Case(
        {
            "l2_fabric_sectors": 3e6,
            "l2_sectors": 1e7,
            "l2_hit_rate_pct": 49.6,
            "l2_hit_rate_from_l1_pct": 0.8,
        },
        {
            "l2_fabric_sectors": 0.0,
            "l2_sectors": 1e7,
            "l2_hit_rate_pct": 50.0,
            "l2_hit_rate_from_l1_pct": 50.0,
        },
        "0.8\u202f%, not 49.6",
    ),
    "dram-direction": Case(
        {"dram_write_share_pct": 99.0, "dram_throughput_pct": 95.0, "dram_bytes": 3e8},
        {"dram_write_share_pct": 50.0, "dram_throughput_pct": 95.0},
        "99.0\u202f% writes",
    ),
    "l2-input-port": Case(
        {"l2_input_pct": 93.0, "dram_throughput_pct": 10.0},
        {"l2_input_pct": 93.0, "dram_throughput_pct": 90.0},
        "input port of L2",
    ),
    "system-memory": Case(
        {"l2_fill_sysmem_pct": 0.32, "l2_fill_device_pct": 0.0004},
        {"l2_fill_sysmem_pct": 0.02, "l2_fill_device_pct": 0.0},
        "filled from system memory",
    ),
    "peer-memory": Case(
        {"l2_miss_peer_sectors": 4e6, "l2_miss_sectors": 1e7},
        {"l2_miss_peer_sectors": 0.0, "l2_miss_sectors": 1e7},
        "peer GPU",
    ),
    "contended-atomics": Case(
        {"l2_atomics_per_cycle": 0.5, "l2_throughput_pct": 3.0},
        {"l2_atomics_per_cycle": 0.001},
        "0.5 atomics a cycle",
    ),
    "possible-atomics": Case(
        {"l2_atomic_unit_cycles_per_cycle": 0.74, "l2_throughput_pct": 13.0, "kernel_duration": 2.8e-4},
        {"l2_atomic_unit_cycles_per_cycle": 0.01, "kernel_duration": 2.8e-4},
        "0.74 slices",
    ),
    "uneven-slices": Case(
        {"l2_busiest_slice_pct": 92.0, "l2_throughput_pct": 3.0, "kernel_duration": 1e-3},
        {"l2_busiest_slice_pct": 92.0, "l2_throughput_pct": 90.0, "kernel_duration": 1e-3},
        "One L2 slice is 92.0",
        [
            {"l2_busiest_slice_pct": 58.0, "l2_throughput_pct": 11.0, "kernel_duration": 1e-3},
            {"l2_busiest_slice_pct": 70.0, "l2_throughput_pct": 50.0, "kernel_duration": 1e-3},
        ],
    ),
    "sector-promotion": Case(
        {"l2_promoted_miss_pct": 60.0, "dram_throughput_pct": 80.0}, {"l2_promoted_miss_pct": 0.0}, "widened"
    ),
    "bank-conflicts-loads": Case(
        {"shared_load_ways": 32.0, **CONFLICTS, **FULL_L1},
        {"shared_load_ways": 1.04, "shared_load_bank_conflicts": 4e4, "shared_load_wavefronts": 1e6},
        "conflict 32 ways: 96.9",
        # arbitration, not a pattern
        [{"shared_load_ways": 2.0, "shared_excess_share_pct": 0.0, **CONFLICTS}],
    ),
    "bank-conflicts-stores": Case(
        {"shared_store_ways": 8.0, "shared_store_bank_conflicts": 7e6, "shared_store_wavefronts": 8e6},
        {"shared_store_ways": 1.0, "shared_store_bank_conflicts": 0.0, "shared_store_wavefronts": 1e6},
        "conflict 8 ways",
    ),
    "shared-pattern": Case({"shared_excess_share_pct": 94.0}, {"shared_excess_share_pct": 3.0}, "94.0"),
    "many-wavefronts": Case(
        {"lsu_wavefronts_pct": 99.6, "lsu_requests_pct": 6.9, "l1_throughput_pct": 99.9},
        {"lsu_wavefronts_pct": 45.7, "lsu_requests_pct": 91.4, "l1_throughput_pct": 93.2},
        "14.4 to 1",
    ),
    "bulk-copies": Case({"tma_load_bytes": 1e9}, {"tma_load_bytes": 0.0}, "1\u202fGB by TMA"),
    "register-spills": Case({"marked_spill_inst": 3e7}, {"marked_spill_inst": 0.0}, "30M spill instructions"),
    "local-memory": Case(
        {"local_store_inst": 1e9, "local_load_inst": 1e9, "registers_per_thread": 64.0},
        {"local_store_inst": 0.0, "local_load_inst": 0.0, "registers_per_thread": 24.0},
        "Local memory is in use",
    ),
    # scheduler
    "low-issue": Case(
        {"warps_issued_per_scheduler": 0.28}, {"warps_issued_per_scheduler": 0.85}, "0.28 instructions"
    ),
    "well-fed": Case(
        {"warps_eligible_per_scheduler": 3.9, "warps_issued_per_scheduler": 0.75},
        {"warps_eligible_per_scheduler": 0.4, "warps_issued_per_scheduler": 0.28},
        "enough warps",
    ),
    "top-stall": Case(
        {**STALLS, "stall_cycles_global_memory_dependency": 9.0},
        {
            "stall_cycles_selected": 1.0,
            "stall_cycles_global_memory_dependency": 9.0,
            "warps_issued_per_scheduler": 0.9,
        },
        "90.0\u202f% of the warp latency is long_scoreboard",
    ),
    "barrier-stalls": Case(
        {**STALLS, "stall_cycles_block_barrier": 3.0},
        {**STALLS, "stall_cycles_block_barrier": 0.1},
        "75.0\u202f% of the warp latency is spent at block barriers",
    ),
    "queue-full": Case(
        {**STALLS, "stall_cycles_global_queue_full": 4.0},
        {**STALLS, "stall_cycles_global_queue_full": 0.1},
        "lg_throttle",
    ),
    "supply-stalls": Case(
        {**STALLS, "stall_cycles_constant_cache_miss": 2.0},
        {**STALLS, "stall_cycles_constant_cache_miss": 0.1},
        "constant-cache misses",
    ),
    "stalls-disagree": Case(
        {
            "stall_cycles_selected": 1.0,
            "stall_cycles_global_memory_dependency": 1.0,
            "stall_samples_selected": 10.0,
            "stall_samples_global_memory_dependency": 990.0,
            "pc_samples": 1000.0,
        },
        {
            "stall_cycles_selected": 1.0,
            "stall_cycles_global_memory_dependency": 9.0,
            "stall_samples_selected": 101.0,
            "stall_samples_global_memory_dependency": 899.0,
            "pc_samples": 1000.0,
        },
        "differ by 49.0",
    ),
    "divergence": Case({"active_threads_per_warp": 16.2}, {"active_threads_per_warp": 31.5}, "16.2 of 32"),
    "predication": Case(
        {"active_threads_per_warp": 32.0, "predicated_on_threads_per_warp": 20.0},
        {"active_threads_per_warp": 32.0, "predicated_on_threads_per_warp": 31.0},
        "12 of 32 active threads",
    ),
    "mbarrier-waits": Case(
        {
            "code": (
                ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R64+URZ], R0", {"inst": 9}),
                ("@!P0 NANOSLEEP.SYNCS 0x989680", {"inst": 9, "long_scoreboard": 900}),
            )
        },
        {"code": (("LDG.E R1, [R2.64]", {"inst": 9}), ("FADD R3, R1, R1", {"inst": 9, **WAIT}))},
        "100.0\u202f% of the long_scoreboard samples wait at mbarriers, 100.0\u202f% in warps that sleep",
    ),
    "polling": Case(
        {
            "code": (
                ("LDG.E.STRONG.SYS R2, [R4.64]", {"inst": 90}),
                ("ISETP.NE.AND P0, PT, R2, RZ, PT", {"inst": 90, **WAIT}),
                ("BAR.SYNC 0x0", {"inst": 9}),
                ("LDS R7, [R8]", {"inst": 9, "barrier": 900}),
            )
        },
        {"code": (("LDG.E R2, [R4.64]", {"inst": 90}), ("FADD R3, R2, R2", {"inst": 90, **WAIT}))},
        "polls memory (LDG.E.STRONG.SYS): 50.0\u202f% of the samples wait for it while 50.0",
    ),
    # launch
    "carve-out": Case(
        {**ON_H100, "shared_mem_dynamic": 30_000, "shared_mem_config": 65_536},
        {**ON_H100, "shared_mem_dynamic": 30_000, "shared_mem_config": 233_472},
        "carve-out of 64 KiB shared memory limits an SM to 2 blocks; with 228 KiB 7 would fit",
    ),
    "clusters": Case(
        {"cluster_size": 8, "cluster_max_active": 8, "waves_per_sm": 0.5, "grid_size": 128},
        {"cluster_size": 1, "cluster_max_active": 8, "waves_per_sm": 0.5, "grid_size": 128},
        "clusters of 8 blocks the grid makes 2 waves, by blocks alone 0.5",
        [{"cluster_size": 2, "cluster_max_active": 66, "waves_per_sm": 1.0, "grid_size": 132}],
    ),
    "occupancy-limit": Case(
        {"theoretical_occupancy_pct": 16.7, "occupancy_limiter": "registers+shared_mem"},
        {"theoretical_occupancy_pct": 100.0, "occupancy_limiter": "warps"},
        "16.7\u202f% by registers and shared memory",
    ),
    "occupancy-gap": Case(
        {"theoretical_occupancy_pct": 100.0, "achieved_occupancy_pct": 45.0},
        {"theoretical_occupancy_pct": 100.0, "achieved_occupancy_pct": 95.0},
        "55 points below",
    ),
    "few-warps": Case({"warps_per_scheduler": 1.0}, {"warps_per_scheduler": 8.0}, "1.0 warps"),
    "small-grid": Case(
        {"blocks_per_sm": 64 / 80, "grid_size": 64, "usable_sm_count": 80},
        {"blocks_per_sm": 64 / 68, "grid_size": 64, "usable_sm_count": 68},
        "64 blocks for 80 SMs: 16 never start",
    ),
    "tail": Case(
        {
            "waves_per_sm": 1.0625,
            "wave_efficiency_pct": 53.0,
            "sm_active_pct": 83.8,
            "grid_size": 459,
            "usable_sm_count": 108,
        },
        {"waves_per_sm": 3.0, "wave_efficiency_pct": 100.0, "sm_active_pct": 99.0},
        "27 blocks for 108 SMs",
        [{"waves_per_sm": 40.1, "wave_efficiency_pct": 97.0}],
    ),
    "block-shape": Case(
        {"block_size": 16, "warps_per_block": 1},
        {"block_size": 256, "warps_per_block": 8},
        "16 lanes of their 1",
    ),
    "one-block-per-sm": Case(
        {"resident_block_limit": 1.0, "waves_per_sm": 42.7, "sm_active_pct": 48.6, "block_size": 1024},
        {"resident_block_limit": 1.0, "waves_per_sm": 1.0, "sm_active_pct": 99.7, "block_size": 768},
        "One block of 1,024 threads",
    ),
    "short-blocks": Case(
        {"block_lifetime": 143.0, "waves_per_sm": 410.0},
        {"block_lifetime": 2e5, "waves_per_sm": 12.0},
        "143 cycles",
    ),
    "uneven-sms": Case(
        {"sm_active_min_pct": 40.0, "blocks_per_sm": 8.0}, {"sm_active_min_pct": 97.0}, "40.0"
    ),
    "one-warp-works": Case(
        {"sm_active_pct": 5.0, "warps_per_scheduler": 0.25, "usable_sm_count": 20, "blocks_per_sm": 2.0},
        {"sm_active_pct": 97.0, "warps_per_scheduler": 8.0, "usable_sm_count": 20, "blocks_per_sm": 2.0},
        "one warp does all the work",
    ),
    # source
    "debug-build": Case({"inst_mix_mov_pct": 54.0}, {"inst_mix_mov_pct": 12.0}, "debug build"),
    "loads-outnumber-math": Case(
        {"inst_mix_shared_memory_pct": 48.0, "inst_mix_global_memory_pct": 2.0, "inst_mix_fp32_pct": 38.0},
        {"inst_mix_shared_memory_pct": 10.0, "inst_mix_global_memory_pct": 2.0, "inst_mix_fp32_pct": 70.0},
        "50.0\u202f% of the instructions access memory",
    ),
    "integer-overhead": Case(
        {"inst_mix_integer_pct": 55.0, "inst_mix_fp32_pct": 10.0}, {"inst_mix_integer_pct": 20.0}, "55.0"
    ),
    "conversions": Case({"inst_mix_conversion_pct": 43.0}, {"inst_mix_conversion_pct": 1.0}, "43.0"),
    "special-functions": Case(
        {"inst_mix_special_function_pct": 15.0, "pipe_xu_pct": 64.0},
        {"inst_mix_special_function_pct": 15.0, "pipe_xu_pct": 10.0},
        "special functions",
    ),
    "frequent-barriers": Case({"inst_mix_barrier_pct": 7.0}, {"inst_mix_barrier_pct": 1.0}, "block barriers"),
    "branch-divergence": Case(
        {"branch_efficiency_pct": 55.0, "divergent_branches": 1000.0},
        {"branch_efficiency_pct": 0.0, "divergent_branches": 0.0},  # a ratio over nothing reads 0
        "55.0",
    ),
    "hot-line": Case(
        {
            "code": (
                ("LDG.E R1, [R2.64]", {"inst": 9}, 7),
                ("FADD R3, R1, R1", {"inst": 9, **WAIT}, 8),
                ("EXIT", {"inst": 9, "wait": 100}, 9),
            )
        },
        {"code": tuple((f"FADD R{i}, R1, R1", {"inst": 9, "wait": 90}, i) for i in range(1, 20))},
        "90.0\u202f% of the samples in which nothing was issued lead to a.cu:7: LDG.E R1",
    ),
    "generic-accesses": Case(
        {"generic_access_inst": 1211.0, "global_opcode_inst": 57.0},
        {"generic_access_inst": 0.0, "global_opcode_inst": 57.0},
        "1,211 loads and stores are generic",
        [{"generic_access_inst": 5.0, "global_opcode_inst": 1e6}],
    ),
    # tensor
    "tensor-feeding": Case(
        {
            "inst_mix_tensor_pct": 8.0,
            "tensor_busy_pct": 22.0,
            "tensor_inst": 1e6,
            "l2_throughput_pct": 70.0,
            **STALLS,
            "stall_cycles_global_memory_dependency": 9.0,
        },
        {"inst_mix_tensor_pct": 8.0, "tensor_busy_pct": 88.0, "tensor_inst": 1e6, "l2_throughput_pct": 70.0},
        "Tensor cores are 22.0\u202f% busy: L2 is at 70.0\u202f% and 90.0\u202f% of the warp latency",
        [{"inst_mix_tensor_pct": 0.01, "tensor_busy_pct": 0.2, "tensor_inst": 8.0, "l2_throughput_pct": 9.0}],
    ),
    "tensor-alignment": Case(
        {"tensor_inst": 1e6, "code": (("LDG.E.U16 R1, [R2.64]", {"inst": 900}),)},
        {"tensor_inst": 1e6, "code": (("LDGSTS.E.BYPASS.128 [R1], [R2.64]", {"inst": 900}),)},
        "Only 0\u202f% of the global loads of this MMA kernel are 16 bytes wide",
        [{"tensor_inst": 0.0, "code": (("LDG.E.U16 R1, [R2.64]", {"inst": 900}),)}],
    ),
    "group-mma-waits": Case(
        {
            "code": (
                ("HGMMA.64x128x16.F32.BF16 R88, gdesc[UR16], R88.gsb0", {"inst": 9}),
                ("WARPGROUP.DEPBAR.LE gsb0, 0x0", {"inst": 9, "barrier": 900}),
                ("EXIT", {"inst": 9, "wait": 100}),
            )
        },
        {"code": (("BAR.SYNC 0x0", {"inst": 9}), ("LDS R1, [R2]", {"inst": 9, "barrier": 900}))},
        "90.0\u202f% of the samples wait for warp-group MMA results (90.0\u202f% of all are labelled barrier",
    ),
    "fp32-without-tensor": Case(
        {**FMA, "peak_flop_rate_tensor_tf32": 156e12, "peak_flop_rate_fp32": 19.5e12},
        {**FMA, "peak_flop_rate_tensor_tf32": 156e12, "peak_flop_rate_fp32": 19.5e12, "tensor_inst": 9.0},
        "TF32 tensor cores could do 8 times as many",
        [FMA],  # a GPU without TF32 tensor cores
    ),
    "tensor-use": Case(
        {"tensor_inst": 1e6, "tensor_busy_pct": 61.0, "flops_tensor_bf16": 1e12},
        {"tensor_inst": 0.0, "tensor_busy_pct": 1.9, "pipe_tensor_pct": 1.9},
        "Tensor cores work on BF16",
    ),
    "tensor-pipe-without-mma": Case(
        {"pipe_tensor_pct": 1.9, "tensor_inst": 0.0},
        {"pipe_tensor_pct": 60.0, "tensor_inst": 1e6},
        "without a single MMA",
    ),
    "half-math-without-tensor": Case(
        {"tensor_inst": 0.0, "flops_fp16": 1e12, "flops_fp32": 1e9},
        {"tensor_inst": 5.0, "flops_fp16": 1e12, "flops_fp32": 1e9},
        "without tensor cores",
    ),
    "mma-where-wgmma": Case(
        {"compute_capability": 90, "warp_mma_inst": 1e6, "warpgroup_mma_inst": 0.0},
        {"compute_capability": 80, "warp_mma_inst": 1e6, "warpgroup_mma_inst": 0.0},
        "two thirds",
        [{"compute_capability": 90, "warp_mma_inst": 10.0, "warpgroup_mma_inst": 1e6}],
    ),
    "tensor-pipe-reads-half": Case(
        {
            "tensor_busy_pct": 43.3,
            "compute_capability": 89,
            "tensor_inst": 1e6,
            "tensor_fp16_share_pct": 86.7,
        },
        {"tensor_busy_pct": 61.0, "compute_capability": 90, "tensor_inst": 1e6},
        "86.7",
    ),
    "fp64-on-cut-down-part": Case(
        {"fp64_units_per_sm": 2.0, "pipe_fp64_pct": 86.0},
        {"fp64_units_per_sm": 64.0, "pipe_fp64_pct": 56.0},
        "86.0",
    ),
}


def test_every_rule_has_a_table():
    assert sorted(CASES) == sorted(RULES)


@pytest.mark.parametrize("id", CASES)
def test_what_asks_for_a_change_says_how_to_test_it(id: str):
    finding = outcome(id, launch(**CASES[id].trips))
    assert isinstance(finding, Finding)
    if finding.severity != "info":
        assert finding.advice
        assert finding.watch
        assert finding.disproved_if.endswith(".")
    assert "{" not in finding.watch + finding.disproved_if + "".join(row.text for row in finding.against)
    assert (finding.gain_pct is None) == (finding.formula == ""), "a gain comes with its formula"
    assert finding.gain_pct is None or 0 <= finding.gain_pct <= 100


def test_the_rulebook_speaks_of_rules_that_exist():
    assert set(entries()) <= set(RULES)


@pytest.mark.parametrize("id", CASES)
def test_trips(id: str):
    finding = outcome(id, launch(**CASES[id].trips))
    assert isinstance(finding, Finding)
    assert CASES[id].says in finding.title
    assert finding.family == RULES[id].family
    assert finding.metrics or finding.places, "a finding shows the numbers behind it"
    assert finding.title[0] == finding.title[0].upper()


@pytest.mark.parametrize("id", CASES)
def test_stays_quiet(id: str):
    case = CASES[id]
    for values in (case.quiet, *case.also_quiet):
        found = outcome(id, launch(**values))
        assert not isinstance(found, Finding), found


@pytest.mark.parametrize(
    ("id", "need"), [(id, need) for id, r in RULES.items() for need in r.needs], ids=lambda x: str(x)
)
def test_is_skipped_with_the_reason_when_a_need_is_missing(id: str, need: str | tuple[str, ...]):
    absent = (need,) if isinstance(need, str) else need
    values = {key: value for key, value in CASES[id].trips.items() if key not in absent}
    if absent[0] in SPECIAL:
        values = {k: v for k, v in values.items() if k not in ("code", "opcodes", "breakdowns")}
    skipped = outcome(id, launch(**values))
    assert isinstance(skipped, Skipped)
    if absent[0] in SPECIAL:
        special = [n for n in RULES[id].needs if n in SPECIAL]  # taking the code away takes the samples too
        assert any(skipped.reason.endswith(SPECIAL[n][1]) for n in special if isinstance(n, str))
    else:
        assert skipped.reason == f"needs {' or '.join(absent)}: not given by the test"


@pytest.mark.parametrize("id", [id for id, case in CASES.items() if "breakdowns" not in case.trips])
def test_an_unreliable_value_trips_nothing(id: str):
    rule = RULES[id]
    if not rule.needs or not isinstance(need := rule.needs[0], str) or need in SPECIAL:
        return
    doubtful = Value(need, CASES[id].trips[need], "", reason="unreliable: above 100 %", reliable=False)
    skipped = outcome(id, launch(**{**CASES[id].trips, need: doubtful}))
    assert isinstance(skipped, Skipped)
    assert skipped.reason.endswith("unreliable: above 100 %")


@pytest.mark.parametrize(
    "need",
    sorted(
        {n for r in RULES.values() for need in r.needs for n in ([need] if isinstance(need, str) else need)}
    ),
)
def test_every_need_is_in_the_catalog(need: str):
    assert need in load().metrics or need in load().signals or need in SPECIAL


@pytest.mark.parametrize("r", RULES.values(), ids=list(RULES))
def test_every_rule_says_what_it_looks_for(r: Rule):
    assert r.function.__doc__


def test_what_was_not_measured_is_not_called_idle():
    """Where issue slots and DRAM alone are known, another unit may be full."""
    found = outcome("nothing-busy", launch(issue_busy_pct=14.2, dram_throughput_pct=1.9))
    assert isinstance(found, Finding)
    assert found.title.startswith("No unit is busy: the busiest known, issue slots, reaches 14.2")
    assert found.advice == "What was not measured may be busy: collect --section SpeedOfLight."
    assert found.severity == "low"


def test_a_busy_unit_of_a_few_sms_comes_after_the_idle_sms():
    """While an SM works its L1 is at 72 %; most of the time, no SM of most works."""
    few, all_work = (
        outcome("busiest-unit", launch(l1_throughput_pct=71.8, dram_throughput_pct=1.4, sm_active_pct=active))
        for active in (40.0, 99.0)
    )
    assert isinstance(few, Finding)
    assert isinstance(all_work, Finding)
    assert few.advice.startswith("Give the idle SMs work first")
    assert all_work.advice == "Give it less to do; nothing else can help before that."


@pytest.mark.parametrize(("asked", "tile"), [(8e6, False), (80e6, True)], ids=["a stream", "reuse"])
def test_a_stream_is_not_told_to_work_on_tiles(asked: float, tile: bool):
    values = {"dram_read_bytes": 9.6e6, "global_load_useful_bytes": asked, "read_per_l2_size": 2.3}
    known = launch(l2_hit_rate_from_l1_pct=43.0, dram_throughput_pct=88.0, **values)
    found, stream = outcome("l2-misses", known), outcome("working-set", known)
    assert isinstance(found, Finding)
    assert isinstance(stream, Finding)
    assert ("tile that fits" in found.advice, "a stream" in stream.title) == (tile, not tile)
    assert tile or stream.title.startswith("Loads ask for 8\u202fMB and DRAM is read for 9.6\u202fMB")


def test_an_id_is_taken_once():
    with pytest.raises(ValueError, match="id taken"):
        rule("idle-sms", family="speed_of_light", needs=())
    with pytest.raises(ValueError, match="no family"):
        rule("new", family="vibes", needs=())


def test_findings_come_by_global_gain_then_severity():
    findings, skipped = apply_rules(
        Facts.of(launch(**CASES["small-grid"].trips, sm_active_pct=40.0, inst_mix_mov_pct=54.0))
    )
    ids = [f.id for f in findings if f.severity != "info"]
    assert ids == ["idle-sms", "small-grid", "debug-build"]
    assert [f.gain_kind for f in findings][:3] == ["global", "global", None]
    assert {s.id for s in skipped} <= set(RULES) - {f.id for f in findings}


def test_a_failed_launch_has_no_finding_and_every_rule_says_why():
    findings, skipped = apply_rules(Facts.of(builders.kernel(failed="the pass failed", sm_active_pct=10.0)))
    assert findings == ()
    assert {s.reason for s in skipped} == {"failed launch: the pass failed"}


# Local memory is not spilling


def local(**values: Any) -> dict[str, Finding | Skipped | None]:
    return {id: outcome(id, launch(**values)) for id in ("local-memory", "register-spills")}


def test_reserved_local_memory_that_nobody_touches_is_no_finding():
    found = local(registers_per_thread=24.0, local_load_inst=0.0, local_store_inst=0.0)
    assert found["local-memory"] is None
    assert isinstance(found["register-spills"], Skipped)


def test_without_a_spill_counter_full_registers_make_a_possible_spill():
    found = local(registers_per_thread=255.0, local_load_inst=10.0, local_store_inst=1320.0)
    assert isinstance(finding := found["local-memory"], Finding)
    assert "a possible register spill at 255 registers" in finding.title
    assert isinstance(found["register-spills"], Skipped)


def test_few_registers_and_local_accesses_are_a_stack_array():
    finding = local(registers_per_thread=40.0, local_load_inst=10.0, local_store_inst=10.0)["local-memory"]
    assert isinstance(finding, Finding)
    assert "stack array" in finding.title


def test_a_spill_counter_makes_it_a_spill():
    found = local(
        registers_per_thread=255.0, local_load_inst=10.0, local_store_inst=1e6, marked_spill_inst=1e6
    )
    assert found["local-memory"] is None
    assert isinstance(finding := found["register-spills"], Finding)
    assert finding.title.startswith("Registers spill")


def test_a_spill_counter_of_zero_excludes_spilling():
    found = local(
        registers_per_thread=255.0, local_store_inst=1.15e9, local_load_inst=1e9, marked_spill_inst=0.0
    )
    assert found["register-spills"] is None
    assert isinstance(finding := found["local-memory"], Finding)
    assert "none of it is register spilling" in finding.title


# The wrong lesson from occupancy


def test_a_tie_of_limits_is_named_and_relieving_one_alone_is_not_advised():
    finding = outcome(
        "occupancy-limit", launch(theoretical_occupancy_pct=25.0, occupancy_limiter="registers+shared_mem")
    )
    assert isinstance(finding, Finding)
    assert "registers and shared memory" in finding.title
    assert "relieving one alone changes nothing" in finding.detail


def test_every_state_in_which_a_warp_waits_has_its_own_advice():
    waiting = [state for state in states() if state not in WORKING]
    said = {advice(state) for state in waiting if state != "misc"}
    assert "" not in said
    assert len(said) == len(waiting) - 1
    assert advice("drain").startswith("Write fewer bytes")


def test_where_the_grid_is_too_small_its_blocks_are_not_to_do_more():
    gap = {"theoretical_occupancy_pct": 100.0, "achieved_occupancy_pct": 16.0, "block_lifetime": 100.0}
    small = {"launched_warps_per_scheduler": 2.0, "allowed_warps_per_scheduler": 12.0}
    advised = [outcome("occupancy-gap", launch(**gap, **more)) for more in ({}, small)]
    assert [one.advice for one in advised if isinstance(one, Finding)] == [
        "Give each block more work.",
        "Give the SMs more blocks: the grid brings fewer warps than fit.",
    ]


def test_more_occupancy_is_not_advised_while_a_unit_is_busy():
    finding = outcome(
        "occupancy-limit",
        launch(theoretical_occupancy_pct=16.7, occupancy_limiter="registers", pipe_fma_pct=78.0),
    )
    assert isinstance(finding, Finding)
    assert finding.severity == "info"
    assert finding.advice == ""


# Counters decide, names do not


@pytest.mark.parametrize(
    ("name", "counters", "uses"),
    [
        ("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32", {"tensor_busy_pct": 61.0}, True),
        ("my_tensorop_gemm", {"tensor_busy_pct": 0.0, "tensor_inst": 0.0}, False),
        ("my_tensorop_gemm", {"tensor_busy_pct": 1.9, "tensor_inst": 0.0}, False),
    ],
)
def test_tensor_use_follows_the_counters(name: str, counters: Launch, uses: bool):
    kernel = builders.kernel(
        raw=builders.raw_kernel(name),
        signals={"tensor_busy_pct": counters["tensor_busy_pct"]},
        pipe_tensor_pct=counters["tensor_busy_pct"],
        tensor_inst=counters.get("tensor_inst"),
    )
    assert isinstance(outcome("tensor-use", kernel), Finding) == uses


# Local memory: told by how it is addressed


@pytest.mark.parametrize(
    ("address", "calls", "says"),
    [
        ("[R1+0x4c]", 0, "from the stack pointer: most likely register spills at 80 registers a thread"),
        ("[R1]", 500, "from the stack pointer: register spills, or arguments of called functions"),
        ("[R12]", 0, "mostly at computed addresses: an array on the stack, not spilling"),
    ],
)
def test_the_address_tells_spills_from_arrays(address: str, calls: int, says: str):
    rows = [
        (f"STL {address}, R5", {"inst": 1000}),
        (f"LDL R5, {address}", {"inst": 1000}),
        ("CALL.REL.NOINC 0x80", {"inst": calls}),
    ]
    finding = outcome(
        "local-memory",
        launch(local_load_inst=1e3, local_store_inst=1e3, registers_per_thread=80.0, code=rows),
    )
    assert isinstance(finding, Finding)
    assert says in finding.title


@pytest.mark.parametrize(
    ("cc", "better"),
    [
        (80, None),
        (89, None),
        (90, "wgmma"),
        (100, "tcgen05"),
        (103, "tcgen05"),
        (110, "tcgen05"),
        (120, None),
    ],
)
def test_wider_mma_is_advised_where_the_gpu_has_it(cc: int, better: str | None):
    finding = outcome(
        "mma-where-wgmma", launch(compute_capability=cc, warp_mma_inst=1e6, warpgroup_mma_inst=0.0)
    )
    assert (isinstance(finding, Finding) and better is not None and better in finding.advice) or (
        finding is None and better is None
    )


@pytest.mark.parametrize(
    ("waves", "whole", "severity"), [(2.37, 79.0, "medium"), (2.8, 93.3, "info"), (5.95, 99.2, None)]
)
def test_few_waves_are_named_also_when_the_last_is_nearly_whole(
    waves: float, whole: float, severity: str | None
):
    grid = {"grid_size": 100 * waves, "usable_sm_count": 100}
    finding = outcome(
        "tail", launch(waves_per_sm=waves, wave_efficiency_pct=whole, sm_active_pct=80.0, **grid)
    )
    assert (finding.severity if isinstance(finding, Finding) else None) == severity


def test_the_finding_about_a_partial_wave_promises_nothing_that_the_wave_does_not_explain():
    shape = {"waves_per_sm": 1.57, "wave_efficiency_pct": 78.5, "grid_size": 339, "usable_sm_count": 108}
    finding = outcome("tail", launch(**shape, sm_active_pct=73.0))
    assert isinstance(finding, Finding)
    assert (finding.severity, finding.gain_pct) == ("info", None)
    assert "123 blocks for 108 SMs" in finding.title


def test_a_leading_counter_without_a_unit_is_told_in_words():
    breakdowns = {
        "sm_throughput_pct": {"sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed": 77.0},
        "memory_throughput_pct": {"new__unit_cycles.avg.pct_of_peak_sustained_elapsed": 10.0},
    }
    finding = outcome(
        "leading-metrics", launch(sm_throughput_pct=77.0, memory_throughput_pct=10.0, breakdowns=breakdowns)
    )
    assert isinstance(finding, Finding)
    assert "is its tensor-memory pipe, on which copies count as well" in finding.title
    assert "is its new__unit_cycles.avg.pct_of_peak_sustained_elapsed" in finding.title


def test_a_full_slice_ahead_of_the_others_matters_less_than_one_alone():
    ahead = outcome(
        "uneven-slices", launch(l2_busiest_slice_pct=91.0, l2_throughput_pct=60.0, kernel_duration=1e-3)
    )
    alone = outcome(
        "uneven-slices", launch(l2_busiest_slice_pct=91.0, l2_throughput_pct=6.0, kernel_duration=1e-3)
    )
    assert isinstance(ahead, Finding)
    assert isinstance(alone, Finding)
    assert (ahead.severity, alone.severity) == ("medium", "high")


def test_dram_goes_one_way_where_all_global_accesses_do():
    full = {"dram_throughput_pct": 94.7, "global_load_opcode_inst": 131_072.0}
    finding = outcome("dram-direction", launch(global_opcode_inst=131_072.0, **full))
    assert isinstance(finding, Finding)
    assert finding.title.startswith("All 131k global accesses are loads")
    assert outcome("dram-direction", launch(global_opcode_inst=262_144.0, **full)) is None


# severity and gain


def test_conflicts_matter_by_how_full_the_data_stage_is():
    full = outcome("bank-conflicts-loads", launch(shared_load_ways=32.0, **CONFLICTS, **FULL_L1))
    hidden = outcome(
        "bank-conflicts-loads",
        launch(shared_load_ways=16.0, **CONFLICTS, l1_throughput_pct=37.0, dram_throughput_pct=86.3),
    )
    assert isinstance(full, Finding)
    assert isinstance(hidden, Finding)
    assert (full.severity, full.gain_kind) == ("high", "global")
    assert full.gain_pct == pytest.approx(100 * (1 - 40 / 92 / 0.9), abs=0.1)  # until DRAM is as full
    assert (hidden.severity, hidden.gain_kind) == ("low", "local")
    assert "cost little here" in hidden.detail


MANY_WAVEFRONTS = {"lsu_wavefronts_pct": 85.5, "lsu_requests_pct": 9.5, "l1_throughput_pct": 97.0}
NO_CONFLICTS = {"shared_load_bank_conflicts": 0.0, "shared_store_bank_conflicts": 0.0}
CONFLICTING = {
    "shared_load_bank_conflicts": 6e7,
    "shared_store_bank_conflicts": 0.0,
    "shared_load_ways": 32.0,
    "shared_excess_share_pct": 93.9,
}


@pytest.mark.parametrize(
    ("counted", "says"),
    [
        ({}, "collect MemoryWorkloadAnalysis_Tables"),
        (NO_CONFLICTS, "collect MemoryWorkloadAnalysis_Tables"),
        ({"uncoalesced_excess_pct": 0.0}, "collect MemoryWorkloadAnalysis_Tables"),
        ({**NO_CONFLICTS, "global_load_sectors_per_request": 8.99}, "Scattered addresses: let"),
        ({**NO_CONFLICTS, "uncoalesced_excess_pct": 88.8}, "Scattered addresses: let"),
        ({**CONFLICTING, "uncoalesced_excess_pct": 0.0}, "Bank conflicts: pad"),
        (CONFLICTING, "Bank conflicts: pad"),
        ({**CONFLICTING, "uncoalesced_excess_pct": 60.0}, "array. Scattered"),
        ({**NO_CONFLICTS, "uncoalesced_excess_pct": 0.0}, "Neither bank conflicts nor scattered"),
        (
            {**CONFLICTING, "shared_excess_share_pct": 0.0, "uncoalesced_excess_pct": 0.0},
            "Neither bank conflicts nor scattered",
        ),
    ],
)
def test_many_wavefronts_ask_to_collect_only_what_was_not_collected(counted: Launch, says: str):
    found = outcome("many-wavefronts", launch(**MANY_WAVEFRONTS, **counted))
    assert isinstance(found, Finding)
    assert says in found.advice
    assert ("collect " in found.advice) == says.startswith("collect")


def test_counted_tensor_operations_are_not_asked_for():
    pipe = {"tensor_busy_pct": 43.0, "compute_capability": 89, "gpu_name": "NVIDIA GeForce RTX 4060"}
    found = outcome("tensor-pipe-reads-half", launch(**pipe))
    assert isinstance(found, Finding)
    assert found.advice.startswith("Collect the operation counters")
    rates = {
        "tensor_fp16_share_pct": 40.0,
        "peak_flop_rate_tensor_fp16": Value("peak_flop_rate_tensor_fp16", 1e14, "FLOP/s", "estimate"),
    }
    assert outcome("tensor-pipe-reads-half", launch(**pipe, **rates)) is None


def test_good_kernels_get_no_more_is_not_said_of_a_unit_that_got_more():
    says = "good kernels get no more than 92"
    for percent, said in ((91.0, True), (94.0, False)):
        kernel = launch(dram_throughput_pct=percent, lsu_busy_pct=96.0)
        found = outcome("busiest-unit", kernel)
        assert isinstance(found, Finding)
        assert (says in found.title) is said
