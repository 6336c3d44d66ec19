"""Models under peaks: the bound, the floor, whether a time fits, and a launch beside its model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit import models
from ncukit.errors import UsageError
from ncukit.metrics.catalog import find_sku, skus
from ncukit.model import Value
from ncukit.model.work import SUSPECTS, TOLERANCE
from ncukit.roofline import PRECISIONS, attainable
from ncukit.roofline.models.estimate import EXAMPLES, make
from tests.builders import kernel

RATES = st.floats(1e9, 1e16)
GEMM = models.gemm(4096, 4096, 4096, "fp16")
H100 = find_sku("h100-sxm").sku
COPY = models.vector(10**8, "fp32", reads=1, flop_per_element=0)
MADE = st.sampled_from([make(name, arguments) for name, arguments in EXAMPLES.items()])


def test_the_worked_example_of_a_small_gemm() -> None:
    found = models.estimate(models.gemm(64, 32, 128, "fp16"), peak=200e12, bandwidth=3e12)
    assert found.bound == pytest.approx(54.86e12, rel=1e-4)
    assert found.ridge == pytest.approx(200 / 3)
    assert found.floor is not None
    assert found.floor.side == "memory-bound"
    assert found.consistent is None


def test_the_worked_point_that_cannot_be() -> None:
    found = models.estimate(models.point(2e12, 1e12), peak=200e12, bandwidth=3e12, seconds=0.020)
    assert (found.model.intensity, found.achieved, found.bound) == (2, 1e14, 6e12)
    assert found.consistent is False
    assert found.suspects == ("bytes", "flops", "timing", "memory-level")


def test_a_point_above_the_peak_blames_no_bytes() -> None:
    found = models.estimate(models.point(2e12, 1e9), peak=1e12, bandwidth=1e12, seconds=1)
    assert found.suspects == ("flops", "timing", "peak")


def test_a_point_above_both_roofs_blames_everything() -> None:
    found = models.estimate(models.point(2e12, 2e12), peak=1e12, bandwidth=1e12, seconds=1)
    assert found.suspects == tuple(SUSPECTS)


def test_traffic_without_work_is_checked_too() -> None:
    fast = models.estimate(COPY, bandwidth=1e12, seconds=1e-4)
    assert (fast.consistent, fast.bound, fast.achieved) == (False, None, 0)
    assert models.estimate(COPY, bandwidth=1e12, seconds=1e-3).consistent is True


def test_half_a_roof_can_refute_but_not_confirm() -> None:
    assert models.estimate(GEMM, bandwidth=1e12, seconds=1e-5).consistent is False
    assert models.estimate(GEMM, bandwidth=1e12, seconds=1).consistent is None
    assert models.estimate(GEMM, peak=1e15, seconds=1e-5).suspects == ("flops", "timing", "peak")


@settings(deadline=None)
@given(MADE, RATES, RATES)
def test_the_bound_is_the_lower_of_peak_and_diagonal_and_the_floor_the_longer_time(
    model: models.WorkModel, peak: float, bandwidth: float
) -> None:
    found = models.estimate(model, peak=peak, bandwidth=bandwidth)
    assert found.floor is not None
    assert found.floor == models.bound(model, peak, bandwidth)
    assert found.floor.seconds == pytest.approx(max(model.total_flop / peak, model.bytes / bandwidth))
    if model.flop:
        assert found.bound == pytest.approx(attainable(model.intensity, peak, bandwidth))
        assert found.peak == pytest.approx(peak)
        assert found.ridge == pytest.approx(peak / bandwidth)
        if model.intensity != pytest.approx(found.ridge):
            assert (model.intensity < found.ridge) == (found.floor.side == "memory-bound")


def test_pipes_with_peaks_of_their_own_overlap() -> None:
    block = models.attention(1, 1, 1024, 1024, 64, "fp16")
    peaks = {"tensor_fp16": 1e15, "fp32": 1e12}
    found = models.estimate(block, peak=peaks, bandwidth=1e15)
    assert found.compute_seconds == block.flop["fp32"] / 1e12
    assert found.floor == models.bound(block, peaks, 1e15)


@settings(deadline=None)
@given(MADE, RATES, RATES, st.floats(0.1, 10))
def test_a_time_fits_exactly_when_it_is_not_below_the_floor(
    model: models.WorkModel, peak: float, bandwidth: float, share: float
) -> None:
    floor = models.estimate(model, peak=dict.fromkeys(model.flop, peak), bandwidth=bandwidth).floor
    assert floor is not None
    found = models.estimate(
        model, peak=dict.fromkeys(model.flop, peak), bandwidth=bandwidth, seconds=share * floor.seconds
    )
    assert found.consistent is (share >= 1 / TOLERANCE)


# --- where peaks come from


def test_peaks_that_were_given_come_first_then_the_report_then_the_data_sheet() -> None:
    launch = kernel(peak_flop_rate_tensor_fp16=5e14, peak_dram_bandwidth=1.9e12, kernel_duration=1e-3)
    assert H100 is not None
    given_ = models.estimate(GEMM, peak=1e15, bandwidth=2e12, kernel=launch, gpu="h100-sxm")
    reported = models.estimate(GEMM, kernel=launch, gpu="h100-sxm")
    sheet = models.estimate(GEMM, gpu="h100-sxm")
    assert [e.peaks["tensor_fp16"].number for e in (given_, reported, sheet)] == [
        1e15,
        5e14,
        H100.peak["tensor_fp16"],
    ]
    assert [e.bandwidth.number for e in (given_, reported, sheet)] == [2e12, 1.9e12, H100.dram_bandwidth]
    assert given_.peaks["tensor_fp16"].sources == ("given",)
    assert sheet.peaks["tensor_fp16"].quality == "estimate"
    assert sheet.peaks["tensor_fp16"].sources == (H100.source,)


def test_one_given_peak_goes_with_the_bandwidth_of_the_data_sheet() -> None:
    found = models.estimate(GEMM, peak=1e15, gpu="h100-sxm")
    assert (found.peaks["tensor_fp16"].quality, found.bandwidth.quality) == ("exact", "estimate")


@pytest.mark.parametrize("gpu", ["H100", "GPU of tomorrow", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"])
def test_an_unknown_gpu_gives_no_bound_but_a_reason(gpu: str) -> None:
    found = models.estimate(GEMM, gpu=gpu)
    assert (found.bound, found.floor, found.ridge) == (None, None, None)
    assert all(found.missing)
    assert len(found.missing) == 1


def test_a_precision_that_the_data_sheet_lacks_gives_no_bound_but_keeps_the_bandwidth() -> None:
    found = models.estimate(models.gemm(64, 64, 64, "fp4"), gpu="h100-sxm")
    assert H100 is not None
    assert (found.bound, found.bandwidth.number) == (None, H100.dram_bandwidth)
    assert "states no peak rate of tensor_fp4" in found.missing[0]


def test_a_link_has_no_dram_bandwidth() -> None:
    step = models.all_reduce(10**8, 8, "bf16")
    assert models.estimate(step, gpu="h100-sxm").memory_seconds is None
    assert models.estimate(step, bandwidth=450e9).memory_seconds == pytest.approx(step.bytes / 450e9)


def test_without_any_peak_the_work_is_known_and_the_bound_is_not() -> None:
    found = models.estimate(GEMM)
    assert found.missing == ("the peak rate of tensor_fp16 is not given", "the DRAM bandwidth is not given")


def test_every_data_sheet_gives_a_single_precision_bound() -> None:
    for sku in skus():
        if "fp32" in sku.peak:
            assert models.estimate(models.gemv(64, 64, "fp32"), gpu=sku.id).bound, sku.id


@pytest.mark.parametrize(
    "wrong",
    [
        {"peak": 0.0},
        {"bandwidth": -1.0},
        {"seconds": 0.0},
        {"peak": float("nan")},
        {"bandwidth": float("inf")},
    ],
)
def test_rates_and_times_are_above_zero(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        models.estimate(GEMM, **wrong)  # type: ignore[arg-type]


# --- beside a launch


def ratios(model: models.WorkModel, **neutral: object) -> dict[str, models.Ratio]:
    return {r.measured.id: r for r in models.ratios(model, kernel(**neutral))}


def test_ratios_of_a_launch_that_does_twice_the_work_and_moves_thrice_the_bytes() -> None:
    counters = {f"flops_{p}": 2 * GEMM.total_flop if p == "tensor_fp16" else 0 for p in PRECISIONS}
    found = ratios(
        GEMM, **counters, dram_bytes=3 * GEMM.bytes, dram_read_bytes=4 * GEMM.read, dram_write_bytes=0
    )
    assert {id: r.ratio for id, r in found.items()} == {
        "flops": 2, "dram_bytes": 3, "dram_read_bytes": 4, "dram_write_bytes": 0,
    }  # fmt: skip
    assert found["flops"].measured.sources == ("flops_tensor_fp16",)
    assert "padded" in found["flops"].above
    assert "fetched again" in found["dram_bytes"].above


def test_a_counter_that_is_missing_makes_no_ratio_and_says_why() -> None:
    found = ratios(GEMM, dram_bytes=1e9)
    assert found["flops"].ratio is None
    assert "flops_tensor_fp16 is unknown" in (found["flops"].measured.reason or "")
    assert found["dram_read_bytes"].ratio is None


def test_packed_half_that_may_be_constant_loads_is_no_work() -> None:
    counters = {f"flops_{p}": GEMM.total_flop if p == "tensor_fp16" else 0 for p in PRECISIONS}
    loads = Value("flops_fp16", 1e15, "FLOP", "estimate")
    assert ratios(GEMM, **{**counters, "flops_fp16": loads})["flops"].ratio == 1


def test_a_copy_has_bytes_to_compare_and_no_flops() -> None:
    assert list(ratios(COPY, dram_bytes=1e9)) == ["dram_bytes", "dram_read_bytes", "dram_write_bytes"]


def test_link_bytes_are_not_held_against_dram() -> None:
    step = models.all_reduce(10**8, 8, "bf16")
    assert list(ratios(step, dram_bytes=1e9)) == ["flops"]
    checks = {c.id: c for c in models.compare(step, kernel(dram_bytes=1e9))}
    assert checks["model-bytes"].ok is None
    assert "over links" in checks["model-bytes"].message


def test_the_time_of_the_launch_is_the_time_unless_another_is_given() -> None:
    launch = kernel(kernel_duration=1e-3)
    assert models.estimate(GEMM, kernel=launch).seconds == 1e-3
    assert models.estimate(GEMM, kernel=launch, seconds=2e-3).seconds == 2e-3
