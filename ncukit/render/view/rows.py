"""Which metrics the five families show, in which order, under which label. Only data."""

from __future__ import annotations

from ncukit.record import dataclass


@dataclass(frozen=True)
class Row:
    """One metric of a family.

    ``aside`` stands beside a number that is no percentage; ``{id}`` in it is the short text of another
    metric, and an aside whose metric is unknown is left out.  ``when`` "used" shows the row only
    if it is not zero.
    """

    id: str
    label: str
    aside: str = ""
    when: str = "always"


@dataclass(frozen=True)
class Family:
    """One family: its name, what its numbers are of, its rows."""

    id: str
    name: str
    of: str
    rows: tuple[Row, ...]


def _used(*rows: tuple[str, str]) -> tuple[Row, ...]:
    return tuple(Row(id, label, when="used") for id, label in rows)


PIPES = _used(
    ("pipe_lsu_pct", "Load/store pipe"),
    ("pipe_alu_pct", "ALU pipe (integer, logic)"),
    ("pipe_fma_pct", "FMA pipe (FP32, integer multiply)"),
    ("pipe_fp64_pct", "FP64 pipe"),
    ("pipe_fp16_pct", "FP16 pipe"),
    ("pipe_tensor_pct", "Tensor pipe"),
    ("pipe_xu_pct", "XU pipe (special functions)"),
    ("pipe_tex_pct", "Texture pipe"),
    ("pipe_uniform_pct", "Uniform datapath"),
    ("pipe_tma_pct", "Tensor memory accelerator"),
)

MIX = _used(
    ("inst_mix_integer_pct", "Integer"),
    ("inst_mix_fp32_pct", "FP32"),
    ("inst_mix_fp64_pct", "FP64"),
    ("inst_mix_fp16_pct", "FP16"),
    ("inst_mix_tensor_pct", "Tensor"),
    ("inst_mix_special_function_pct", "Special functions"),
    ("inst_mix_conversion_pct", "Conversions"),
    ("inst_mix_global_memory_pct", "Global memory"),
    ("inst_mix_shared_memory_pct", "Shared memory"),
    ("inst_mix_local_memory_pct", "Local memory"),
    ("inst_mix_constant_memory_pct", "Constant memory"),
    ("inst_mix_texture_pct", "Texture"),
    ("inst_mix_async_copy_pct", "Asynchronous copies"),
    ("inst_mix_control_pct", "Control flow"),
    ("inst_mix_synchronization_pct", "Synchronisation"),
    ("inst_mix_movement_pct", "Movement"),
    ("inst_mix_uniform_pct", "Uniform datapath"),
)
"""Shares of the executed warp instructions, by opcode."""

FAMILIES = (
    Family(
        "speed_of_light",
        "Speed of light",
        "% of peak",
        (
            Row("memory_throughput_pct", "Memory, busiest unit"),
            Row("l1_throughput_pct", "L1/TEX, of active cycles"),
            Row("l2_throughput_pct", "L2"),
            Row("dram_throughput_pct", "DRAM"),
            Row("sm_throughput_pct", "SM, busiest pipe or stage"),
            *PIPES,
            Row("issue_slot_utilization_pct", "Issue slots, of active cycles"),
            Row("sm_active_pct", "SMs with work"),
            Row("sm_imbalance_pct", "Imbalance between SMs"),
            Row("ipc_active", "Instructions per active cycle", "of 4"),
        ),
    ),
    Family(
        "memory",
        "Memory workload",
        "",
        (
            Row("l1_hit_rate_pct", "L1 hit rate"),
            Row("l1_global_load_hit_rate_pct", "L1 hit rate, global loads"),
            Row("l2_hit_rate_from_l1_pct", "L2 hit rate, requests of L1"),
            Row("l2_read_hit_rate_pct", "L2 hit rate, reads"),
            Row("global_load_sectors_per_request", "Sectors per global load", "4 if 4 B each"),
            Row("global_store_sectors_per_request", "Sectors per global store", "4 if 4 B each"),
            Row("uncoalesced_excess_pct", "Excess sectors by access pattern"),
            Row("shared_wavefronts", "Shared memory wavefronts"),
            Row("shared_bank_conflict_pct", "Bank conflicts, share of these"),
            Row("shared_excess_wavefronts", "Excess wavefronts by access pattern"),
            Row("dram_read_bytes", "DRAM read"),
            Row("dram_write_bytes", "DRAM written"),
            Row("dram_bandwidth", "DRAM bandwidth", "of {peak_dram_bandwidth}"),
            Row("local_memory_bytes", "Local memory traffic"),
            Row("async_copy_bypass_bytes", "Copied past L1 (cp.async)", when="used"),
            Row("tma_load_bytes", "Loaded by TMA", when="used"),
            Row("l2_miss_sysmem_sectors", "L2 misses to system memory", "sectors", when="used"),
            Row("l2_miss_peer_sectors", "L2 misses to a peer GPU", "sectors", when="used"),
        ),
    ),
    Family(
        "scheduler",
        "Scheduler and warp state",
        "per scheduler",
        (
            Row("warps_active_per_scheduler", "Active warps", "of {theoretical_warps_per_scheduler}"),
            Row("warps_eligible_per_scheduler", "Eligible warps"),
            Row("warps_issued_per_scheduler", "Issued per cycle", "of 1"),
            Row("no_eligible_pct", "Cycles with no eligible warp"),
            Row("warp_cycles_per_issued_instruction", "Warp cycles per instruction", "cycles"),
            Row("active_threads_per_warp", "Active threads per warp", "of 32"),
            Row("predicated_on_threads_per_warp", "Threads left by predication", "of 32"),
        ),
    ),
    Family(
        "launch",
        "Launch statistics",
        "",
        (
            Row("grid_size", "Blocks"),
            Row("block_size", "Threads per block"),
            Row("cluster_size", "Blocks per cluster", when="used"),
            Row("registers_per_thread", "Registers per thread"),
            Row("shared_mem_static", "Shared memory, static"),
            Row("shared_mem_dynamic", "Shared memory, dynamic"),
            Row("shared_mem_allocated", "Shared memory with driver part"),
            Row("waves_per_sm", "Waves"),
            Row("tail_effect_pct", "Tail effect, at most"),
            Row("theoretical_occupancy_pct", "Theoretical occupancy"),
            Row("achieved_occupancy_pct", "Achieved occupancy"),
            Row("occupancy_limiter", "Occupancy limited by"),
            Row("occupancy_limit_registers", "Blocks that registers allow", "per SM"),
            Row("occupancy_limit_shared_mem", "Blocks that shared memory allows", "per SM"),
            Row("occupancy_limit_warps", "Blocks that warps allow", "per SM"),
            Row("occupancy_limit_blocks", "Blocks that the SM holds", "per SM"),
            Row("occupancy_limit_barriers", "Blocks that barriers allow", "per SM"),
        ),
    ),
    Family(
        "source",
        "Source counters",
        "",
        (
            Row("inst_executed", "Warp instructions"),
            *MIX,
            Row("flops_total", "Floating-point operations"),
            Row("tensor_inst", "Tensor instructions", when="used"),
            Row("branch_inst", "Branches"),
            Row("branch_efficiency_pct", "Branch targets without divergence"),
            Row("divergent_branches", "Divergent branches"),
            Row("local_load_inst", "Local loads", when="used"),
            Row("local_store_inst", "Local stores", when="used"),
            Row("spill_inst", "Spill instructions"),
            Row("pc_samples", "Stall samples"),
        ),
    ),
)

SM = "SM, busiest pipe or stage"
GLANCE = (
    ("dram_throughput_pct", "DRAM", frozenset({"dram"})),
    ("l2_throughput_pct", "L2", frozenset({"l2"})),
    ("l1_throughput_pct", "L1/TEX", frozenset({"l1", "shared"})),
    ("sm_throughput_pct", SM, frozenset[str]()),
    ("issue_slot_utilization_pct", "Issue slots", frozenset[str]()),
)
"""Units on the first screen: metric, label, the limiters that mean this unit."""

GLANCE_PIPES = {
    "tensor": ("pipe_tensor_pct", "Tensor pipe"),
    "fp64": ("pipe_fp64_pct", "FP64 pipe"),
    "fp32": ("pipe_fma_pct", "FMA pipe"),
    "fp16": ("pipe_fp16_pct", "FP16 pipe"),
    "int": ("pipe_alu_pct", "ALU pipe"),
    "xu": ("pipe_xu_pct", "XU pipe"),
    "lsu-issue": ("pipe_lsu_pct", "Load/store pipe"),
}
"""The pipe that joins them when it is the limiter."""
