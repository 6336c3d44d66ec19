"""Which counters make up each of ncu's throughputs, on the A100 and the H100."""

from __future__ import annotations

from collections.abc import Mapping

from tests.synthetic.model import Model

L1_MEMBERS = [
    "l1tex__data_bank_reads",
    "l1tex__data_bank_writes",
    "l1tex__data_pipe_lsu_wavefronts",
    "l1tex__data_pipe_tex_wavefronts",
    "l1tex__f_wavefronts",
    "l1tex__lsu_writeback_active",
    "l1tex__lsuin_requests",
    "l1tex__m_l1tex2xbar_req_cycles_active",
    "l1tex__m_xbar2l1tex_read_sectors",
    "l1tex__tex_writeback_active",
    "l1tex__texin_sm2tex_req_cycles_active",
]
L1_HOPPER = ["l1tex__m_xbar2l1tex_read_sectors_mem_dshared", "l1tex__tmain_requests"]
L2_MEMBERS = [
    "lts__d_atomic_input_cycles_active",
    "lts__d_sectors",
    "lts__d_sectors_fill_device",
    "lts__d_sectors_fill_sysmem",
    "lts__lts2xbar_cycles_active",
    "lts__t_sectors",
    "lts__t_tag_requests",
    "lts__xbar2lts_cycles_active",
]
DRAM_MEMBERS = ["dram__cycles_active", "fbpa__dram_sectors"]
LINKS = ("xbar", "lsu_writeback", "lsuin")
SM_MEMBERS = [
    "idc__request_cycles_active",
    "sm__inst_executed",
    "sm__inst_executed_pipe_adu",
    "sm__inst_executed_pipe_cbu_pred_on_any",
    "sm__inst_executed_pipe_ipa",
    "sm__inst_executed_pipe_lsu",
    "sm__inst_executed_pipe_tex",
    "sm__inst_executed_pipe_uniform",
    "sm__inst_executed_pipe_xu",
    "sm__issue_active",
    "sm__mio2rf_writeback_active",
    "sm__mio_inst_issued",
    "sm__mio_pq_read_cycles_active",
    "sm__mio_pq_write_cycles_active",
    "sm__pipe_alu_cycles_active",
    "sm__pipe_fma_cycles_active",
    "sm__pipe_fp64_cycles_active",
    "sm__pipe_shared_cycles_active",
    "sm__pipe_tensor_cycles_active",
]
SM_HOPPER = [
    "sm__pipe_fmaheavy_cycles_active",
    "sm__pipe_tensor_op_dmma_cycles_active",
    "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
    "sm__pipe_tma_cycles_active",
]
SM_BUSY = [
    f"sm__inst_executed_pipe_{pipe}" for pipe in ("adu", "alu", "cbu", "fma", "lsu", "tex", "uniform", "xu")
] + ["sm__inst_issued", "sm__pipe_tensor_cycles_active", "sm__pipe_fp64_cycles_active"]


def members(m: Model) -> Mapping[str, tuple[list[str], str]]:
    """Return throughput -> (its members, the roll-ups it has)."""
    hopper = m.gpu.cc >= (9, 0)
    first = L1_MEMBERS + (L1_HOPPER if hopper else [])
    compute = SM_MEMBERS + (SM_HOPPER if hopper else ["sm__inst_executed_pipe_fp16"])
    memory = sorted(DRAM_MEMBERS + first + L2_MEMBERS)
    requests = [name for name in memory if any(link in name for link in LINKS)]
    return {
        "sm__throughput": (sorted(compute), "%"),
        "gpu__compute_memory_throughput": (memory, "%"),
        "gpu__compute_memory_request_throughput": (requests, "%"),
        "gpu__compute_memory_access_throughput": ([n for n in memory if n not in requests], "%"),
        "gpu__dram_throughput": (DRAM_MEMBERS, "%"),
        "l1tex__throughput": (first, "% %a"),
        "lts__throughput": (L2_MEMBERS, "%"),
        "sm__memory_throughput": (["sm__inst_executed_pipe_lsu", "sm__mio_inst_issued"], "%"),
        "sm__instruction_throughput": (SM_BUSY, "%a"),
    }
