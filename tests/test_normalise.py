"""From native counters to neutral metrics: presence decides, what is missing says why."""

from __future__ import annotations

import math

import pytest

from ncukit.api import read
from ncukit.metrics import load
from ncukit.metrics.normalise import normalise
from tests.builders import raw_kernel
from tests.conftest import each_report, shared_folder
from tests.real import judged

GPU = {"device__attribute_compute_capability_major": 8, "device__attribute_compute_capability_minor": 6}
LAUNCH = {"launch__grid_size": 100.0, "launch__block_size": 128.0}
OPCODES = "sass__thread_inst_executed_true_per_opcode"


def kernel(metrics=None, instances=None, **fields):
    return normalise(raw_kernel("k", {**GPU, **LAUNCH, **(metrics or {})}, instances=instances, **fields))


def test_every_id_of_the_catalog_has_a_value_or_a_reason():
    metrics = kernel().metrics
    assert set(metrics) == set(load().metrics)
    for value in metrics.values():
        assert (value.value is None) == (value.quality is None)
        assert value.value is not None or value.reason


def test_the_duration_is_in_seconds_and_exact():
    duration = kernel({"gpu__time_duration.sum": 1_420_832}).metrics["kernel_duration"]
    assert (duration.value, duration.unit, duration.quality) == (0.001420832, "s", "exact")
    assert duration.sources == ("gpu__time_duration.sum",)


def test_the_first_source_whose_operands_are_there_wins():
    k = kernel({"gpu__time_duration.max": 5.0, "gpu__time_active.sum": 7.0})
    assert k.metrics["kernel_duration"].value == 5e-9
    assert k.metrics["kernel_duration"].sources == ("gpu__time_duration.max",)


def test_a_reference_passes_on_its_sources_and_its_doubt():
    k = kernel(
        {
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 50.0,
            "dram__bytes.sum.peak_sustained": 32.0,
            "dram__cycles_elapsed.avg.per_second": 1e9,
            "gpu__time_duration.sum": 1e6,
        }
    )
    assert k.number("dram_bytes") == pytest.approx(0.5 * 32e9 * 1e-3)
    assert k.metrics["dram_bytes"].quality == "estimate"
    assert k.metrics["dram_bandwidth"].quality == "estimate"
    assert "dram__bytes.sum.peak_sustained" in k.metrics["dram_bandwidth"].sources


def test_what_no_section_brought_names_the_section():
    value = kernel().metrics["warps_eligible_per_scheduler"]
    assert value.value is None
    assert value.reason == "not collected: section SchedulerStats (set full; detailed too in 2022.3)"
    assert load().metrics[value.id].command == "--section SchedulerStats"


def test_what_a_gpu_does_not_have_is_told_from_what_was_not_collected():
    reason = kernel().metrics["tma_load_bytes"].reason
    assert reason == "not on this GPU (CC 8.6); absent: below CC 9.0, and before 2023.3"
    assert kernel().metrics["pipe_alu_pct"].reason.startswith("not collected")


def test_nan_is_missing_and_says_so():
    reason = (
        kernel({"sm__throughput.avg.pct_of_peak_sustained_elapsed": math.nan})
        .metrics["sm_throughput_pct"]
        .reason
    )
    assert reason == "not a number: sm__throughput.avg.pct_of_peak_sustained_elapsed"


def test_matrix_loads_are_loads_of_shared_memory():
    counters = {
        "smsp__sass_inst_executed_op_shared_ld.sum": 2.0,
        "smsp__inst_executed_op_ldsm.sum": 8.0,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 50.0,
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 10.0,
    }
    k = kernel(counters)
    assert (k.number("shared_load_inst"), k.number("shared_load_requests")) == (2, 10)
    assert k.number("shared_load_ways") == pytest.approx(1 + 10 / (10 * 4))


def test_operations_of_no_counted_opcode_are_unknown_not_zero():
    k = kernel({OPCODES: 0.0, "inst_executed": 4e7}, {OPCODES: {}})
    for id in ("thread_inst_executed", "flops_fp32", "flops_total"):
        assert k.metrics[id].value is None, id
    assert k.metrics["thread_inst_executed"].reason == (
        f"no opcode was counted, though every kernel executes some: {OPCODES}"
    )
    assert kernel({OPCODES: 64.0}, {OPCODES: {"IADD3": 64}}).number("flops_fp32") == 0


@pytest.mark.parametrize("reading", [math.inf, -math.inf])
def test_infinity_is_no_number_and_was_collected(reading):
    value = kernel({"dram__bytes.sum.per_second": reading}).metrics["dram_bandwidth"]
    assert value.value is None
    assert value.reason == "not a number: dram__bytes.sum.per_second"


def test_infinity_in_every_counter_and_attribute_leaves_every_metric_with_a_reason():
    raws = {name for metric in load().metrics.values() for s in metric.sources for name in s.expression.raws}
    k = normalise(raw_kernel("k", {**dict.fromkeys(raws, math.inf), "launch__grid_size": 1.0}))
    assert all(v.known or v.reason for v in k.metrics.values())
    assert not [v for v in k.metrics.values() if isinstance(v.value, float) and not math.isfinite(v.value)]


def test_a_peak_of_zero_is_a_failed_pass_not_a_peak():
    k = kernel({"dram__bytes.sum.peak_sustained": 0.0, "dram__cycles_elapsed.avg.per_second": 1e9})
    assert k.metrics["peak_dram_bandwidth"].value is None
    assert "its peak reads 0" in k.metrics["peak_dram_bandwidth"].reason


def test_a_ratio_over_nothing_is_undefined_and_names_the_denominator():
    metrics = {
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 0,
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 0,
    }
    value = kernel(metrics).metrics["global_load_sectors_per_request"]
    assert value.value is None
    assert value.reason == "undefined: l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum is 0"


def test_a_measured_zero_is_zero():
    value = kernel({"sass__inst_executed_register_spilling": 0}).metrics["spill_inst"]
    assert (value.value, value.quality) == (0, "exact")


@pytest.mark.parametrize(
    ("reading", "reliable"), [(99.9, True), (100.9, True), (119.7, False), (-3.0, False)]
)
def test_c32_impossible_percentages_are_kept_flagged_and_feed_no_rule(reading, reliable):
    k = kernel({"lts__t_sector_hit_rate.pct": reading, "gpu__time_duration.sum": 50_000})
    value = k.metrics["l2_hit_rate_pct"]
    assert value.value == reading
    assert value.reliable is reliable
    assert (k.number("l2_hit_rate_pct") is None) is not reliable
    assert reliable or value.reason.startswith("unreliable")


def test_c32_a_hit_rate_of_a_kernel_of_3_microseconds_feeds_no_rule():
    k = kernel({"lts__t_sector_hit_rate.pct": 92.0, "gpu__time_duration.sum": 3200})
    assert k.metrics["l2_hit_rate_pct"].value == 92.0
    assert k.number("l2_hit_rate_pct") is None
    assert "20 µs" in k.metrics["l2_hit_rate_pct"].reason


def test_c36_a_fused_multiply_add_counts_two_in_each_precision():
    counts = {OPCODES: {"FADD": 1e6, "FMUL": 2e6, "FFMA": 5e6, "DADD": 1, "DFMA": 4}}
    k = kernel(instances=counts)
    assert k.number("flops_fp32") == 13e6
    assert k.number("flops_fp64") == 9


def test_c36_counters_and_opcodes_agree_in_convention():
    name = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
    k = kernel({name.format("fadd"): 10**6, name.format("fmul"): 2 * 10**6, name.format("ffma"): 5 * 10**6})
    assert k.number("flops_fp32") == 13e6


def test_c57_an_integer_beyond_double_precision_stays_exact():
    assert kernel({"smsp__inst_executed.sum": 2**53 + 1}).metrics["inst_executed"].value == 2**53 + 1


def test_c57_a_string_metric_is_a_string_and_never_a_number():
    k = kernel({"device__attribute_display_name": "NVIDIA A40", "dram__bytes.sum": "n/a"})
    assert k.gpu == "NVIDIA A40"
    assert k.metrics["dram_bytes"].value is None


@pytest.mark.parametrize(
    ("metrics", "fields", "why"),
    [
        ({"launch__grid_size": None}, {}, "no launch configuration"),
        (
            {"profiler__replayer_passes": 0, "gpu__time_duration.sum": 9e3},
            {},
            "zero replay passes (its counters belong to another launch)",
        ),
        ({"profiler__replayer_passes": 0}, {}, "zero replay passes, and no time was measured"),
        ({"gpu__time_duration.sum": math.nan}, {}, "not a number"),
        ({"gpu__time_duration.sum": 0}, {}, "did not run: its duration reads 0"),
        ({"launch__grid_size": 0}, {}, "did not run: its launch configuration reads 0 blocks"),
    ],
)
def test_a_failed_launch_is_marked_and_keeps_its_device(metrics, fields, why):
    given = {**GPU, **LAUNCH, "sm__throughput.avg.pct_of_peak_sustained_elapsed": 12.0, **metrics}
    k = normalise(raw_kernel("k", {n: v for n, v in given.items() if v is not None}, **fields))
    assert why in k.failed
    assert k.compute_capability == "8.6"
    assert k.metrics["sm_throughput_pct"].value is None
    assert k.metrics["sm_throughput_pct"].reason.startswith("failed pass")
    assert k.number("block_size") == 128


@pytest.mark.parametrize(
    ("counters", "left"),
    [
        ({}, ", and no counter"),
        ({"dram__bytes.sum": math.nan, "dram__bytes.sum.peak_sustained": 0}, "are NaN (peaks read 0)"),
        ({"dram__bytes.sum": math.nan, "sm__cycles_active.avg": 0}, ", and the counters are NaN"),
        ({"dram__bytes.sum": 0, "sm__cycles_active.avg": 0.0}, ", and every counter reads 0"),
        ({"dram__bytes.sum": 64, "sm__cycles_active.avg": math.nan}, "no launch configuration was recorded"),
    ],
)
def test_a_launch_without_configuration_says_what_its_counters_read(counters, left):
    failed = normalise(raw_kernel("k", {**GPU, "profiler__replayer_passes": 1, **counters})).failed
    assert failed.startswith("the launch failed under the profiler: no launch configuration was recorded")
    assert failed.endswith(left)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e300, 300.0])
def test_a_member_of_a_maximum_that_is_no_percentage_has_no_value(value):
    name = "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"
    k = kernel({name: "a.avg,b.avg,c.avg", "a.avg": value, "b.avg": 30.0, "c.avg": 100.4})
    assert k.breakdowns["sm_throughput_pct"] == (("c.avg", 100.4), ("b.avg", 30.0))


def test_a_duration_that_was_not_collected_is_no_failure():
    assert kernel().failed is None


def test_csv_without_launch_columns_is_no_failure():
    assert normalise(raw_kernel("k", {"dram__bytes.sum": 64}, origin="csv")).failed is None


def test_breakdowns_hold_the_members_of_a_maximum_largest_first():
    members = (
        "sm__inst_executed.avg.pct_of_peak_sustained_elapsed,sm__pipe_alu.avg.pct_of_peak_sustained_elapsed"
    )
    first, second = members.split(",")
    name = "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"
    k = kernel({name: members, first: 10.0, second: 30.0})
    assert k.breakdowns["sm_throughput_pct"] == ((second, 30.0), (first, 10.0))


FAILED = {
    "sm120-rtx-5060-ti-ncu2025.2-02": [44],
    "sm75-gtx-1660-super-ncu2021.1-01": [2],
    "sm80-a100-pcie-40gb-ncu2022.4-01": [0],
    "sm86-a10g-ncu2023.1-03": [3],
    "sm86-a10g-ncu2023.1-04": [5],
    "sm90-h800-ncu2023.3-01": [4],
}


@each_report()
def test_the_failed_launches_of_real_reports_are_found_and_no_other(report):
    found = [d.kernel.index for d in judged(report)[1] if d.kernel.failed]
    assert found == FAILED.get(report.stem, [])


@pytest.mark.skipif(not shared_folder().exists(), reason="no shared reports")
def test_names_and_attributes_of_a_real_launch():
    k = next(
        iter(read(shared_folder() / "reports/ncu-more/sm90-h100-80gb-hbm3-ncu2024.1-m02.ncu-rep").kernels())
    )
    assert (k.name, k.compute_capability, k.gpu) == ("matmulKernel4", "9.0", "NVIDIA H100 80GB HBM3")
    assert k.demangled.startswith("void M4::matmulKernel4<")
    assert k.number("flops_tensor_bf16") == 2 * 8192**3
