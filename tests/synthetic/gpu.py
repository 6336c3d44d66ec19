"""Two GPUs with the real limits and peaks of an A100 and an H100; their names say that they are invented."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.ncurep import Device, Scalar

KIB = 1024
SCHEDULERS = 4
SECTOR = 32
"""[byte]"""


@dataclass(frozen=True)
class Gpu:
    """What the model needs of a GPU: sizes, clocks [Hz], and peaks per cycle and SM, slice or device."""

    name: str
    cc: tuple[int, int]
    sms: int
    sm_clock: int
    """[Hz] The base clock, to which ncu locks the SMs by default."""
    sm_clock_max: int
    l2_clock: int
    dram_clock: int
    bus_bits: int
    l2_slices: int
    l2_size: int
    shared_per_sm: int
    shared_configs: tuple[int, ...]
    """[KiB] Carve-outs of the L1 that shared memory can get."""
    pipes: Mapping[str, float]
    """Warp instructions per cycle and SM of each pipe."""
    tensor: Mapping[str, int]
    """Dense operations per cycle and SM of each path of the tensor cores (sm__ops_path_tensor_...)."""
    half_per_cycle: int
    """Packed half instructions (threads) per cycle and SM."""
    l1_return: str
    """Suffix of l1tex__lsu_writeback_active, which differs between architectures."""
    attributes: Mapping[str, Scalar] = field(default_factory=dict)
    max_warps: int = 64
    max_blocks: int = 32

    @property
    def dram_bytes_per_cycle(self) -> int:
        """Bytes per DRAM cycle of the whole device (both edges of the clock, as ncu counts)."""
        return self.bus_bits // 4

    @property
    def dram_bandwidth(self) -> float:
        """[byte/s] of the pins."""
        return float(self.dram_bytes_per_cycle * self.dram_clock)

    @property
    def device(self) -> Device:
        """The device as reports describe it."""
        values: dict[str, Scalar] = {
            "async_engine_count": 3,
            "clock_rate": self.sm_clock_max // 1000,
            "ecc_enabled": 1,
            "fb_bus_width": self.bus_bits,
            "global_memory_bus_width": self.bus_bits,
            "integrated": 0,
            "l2_cache_size": self.l2_size,
            "l2s_count": self.l2_slices,
            "limits_max_cta_per_sm": self.max_blocks,
            "max_block_dim_x": 1024,
            "max_block_dim_y": 1024,
            "max_block_dim_z": 64,
            "max_blocks_per_multiprocessor": self.max_blocks,
            "max_gpu_frequency_khz": self.sm_clock_max // 1000,
            "max_ipc_per_multiprocessor": SCHEDULERS,
            "max_ipc_per_scheduler": 1,
            "max_mem_frequency_khz": self.dram_clock // 1000,
            "max_registers_per_block": 65536,
            "max_registers_per_multiprocessor": 65536,
            "max_registers_per_thread": 255,
            "max_shared_memory_per_block": 48 * KIB,
            "max_shared_memory_per_block_optin": self.shared_per_sm - KIB,
            "max_shared_memory_per_multiprocessor": self.shared_per_sm,
            "max_threads_per_block": 1024,
            "max_threads_per_multiprocessor": 32 * self.max_warps,
            "max_warps_per_multiprocessor": self.max_warps,
            "max_warps_per_scheduler": self.max_warps // SCHEDULERS,
            "memory_clock_rate": self.dram_clock // 1000,
            "multiprocessor_count": self.sms,
            "num_schedulers_per_multiprocessor": SCHEDULERS,
            "reserved_shared_memory_per_block": KIB,
            "sass_level": self.cc[0],
            "single_to_double_precision_perf_ratio": 2,
            "warp_size": 32,
        }
        return Device(self.name, self.cc, attributes=values | dict(self.attributes))


A100 = Gpu(
    "NVIDIA A100 (synthetic)",
    (8, 0),
    sms=108,
    sm_clock=1_065_000_000,
    sm_clock_max=1_410_000_000,
    l2_clock=1_010_000_000,
    dram_clock=1_512_000_000,
    bus_bits=5120,
    l2_slices=80,
    l2_size=40 * KIB * KIB,
    shared_per_sm=164 * KIB,
    shared_configs=(32, 64, 100, 132, 164),
    pipes={"fma": 2, "alu": 2, "fp64": 1, "fp16": 4, "xu": 0.5, "lsu": 1, "adu": 0.5, "cbu": 1, "uniform": 2},
    tensor={
        "src_fp16_dst_fp16": 2048,
        "src_fp16_dst_fp32": 2048,
        "src_bf16_dst_fp32": 2048,
        "src_tf32_dst_fp32": 1024,
        "src_int8": 4096,
        "src_int4": 8192,
        "src_fp64": 128,
    },
    half_per_cycle=128,
    l1_return="_mem_lg",
    attributes={"total_memory": 80 * KIB**3, "max_persisting_l2_cache_size": 26214400, "cluster_launch": 0},
)

H100 = Gpu(
    "NVIDIA H100 (synthetic)",
    (9, 0),
    sms=132,
    sm_clock=1_590_000_000,
    sm_clock_max=1_980_000_000,
    l2_clock=1_710_000_000,
    dram_clock=2_619_000_000,
    bus_bits=5120,
    l2_slices=80,
    l2_size=50 * KIB * KIB,
    shared_per_sm=228 * KIB,
    shared_configs=(32, 64, 100, 132, 164, 196, 228),
    pipes={"fma": 4, "alu": 2, "fp64": 2, "fp16": 4, "xu": 0.5, "lsu": 1, "adu": 0.5, "cbu": 1, "uniform": 2},
    tensor={
        "op_hgmma_src_fp16": 4096,
        "op_hgmma_src_bf16_dst_fp32": 4096,
        "op_hgmma_src_tf32_dst_fp32": 2048,
        "op_igmma_src_int8": 8192,
        "src_fp8": 8192,
        "src_fp64": 256,
    },
    half_per_cycle=128,
    l1_return="_mem_lgds",
    attributes={"total_memory": 80 * KIB**3, "max_persisting_l2_cache_size": 32768000, "cluster_launch": 1},
)


@dataclass(frozen=True)
class Occupancy:
    """Blocks per SM that each resource allows, and what follows; shared memory [byte]."""

    blocks_limit: int
    registers_limit: int
    shared_limit: int
    warps_limit: int
    shared_allocated: int
    shared_config: int
    warps_per_block: int

    @property
    def blocks(self) -> int:
        """Resident blocks per SM."""
        return min(self.blocks_limit, self.registers_limit, self.shared_limit, self.warps_limit)

    @property
    def warps(self) -> int:
        """Resident warps per SM."""
        return self.blocks * self.warps_per_block


def occupancy(gpu: Gpu, threads: int, registers: int, shared: int) -> Occupancy:
    """Return what limits the resident blocks of a launch (CUDA occupancy calculator, CC 8.0 and 9.0).

    Registers are allocated in units of 256 a warp, shared memory in units of 128 byte with 1 KiB for the
    driver; the carve-out is the smallest that holds as many blocks as the other resources allow.
    """
    warps = math.ceil(threads / 32)
    per_warp = math.ceil(max(registers, 1) * 32 / 256) * 256
    registers_limit = 65536 // per_warp // warps
    allocated = math.ceil((shared + KIB) / 128) * 128
    most = min(gpu.max_blocks, registers_limit, gpu.max_warps // warps)
    fitting = [c * KIB for c in gpu.shared_configs if c * KIB >= most * allocated]
    config = fitting[0] if fitting else gpu.shared_configs[-1] * KIB
    return Occupancy(
        gpu.max_blocks,
        registers_limit,
        min(gpu.max_blocks, config // allocated),
        gpu.max_warps // warps,
        allocated,
        config,
        warps,
    )
