"""What the rows of a comparison are called: every metric that a table of changes can show.  Only data."""

from __future__ import annotations

from ncukit.render.view.rows import FAMILIES

PRECISIONS = {
    "fp64": "FP64",
    "fp32": "FP32",
    "fp16": "FP16",
    "tensor_fp16": "Tensor FP16",
    "tensor_bf16": "Tensor BF16",
    "tensor_tf32": "Tensor TF32",
    "tensor_fp8": "Tensor FP8",
    "tensor_fp4": "Tensor FP4",
    "tensor_int8": "Tensor INT8",
    "tensor_int4": "Tensor INT4",
    "tensor_fp64": "Tensor FP64",
}


def _rates() -> dict[str, str]:
    """Return the names of work, rate and roof of each precision; integers are OP, not FLOP."""
    found = {}
    for id, words in PRECISIONS.items():
        op = "OP" if "int" in id else "FLOP"
        found[f"flops_{id}"] = f"{words} {op}s"
        found[f"flop_rate_{id}"] = f"{words} {op} rate"
        found[f"roofline_{id}_pct"] = f"Of the {words} roof"
    return found


LABELS = {
    **{row.id: row.label for family in FAMILIES for row in family.rows},
    **_rates(),
    "kernel_duration": "Duration, profiled",
    "clean_time": "Clean time, median",
    "dram_bytes": "DRAM bytes",
    "bytes_l2": "L2 bytes",
    "bytes_l1": "L1 bytes",
    "dram_throughput_pct": "DRAM, share of peak",
    "l2_throughput_pct": "L2, share of peak",
    "l1_throughput_pct": "L1/TEX, share of peak",
    "sm_clock": "SM clock",
    "dram_clock": "DRAM clock",
    "flop_rate_total": "FLOP rate",
    "flops_total": "FLOPs",
    "dram_bandwidth": "DRAM bandwidth",
    "shared_load_bank_conflicts": "Bank conflicts, shared loads",
    "shared_store_bank_conflicts": "Bank conflicts, shared stores",
    "shared_load_wavefronts": "Wavefronts, shared loads",
    "shared_store_wavefronts": "Wavefronts, shared stores",
    "arithmetic_intensity_dram": "FLOP per DRAM byte",
    "l2_clock": "L2 clock",
    "elapsed_cycles": "Elapsed cycles",
    "sm_active_cycles": "Cycles of SMs with work",
    "ecc_enabled": "ECC of the DRAM",
    "ipc_elapsed": "Instructions per elapsed cycle",
    "sm_busy_pct": "SM busy",
    "mem_busy_pct": "Memory unit busy, busiest",
    "mem_link_bandwidth_pct": "Memory link, busiest",
    "mem_pipes_busy_pct": "Memory pipe, busiest",
    "pipe_tensor_fp_pct": "Tensor pipe, floating point",
    "pipe_tensor_int_pct": "Tensor pipe, integer",
    "pipe_tensor_fp64_pct": "Tensor pipe, FP64",
    "l2_hit_rate_pct": "L2 hit rate",
    "l2_write_hit_rate_pct": "L2 hit rate, writes",
    "global_load_sectors": "Sectors, global loads",
    "global_load_requests": "Requests, global loads",
    "global_load_bytes_per_sector": "Bytes per sector, global loads",
    "local_load_sectors": "Sectors, local loads",
    "global_store_sectors": "Sectors, global stores",
    "global_store_requests": "Requests, global stores",
    "global_store_bytes_per_sector": "Bytes a sector, global stores",
    "local_store_sectors": "Sectors, local stores",
    "uncoalesced_excess_sectors": "Excess sectors of L2",
    "l1_sectors": "L1 sectors",
    "l1_to_l2_read_bytes": "Read by L1 from L2",
    "l1_to_l2_write_bytes": "Written by L1 to L2",
    "l2_sectors": "L2 sectors",
    "l2_sectors_from_l1": "L2 sectors, asked for by L1",
    "l2_fabric_sectors": "L2 sectors over the fabric",
    "l2_miss_sectors": "L2 misses",
    "l2_miss_device_sectors": "L2 misses to device memory",
    "sysmem_read_bandwidth": "PCIe read bandwidth",
    "sysmem_write_bandwidth": "PCIe write bandwidth",
    "nvlink_receive_bandwidth": "NVLink receive bandwidth",
    "nvlink_transmit_bandwidth": "NVLink transmit bandwidth",
    "c2c_receive_bytes": "Received chip to chip",
    "shared_bank_conflicts": "Bank conflicts, shared memory",
    "shared_bytes": "Shared memory bytes, at most",
    "l2_compression_success_pct": "L2 compression, success",
    "l2_compression_ratio": "L2 compression ratio",
    "theoretical_warps_per_scheduler": "Theoretical warps, scheduler",
    "warp_cycles_per_executed_instruction": "Warp cycles, executed inst.",
    "thread_count": "Threads",
    "shared_mem_driver": "Shared memory of the driver",
    "shared_mem_config": "Shared memory carve-out",
    "wave_efficiency_pct": "Wave efficiency",
    "occupancy_gap_pct": "Occupancy gap",
    "stack_size": "Stack limit per thread",
    "inst_issued": "Warp instructions issued",
    "thread_inst_executed": "Thread instructions",
    "global_load_inst": "Global loads",
    "global_store_inst": "Global stores",
    "shared_load_inst": "Shared loads",
    "shared_store_inst": "Shared stores",
    "inst_rate": "Warp instruction rate",
    "arithmetic_intensity_l2": "FLOP per L2 byte",
    "arithmetic_intensity_l1": "FLOP per L1 byte",
    "instruction_intensity_dram": "Instructions per DRAM byte",
    "roofline_dram_pct": "Of the DRAM roof",
}
