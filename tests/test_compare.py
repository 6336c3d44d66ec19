"""Two sides of launches: what pairs, what a change says, what is noise, what explains the time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit import api
from ncukit.comparison import compare
from ncukit.comparison.baseline import side_of
from ncukit.comparison.comparable import FLOOR, FLOOR_POINTS, SHORT_FLOOR, Sides, judge, reading_of
from ncukit.comparison.pairs import Steering, told_apart
from ncukit.errors import UsageError
from ncukit.metrics import load
from ncukit.metrics.normalise import normalise
from ncukit.model import Value
from ncukit.model.kernel import Recorded
from tests.builders import raw_kernel
from tests.compared import (
    A100,
    H100,
    RTX,
    SPILL,
    SPILLED,
    T4,
    compared,
    launch,
    pair_of,
    row_of,
    unknown,
)  # fmt: skip

TIME = {"kernel_duration": 1e-3}

# Matching


def names_of(base: Any, other: Any, **options: Any) -> list[tuple[int, int]]:
    """Return the launch numbers of each pair, in the order of the base."""
    pairs = compared(base, other, **options).pairs
    return sorted((pair.base.launches[0], pair.other.launches[0]) for pair in pairs)


def test_launches_pair_by_name_and_grid_whatever_their_order() -> None:
    base = [launch("f", 0, grid_size=1), launch("f", 1, grid_size=2), launch("g", 2, grid_size=1)]
    other = [launch("g", 0, grid_size=1), launch("f", 1, grid_size=2), launch("f", 2, grid_size=1)]
    assert names_of(base, other) == [(1, 3), (2, 2), (3, 1)]


def test_nvtx_ranges_tell_launches_of_one_shape_apart() -> None:
    base = [launch("f", 0, nvtx=("warm-up",)), launch("f", 1, nvtx=("step",))]
    other = [launch("f", 0, nvtx=("step",)), launch("f", 1, nvtx=("warm-up",))]
    assert names_of(base, other) == [(1, 2), (2, 1)]


def test_launches_whose_grid_changed_pair_in_order_when_there_are_as_many() -> None:
    base = [launch("f", 0, grid_size=1), launch("f", 1, grid_size=2)]
    other = [launch("f", 0, grid_size=3), launch("f", 1, grid_size=4)]
    assert names_of(base, other) == [(1, 1), (2, 2)]
    assert {pair.matched for pair in compared(base, other).pairs} == {
        "name, NVTX range and order; the grids differ"
    }


def test_a_name_alone_never_pairs() -> None:
    base = [launch("f", 0, grid_size=1)]
    other = [launch("f", 0, grid_size=3), launch("f", 1, grid_size=4)]
    (against,) = compared(base, other).others
    assert against.pairs == ()
    assert [u.sample.launches for u in against.only_other] == [(1,), (2,)]
    assert "neither grid, NVTX range nor their number agree" in against.only_base[0].reason


def test_other_template_arguments_pair_by_function_and_grid() -> None:
    base, other = launch("f", demangled="f<1>()"), launch("f", demangled="f<2>()")
    assert compared(base, other).pairs[0].matched.startswith("function, grid and NVTX range")


def test_the_only_launch_of_each_side_pairs_whatever_its_name_and_says_so() -> None:
    (pair,) = compared(launch("old"), launch("new")).pairs
    assert pair.matched == "being the only kernel of each side; the names differ"
    assert next(fact for fact in pair.facts if fact.id == "kernel").status == "warn"


def test_what_is_left_says_why() -> None:
    (against,) = compared([launch("f"), launch("g", 1)], [launch("f"), launch("h", 1)]).others
    assert [u.reason for u in against.only_base] == ["no launch of this name on the other side"]
    assert [u.reason for u in against.only_other] == ["no launch of this name on the base"]


@pytest.mark.parametrize(
    ("match", "pairs"),
    [
        (("v1=v2",), [(1, 2), (2, 1)]),
        (("1=1",), [(1, 1), (2, 2)]),
        (("order",), [(1, 1), (2, 2)]),
        (("regex:^gemm_v1$=gemm_v2",), [(1, 2), (2, 1)]),
    ],
)
def test_match_steers_by_name_by_number_and_by_order(match: tuple[str, ...], pairs: Any) -> None:
    base = [launch("gemm_v1", 0, grid_size=1), launch("other", 1, grid_size=2)]
    other = [launch("other", 0, grid_size=2), launch("gemm_v2", 1, grid_size=3)]
    if match == ("1=1",):
        base = [launch("gemm_v1", 0, grid_size=1), launch("a", 1, grid_size=2)]
        other = [launch("gemm_v2", 0, grid_size=2), launch("a", 1, grid_size=3)]
    assert names_of(base, other, match=match) == pairs


@pytest.mark.parametrize("word", ["gemm", "=gemm", "gemm=", "operator=="])
def test_a_word_of_match_that_is_no_pair_is_an_error(word: str) -> None:
    with pytest.raises(UsageError, match="says no pair"):
        Steering.of([word])


def test_an_operator_in_a_name_is_not_taken_for_the_pair() -> None:
    assert Steering.of(["operator==(A)=equal"]).pairs == (("operator==(A)", "equal"),)


def test_match_names_what_is_not_there() -> None:
    with pytest.raises(UsageError, match="the other side has no launch 'nothing'") as found:
        compared(launch("f"), launch("g"), match=("f=nothing",))
    assert found.value.hint == "there is: g"


def test_of_several_others_a_pair_counts_where_its_launch_is() -> None:
    base, a, b = (
        side_of([launch(name, grid_size=1), launch("x" + name, 1, grid_size=2)], name) for name in "fgh"
    )
    found = compare(base, [a, b], steering=Steering.of(["f=regex:^g$"]))
    assert [len(against.pairs) for against in found.others] == [1, 0]
    with pytest.raises(UsageError, match="the other side has no launch 'nothing'"):
        compare(base, [a, b], steering=Steering.of(["f=nothing"]))


# Repeats


def test_launches_that_do_the_same_work_are_repeats_and_the_median_stands_for_them() -> None:
    times = [1.0e-3, 1.2e-3, 1.1e-3]
    base = [launch("f", n, kernel_duration=t, inst_executed=1000 + n) for n, t in enumerate(times)]
    (sample,) = compared(base, launch("f")).base.samples
    assert (sample.repeats, sample.launches, sample.same_work) == (3, (1, 2, 3), True)
    assert sample.duration == 1.1e-3
    assert sample.spread["kernel_duration"] == (1.0e-3, 1.2e-3)


def test_launches_that_do_other_work_are_no_repeats() -> None:
    base = [launch("f", n, inst_executed=work) for n, work in enumerate((1000, 2000))]
    other = [launch("f", n, inst_executed=work) for n, work in enumerate((1000, 2000))]
    assert [sample.repeats for sample in compared(base, other).base.samples] == [1, 1]
    assert names_of(base, other) == [(1, 1), (2, 2)]


def test_the_order_keeps_repeats_apart() -> None:
    base = [launch("f", n, inst_executed=1000) for n in range(3)]
    assert len(compared(base, base, match=("order",)).pairs) == 3


def test_that_the_work_of_repeats_is_unknown_is_said() -> None:
    base = [launch("f", n, kernel_duration=1e-3) for n in range(2)]
    (pair,) = compared(base, base).pairs
    spread = next(fact for fact in pair.facts if fact.id == "spread")
    assert "That the repeats do the same work is not known" in spread.text


# Changes


@pytest.mark.parametrize(
    ("id", "base", "other", "change", "unit"),
    [
        ("dram_bytes", 200.0, 150.0, -25.0, "%"),
        ("dram_bytes", 0.0, 0.0, 0.0, "%"),
        ("dram_bytes", 0.0, 5.0, math.inf, "%"),
        ("shared_bank_conflict_pct", 92.0, 2.0, -90.0, "pt"),
        ("achieved_occupancy_pct", 50.0, 75.0, 25.0, "pt"),
    ],
)
def test_a_change_is_percent_of_the_base_or_points_of_a_percentage(
    id: str, base: float, other: float, change: float, unit: str
) -> None:
    row = row_of(id, {id: base}, {id: other})
    assert (row.change, row.change_unit) == (change, unit)


def test_a_missing_side_is_unknown_with_its_reason_and_never_a_change() -> None:
    row = row_of("dram_bytes", {"dram_bytes": 100}, {"dram_bytes": unknown("dram_bytes", "not collected: X")})
    assert (row.change, row.ratio, row.reading) == (None, None, "unknown")
    assert row.reason == "other: not collected: X"


def test_what_both_sides_lack_is_said_once() -> None:
    row = row_of("spill_inst", {}, {})
    assert row.reason == "both: not given by the test"


def test_a_value_that_no_rule_may_use_is_no_change_either() -> None:
    doubt = Value("l2_hit_rate_pct", 152.0, "%", "exact", (), "unreliable: above 100 %", reliable=False)
    row = row_of("l2_hit_rate_pct", {"l2_hit_rate_pct": 90}, {"l2_hit_rate_pct": doubt})
    assert (row.change, row.reading, row.reason) == (None, "unknown", "other: unreliable: above 100 %")
    assert row.other.value == 152.0


@pytest.mark.parametrize(
    ("id", "base", "other", "reading"),
    [
        ("kernel_duration", 1e-3, 2e-3, "worse"),
        ("kernel_duration", 2e-3, 1e-3, "better"),
        ("kernel_duration", 1e-3, 1.01e-3, "same"),
        ("dram_bytes", 100, 200, "worse"),
        ("uncoalesced_excess_pct", 50.0, 10.0, "better"),
        ("grid_size", 10, 11, "moved"),
        ("registers_per_thread", 60, 80, "moved"),
        ("dram_throughput_pct", 40.0, 80.0, "moved"),
        ("stall_cycles_block_barrier", 1.0, 5.0, "moved"),
        ("sm_count", 108, 108, "same"),
    ],
)
def test_a_change_is_read_as_better_or_worse_only_where_it_is(
    id: str, base: float, other: float, reading: str
) -> None:
    assert row_of(id, {id: base}, {id: other}).reading == reading


def test_more_bandwidth_is_better_only_while_the_bytes_are_the_same() -> None:
    rate = ({"dram_bandwidth": 1e11}, {"dram_bandwidth": 2e11})
    same = [side | {"dram_bytes": 1e9} for side in rate]
    assert row_of("dram_bandwidth", *same).reading == "better"
    other = [rate[0] | {"dram_bytes": 1e9}, rate[1] | {"dram_bytes": 2e9}]
    assert row_of("dram_bandwidth", *other).reading == "moved"
    assert row_of("dram_bandwidth", *rate).reading == "moved"


def test_every_metric_has_one_way_to_be_compared_between_any_two_gpus() -> None:
    gpus = [T4, A100, RTX, H100, {**H100, "compute_capability": 100}, {**RTX, "compute_capability": 120}]
    for a in gpus:
        for b in gpus:
            sides = Sides(launch(**a), launch(**b))
            for id in load().metrics:
                judged = judge(id, sides)
                assert judged.comparable in ("same", "share", "no")
                assert judged.comparable == "same" or judged.why, id
                assert judged.peak == "" or judged.peak in load().metrics or "total" in judged.peak
                assert "{" not in judged.why


def test_what_a_reading_depends_on_is_a_metric() -> None:
    for id in load().metrics:
        _, same = reading_of(id)
        assert same == "" or same in load().metrics


# Across architectures


@pytest.mark.parametrize(
    ("id", "base", "other", "comparable", "why"),
    [
        ("dram_bytes", T4, RTX, "same", ""),
        ("flops_fp32", A100, H100, "same", ""),
        ("kernel_duration", A100, H100, "same", ""),
        ("dram_bandwidth", A100, H100, "share", "another memory"),
        ("dram_throughput_pct", A100, H100, "share", "share of its own peak"),
        ("achieved_occupancy_pct", T4, A100, "share", "(32 and 64)"),
        ("l2_hit_rate_pct", A100, H100, "same", ""),
        ("l2_hit_rate_pct", T4, A100, "no", "second lookup over the L2 fabric"),
        ("l2_hit_rate_from_l1_pct", T4, A100, "same", ""),
        ("stall_cycles_texture_queue_full", T4, A100, "no", "FP64"),
        ("stall_cycles_texture_queue_full", T4, RTX, "same", "its own SM clock"),
        ("stall_cycles_tensor_group_wait", A100, H100, "no", "only CC 9.0"),
        ("stall_samples_block_barrier", A100, H100, "share", "share of its own samples"),
        ("pipe_tensor_pct", A100, RTX, "no", "FP32 accumulation"),
        ("pipe_fp16_pct", A100, RTX, "no", "FMA pipe"),
        ("inst_executed", A100, H100, "same", "the compiler writes other instructions"),
    ],
)
def test_each_row_says_what_it_can_be_compared_as(
    id: str, base: dict[str, Any], other: dict[str, Any], comparable: str, why: str
) -> None:
    known = {id: 10.0}
    row = row_of(id, {**base, **known}, {**other, **known})
    assert row.comparable == comparable
    assert why in row.why
    assert (row.change is None) == (comparable == "no")
    assert (row.reading == "not-comparable") == (comparable == "no")


def test_maxima_over_different_units_are_not_comparable_and_name_the_difference() -> None:
    id = "sm_throughput_pct"
    base = launch(**A100, **{id: 50.0}, breakdowns={id: {"a": 50.0, "pipe_fp16": 10.0}})
    other = launch(**{**H100, id: 60.0}, breakdowns={id: {"a": 60.0}})
    row = compared(base, other).pairs[0].row(id)
    assert row is not None
    assert (row.comparable, row.reading) == ("no", "not-comparable")
    assert "1 only in the base (such as `pipe_fp16`)" in row.why
    alike = launch(**{**H100, id: 60.0}, breakdowns={id: {"a": 60.0, "pipe_fp16": 1.0}})
    row = compared(base, alike).pairs[0].row(id)
    assert row is not None
    assert row.comparable == "share"


def test_loads_past_l1_on_one_side_are_another_sector_path() -> None:
    row = row_of("l1_hit_rate_pct", {"l1_hit_rate_pct": 50}, {"l1_hit_rate_pct": 0, "tma_load_bytes": 4096})
    assert row.comparable == "no"
    assert "`tma_load_bytes`, the other alone" in row.why


def test_marked_spills_are_not_compared_with_an_upper_bound() -> None:
    exact = Value("spill_inst", 0, "inst", "exact", ("sass__inst_executed_register_spilling",))
    bound = Value("spill_inst", 900, "inst", "estimate", ("smsp__sass_inst_executed_op_local_ld.sum",))
    assert row_of("spill_inst", {"spill_inst": exact}, {"spill_inst": bound}).comparable == "no"


def test_rates_compare_as_shares_of_their_own_peaks() -> None:
    base = {**A100, "dram_bandwidth": 1.0e12, "peak_dram_bandwidth": 2.0e12, "dram_bytes": 1e9}
    other = {**H100, "dram_bandwidth": 1.2e12, "peak_dram_bandwidth": 3.0e12, "dram_bytes": 1e9}
    row = row_of("dram_bandwidth", base, other)
    assert row.shares == (50.0, 40.0)
    assert row.change == pytest.approx(20.0)
    assert row.reading == "worse"  # more bytes a second, and less of what this GPU could


def test_between_gpus_more_work_is_neither_better_nor_worse() -> None:
    base = {**A100, **TIME, "flops_total": 1e9, "dram_bytes": 1e6}
    other = {**H100, **TIME, "flops_total": 2e9, "dram_bytes": 2e6}
    row = row_of("dram_bytes", base, other)
    assert (row.reading, row.reason) == (
        "moved", "other work on another GPU: see the quantities per unit of work",
    )  # fmt: skip
    assert row_of("dram_bytes", base, {**other, "flops_total": 1e9}).reading == "worse"


def test_dram_bytes_of_blackwell_pair_with_older_ones_through_their_renamed_counters() -> None:
    """From CC 12.0 dram__bytes_read is dram__bytes_op_read; the neutral metric is the same."""

    def report(cc: tuple[int, int], read: str, write: str) -> Any:
        major, minor = cc
        counters: dict[str, Any] = {
            "device__attribute_compute_capability_major": major,
            "device__attribute_compute_capability_minor": minor,
            "gpu__time_duration.sum": 1_000_000.0,
            "launch__grid_size": 1,
            read: 3.0e6,
            write: 1.0e6 * major,
        }
        return normalise(raw_kernel("k", counters), "r.ncu-rep")

    old = report((8, 6), "dram__bytes_read.sum", "dram__bytes_write.sum")
    new = report((12, 0), "dram__bytes_op_read.sum", "dram__bytes_op_write.sum")
    (pair,) = compared(old, new).pairs
    row = pair.row("dram_bytes")
    assert row is not None
    assert (row.base.value, row.other.value) == (11.0e6, 15.0e6)
    assert row.base.sources == ("dram__bytes_read.sum", "dram__bytes_write.sum")
    assert row.other.sources == ("dram__bytes_op_read.sum", "dram__bytes_op_write.sum")
    assert row.comparable == "same"
    assert row.change == pytest.approx(100 * 4 / 11)


# Noise


def test_one_sample_each_has_a_stated_floor() -> None:
    row = row_of("kernel_duration", {"kernel_duration": 1e-3}, {"kernel_duration": 1.015e-3})
    assert (row.noise, row.noise_from, row.reading) == (FLOOR, "a floor of 2 %", "same")
    points = row_of("l1_hit_rate_pct", {"l1_hit_rate_pct": 50.0}, {"l1_hit_rate_pct": 50.9})
    assert (points.noise, points.reading) == (FLOOR_POINTS, "same")


def test_launches_under_ten_microseconds_have_a_higher_one() -> None:
    row = row_of("kernel_duration", {"kernel_duration": 5e-6}, {"kernel_duration": 5.4e-6})
    assert (row.noise, row.reading) == (SHORT_FLOOR, "same")
    assert row.noise_from.endswith("as launches under 10 µs are noisy")


def test_settings_have_no_noise() -> None:
    row = row_of("registers_per_thread", {"registers_per_thread": 255}, {"registers_per_thread": 254})
    assert (row.noise, row.reading) == (0.0, "moved")


@pytest.mark.parametrize(("after", "reading"), [(1.09e-3, "same"), (1.15e-3, "worse")])
def test_a_change_within_the_spread_of_repeats_is_none(after: float, reading: str) -> None:
    repeats = [launch("f", n, kernel_duration=1e-3 + n * 2e-5) for n in range(6)]  # 10 % apart
    (pair,) = compared(repeats, launch("f", kernel_duration=after)).pairs
    row = pair.row("kernel_duration")
    assert row is not None
    assert row.noise == pytest.approx(100 * 1e-4 / 1.04e-3)
    assert row.noise_from == "spread of 6 and 1 repeats"
    assert row.reading == reading


def test_few_repeats_that_happen_to_agree_do_not_beat_the_floor() -> None:
    repeats = [launch("f", n, kernel_duration=1e-3) for n in range(2)]
    (pair,) = compared(repeats, launch("f", kernel_duration=1.01e-3)).pairs
    row = pair.row("kernel_duration")
    assert row is not None
    assert (row.noise, row.reading) == (FLOOR, "same")


# What explains the time


ISSUE = {
    "inst_executed": 1e6,
    "warp_cycles_per_issued_instruction": 10.0,
    "warps_active_per_scheduler": 8.0,
    "sm_active_pct": 100.0,
    "sm_clock": 1e9,
    "stall_cycles_global_memory_dependency": 8.0,
    "stall_cycles_selected": 1.0,
    "stall_cycles_block_barrier": 1.0,
}


def test_the_issue_account_divides_the_whole_change_by_its_terms() -> None:
    """Twice the instructions at the same rate: all of the change."""
    base = {**ISSUE, "kernel_duration": 1e-3}
    other = {**ISSUE, "kernel_duration": 2e-3, "inst_executed": 2e6}
    explained = {row.id: row.explains for row in pair_of(base, other).rows if row.explains is not None}
    assert explained["inst_executed"] == pytest.approx(100)
    assert explained["sm_clock"] == pytest.approx(0)


def test_terms_add_up_and_stall_reasons_add_up_to_theirs() -> None:
    base = {**ISSUE, "kernel_duration": 1e-3}
    other = {
        **ISSUE,
        "kernel_duration": 1e-3 * 2 * 1.5 * 2 / 1.1,
        "inst_executed": 2e6,
        "warp_cycles_per_issued_instruction": 15.0,
        "stall_cycles_global_memory_dependency": 12.0,
        "stall_cycles_block_barrier": 2.0,
        "warps_active_per_scheduler": 4.0,
        "sm_clock": 1.1e9,
    }
    found = {row.id: row.explains for row in pair_of(base, other).rows if row.explains is not None}
    terms = ("inst_executed", "warp_cycles_per_issued_instruction", "warps_active_per_scheduler", "sm_clock")
    assert sum(found[id] for id in terms) == pytest.approx(100)
    parts = [share for id, share in found.items() if id.startswith("stall_cycles_")]
    assert sum(parts) == pytest.approx(found["warp_cycles_per_issued_instruction"])


def test_a_row_that_pulls_the_other_way_has_a_negative_share() -> None:
    base = {**ISSUE, "kernel_duration": 1e-3}
    other = {**ISSUE, "kernel_duration": 0.9e-3, "inst_executed": 0.45e6, "warps_active_per_scheduler": 4.0}
    found = {row.id: row.explains for row in pair_of(base, other).rows}
    assert (found["inst_executed"] or 0) > 100
    assert (found["warps_active_per_scheduler"] or 0) < 0


def test_bytes_explain_as_much_as_their_least_time_moved() -> None:
    base = {"kernel_duration": 1e-3, "dram_bytes": 5e8, "peak_dram_bandwidth": 1e12}
    other = {"kernel_duration": 2e-3, "dram_bytes": 15e8, "peak_dram_bandwidth": 1e12}
    assert row_of("dram_bytes", base, other).explains == pytest.approx(100)


def test_nothing_explains_a_duration_that_did_not_move() -> None:
    base = {**ISSUE, "kernel_duration": 1e-3}
    pair = pair_of(base, {**base, "inst_executed": 2e6})
    assert [row.id for row in pair.rows if row.explains is not None] == []


@pytest.mark.parametrize(
    ("name", "gpu", "explained"),
    [("add", A100, True), ("copy", A100, True), ("add", H100, True), ("copy", H100, False)],
    ids=["same kernel and GPU", "another kernel", "another GPU", "another kernel on another GPU"],
)
def test_the_times_of_another_kernel_on_another_gpu_are_not_explained(
    name: str, gpu: dict[str, Any], explained: bool
) -> None:
    base = launch("add", **{**A100, **ISSUE, "kernel_duration": 1e-3})
    other = launch(name, **{**gpu, **ISSUE, "kernel_duration": 2e-3, "inst_executed": 2e6})
    (pair,) = compared(base, other).pairs
    assert any(row.explains is not None for row in pair.rows) is explained


@pytest.mark.parametrize(
    ("name", "flops", "claim"),
    [
        ("copy", 816e6, "Other work: 1 ms for add, 500 µs for copy; "),
        ("copy", 29e9, "Faster: "),  # another version under a name of its own
        ("add", 816e6, "Faster: "),  # the same function does less
    ],
)
def test_unrelated_work_is_not_called_faster(name: str, flops: float, claim: str) -> None:
    base = launch("add", **{**A100, **ISSUE, "kernel_duration": 1e-3, "flops_total": 30e9})
    other = launch(name, **{**A100, **ISSUE, "kernel_duration": 5e-4, "flops_total": flops})
    (pair,) = compared(base, other).pairs
    assert pair.summary.claim.replace("\u202f", " ").startswith(claim)
    told = claim.startswith("Other work")
    row = pair.row("kernel_duration")
    assert row is not None
    assert row.reading == ("moved" if told else "better")
    assert (row.reason == "other work on the same GPU: see the quantities per unit of work") is told
    assert any(r.explains is not None for r in pair.rows) is not told


# What it says


def test_c74_fewer_registers_more_local_memory_more_time_is_said_to_be_spilling() -> None:
    summary = pair_of(SPILL, SPILLED).summary
    assert summary.cause == "spilling"
    assert summary.claim.startswith("Slower: spilling; registers 168 → 80")
    assert "shared memory still limits it: the change in registers bought nothing" in summary.deck
    assert summary.evidence[0] == "registers_per_thread"


def test_c59_a_spill_counter_of_zero_contradicts_spilling() -> None:
    base, other = launch(**SPILL), launch(**SPILLED, signals={"marked_spill_inst": 0})
    assert compared(base, other).pairs[0].summary.cause != "spilling"
    counted = launch(**SPILLED, signals={"marked_spill_inst": 900})
    deck = compared(base, counted).pairs[0].summary.deck
    assert "The spill counter agrees" in deck


@pytest.mark.parametrize(
    "change",
    [
        {"kernel_duration": 0.9e-3},  # faster
        {"registers_per_thread": 168},  # the registers stayed
        {"local_memory_bytes": 0, "local_store_inst": 0},  # no local memory
    ],
)
def test_without_all_three_signs_it_is_not_spilling(change: dict[str, Any]) -> None:
    assert pair_of(SPILL, {**SPILLED, **change}).summary.cause != "spilling"


def test_the_cure_is_said_as_well() -> None:
    summary = pair_of(SPILLED, SPILL).summary
    assert summary.claim.startswith("Faster: no more spilling")


def test_a_change_within_the_noise_is_no_change() -> None:
    summary = pair_of(TIME, {"kernel_duration": 1.01e-3}).summary
    assert (summary.trend, summary.cause) == ("unchanged", "")
    assert summary.claim == "No change shown: +1.0\u202f% in time, within a floor of 2 %"


def test_an_unknown_duration_is_no_verdict() -> None:
    summary = pair_of({}, TIME).summary
    assert summary.trend == "unknown"
    assert "Whether it is faster is not known" in summary.claim


def test_a_failed_launch_is_not_compared() -> None:
    failed = launch(failed="the profiling pass failed")
    (pair,) = compared(failed, launch(**TIME)).pairs
    assert pair.summary.claim.startswith("Nothing can be compared: the launch of the base")
    assert next(fact for fact in pair.facts if fact.id == "kernel").status == "bad"


def test_another_gpu_is_named_instead_of_a_cause() -> None:
    summary = pair_of({**A100, "kernel_duration": 2e-3}, {**H100, "kernel_duration": 1e-3}).summary
    assert summary.claim.startswith("2\u202f× as fast on H100, against A100")
    assert summary.cause == "gpu"


def test_one_large_profiled_pass_is_medium_and_clean_repeats_are_high() -> None:
    assert pair_of(TIME, {"kernel_duration": 2e-3}).summary.confidence == "medium"
    assert pair_of(TIME, {"kernel_duration": 1.05e-3}).summary.confidence == "low"
    repeats = [launch("k", n, kernel_duration=1e-3 + n * 1e-6) for n in range(5)]
    slower = [launch("k", n, kernel_duration=2e-3 + n * 1e-6) for n in range(5)]
    assert compared(repeats, slower).pairs[0].summary.confidence == "high"


# Facts


def fact(id: str, base: dict[str, Any], other: dict[str, Any]) -> tuple[str, str]:
    found = next(fact for fact in pair_of(base, other).facts if fact.id == id)
    return found.status, found.word


@pytest.mark.parametrize(
    ("id", "base", "other", "status"),
    [
        ("gpu", A100, A100, "ok"),
        ("gpu", A100, H100, "warn"),
        ("clocks", {"sm_clock": 1.0e9}, {"sm_clock": 1.01e9}, "ok"),
        ("clocks", {"sm_clock": 1.0e9}, {"sm_clock": 1.2e9}, "warn"),
        ("clocks", {}, {"sm_clock": 1.2e9}, "no"),
        ("shape", {"grid_size": 1}, {"grid_size": 1}, "ok"),
        ("shape", {"grid_size": 1}, {"grid_size": 2}, "warn"),
        ("shape", {}, {}, "no"),
        ("work", {"flops_total": 100}, {"flops_total": 100}, "ok"),
        ("work", {"flops_total": 100}, {"flops_total": 200}, "warn"),
        ("work", {"flops_total": 100, "inst_executed": 9}, {"flops_total": 100, "inst_executed": 5}, "ok"),
        ("work", {"inst_executed": 9}, {"inst_executed": 9}, "ok"),
        ("work", {"inst_executed": 9}, {"inst_executed": 5}, "no"),
        ("work", {}, {}, "no"),
        ("collected", {"pc_samples": 1}, {"pc_samples": 1}, "ok"),
        ("collected", {"pc_samples": 1}, {}, "warn"),
        ("caches", {}, {}, "no"),
        ("tool", {}, {}, "no"),
        ("spread", {}, {}, "no"),
    ],
)
def test_facts_about_comparability(id: str, base: Any, other: Any, status: str) -> None:
    assert fact(id, base, other)[0] == status


NAMELESS = {**A100, "gpu_name": unknown("gpu_name", "not in the report")}


@pytest.mark.parametrize(
    ("base", "other", "word", "claim"),
    [
        (NAMELESS, A100, "not known to be the same", "what may be another GPU"),
        (NAMELESS, {**A100, "sm_count": 84}, "differs", "another GPU"),
        (NAMELESS, H100, "differs", "another GPU"),
        (NAMELESS, NAMELESS, "not named", None),
    ],
    ids=["nothing says otherwise", "other SMs", "another architecture", "neither side"],
)
def test_a_gpu_without_a_name_is_not_claimed_to_be_another(
    base: dict[str, Any], other: dict[str, Any], word: str, claim: str | None
) -> None:
    some = launch("add", **{**base, **TIME}), launch("copy", **{**other, "kernel_duration": 5e-6})
    (pair,) = compared(*some).pairs
    (gpu,) = [fact for fact in pair.facts if fact.id == "gpu"]
    assert gpu.word == word
    assert claim is None or pair.summary.claim.startswith(f"Another kernel on {claim}: ")
    assert claim is not None or "another GPU" not in pair.summary.claim
    row = pair.row("kernel_duration")
    assert claim is None or (row is not None and row.reason.startswith(f"another kernel on {claim}: "))


def test_another_architecture_says_nothing_about_the_work() -> None:
    """Its code has other instructions for the same work."""
    base, other = {**A100, "inst_executed": 100}, {**H100, "inst_executed": 200}
    assert fact("work", base, other) == ("no", "unknown")


def test_c25_a_collective_includes_waiting_for_its_peers() -> None:
    both = [launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL", **TIME) for _ in range(2)]
    (pair,) = compared(*both).pairs
    assert pair.facts[-1].id == "peers"
    assert "low shares of peak say nothing about it" in pair.facts[-1].text
    assert pair.summary.confidence == "low"


def test_c25_a_fused_kernel_of_many_ranks_cannot_be_judged_from_its_shares() -> None:
    kernel = launch("mega_moe", **TIME, sm_throughput_pct=1.0, dram_throughput_pct=7.0)
    alone, ranked = (side_of([kernel], "run") for _ in range(2))
    ranked = replace(ranked, recorded=Recorded(ranks=4))
    assert "peers" not in {fact.id for fact in compare(alone, [alone]).pairs[0].facts}
    (pair,) = compare(alone, [ranked]).pairs
    assert pair.facts[-1].id == "peers"
    assert pair.facts[-1].text.startswith("It ran as one of 4 processes: its time may include waiting")


def test_another_kernel_on_another_gpu_is_neither_better_nor_worse() -> None:
    shares = {"achieved_occupancy_pct": 50, "sm_active_pct": 50}
    base = launch("add", **{**A100, **TIME, "dram_bytes": 1e6, **shares})
    more = {name: 80 for name in shares}
    other = launch("copy", **{**H100, "kernel_duration": 1e-4, "dram_bytes": 2e6, **more})
    (pair,) = compared(base, other).pairs
    ids = ("kernel_duration", "dram_bytes", "achieved_occupancy_pct", "sm_active_pct")
    assert {pair.row(id).reading for id in ids} == {"moved"}  # type: ignore[union-attr]
    assert pair.summary.claim.startswith("Another kernel on another GPU: ")
    assert "as fast" not in pair.summary.claim + pair.summary.deck
    assert pair.summary.confidence == "low"


# All pairs together


def together(*works: tuple[float, float, float]) -> dict[str, Any]:
    """Return the totals of launches of (FLOPs, DRAM bytes, seconds) against themselves."""
    names = ("flops_total", "dram_bytes", "kernel_duration")
    some = [
        launch(f"k{n}", n, **dict(zip(names, work, strict=True)), grid_size=n + 1)
        for n, work in enumerate(works)
    ]
    (against,) = compared(some, some).others
    return {total.id: total for total in against.totals}


def test_c45_several_kernels_are_weighted_by_their_bytes_never_averaged() -> None:
    found = together((1e6, 1e6, 1e-3), (4e9, 1e8, 2e-3))
    assert found["arithmetic_intensity_dram"].base == pytest.approx(39.6, abs=0.05)  # not 20.5
    assert found["flop_rate_total"].base == pytest.approx(4.001e9 / 3e-3)
    assert found["dram_bandwidth"].other == pytest.approx(1.01e8 / 3e-3)
    assert found["kernel_duration"].base == pytest.approx(3e-3)
    assert {total.change for total in found.values()} == {0.0}


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(*[st.floats(1e-6, 1e12)] * 3), min_size=2, max_size=8))
def test_a_ratio_of_sums_lies_between_the_ratios(works: list[tuple[float, float, float]]) -> None:
    ratios = [flops / moved for flops, moved, _ in works]
    total = together(*works)["arithmetic_intensity_dram"].base
    assert min(ratios) * (1 - 1e-9) <= total <= max(ratios) * (1 + 1e-9)


def test_a_pair_that_lacks_a_part_on_one_side_is_in_no_sum_of_either() -> None:
    base = [launch("a", 0, **TIME, dram_bytes=100), launch("b", 1, **TIME, dram_bytes=50, grid_size=2)]
    other = [launch("a", 0, **TIME, dram_bytes=80), launch("b", 1, **TIME, grid_size=2)]
    (against,) = compared(base, other).others
    moved = next(total for total in against.totals if total.id == "dram_bytes")
    assert (moved.base, moved.other, moved.change) == (100, 80, pytest.approx(-20))
    assert (moved.pairs, moved.of) == (1, 2)
    assert "flops_total" not in {total.id for total in against.totals}


def test_repeats_count_as_often_as_both_sides_have_them() -> None:
    base = [launch("a", n, **TIME, inst_executed=9) for n in range(3)] + [launch("b", 3, **TIME, grid_size=2)]
    other = [launch("a", n, **TIME, inst_executed=9) for n in range(2)] + [
        launch("b", 2, **TIME, grid_size=2)
    ]
    (against,) = compared(base, other).others
    assert against.totals[0].base == pytest.approx(3e-3)


def test_one_pair_needs_no_total() -> None:
    assert compared(launch(**TIME), launch(**TIME)).others[0].totals == ()


# Per unit of work


def test_quantities_are_given_per_flop_byte_and_element() -> None:
    base = {**TIME, "flops_total": 1e9, "dram_bytes": 1e6}
    other = {"kernel_duration": 1e-3, "flops_total": 2e9, "dram_bytes": 1e6}
    pair = pair_of(base, other, elements=(1000.0, 2000.0))
    found = {(per.metric, per.per): per for per in pair.per}
    per_flop = found["dram_bytes", "FLOP"]
    assert (per_flop.base, per_flop.other, per_flop.change) == (1e-3, 5e-4, -50.0)
    assert found["kernel_duration", "output element"].change == -50.0
    assert ("dram_bytes", "DRAM byte") not in found


# Predictions


def predicted(watch: str, base: dict[str, Any], other: dict[str, Any]) -> list[bool | None]:
    from ncukit.comparison.summary import predictions
    from ncukit.model import Experiment

    pair = pair_of({**TIME, **base}, {**TIME, **other})
    experiment = Experiment("t", "c", "w", "e", watch, "nothing changes")
    sides = Sides(pair.base.kernel, pair.other.kernel)
    return [p.met for p in predictions(experiment, {row.id: row for row in pair.rows}, sides, None)]


@pytest.mark.parametrize(
    ("watch", "base", "other", "met"),
    [
        ("dram_bytes: 9 now, falling", {"dram_bytes": 900}, {"dram_bytes": 500}, [True]),
        ("dram_bytes: 9 now, falling", {"dram_bytes": 900}, {"dram_bytes": 900}, [False]),
        ("dram_bytes: 9 now, falling", {"dram_bytes": 900}, {"dram_bytes": 990}, [False]),
        ("local_store_inst: 7 now, to 0", {"local_store_inst": 7}, {"local_store_inst": 0}, [True]),
        ("local_store_inst: 7 now, to 0", {"local_store_inst": 70}, {"local_store_inst": 7}, [None]),
        ("l1_throughput_pct: 99 % now", {"l1_throughput_pct": 99}, {"l1_throughput_pct": 20}, [None]),
        ("spill_inst", {}, {}, [None]),
        ("the clean time", {}, {}, [None]),
        ("nothing that has a name", {}, {}, []),
    ],
)
def test_what_the_base_foretold_is_met_not_met_or_open(
    watch: str, base: Any, other: Any, met: list[bool | None]
) -> None:
    assert predicted(watch, base, other) == met


# Names


def test_launches_of_one_name_are_told_apart_by_their_shape_and_then_by_their_number() -> None:
    some = [
        launch("f", 0, grid_size=1, block_size=64),
        launch("f", 1, grid_size=2, block_size=64, nvtx=("a",)),
        launch("f", 2, grid_size=2, block_size=64, nvtx=("b",)),
        launch("g", 3),
    ]
    names = told_apart(side_of(some, "side").samples)
    assert names == ["f, 1 x 64", "f, 2 x 64, launch 2", "f, 2 x 64, launch 3", "g"]


def test_one_word_is_enough_for_match_and_gates() -> None:
    sides = [launch("k", n, grid_size=8, kernel_duration=1e-6, inst_executed=5) for n in range(2)]
    found = api.compare(sides, sides, match="order", fail_on="registers_per_thread > 255")
    assert len(found.pairs) == 2
    assert [outcome.gate for outcome in found.gates] == ["registers_per_thread > 255"] * 2
