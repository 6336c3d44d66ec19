"""The sample reports obey the laws of the machine, checked from the files, not from the model."""

from __future__ import annotations

import functools
import math
import re

import ncu_report
import pytest

from ncukit.api import diagnose, read
from ncukit.model import Kernel
from ncukit.roofline import place
from tests.make_samples import SAMPLES_FOLDER, sample_bytes
from tests.synthetic.compile import ARCHITECTURES, CODE, compile_cubin
from tests.synthetic.kernels import SAMPLES

SECTOR = 32
FAMILIES = ("speed_of_light", "memory", "scheduler", "launch", "source", "roofline")
LAUNCHES = [(sample, i) for sample in SAMPLES for i in range(len(sample.launches))]
each_launch = pytest.mark.parametrize(
    ("sample", "index"), LAUNCHES, ids=[f"{s.name}-{i}-{s.launches[i].file}" for s, i in LAUNCHES]
)
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=[sample.name for sample in SAMPLES])


class Raw:
    """The raw metrics of one launch as NVIDIA's reader gives them."""

    def __init__(self, action) -> None:
        self.action = action
        self.names = frozenset(action.metric_names())

    def __getitem__(self, name: str):
        return self.action.metric_by_name(name).value()

    def instances(self, name: str) -> dict:
        metric = self.action.metric_by_name(name)
        ids = metric.correlation_ids()
        return {ids.value(i): metric.value(i) for i in range(metric.num_instances())}

    def pairs(self, ending: str, other: str) -> list[tuple[str, float, float]]:
        """Return (name, its value, value of the metric with the other ending) where both are there."""
        found = [n for n in self.names if n.endswith(ending) and n.removesuffix(ending) + other in self.names]
        found = [n for n in found if not n.startswith("breakdown:")]
        assert found, f"no metric has both {ending} and {other}"
        return [(n, self[n], self[n.removesuffix(ending) + other]) for n in found]

    def sass(self) -> dict[int, str]:
        return {pc: " ".join(self.action.sass_by_pc(pc).split()) for pc in self.instances("inst_executed")}


@functools.cache
def actions(name: str):
    return ncu_report.load_report(str(SAMPLES_FOLDER / f"{name}.ncu-rep"))[0]


@pytest.fixture
def raw(sample, index) -> Raw:
    return Raw(actions(sample.name).action_by_idx(index))


@functools.cache
def kernels(name: str) -> tuple[Kernel, ...]:
    return tuple(read(SAMPLES_FOLDER / f"{name}.ncu-rep").kernels(details=True))


@pytest.fixture
def kernel(sample, index) -> Kernel:
    return kernels(sample.name)[index]


def near(value: float, expected: float) -> bool:
    return math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-9)


def unit_cycles(raw: Raw, name: str, domain: str = "elapsed") -> float:
    """Return the average cycles of the unit that counts ``name``."""
    unit = name.split("__")[0].removeprefix("fb")
    clock = {"l1tex": "sm", "idc": "sm", "smsp": "sm", "pa": "lts"}.get(unit, unit)
    return raw[f"{clock}__cycles_{domain}.avg"]


# The files


@each_sample
def test_writing_again_gives_the_same_bytes(sample):
    assert (SAMPLES_FOLDER / f"{sample.name}.ncu-rep").read_bytes() == sample_bytes(sample)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_committed_code_is_what_nvcc_makes_of_the_source(name, nvcc, run_tool):
    committed = (CODE / f"{name}.cubin").read_bytes()
    build = re.search(r"Build (\S+)", run_tool(nvcc, "--version"))
    if build is None or build[1].encode() not in committed:
        pytest.skip("another version of nvcc than the one that compiled the samples")
    assert compile_cubin(name, str(nvcc)) == committed


def test_samples_are_small_and_all_are_described():
    files = sorted(SAMPLES_FOLDER.glob("*.ncu-rep"))
    assert [f.stem for f in files] == sorted(sample.name for sample in SAMPLES)
    assert all(f.stat().st_size < 320_000 for f in files)
    readme = (SAMPLES_FOLDER / "README.md").read_text()
    assert all(f.name in readme for f in files)


@each_sample
def test_the_real_ncu_reads_them(sample, ncu, run_tool):
    path = SAMPLES_FOLDER / f"{sample.name}.ncu-rep"
    details = run_tool(ncu, "--import", path, "--page", "details")
    assert details.count("Section: GPU Speed Of Light Throughput") == len(sample.launches)
    source = run_tool(ncu, "--import", path, "--page", "source", "--csv")
    assert all(f'"{launch.demangled}"' in source for launch in sample.launches)
    assert "EXIT" in source


@each_launch
def test_each_says_that_it_is_not_measured(raw):
    assert raw["ncukit__synthetic"] == "written by tests/make_samples.py from a model, not measured"
    assert "synthetic" in raw["device__attribute_display_name"]


# Roll-ups, whatever the counter


@each_launch
def test_rates_are_totals_over_the_duration(raw):
    seconds = raw["gpu__time_duration.sum"] * 1e-9
    for rollup in ("sum", "avg", "max", "min"):
        for name, rate, total in raw.pairs(f".{rollup}.per_second", f".{rollup}"):
            assert near(rate, total / seconds), name


@each_launch
def test_cycles_are_duration_times_clock(raw):
    seconds = raw["gpu__time_duration.sum"] * 1e-9
    for unit in ("sm", "gpc", "lts", "dram"):
        cycles = raw[f"{unit}__cycles_elapsed.avg"]
        assert cycles == round(cycles), unit
        assert near(cycles, seconds * raw[f"{unit}__cycles_elapsed.avg.per_second"]), unit


@each_launch
def test_counts_per_cycle_are_totals_over_cycles(raw):
    for name, rate, total in raw.pairs(".sum.per_cycle_elapsed", ".sum"):
        assert near(rate * unit_cycles(raw, name), total), name
    for name, rate, total in raw.pairs(".sum.per_cycle_active", ".sum"):
        assert near(rate * unit_cycles(raw, name, "active"), total), name


@each_launch
def test_percentages_are_of_peak_times_cycles(raw):
    for name, percent, total in raw.pairs(".sum.pct_of_peak_sustained_elapsed", ".sum"):
        if (peak := name.replace(".pct_of_peak_sustained_elapsed", ".peak_sustained")) in raw.names:
            assert near(percent, 100 * total / (raw[peak] * unit_cycles(raw, name))), name


@each_launch
def test_the_average_lies_between_least_and_most(raw):
    for ending in (
        "",
        ".pct_of_peak_sustained_elapsed",
        ".pct_of_peak_sustained_active",
        ".per_cycle_active",
    ):
        for name, most, average in raw.pairs(f".max{ending}", f".avg{ending}"):
            least = raw[name.removesuffix(f".max{ending}") + f".min{ending}"]
            assert least <= average * (1 + 1e-12), name
            assert average <= most * (1 + 1e-12), name


@each_launch
def test_nothing_is_busier_than_it_can_be(raw):
    for name in raw.names:
        if "pct_of_peak_sustained" in name and ".avg." in name and not name.startswith("breakdown:"):
            assert 0 <= raw[name] <= 100, name


@each_launch
def test_a_throughput_is_the_largest_of_its_breakdown(raw):
    for name in (n for n in raw.names if n.startswith("breakdown:")):
        members = [raw[member] for member in raw[name].split(",")]
        assert raw[name.removeprefix("breakdown:")] == max(members), name


@each_launch
def test_instances_add_up_to_their_metric(raw):
    means = re.compile(r"launch__occupancy_per_|memory_type|memory_access|nway")
    for name in raw.names:
        if raw.action.metric_by_name(name).num_instances() and not means.search(name):
            assert sum(raw.instances(name).values()) == raw[name], name


# Memory


@each_launch
def test_bytes_are_sectors_times_32(raw):
    both = raw["dram__bytes_read.sum"] + raw["dram__bytes_write.sum"]
    read, written = (raw[f"lts__t_sectors_srcunit_tex_op_{op}.sum"] for op in ("read", "write"))
    assert raw["dram__bytes_read.sum"] == SECTOR * raw["dram__sectors_read.sum"]
    assert raw["dram__bytes_write.sum"] == SECTOR * raw["dram__sectors_write.sum"]
    assert both == SECTOR * raw["dram__cycles_active.sum"], "a channel moves one sector a cycle"
    assert raw["l1tex__m_xbar2l1tex_read_bytes.sum"] == SECTOR * read
    assert raw["l1tex__m_l1tex2xbar_write_bytes.sum"] == SECTOR * written


@each_launch
def test_hits_and_misses_are_all_lookups(raw):
    for name, hits, sectors in raw.pairs("_lookup_hit.sum", ".sum"):
        misses = raw[name.replace("_hit.sum", "_miss.sum")]
        assert hits + misses == sectors, name


@each_launch
def test_hit_rates_are_hits_over_lookups(raw):
    hits, misses = raw["lts__t_sectors_lookup_hit.sum"], raw["lts__t_sectors_lookup_miss.sum"]
    assert near(raw["lts__t_sector_hit_rate.pct"], 100 * hits / (hits + misses))


@each_launch
def test_what_l1_misses_reaches_l2_and_what_l2_misses_reaches_device_memory(raw):
    sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op"
    stores = raw[f"{sectors}_st.sum"]
    assert raw[f"{sectors}_ld_lookup_miss.sum"] == raw["lts__t_sectors_srcunit_tex_op_read.sum"]
    assert stores == raw["lts__t_sectors_srcunit_tex_op_write.sum"]
    assert raw["lts__t_sectors_srcunit_tex_lookup_miss.sum"] == raw["dram__sectors_read.sum"]
    assert raw["dram__sectors_write.sum"] <= stores


@each_launch
def test_requests_are_executed_memory_instructions(raw):
    executed = raw.instances("sass__inst_executed_per_opcode")
    requests = "l1tex__t_requests_pipe_lsu_mem_global_op"
    assert raw[f"{requests}_ld.sum"] == executed.get("LDG", 0) + executed.get("LDGSTS", 0)
    assert raw[f"{requests}_st.sum"] == executed.get("STG", 0)
    assert raw["sass__inst_executed_global_loads"] == executed.get("LDG", 0)
    assert raw["smsp__sass_inst_executed_op_shared_ld.sum"] == executed.get("LDS", 0) + executed.get(
        "LDSM", 0
    )


@each_launch
def test_source_counters_add_up_to_the_hardware_counters(raw):
    sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op"
    assert raw["memory_l2_theoretical_sectors_global"] == raw[f"{sectors}_ld.sum"] + raw[f"{sectors}_st.sum"]
    shared = raw["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"]
    assert raw["memory_l1_wavefronts_shared"] == shared
    for ideal in ("memory_l1_wavefronts_shared", "memory_l2_theoretical_sectors_global"):
        assert raw[f"derived__{ideal}_excessive"] == raw[ideal] - raw[f"{ideal}_ideal"]
    conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
    assert raw[f"{conflicts}.sum"] == raw["derived__memory_l1_wavefronts_shared_excessive"]


# Instructions


@each_launch
def test_opcodes_add_up_to_the_executed_instructions(raw):
    executed = raw["smsp__inst_executed.sum"]
    assert executed == raw["sm__inst_executed.sum"] == raw["inst_executed"]
    for name in raw.names:
        if name.startswith("sass__inst_executed_per_opcode"):
            assert raw[name] == executed, name
        if name.startswith("sass__thread_inst_executed_true_per_opcode"):
            assert raw[name] == raw["thread_inst_executed_true"], name


@each_launch
def test_opcode_counts_are_those_of_the_disassembly(raw):
    executed = raw.instances("inst_executed")
    found: dict[str, int] = {}
    for pc, text in raw.sass().items():
        opcode = next(word for word in text.split() if not word.startswith("@"))
        found[opcode] = found.get(opcode, 0) + executed[pc]
    assert found == raw.instances("sass__inst_executed_per_opcode_with_modifier_all")


@each_launch
def test_every_instruction_has_a_source_line_of_the_embedded_file(raw):
    (file,) = raw.action.source_files()
    lines = raw.action.source_files()[file].splitlines()
    for pc in raw.instances("inst_executed"):
        where = raw.action.source_info(pc)
        assert where.file_name() == file
        assert lines[where.line() - 1].strip(), f"{pc:#x} is on an empty line"


@each_launch
def test_flops_follow_from_the_opcodes(raw):
    threads = raw.instances("sass__thread_inst_executed_true_per_opcode")
    for op in ("FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA"):
        counted = raw[f"smsp__sass_thread_inst_executed_op_{op.lower()}_pred_on.sum"]
        assert counted == threads.get(op, 0), op


def test_tensor_operations_are_2_m_n_k():
    raw = Raw(actions("gemm-tensor").action_by_idx(0))
    operations = raw["sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum"]
    assert operations == 2 * 8192**3
    hmma = raw.instances("sass__inst_executed_per_opcode_with_modifier_all")["HMMA.16816.F32"]
    assert operations == hmma * 2 * 16 * 8 * 16


# Warps


@each_launch
def test_stall_states_add_up_to_the_latency_of_a_warp(raw):
    states = [
        raw[n] for n in raw.names if re.match(r"smsp__average_warps_issue_stalled_.*_per_issue_active", n)
    ]
    latency = raw["smsp__average_warp_latency_per_inst_issued.ratio"]
    assert near(sum(states), latency)
    assert raw["smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"] == 1
    issue = raw["smsp__issue_active.avg.per_cycle_active"]
    active = raw["smsp__warps_active.avg.per_cycle_active"]
    assert near(latency * issue, active), "Little's law"
    assert near(100 * (1 - issue), raw["smsp__issue_inst0.avg.pct_of_peak_sustained_active"])
    assert (
        issue
        <= raw["smsp__warps_eligible.avg.per_cycle_active"]
        <= raw["smsp__warps_active.avg.per_cycle_active"]
    )


@each_launch
def test_samples_add_up_in_total_and_at_every_instruction(raw):
    names = raw["group:smsp__pcsamp_warp_stall_reasons"].split(",")
    total = raw.instances("smsp__pcsamp_sample_count")
    at: dict[int, int] = dict.fromkeys(total, 0)
    for name in names:
        for pc, n in raw.instances(name).items():
            at[pc] += n
        issued = raw[name] - raw[f"{name}_not_issued"]
        assert issued >= 0, name
    assert at == total
    assert sum(raw[name] for name in names) == raw["smsp__pcsamp_sample_count"]
    assert total.keys() <= raw.instances("inst_executed").keys(), "nothing waits where nothing is executed"


@each_launch
def test_samples_and_counters_name_the_same_states(raw):
    sampled_as = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}
    latency = raw["smsp__average_warp_latency_per_inst_issued.ratio"]
    for name in raw["group:smsp__pcsamp_warp_stall_reasons"].split(","):
        state = name.removeprefix("smsp__pcsamp_warps_issue_stalled_")
        counted = raw[
            f"smsp__average_warps_issue_stalled_{sampled_as.get(state, state)}_per_issue_active.ratio"
        ]
        sampled = raw[name] / raw["smsp__pcsamp_sample_count"]
        assert abs(sampled - counted / latency) < 0.001, state


@each_launch
def test_samples_are_taken_once_an_interval_on_every_active_sm(raw):
    interval = raw["smsp__pcsamp_interval_cycles"]
    assert interval == 2 ** (5 + raw["smsp__pcsamp_interval"])
    assert raw["smsp__pcsamp_sample_count"] == raw["sm__cycles_active.sum"] // interval


@each_launch
def test_occupancy_follows_from_the_limits(raw):
    limits = [raw[n] for n in raw.names if n.startswith("launch__occupancy_limit_")]
    warps = math.ceil(raw["launch__block_size"] / 32)
    most = raw["device__attribute_max_warps_per_multiprocessor"]
    assert raw["sm__maximum_warps_per_active_cycle_pct"] == 100 * min(limits) * warps / most
    waves = raw["launch__grid_size"] / (raw["device__attribute_multiprocessor_count"] * min(limits))
    assert raw["launch__waves_per_multiprocessor"] == waves
    assert raw["sm__warps_active.avg.per_cycle_active"] <= min(limits) * warps * (1 + 1e-12)
    registers = int(raw["launch__registers_per_thread"])
    curve = raw.instances("launch__occupancy_per_register_count")
    assert curve[math.ceil(registers / 8) * 8] == min(limits) * warps, "the curve goes through the launch"


@each_launch
def test_a_launch_keeps_no_more_sms_busy_than_it_has_blocks(raw):
    sms = raw["device__attribute_multiprocessor_count"]
    busy = raw["sm__cycles_active.sum"] / raw["sm__cycles_active.max"]
    assert busy <= min(raw["launch__grid_size"], sms) * (1 + 1e-9)
    assert raw["sm__cycles_active.max"] <= raw["sm__cycles_elapsed.max"]


# What ncukit makes of them


@each_launch
def test_every_family_is_filled(kernel):
    unknown = {id: value.reason for id, value in kernel.metrics.items() if not value.known}
    allowed = ("not on this GPU", "undefined", "not collected: section C2CLink")
    missing = {id for id, reason in unknown.items() if not (reason or "").startswith(allowed)}
    older = {"stall_share_tensor_sync_pct"} if kernel.compute_capability == "8.0" else set()
    assert missing <= {"peak_flop_rate_tensor_fp4", "peak_flop_rate_tensor_fp8"} | older
    assert not {id for id, value in kernel.metrics.items() if not value.reliable}


@each_launch
def test_every_point_lies_on_or_below_its_roof(kernel):
    roofline = place(kernel)
    assert {point.level for point in roofline.points} == {"dram", "l2", "l1"}
    for point in roofline.points:
        assert point.achieved <= point.attainable, point
    assert all(check.ok for check in roofline.checks)


@each_launch
def test_what_a_roof_limits_lies_on_it(sample, index, kernel):
    cls, limiter = sample.expected[index]
    if limiter not in ("tensor", "fp32", "dram"):
        pytest.skip(f"{cls}, {limiter}: no roof of this chart limits it")
    shares = [point.share for point in place(kernel).points if point.level == "dram"]
    assert 85 < max(shares) < 95


@each_sample
def test_each_launch_gets_the_class_and_limiter_it_is_made_for(sample):
    verdicts = [diagnose(kernel).verdict for kernel in kernels(sample.name)]
    assert [(verdict.cls, verdict.limiter) for verdict in verdicts] == list(sample.expected)


def test_launches_of_a_program_keep_their_ranges():
    found = [kernel.raw.nvtx for kernel in kernels("several-launches")]
    assert found == [launch.ranges for launch in SAMPLES[-1].launches]
