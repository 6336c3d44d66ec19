"""The raw metrics of a modelled launch beside hardware counters: launch, stalls, opcodes, source counters."""

from __future__ import annotations

from collections import Counter

from tests.ncurep import Instances, Scalar
from tests.synthetic.gpu import KIB, SCHEDULERS, occupancy
from tests.synthetic.model import Memory, Model

Metrics = dict[str, Scalar | Instances | None]

CODE_ADDRESS = 0x7F0000000000
MARK = "ncukit__synthetic"
MARK_TEXT = "written by tests/make_samples.py from a model, not measured"
REPLAY_PASSES = 41.0

STATES = [
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
]
HOPPER_STATE = "gmma"
SAMPLED_AS = {"no_instruction": "no_instructions", "gmma": "warpgroup_arrive"}
"""States whose name differs between the counters and the sampler."""

GLOBAL, SHARED = 4, 16
LOAD, STORE = 2, 4
"""Values of memory_type and memory_access_type in real reports."""


def launch(m: Model) -> Metrics:
    """Return launch statistics, occupancy and its curves, and facts about the profiling."""
    k, r, gpu = m.kernel, m.residency, m.gpu
    shared = k.shared_static + k.shared_dynamic
    threads, registers = m.threads, k.registers
    values: dict[str, float] = {
        "cluster_dim_x": 0,
        "cluster_dim_y": 0,
        "cluster_dim_z": 0,
        "cluster_size": 0,
        "function_pcs": CODE_ADDRESS,
        "occupancy_limit_blocks": r.blocks_limit,
        "occupancy_limit_registers": r.registers_limit,
        "occupancy_limit_shared_mem": r.shared_limit,
        "occupancy_limit_warps": r.warps_limit,
        "registers_per_thread": registers,
        "shared_mem_config_size": r.shared_config,
        "shared_mem_per_block": shared + KIB,
        "shared_mem_per_block_allocated": r.shared_allocated,
        "shared_mem_per_block_driver": KIB,
        "shared_mem_per_block_dynamic": k.shared_dynamic,
        "shared_mem_per_block_static": k.shared_static,
        "sm_count": gpu.sms,
        "stack_size": KIB,
        "uses_cdp": 0,
        "uses_green_context": 0,
        "waves_per_multiprocessor": m.blocks / (gpu.sms * r.blocks),
    }
    if gpu.cc >= (9, 0):
        values["occupancy_limit_barriers"] = gpu.max_blocks
    curves = {
        "block_size": {n: occupancy(gpu, n, registers, shared).warps for n in range(32, 1025, 32)},
        "register_count": {n: occupancy(gpu, threads, n, shared).warps for n in range(8, 256, 8)},
        "shared_mem_size": {
            n: occupancy(gpu, threads, registers, n).warps
            for n in range(0, gpu.shared_per_sm - KIB + 1, 4 * KIB)
        },
    }
    found: Metrics = {f"launch__{name}": float(value) for name, value in values.items()}
    for name, curve in curves.items():
        found[f"launch__occupancy_per_{name}"] = Instances(curve, float(sum(curve.values())))
    return found | {
        MARK: MARK_TEXT,
        "launch__func_cache_config": "CachePreferNone",
        "gpu__time_duration.sum": 1000.0 * m.duration_us,
        "profiler__replayer_passes": REPLAY_PASSES,
        "sm__maximum_warps_avg_per_active_cycle": float(r.warps),
        "sm__maximum_warps_per_active_cycle_pct": 100.0 * r.warps / gpu.max_warps,
        "smsp__maximum_warps_avg_per_active_cycle": r.warps / SCHEDULERS,
    }


def stalls(m: Model) -> Metrics:
    """Return what the warps wait for: by counters, and by samples of the program counter."""
    states = STATES + ([HOPPER_STATE] if m.gpu.cc >= (9, 0) else [])
    found: Metrics = {
        "smsp__average_warp_latency_per_inst_issued.ratio": m.latency,
        "smsp__average_warps_active_per_inst_executed.ratio": m.latency,
        "smsp__pcsamp_interval": float(m.sampling_exponent),
        "smsp__pcsamp_interval_cycles": float(2 ** (5 + m.sampling_exponent)),
        "smsp__pcsamp_dropped_bytes": 0,
        "smsp__pcsamp_buffer_size_bytes": 32 * KIB * KIB,
    }
    for state in states:
        name = f"smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio"
        found[name] = m.stall_cycles.get(state, 0.0)
    all_samples: Counter[int] = Counter()
    names = []
    for state in states:
        at = {offset: n for (offset, s), n in m.samples.items() if s == state}
        idle = {offset: k for offset, n in at.items() if (k := _not_issued(m, state, n))}
        all_samples.update(at)
        names.append(f"smsp__pcsamp_warps_issue_stalled_{SAMPLED_AS.get(state, state)}")
        found[names[-1]] = _by_pc(m, at)
        found[f"{names[-1]}_not_issued"] = _by_pc(m, idle)
    found["smsp__pcsamp_sample_count"] = _by_pc(m, all_samples)
    found["group:smsp__pcsamp_warp_stall_reasons"] = ",".join(sorted(names))
    found["group:smsp__pcsamp_warp_stall_reasons_not_issued"] = ",".join(
        f"{n}_not_issued" for n in sorted(names)
    )
    return found


def _not_issued(m: Model, state: str, samples: int) -> int:
    """Return how many of the samples fall into cycles in which the scheduler issued nothing."""
    return 0 if state in ("selected", "not_selected") else int(samples * (1 - m.issue))


def by_opcode(m: Model) -> Metrics:
    """Return executed instructions by opcode, without and with modifiers."""
    warps: dict[str, Counter[str]] = {"": Counter(), "_with_modifier_all": m.opcodes}
    threads: dict[str, Counter[str]] = {"": Counter(), "_with_modifier_all": Counter()}
    for s in m.steps:
        warps[""][s.instruction.opcode] += s.warps
        threads[""][s.instruction.opcode] += s.on
        threads["_with_modifier_all"][s.instruction.full_opcode] += s.on
    found: Metrics = {}
    for suffix in warps:
        for name, counts in (
            ("sass__inst_executed_per_opcode", warps[suffix]),
            ("sass__thread_inst_executed_true_per_opcode", threads[suffix]),
        ):
            rows = {opcode: float(n) for opcode, n in counts.most_common() if warps[suffix][opcode]}
            found[name + suffix] = Instances(rows, float(sum(rows.values())))
    for kind, space, opcode in (
        ("loads", "global", r"LDG(\.|$)"),
        ("stores", "global", "STG"),
        ("loads", "shared", "LDS"),
        ("stores", "shared", "STS"),
        ("loads", "local", "LDL"),
        ("stores", "local", "STL"),
    ):
        found[f"sass__inst_executed_{space}_{kind}"] = float(m.count(opcode))
    spilling = "sass__inst_executed_register_spilling"
    return found | {f"{spilling}{memory}": 0.0 for memory in ("", "_mem_local", "_mem_shared")}


def by_instruction(m: Model) -> Metrics:
    """Return the source counters: executions, and what each memory instruction touched, by PC."""
    rows = {s.instruction.offset: s for s in m.steps if s.warps}
    found: Metrics = {
        "inst_executed": _by_pc(m, {offset: s.warps for offset, s in rows.items()}),
        "thread_inst_executed": _by_pc(m, {offset: s.active for offset, s in rows.items()}),
        "thread_inst_executed_true": _by_pc(m, {offset: s.on for offset, s in rows.items()}),
        "smsp__branch_targets_threads_divergent": _by_pc(
            m, {offset: 0 for offset, s in rows.items() if s.instruction.opcode == "BRA"}
        ),
    }
    memory = {x.step.instruction.offset: x for x in m.memory if x.step.warps}
    far = {offset: x for offset, x in memory.items() if x.access.sectors}
    near = {offset: x for offset, x in memory.items() if _space(x) & SHARED}
    tables = {
        "memory_type": {offset: _space(x) for offset, x in memory.items()},
        "memory_access_type": {offset: _direction(x) for offset, x in memory.items()},
        "memory_access_size_type": {offset: 32 * x.step.instruction.words for offset, x in memory.items()},
        "memory_l1_tag_requests_global": {offset: x.requests for offset, x in far.items()},
        "memory_l2_theoretical_sectors_global": {offset: x.sectors for offset, x in far.items()},
        "memory_l2_theoretical_sectors_global_ideal": {
            offset: x.requests * x.access.ideal_sectors for offset, x in far.items()
        },
        "memory_l1_wavefronts_shared": {offset: x.wavefronts for offset, x in near.items()},
        "memory_l1_wavefronts_shared_ideal": {
            offset: x.requests * x.access.ideal_wavefronts for offset, x in near.items()
        },
        "derived__memory_l1_conflicts_shared_nway": {
            offset: x.access.wavefronts // x.access.ideal_wavefronts for offset, x in near.items()
        },
    }
    for new, total, ideal in (
        (
            "derived__memory_l2_theoretical_sectors_global_excessive",
            "memory_l2_theoretical_sectors_global",
            far,
        ),
        ("derived__memory_l1_wavefronts_shared_excessive", "memory_l1_wavefronts_shared", near),
    ):
        tables[new] = {at: tables[total][at] - tables[f"{total}_ideal"][at] for at in ideal}
    found["memory_l2_theoretical_sectors_local"] = 0
    return found | {name: _by_pc(m, rows) for name, rows in tables.items()}


def _space(x: Memory) -> int:
    opcode = x.step.instruction.opcode
    if opcode == "LDGSTS":
        return GLOBAL | SHARED
    return SHARED if opcode in ("LDS", "LDSM", "STS") else GLOBAL


def _direction(x: Memory) -> int:
    opcode = x.step.instruction.opcode
    return LOAD | STORE if opcode == "LDGSTS" else LOAD if opcode.startswith("LD") else STORE


def _by_pc(m: Model, rows: dict[int, int] | Counter[int]) -> Instances:
    return Instances({CODE_ADDRESS + offset: n for offset, n in sorted(rows.items())}, sum(rows.values()))
