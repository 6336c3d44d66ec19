"""The hardware counters of a modelled launch: (name, unit, total, peak per unit and cycle, roll-ups).

Names, peaks and roll-ups are those of full reports of an A100 and an H100; roll-ups are written as in
`tests.synthetic.counters`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.synthetic.gpu import SCHEDULERS, SECTOR
from tests.synthetic.model import Model

GPCS = 8
Row = tuple[str, str, float, float, str]


def time(m: Model) -> Iterator[Row]:
    """Yield cycles of every clock."""
    sm, lts, dram = m.elapsed, m.cycles(m.gpu.l2_clock), m.cycles(m.gpu.dram_clock)
    channels = m.gpu.bus_bits // 128
    yield "gpc__cycles_elapsed", "gpc clock", sm * GPCS, 1, "all all/s"
    yield "sm__cycles_elapsed", "sm clock", sm * m.gpu.sms, 1, "all all/s"
    yield "smsp__cycles_elapsed", "smsp clock", sm * m.gpu.sms * SCHEDULERS, 1, "all all/s"
    yield "l1tex__cycles_elapsed", "sm clock", sm * m.gpu.sms, 1, "all"
    yield "sm__cycles_active", "sm", m.active_total, 1, "all"
    yield "smsp__cycles_active", "smsp", m.active_total * SCHEDULERS, 1, "all"
    yield "l1tex__cycles_active", "sm", m.active_total, 1, "all"
    yield "lts__cycles_elapsed", "lts clock", lts * m.gpu.l2_slices, 1, "all all/s"
    yield "lts__cycles_active", "lts clock", lts * m.gpu.l2_slices, 1, "all"
    yield "dram__cycles_elapsed", "dram clock", dram * channels, 1, "all all/s"


def sm(m: Model) -> Iterator[Row]:
    """Yield what the SMs and their schedulers count."""
    pipes, peaks, hopper = m.pipes, m.gpu.pipes, m.gpu.cc >= (9, 0)
    warp_cycles = m.warps_active * m.active_total * SCHEDULERS
    yield "sm__inst_executed", "sm", m.inst, SCHEDULERS, "sum all% all/ca all/c"
    yield "sm__inst_issued", "sm", m.inst, SCHEDULERS, "all%a all/ca"
    yield "sm__issue_active", "sm", m.inst, SCHEDULERS, "all%"
    yield "sm__warps_active", "sm", warp_cycles, m.gpu.max_warps, "all%a all/ca"
    yield "smsp__inst_executed", "smsp", m.inst, 1, "all"
    yield "smsp__inst_issued", "smsp", m.inst, 1, "all"
    yield "smsp__issue_active", "smsp", m.inst, 1, "all%a all/ca"
    yield "smsp__issue_inst0", "smsp", m.active_total * SCHEDULERS - m.inst, 1, "avg%a"
    yield "smsp__warps_active", "smsp", warp_cycles, m.gpu.max_warps // SCHEDULERS, "all^ all/ca"
    yield "smsp__warps_eligible", "smsp", m.eligible * m.active_total * SCHEDULERS, 1, "all/ca"
    yield "smsp__inst_executed_op_branch", "smsp", m.count("BRA"), 1, "all"
    yield "smsp__sass_branch_targets_threads_divergent", "smsp", 0, 1, "all"

    for pipe in ("alu", "fma", "fp64"):
        yield f"sm__inst_executed_pipe_{pipe}", "sm", pipes[pipe], peaks[pipe], "all%a"
        yield f"sm__pipe_{pipe}_cycles_active", "sm", pipes[pipe], peaks[pipe], "all% all%a"
    for pipe in ("adu", "lsu", "uniform", "xu"):
        yield f"sm__inst_executed_pipe_{pipe}", "sm", pipes[pipe], peaks[pipe], "all% all%a"
    yield "sm__inst_executed_pipe_cbu", "sm", pipes["cbu"], 4, "all%a"
    yield "sm__inst_executed_pipe_cbu_pred_on_any", "sm", pipes["cbu"], 1, "all%"
    yield "sm__inst_executed_pipe_tex", "sm", 0, 1, "all% all%a"
    yield "sm__inst_executed_pipe_ipa", "sm", 0, 1, "all%"
    yield "idc__request_cycles_active", "sm", m.count("LDC"), 1, "all%"

    tensor, hmma = m.tensor_cycles, m.count("HMMA") + m.count("HFMA2")
    yield "sm__pipe_tensor_cycles_active", "sm", tensor, 1, "all% all%a"
    yield "sm__pipe_shared_cycles_active", "sm", tensor, 1, "all% all%a"
    yield "sm__pipe_tensor_op_hmma_cycles_active", "sm", tensor, 1, "all%a"
    yield "sm__pipe_tensor_op_imma_cycles_active", "sm", 0, 1, "all%a"
    yield "sm__pipe_tensor_op_dmma_cycles_active", "sm", 0, 1, "all%a all%"
    yield "sm__inst_executed_pipe_tensor_op_hmma", "sm", hmma, 1, "sum all%a"
    yield "sm__inst_executed_pipe_tensor_op_imma", "sm", 0, 1, "sum all%a"
    yield "sm__inst_executed_pipe_tensor_op_dmma", "sm", 0, 1, "sum all%a"
    if hopper:
        group = "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active"
        yield group, "sm", m.tensor_ops / 4096, 1, "all%"
        yield "sm__inst_executed_pipe_tensor_op_gmma", "sm", 0, 1, "all%a"
        yield "sm__inst_executed_pipe_fma_type_fp16", "sm", pipes["fp16"], peaks["fp16"], "avg%a"
        yield "sm__pipe_fmaheavy_cycles_active", "sm", pipes["fma"] / 2, 2, "all%"
        yield "sm__inst_executed_pipe_tma", "sm", 0, 1, "all%a"
        yield "sm__pipe_tma_cycles_active", "sm", 0, 1, "all% all%a"
    else:
        yield "sm__inst_executed_pipe_fp16", "sm", pipes["fp16"], peaks["fp16"], "all% all%a"

    returned = m.wavefronts(r"LDG(\.|$)") + m.wavefronts("LDS") + m.count("SHFL")
    yield "sm__mio_inst_issued", "sm", pipes["lsu"] + m.count("BAR"), 2, "all%"
    yield "sm__mio2rf_writeback_active", "sm", returned, 4, "all%"
    yield "sm__mio_pq_read_cycles_active", "sm", m.requests("LDG"), 1, "all%"
    yield "sm__mio_pq_write_cycles_active", "sm", m.requests("LDG"), 1, "all%"

    for space, opcode in (("global", "G"), ("shared", "S"), ("local", "L")):
        yield f"smsp__sass_inst_executed_op_{space}_ld", "smsp", m.count(rf"LD{opcode}(\.|$|M)"), 1, "sum"
        yield f"smsp__sass_inst_executed_op_{space}_st", "smsp", m.count(rf"ST{opcode}"), 1, "sum"
    yield "smsp__inst_executed_op_ldgsts", "smsp", m.count("LDGSTS"), 1, "sum sum%"
    yield "smsp__inst_executed_op_ldsm", "smsp", m.count("LDSM"), 1, "sum sum%"
    yield "sm__sass_inst_executed_op_ldgsts_cache_bypass", "sm", m.count("LDGSTS"), 1, "sum"
    yield "sm__sass_inst_executed_op_ldgsts_cache_access", "sm", 0, 1, "sum"
    for op in ("shared_atom", "global_red", "generic_atom_dot_alu", "generic_atom_dot_cas", "texture"):
        yield f"smsp__inst_executed_op_{op}", "smsp", 0, 1, "sum sum%"


def l1(m: Model) -> Iterator[Row]:
    """Yield what L1 and shared memory count."""
    loads, stores, copies = r"LDG(\.|$)", "STG", "LDGSTS"
    shared, lines = m.shared_wavefronts, m.l2_reads / 4
    read, written = m.wavefronts("LDS"), m.wavefronts("STS")
    conflicts_ld, conflicts_st = (m.wavefronts(op) - m.wavefronts(op, ideal=True) for op in ("LDS", "STS"))
    returned = m.wavefronts(loads)
    mem = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
    conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
    yield mem, "sm", shared, 1, "sum sum%"
    yield f"{mem}_op_ld", "sm", read, 1, "sum sum%"
    yield f"{mem}_op_st", "sm", written, 1, "sum sum%"
    yield f"{mem}_op_atom", "sm", 0, 1, "sum sum%"
    yield conflicts, "sm", conflicts_ld + conflicts_st, 1, "sum"
    yield f"{conflicts}_op_ld", "sm", conflicts_ld, 1, "sum"
    yield f"{conflicts}_op_st", "sm", conflicts_st, 1, "sum"
    yield f"{conflicts}_op_atom", "sm", 0, 1, "sum"
    yield f"{conflicts}_op_ldgsts", "sm", 0, 1, "sum"
    bypassed = "l1tex_m_xbar2l1tex_read_sectors_mem_global_op_ldgsts_cache_bypass"
    yield f"smsp__sass_{bypassed}", "smsp", m.sectors(copies), 1, "sum"
    yield (
        f"sm__sass_{bypassed.replace('sectors', 'bytes')}",
        "sm",
        SECTOR * m.sectors(copies),
        128,
        "sum sum/s",
    )
    copied = "sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts"
    yield copied, "sm", m.requests(copies), 1, "sum sum%"
    yield f"{copied}_cache_bypass", "sm", m.requests(copies), 1, "sum"
    wavefronts = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts"
    yield wavefronts, "smsp", m.wavefronts(copies), 1, "sum"

    yield "l1tex__data_pipe_lsu_wavefronts", "sm", m.l1_wavefronts, 1, "all%"
    banks_read = m.wavefronts("LDS", ideal=True) + returned
    banks_written = m.wavefronts("STS|LDGSTS", ideal=True) + m.sectors(loads) / 4
    yield "l1tex__data_bank_reads", "sm", banks_read, 1, "all%"
    yield "l1tex__data_bank_writes", "sm", banks_written, 1, "all%"
    yield "l1tex__lsu_writeback_active", "sm", read + returned, 1, "all% sum^"
    yield f"l1tex__lsu_writeback_active{m.gpu.l1_return}", "sm", returned, 1, "sum sum% sum^"
    yield "l1tex__lsuin_requests", "sm", m.pipes["lsu"], 1, "all%"
    yield "l1tex__m_l1tex2xbar_req_cycles_active", "sm", lines + m.l2_writes, 1, "all%"
    yield "l1tex__m_xbar2l1tex_read_sectors", "sm", m.l2_reads, 4, "sum all%"
    yield "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld", "sm", m.sectors(loads), 4, "sum sum%"
    yield "l1tex__m_xbar2l1tex_read_bytes", "sm", SECTOR * m.l2_reads, 128, "sum sum% sum/s"
    yield "l1tex__m_l1tex2xbar_write_bytes", "sm", SECTOR * m.l2_writes, 32, "sum sum% sum/s"
    yield "l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st", "sm", m.l2_writes, 1, "sum sum%"
    unused = [
        "data_pipe_tex_wavefronts",
        "f_wavefronts",
        "tex_writeback_active",
        "texin_sm2tex_req_cycles_active",
    ]
    if m.gpu.cc >= (9, 0):
        unused += ["m_xbar2l1tex_read_sectors_mem_dshared", "tmain_requests"]
        tma = "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld"
        yield tma, "sm", 0, 128, "sum sum% sum/s"
    for name in unused:
        yield f"l1tex__{name}", "sm", 0, 1, "all%"

    for op, opcode in (("ld", "LDG"), ("st", stores), ("atom", "ATOM"), ("red", "RED")):
        sectors = m.sectors(opcode)
        name = f"pipe_lsu_mem_global_op_{op}"
        yield f"l1tex__t_requests_{name}", "sm", m.requests(opcode), 1, "sum sum%"
        yield f"l1tex__t_output_wavefronts_{name}", "sm", m.wavefronts(opcode), 1, "sum sum%"
        yield f"l1tex__t_sectors_{name}", "sm", sectors, 1, "sum"
        yield f"l1tex__t_sectors_{name}_lookup_hit", "sm", 0, 1, "sum"
        yield f"l1tex__t_sectors_{name}_lookup_miss", "sm", sectors, 1, "sum"
    for op in ("lsu_mem_local_op_ld", "lsu_mem_local_op_st", "tex_mem_texture"):
        yield f"l1tex__t_requests_pipe_{op}", "sm", 0, 1, "sum sum%"
        for suffix in ("", "_lookup_hit", "_lookup_miss"):
            yield f"l1tex__t_sectors_pipe_{op}{suffix}", "sm", 0, 1, "sum"


def l2(m: Model) -> Iterator[Row]:
    """Yield what the L2 slices count; every write hits, fabric traffic always misses."""
    reads, writes, misses, fabric = m.l2_reads, m.l2_writes, m.l2_misses, m.fabric
    tex = reads + writes
    requests = reads / 4 + writes / 4
    yield "lts__t_sectors", "lts", tex + fabric, 3, "all all% avg^ avg/c sum/s"
    yield "lts__t_sectors_srcunit_tex", "lts", tex, 2, "sum all% avg^ avg/c sum/s"
    yield "lts__t_sectors_srcunit_ltcfabric", "lts", fabric, 1, "sum avg% avg^ avg/c sum/s"
    yield "lts__t_sectors_srcunit_tex_op_read", "lts", reads, 2, "sum avg% avg^ avg/c sum/s"
    yield "lts__t_sectors_srcunit_tex_op_write", "lts", writes, 1, "sum avg% avg^ avg/c sum/s"
    for op in ("atom_dot_alu", "atom_dot_cas", "red"):
        yield f"lts__t_sectors_srcunit_tex_op_{op}", "lts", 0, 1, "sum avg% avg^ avg/c sum/s"
    for name, hits, missed in (
        ("", m.l2_read_hits + writes, misses + fabric),
        ("_srcunit_tex", m.l2_read_hits + writes, misses),
        ("_srcunit_tex_op_read", m.l2_read_hits, misses),
        ("_srcunit_tex_op_write", writes, 0),
        ("_srcunit_ltcfabric", 0, fabric),
    ):
        yield f"lts__t_sectors{name}_lookup_hit", "lts", hits, 1, "sum"
        yield f"lts__t_sectors{name}_lookup_miss", "lts", missed, 1, "all"
    for source, missed in (("", misses + fabric), ("_srcunit_tex", misses), ("_srcunit_ltcfabric", fabric)):
        for aperture in ("device", "peer", "sysmem"):
            missing = missed if aperture == "device" else 0
            yield f"lts__t_sectors{source}_aperture_{aperture}_lookup_miss", "lts", missing, 1, "all"
    yield "lts__t_requests", "lts", requests + fabric / 4, 1, "sum"
    yield "lts__t_requests_srcunit_tex", "lts", requests, 1, "sum"
    yield "lts__t_requests_srcunit_tex_op_read", "lts", reads / 4, 1, "sum"
    yield "lts__t_requests_srcunit_tex_op_write", "lts", writes / 4, 1, "sum"
    yield "lts__t_requests_srcunit_ltcfabric", "lts", fabric / 4, 1, "sum"
    yield "lts__t_tag_requests", "lts", requests + fabric / 4, 1, "all%"
    yield "lts__d_sectors", "lts", tex + misses, 3, "all%"
    yield "lts__d_sectors_fill_device", "lts", misses, 1, "all%"
    yield "lts__d_sectors_fill_sysmem", "lts", 0, 1, "all%"
    yield "lts__d_atomic_input_cycles_active", "lts", 0, 1, "all%"
    yield "lts__lts2xbar_cycles_active", "lts", reads, 2, "sum all% sum^"
    yield "lts__xbar2lts_cycles_active", "lts", reads / 4 + writes, 1, "all%"


def dram(m: Model) -> Iterator[Row]:
    """Yield what the memory channels count; a channel moves one sector a cycle."""
    read, written = m.l2_misses, m.dram_written
    yield "dram__cycles_active", "dram", read + written, 1, "all all%"
    yield "dram__sectors_read", "dram", read, 1, "sum"
    yield "dram__sectors_write", "dram", written, 1, "sum"
    yield "dram__bytes_read", "dram", SECTOR * read, SECTOR, "sum sum% sum/s"
    yield "dram__bytes_write", "dram", SECTOR * written, SECTOR, "sum sum% sum/s"
    yield "dram__bytes", "dram", m.dram_bytes, SECTOR, "all^ all/s"
    yield "fbpa__dram_sectors", "fbpa", read + written, 1, "all%"
    for link in ("pcie__read_bytes", "pcie__write_bytes", "nvlrx__bytes", "nvltx__bytes"):
        yield link, "sm clock", 0, 1, "sum/s"


def roofline(m: Model) -> Iterator[Row]:
    """Yield work and peaks of every precision: thread instructions, and operations of the tensor cores."""
    for op in ("dadd", "dmul", "dfma", "fadd", "fmul", "ffma", "hadd", "hmul", "hfma"):
        done = m.threads_on(rf"{op.upper()}2?(\.|$)")
        yield f"smsp__sass_thread_inst_executed_op_{op}_pred_on", "smsp", done, 1, "sum all/c"
    lanes = {"dfma": 32 * m.gpu.pipes["fp64"], "ffma": 32 * m.gpu.pipes["fma"], "hfma": m.gpu.half_per_cycle}
    for op, peak in lanes.items():
        yield f"sm__sass_thread_inst_executed_op_{op}_pred_on", "sm", 0, peak, "all^"
    for path, peak in m.gpu.tensor.items():
        name = f"sm__ops_path_tensor_{path}"
        done = m.tensor_ops if path == "src_fp16_dst_fp32" else 0
        if path == "src_fp64":
            yield name, "sm", done, peak, "sum sum/s sum/c sum% sum^"
            continue
        yield f"{name}_sparsity_off", "sm", done, peak, "sum sum/s sum/c sum% sum^"
        yield f"{name}_sparsity_on", "sm", 0, 2 * peak, "sum sum/s sum/c sum% sum^"


def ratios(m: Model) -> dict[str, float]:
    """Return hit rates and other ratios of totals; a ratio over nothing reads 0, as in ncu."""

    def share(part: float, whole: float) -> float:
        return 100 * part / whole if whole else 0.0

    reads, writes, misses, fabric = m.l2_reads, m.l2_writes, m.l2_misses, m.fabric
    hits = m.l2_read_hits
    found = {
        "l1tex__t_sector_hit_rate.pct": 0.0,
        "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct": 0.0,
        "l1tex__t_sector_pipe_lsu_mem_global_op_st_hit_rate.pct": 0.0,
        "lts__t_sector_hit_rate.pct": share(hits + writes, hits + writes + misses + fabric),
        "lts__t_sector_op_read_hit_rate.pct": share(hits, reads + fabric),
        "lts__t_sector_op_write_hit_rate.pct": share(writes, writes),
        "lts__average_gcomp_input_sector_success_rate.pct": 0.0,
        "lts__average_gcomp_output_sector_compression_achieved_rate.ratio": 0.0,
        "smsp__sass_average_branch_targets_threads_uniform.pct": 100.0 if m.count("BRA") else 0.0,
        "smsp__thread_inst_executed_per_inst_executed.ratio": sum(s.active for s in m.steps) / m.inst,
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": sum(s.on for s in m.steps) / m.inst,
    }
    for op, opcode in (("ld", r"LDG(\.|$)"), ("st", "STG")):
        touched, needed = m.sectors(opcode), m.sectors(opcode, ideal=True)
        name = f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.ratio"
        found[name] = SECTOR * needed / touched if touched else 0.0
    return found
