"""The roofline: each precision against its own roof, at the clocks of the run; what is missing is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit.api import read
from ncukit.metrics import load
from ncukit.metrics.normalise import normalise
from ncukit.model import Point
from ncukit.roofline import LEVELS, PRECISIONS, aggregate, attainable, place
from tests.builders import kernel, raw_kernel
from tests.conftest import each_report, shared_folder, tool
from tests.real import judged

POSITIVE = st.floats(1e-6, 1e18)
A100 = {
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 0,
    "device__attribute_multiprocessor_count": 108,
    "launch__grid_size": 1000.0,
    "sm__cycles_elapsed.avg.per_second": 1.05e9,
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 6912.0,
    "dram__bytes.sum.peak_sustained": 1490.0,
    "dram__cycles_elapsed.avg.per_second": 1e9,
}


def points(k):
    return {(p.precision, p.level): p for p in place(k).points}


@given(POSITIVE, POSITIVE, POSITIVE)
def test_the_bound_never_exceeds_the_peak_and_reaches_it_right_of_the_ridge(intensity, peak, bandwidth):
    bound = attainable(intensity, peak, bandwidth)
    assert bound <= peak
    assert (bound == peak) == (intensity * bandwidth >= peak)


def test_c34_tensor_work_is_judged_by_the_tensor_roof_of_its_type():
    flop = 4 * 4096**2 * 128
    k = normalise(
        raw_kernel(
            "flash",
            {
                **A100,
                "gpu__time_duration.sum": 60_000.0,
                "dram__bytes.sum": 4 * 4096 * 128 * 2,
                "sm__ops_path_tensor_src_fp16_dst_fp16_sparsity_off.sum": 0,
                "sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum": flop,
                "sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum.peak_sustained": 108 * 2048.0,
                "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 4096 * 4096,
                "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 0,
                "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 0,
            },
        )
    )
    found = points(k)
    tensor, fp32 = found["tensor_fp16", "dram"], found["fp32", "dram"]
    assert fp32.peak == pytest.approx(14.5e12, rel=0.002)
    assert tensor.peak == pytest.approx(232e12, rel=0.002)
    assert tensor.achieved == pytest.approx(143.2e12, rel=0.001)
    assert tensor.intensity == pytest.approx(2048, rel=0.001)
    assert tensor.share == pytest.approx(61.7, abs=0.1)
    assert tensor.attainable == tensor.peak


def test_c37_the_half_precision_convention_is_the_same_on_both_sides():
    name = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
    peak = 13824.0
    k = normalise(
        raw_kernel(
            "half",
            {
                **A100,
                "gpu__time_duration.sum": 1e6,
                "dram__bytes.sum": 1 << 20,
                "smsp__cycles_elapsed.avg": 1.05e6,
                "smsp__cycles_elapsed.avg.per_second": 1.05e9,
                name.format("hadd"): 0.0,
                name.format("hmul"): 0.0,
                name.format("hfma"): 0.5 * peak,
                "sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained": peak,
            },
        )
    )
    p = points(k)["fp16", "dram"]
    assert 100 * p.achieved / p.peak == pytest.approx(50)


NAMES = {
    "NVIDIA H100 80GB HBM3": (9, 0, 132),
    "NVIDIA H100 PCIe": (9, 0, 114),
    "NVIDIA H800": (9, 0, 132),
    "NVIDIA GH200 480GB": (9, 0, 132),
    "NVIDIA GeForce RTX 4090 Laptop GPU": (8, 9, 76),
    "NVIDIA GeForce RTX 4090": (8, 9, 128),
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb": (8, 0, 14),
}


@pytest.mark.parametrize("name", NAMES)
def test_c42_a_name_alone_gives_no_roof(name):
    k = normalise(raw_kernel("k", {"device__attribute_display_name": name, "launch__grid_size": 1.0}))
    assert k.metrics["peak_flop_rate_fp32"].value is None


def test_c42_peaks_come_from_what_the_device_says_not_from_its_name():
    def peak(name, major, minor, sms):
        metrics = {
            "device__attribute_display_name": name,
            "device__attribute_compute_capability_major": major,
            "device__attribute_compute_capability_minor": minor,
            "device__attribute_multiprocessor_count": sms,
            "sm__cycles_elapsed.avg.per_second": 1e9,
            "launch__grid_size": 1.0,
        }
        return normalise(raw_kernel("k", metrics)).metrics["peak_flop_rate_fp32"]

    for name, (major, minor, sms) in NAMES.items():
        value = peak(name, major, minor, sms)
        assert value.quality == "estimate"
        assert value.value == load().peaks[10 * major + minor]["fp32"] * sms * 1e9
    full, slice_ = (
        peak("NVIDIA A100-SXM4-40GB", 8, 0, 108),
        peak("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 8, 0, 14),
    )
    assert slice_.value < full.value


def test_c42_an_unknown_device_has_no_roof_rather_than_a_wrong_one():
    k = kernel(
        compute_capability=77, sm_count=10, sm_clock=1e9, kernel_duration=1e-3, flops_fp32=1e9, dram_bytes=1e6
    )
    line = place(k)
    assert points(k)["fp32", "dram"].attainable is None
    assert not line.roofs
    assert any("No FP32 roof" in text for text in line.missing)


def test_c43_a_point_above_its_roof_is_drawn_and_names_the_implied_clock():
    lanes, clock = 4352, 1.545e9
    duration = 1e-3
    k = kernel(
        kernel_duration=duration,
        flops_fp32=15.914e12 * duration,
        dram_bytes=1e6,
        peak_flop_rate_fp32=2 * lanes * clock,
        peak_dram_bandwidth=1e12,
        sm_clock=clock,
        inst_executed=1e6,
    )
    line = place(k)
    assert line.points[0].achieved == pytest.approx(15.914e12)
    (check,) = [c for c in line.checks if c.ok is False]
    assert "the SM ran at 1.828 GHz" in check.message


def test_c43_at_the_measured_clock_the_same_work_fits():
    clock = 1.83e9
    k = kernel(
        kernel_duration=1e-3,
        flops_fp32=15.914e9,
        dram_bytes=1e6,
        peak_flop_rate_fp32=2 * 4352 * clock,
        peak_dram_bandwidth=1e12,
        sm_clock=clock,
    )
    p = points(k)["fp32", "dram"]
    assert p.share == pytest.approx(99.9, abs=0.05)
    assert all(c.ok for c in place(k).checks)


def test_c45_several_launches_are_weighted_by_bytes_and_time():
    def point(flop, traffic, rate):
        return Point("fp32", "dram", flop, traffic, flop / traffic, rate, None, None, None, "exact")

    intensity, rate = aggregate([point(1e6, 1e6, 1e9), point(4e9, 1e8, 1e12)])
    assert intensity == pytest.approx(39.6, abs=0.05)
    assert rate == pytest.approx((1e6 + 4e9) / (1e6 / 1e9 + 4e9 / 1e12))


@given(st.lists(st.tuples(POSITIVE, POSITIVE, POSITIVE), min_size=1, max_size=5))
def test_an_aggregate_lies_between_its_parts(parts):
    found = [Point("fp32", "dram", f, b, f / b, r, None, None, None, "exact") for f, b, r in parts]
    intensity, rate = aggregate(found)
    assert min(p.intensity for p in found) <= intensity * 1.000001
    assert intensity <= max(p.intensity for p in found) * 1.000001
    assert min(p.achieved for p in found) <= rate * 1.000001
    assert rate <= max(p.achieved for p in found) * 1.000001


def test_without_floating_point_the_instruction_roofline_takes_its_place():
    k = kernel(
        kernel_duration=1e-3,
        flops_fp32=0,
        flops_fp64=0,
        inst_executed=1e9,
        dram_bytes=1e8,
        peak_inst_rate=4e12,
        peak_dram_bandwidth=1e12,
    )
    (p,) = place(k).points
    assert (p.precision, p.level, p.flop, p.intensity) == ("inst", "dram", 1e9, 10)


def test_without_counters_there_is_no_point_and_a_reason():
    line = place(kernel(kernel_duration=1e-3))
    assert not line.points
    assert any(text.startswith("No FLOP point") for text in line.missing)


def test_no_bytes_is_no_infinite_intensity():
    line = place(
        kernel(kernel_duration=1e-3, flops_fp32=1e9, dram_bytes=0, bytes_l2=10, peak_flop_rate_fp32=1e13)
    )
    assert [p.level for p in line.points] == ["l2"]
    assert any("No DRAM point" in text for text in line.missing)


def test_a_launch_under_10_microseconds_is_judged_by_the_nominal_dram_clock():
    k = kernel(
        kernel_duration=5e-6,
        flops_fp32=1e6,
        dram_bytes=1e6,
        peak_dram_bandwidth=2e12,
        memory_bus_width=256,
        dram_clock_max=8e9,
        peak_flop_rate_fp32=1e13,
    )
    assert points(k)["fp32", "dram"].bandwidth == 256 / 4 * 8e9
    assert points(k)["fp32", "dram"].roof_quality == "estimate"


def test_packed_half_work_that_may_be_constant_loads_is_not_drawn():
    from ncukit.model import Value

    k = kernel(
        kernel_duration=1e-3,
        flops_fp16=Value("flops_fp16", 1e6, "FLOP", "estimate"),
        flop_rate_fp16=1e9,
        peak_flop_rate_fp16=1e13,
        dram_bytes=1e6,
        inst_executed=10,
    )
    assert {p.precision for p in place(k).points} == {"inst"}


def test_a_failed_launch_has_no_point():
    line = place(kernel(failed="no pass", kernel_duration=1.0, flops_fp32=1))
    assert not line.points
    assert "no pass" in line.missing[0]


@each_report()
def test_real_points_are_consistent(report):
    for k in [diagnosis.kernel for diagnosis in judged(report)[1][:40]]:
        line = place(k)
        for p in line.points:
            assert p.precision in (*PRECISIONS, "inst")
            assert p.level in LEVELS
            assert p.intensity == pytest.approx(p.flop / p.bytes)
            if p.attainable is not None:
                assert p.attainable <= p.peak
        if not (k.number("flops_fp32") or k.number("flops_fp64") or k.number("flops_total")):
            assert not [p for p in line.points if p.precision in ("fp32", "fp64")]


def real(name: str):
    path = shared_folder() / "reports" / name
    if not path.exists():
        pytest.skip("no shared reports")
    return next(iter(read(path).kernels()))


def test_wgmma_on_hopper_counts_two_operations_a_multiply_add():
    assert (
        points(real("ncu-more/sm90-h100-80gb-hbm3-ncu2024.1-m02.ncu-rep"))["tensor_bf16", "dram"].flop
        == 2 * 8192**3
    )


def test_fp4_on_blackwell_against_the_dense_peak():
    p = points(real("ncu-more/sm100-b200-ncu2025.3-m01.ncu-rep"))["tensor_fp4", "dram"]
    assert p.flop == 30_064_771_072
    assert 100 * p.achieved / p.peak == pytest.approx(5.2, abs=0.05)


def test_the_dense_operation_peak_of_a_geforce_not_the_pipe_counter():
    k = real("ncu-more/sm89-rtx-4060-ti-ncu2025.4-m01.ncu-rep")
    p = points(k)["tensor_fp16", "dram"]
    assert 100 * p.achieved / p.peak == pytest.approx(86.7, abs=0.05)
    assert k.number("pipe_tensor_pct") == pytest.approx(43.3, abs=0.05)


def nsight(name: str):
    ncu = tool("ncu")
    found = [
        p
        for root in (ncu.resolve().parents if ncu else ())
        for p in root.glob(f"usr/share/doc/*/examples/*/{name}*")
    ]
    if not found:
        pytest.skip("no samples of Nsight Compute installed")
    return next(iter(read(Path(found[0])).kernels()))


@pytest.mark.parametrize(
    ("name", "precision", "achieved", "peak"),
    [
        ("addConstDouble.ncu-rep", "fp64", 0.0351e12, 0.226e12),
        ("sobelDouble.ncu-rep", "fp64", 0.1235e12, 0.235e12),
        ("sobelFloat.ncu-rep", "fp32", 1.513e12, 13.50e12),
    ],
)
def test_the_samples_of_nsight_compute(name, precision, achieved, peak):
    p = points(nsight(name))[precision, "dram"]
    assert p.achieved == pytest.approx(achieved, rel=0.005)
    assert p.peak == pytest.approx(peak, rel=0.005)


def test_the_dram_of_a_transpose_sample():
    k = nsight("transposeCoalesced.ncu-rep")
    p = points(k)["inst", "dram"]
    assert k.number("dram_bandwidth") == pytest.approx(376.1e9, rel=0.005)
    assert p.bandwidth == pytest.approx(607.5e9, rel=0.005)
