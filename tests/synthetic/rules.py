"""Sections and rule results of a modelled launch, in the form and the manner of ncu's own.

The texts are ours; ids, sections and speedup kinds are those of ncu's rules.
"""

from __future__ import annotations

from tests.ncurep import Rule, Section
from tests.synthetic.model import Model

PCT = "pct_of_peak_sustained_elapsed"
_SECTIONS = (
    (
        "SpeedOfLight",
        "GPU Speed Of Light Throughput",
        {
            "Duration": "gpu__time_duration.sum",
            "Elapsed Cycles": "gpc__cycles_elapsed.max",
            "SM Active Cycles": "sm__cycles_active.avg",
            "SM Frequency": "gpc__cycles_elapsed.avg.per_second",
            "DRAM Frequency": "dram__cycles_elapsed.avg.per_second",
            "Compute (SM) Throughput": f"sm__throughput.avg.{PCT}",
            "Memory Throughput": f"gpu__compute_memory_throughput.avg.{PCT}",
            "L1/TEX Cache Throughput": "l1tex__throughput.avg.pct_of_peak_sustained_active",
            "L2 Cache Throughput": f"lts__throughput.avg.{PCT}",
            "DRAM Throughput": f"gpu__dram_throughput.avg.{PCT}",
        },
    ),
    ("SpeedOfLight_RooflineChart", "GPU Speed Of Light Roofline Chart", {}),
    ("SpeedOfLight_HierarchicalTensorRooflineChart", "Roofline Chart of the Tensor Cores", {}),
    (
        "ComputeWorkloadAnalysis",
        "Compute Workload Analysis",
        {
            "Executed Ipc Active": "sm__inst_executed.avg.per_cycle_active",
            "Executed Ipc Elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
            "Issue Slots Busy": "sm__inst_issued.avg.pct_of_peak_sustained_active",
            "SM Busy": "sm__instruction_throughput.avg.pct_of_peak_sustained_active",
        },
    ),
    (
        "MemoryWorkloadAnalysis",
        "Memory Workload Analysis",
        {
            "Memory Throughput": "dram__bytes.sum.per_second",
            "Mem Busy": f"gpu__compute_memory_access_throughput.avg.{PCT}",
            "Max Bandwidth": f"gpu__compute_memory_request_throughput.avg.{PCT}",
            "L1/TEX Hit Rate": "l1tex__t_sector_hit_rate.pct",
            "L2 Hit Rate": "lts__t_sector_hit_rate.pct",
        },
    ),
    ("MemoryWorkloadAnalysis_Chart", "Memory Workload Analysis Chart", {}),
    ("MemoryWorkloadAnalysis_Tables", "Memory Workload Analysis Tables", {}),
    (
        "SchedulerStats",
        "Scheduler Statistics",
        {
            "Active Warps Per Scheduler": "smsp__warps_active.avg.per_cycle_active",
            "Eligible Warps Per Scheduler": "smsp__warps_eligible.avg.per_cycle_active",
            "Issued Warp Per Scheduler": "smsp__issue_active.avg.per_cycle_active",
            "No Eligible": "smsp__issue_inst0.avg.pct_of_peak_sustained_active",
        },
    ),
    (
        "WarpStateStats",
        "Warp State Statistics",
        {
            "Warp Cycles Per Issued Instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
            "Avg. Active Threads Per Warp": "smsp__thread_inst_executed_per_inst_executed.ratio",
        },
    ),
    (
        "InstructionStats",
        "Instruction Statistics",
        {"Executed Instructions": "smsp__inst_executed.sum", "Issued Instructions": "smsp__inst_issued.sum"},
    ),
    (
        "LaunchStats",
        "Launch Statistics",
        {
            "Grid Size": "launch__grid_size",
            "Block Size": "launch__block_size",
            "Registers Per Thread": "launch__registers_per_thread",
            "Waves Per SM": "launch__waves_per_multiprocessor",
        },
    ),
    (
        "Occupancy",
        "Occupancy",
        {
            "Theoretical Occupancy": "sm__maximum_warps_per_active_cycle_pct",
            "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
            "Block Limit Registers": "launch__occupancy_limit_registers",
            "Block Limit Shared Mem": "launch__occupancy_limit_shared_mem",
            "Block Limit Warps": "launch__occupancy_limit_warps",
            "Block Limit SM": "launch__occupancy_limit_blocks",
        },
    ),
    ("SourceCounters", "Source Counters", {"Branch Instructions": "smsp__inst_executed_op_branch.sum"}),
    ("WorkloadDistribution", "GPU and Memory Workload Distribution", {}),
)


def sections() -> tuple[Section, ...]:
    """Return the sections of the ``full`` set that the metrics cover."""
    return tuple(Section(*row) for row in _SECTIONS)


def results(m: Model) -> tuple[Rule, ...]:
    """Return the rule results of a launch; a rule without a text was applied and found nothing."""
    return (
        _bottleneck(m),
        _issue_slots(m),
        _stall(m),
        _uncoalesced(m),
        _conflicts(m),
        _grid(m),
        Rule("AchievedOccupancy", "Achieved Occupancy", "Occupancy"),
    )


def _bottleneck(m: Model) -> Rule:
    head = ("SOLBottleneck", "Bottleneck", "SpeedOfLight")
    waves = m.blocks / (m.gpu.sms * m.residency.blocks)
    if m.busy_sms < m.gpu.sms:
        text = f"This grid is too small to fill the device: {waves:.2f} full waves across all SMs."
        focus = (("launch__waves_per_multiprocessor", waves, f"{waves:.3f} < 1.000"),)
        return Rule(*head, "optimization", "Small Grid", text, focus)
    text = "The kernel uses more than 80.0% of the available compute or memory performance of the device."
    return Rule(*head, "ok", "High Throughput", text)


def _issue_slots(m: Model) -> Rule:
    head = ("IssueSlotUtilization", "Issue Slot Utilization", "SchedulerStats")
    if m.issue >= 0.8:
        return Rule(*head)
    text = (
        f"Each scheduler issues an instruction every {1 / m.issue:.1f} cycles; it could every cycle. "
        f"Of {m.warps_active:.2f} active warps an average of {m.eligible:.2f} were eligible per cycle."
    )
    focus = (("smsp__issue_active.avg.per_cycle_active", m.issue, "Increase the issued instructions"),)
    return Rule(*head, "optimization", "", text, focus, ("local", 100 * (1 - m.issue)))


def _stall(m: Model) -> Rule:
    head = ("CPIStall", "Warp Stall", "WarpStateStats")
    state, cycles = max(m.stall_cycles.items(), key=lambda item: item[1])
    share = 100 * cycles / m.latency
    if m.issue >= 0.8 or share < 30:
        return Rule(*head)
    text = (
        f"On average, each warp of this kernel spends {cycles:.1f} cycles stalled in state {state}. That is "
        f"about {share:.1f}% of the {m.latency:.1f} cycles between two instructions."
    )
    focus = ((f"smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio", cycles, "Decrease it"),)
    return Rule(*head, "optimization", f"{state} Stalls", text, focus, ("local", share))


def _uncoalesced(m: Model) -> Rule:
    head = ("UncoalescedGlobalAccess", "Uncoalesced Global Accesses", "SourceCounters")
    total = m.sectors("LDG|STG")
    excess = total - m.sectors("LDG|STG", ideal=True)
    if not excess or excess < total / 100:
        return Rule(*head)
    text = f"This kernel has uncoalesced global accesses: {excess} excessive sectors of {total}."
    focus = (("derived__memory_l2_theoretical_sectors_global_excessive", float(excess), "Decrease it"),)
    return Rule(
        *head, "optimization", "Uncoalesced Global Accesses", text, focus, ("local", 100 * excess / total)
    )


def _conflicts(m: Model) -> Rule:
    head = ("SharedMemoryConflicts", "Shared Memory Conflicts", "MemoryWorkloadAnalysis_Tables")
    total = m.wavefronts("LDS")
    excess = total - m.wavefronts("LDS", ideal=True)
    if not excess:
        return Rule(*head)
    ways = total / m.requests("LDS")
    text = f"Shared loads meet on average a {ways:.1f}-way bank conflict: {excess} of {total} wavefronts."
    name = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
    # without them the kernel takes as long as the next unit needs: the rest of L1, or device memory
    l1 = m.l1_wavefronts / m.gpu.sms / m.gpu.sm_clock
    saved = 100 * (1 - max(1 - excess / m.l1_wavefronts, m.dram_bytes / m.gpu.dram_bandwidth / l1))
    focus = ((name, float(excess), "Decrease bank conflicts of shared loads"),)
    return Rule(*head, "optimization", "Shared Load Bank Conflicts", text, focus, ("global", saved))


def _grid(m: Model) -> Rule:
    head = ("LaunchConfiguration", "Launch Configuration", "LaunchStats")
    if m.busy_sms == m.gpu.sms:
        return Rule(*head)
    text = f"The grid has {m.blocks} blocks, fewer than the {m.gpu.sms} SMs: some SMs are idle."
    focus = (("launch__grid_size", float(m.blocks), "Increase the grid size"),)
    speedup = ("global", 100 * (1 - m.blocks / m.gpu.sms))
    return Rule(*head, "optimization", "Small Grid", text, focus, speedup)
