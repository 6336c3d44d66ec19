"""The verdict on one launch: class, limiter, confidence, evidence, experiment, on synthetic launches."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit.judge import RULES, diagnose
from ncukit.judge.ledger import entries
from ncukit.judge.shares import measure, uses_tensor, waits
from ncukit.judge.wording import _QUOTES, _WORDS
from ncukit.metrics import load
from ncukit.metrics.catalog import load_units
from ncukit.model import Kernel, Value, Verdict
from tests import builders
from tests.test_rules import launch

LIMITERS = {
    "memory-bound": {"dram", "l2", "l1", "shared", "sysmem"},
    "compute-bound": {"tensor", "fp32", "fp64", "fp16", "int", "xu", "lsu-issue"},
    "latency-bound": {"occupancy", "dependency", "synchronisation", "imbalance", "tail", "small-grid"},
}
ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
FULL_GPU: dict[str, Any] = {
    "kernel_duration": 1e-3,
    "blocks_per_sm": 60.0,
    "grid_size": 6000,
    "usable_sm_count": 100,
    "waves_per_sm": 20.0,
    "wave_efficiency_pct": 100.0,
    "sm_active_pct": 98.0,
    "achieved_occupancy_pct": 90.0,
    "theoretical_occupancy_pct": 100.0,
    "warps_per_scheduler": 14.4,
    "allowed_warps_per_scheduler": 16.0,
    "launched_warps_per_scheduler": 16.0,
    "sm_throughput_pct": 30.0,
    "memory_throughput_pct": 30.0,
    "issue_busy_pct": 30.0,
    "dram_throughput_pct": 20.0,
    "l2_throughput_pct": 20.0,
    "l1_throughput_pct": 25.0,
    "lsu_busy_pct": 20.0,
    "alu_busy_pct": 15.0,
    "fma_busy_pct": 15.0,
    "fp64_busy_pct": 1.0,
    "xu_busy_pct": 2.0,
}
"""A launch that fills the GPU with warps and no unit; each case changes what matters."""


def stalls(**shares: float) -> dict[str, float]:
    """Return counter-based stall states; what is left of 10 cycles is issuing."""
    states = {f"stall_cycles_{state}": share for state, share in shares.items()}
    return {**states, "stall_cycles_selected": 10.0 - sum(shares.values()), "warps_issued_per_scheduler": 0.3}


def judge(**values: Any) -> Verdict:
    return diagnose(launch(**{**FULL_GPU, **values})).verdict


def test_a_sum_of_stall_states_names_its_parts():
    waits = stalls(global_memory_dependency=7.6, drain=0.5)
    verdict = judge(dram_throughput_pct=91.0, memory_throughput_pct=91.0, **waits)
    said = {row.text: row.value for row in verdict.evidence}
    text = (
        "of warp latency is waiting that this unit causes: long_scoreboard 76.0\u202f% and drain 5.0\u202f%"
    )
    assert said[text] == pytest.approx(81.0)


def test_a_metric_to_watch_has_the_value_that_the_metric_has():
    """The reasons add up to a little more than the counter of the latency, of which the metric is a share."""
    verdict = judge(**stalls(block_barrier=5.77), stall_share_synchronization_pct=58.0)
    assert verdict.limiter == "synchronisation"
    assert verdict.experiment is not None
    assert verdict.experiment.watch == "stall_share_synchronization_pct: 58.0\u202f% now."


def test_one_stall_state_is_the_one_that_the_unit_causes():
    waits = stalls(global_memory_dependency=7.6)
    verdict = judge(dram_throughput_pct=91.0, memory_throughput_pct=91.0, **waits)
    said = {row.text: row.value for row in verdict.evidence}
    assert said["of warp latency is long_scoreboard, the state that this unit causes"] == pytest.approx(76.0)


# ------------------------------------------------------------------- class and limiter

CALLS: list[tuple[str, str | None, dict[str, Any]]] = [
    ("memory-bound", "dram", {"dram_throughput_pct": 91.0, "memory_throughput_pct": 91.0}),
    ("memory-bound", "dram", {"dram_throughput_pct": 76.0, "memory_throughput_pct": 76.0}),
    ("memory-bound", "l2", {"l2_throughput_pct": 91.0, "memory_throughput_pct": 91.0}),
    ("memory-bound", "l1", {"l1_throughput_pct": 97.0, "memory_throughput_pct": 95.0}),
    (
        "memory-bound",
        "shared",
        {
            "l1_throughput_pct": 90.5,
            "memory_throughput_pct": 90.2,
            "shared_wavefront_share_pct": 94.0,
            "breakdowns": {"memory_throughput_pct": {"l1tex__data_pipe_lsu_wavefronts" + ELAPSED: 90.2}},
        },
    ),
    ("memory-bound", "sysmem", {"l2_fill_sysmem_pct": 0.32, "l2_fill_device_pct": 0.0004}),
    ("memory-bound", "l2", {"l2_atomics_per_cycle": 0.5, "l2_throughput_pct": 3.0}),  # one hot address
    ("memory-bound", "l2", {"l2_busiest_slice_pct": 95.0, "l2_throughput_pct": 3.0}),
    (
        "compute-bound",
        "tensor",
        {
            "tensor_inst": 1e7,
            "tensor_fp16_share_pct": 86.7,
            "tensor_busy_pct": 43.3,
            "sm_throughput_pct": 43.3,
        },
    ),
    ("compute-bound", "fp32", {"fma_busy_pct": 78.0, "issue_busy_pct": 86.0, "sm_throughput_pct": 86.0}),
    ("compute-bound", "fp64", {"fp64_busy_pct": 85.0, "issue_busy_pct": 3.0, "sm_throughput_pct": 85.0}),
    (
        "compute-bound",
        "fp16",
        {"fma_busy_pct": 82.0, "fma_pipe_half_pct": 79.0, "issue_busy_pct": 60.0, "sm_throughput_pct": 82.0},
    ),
    ("compute-bound", "int", {"alu_busy_pct": 80.0, "sm_throughput_pct": 80.0}),
    ("compute-bound", "xu", {"xu_busy_pct": 75.0, "sm_throughput_pct": 75.0}),
    (
        "compute-bound",
        "lsu-issue",
        {"lsu_busy_pct": 93.0, "l1_throughput_pct": 93.0, "sm_throughput_pct": 91.4},
    ),
    # issue slots used and warps waiting for their turn: the busiest pipe names the work
    (
        "compute-bound",
        "int",
        {
            "issue_busy_pct": 75.0,
            "sm_throughput_pct": 74.0,
            "alu_busy_pct": 57.0,
            "warps_eligible_per_scheduler": 3.9,
        },
    ),
    ("latency-bound", "small-grid", {"blocks_per_sm": 0.36, "grid_size": 36}),
    ("latency-bound", "small-grid", {"waves_per_sm": 0.17, "blocks_per_sm": 1.0, "warps_per_scheduler": 2.0}),
    ("latency-bound", "small-grid", {"kernel_duration": 3.2e-6}),
    ("latency-bound", "tail", {"waves_per_sm": 1.2, "grid_size": 120, "sm_active_pct": 60.0}),
    ("latency-bound", "imbalance", {"waves_per_sm": 2.0, "sm_active_pct": 70.0, "sm_active_min_pct": 40.0}),
    (
        "latency-bound",
        "imbalance",
        {"waves_per_sm": 20.0, "sm_active_pct": 70.0, "resident_block_limit": 4.0},
    ),
    ("latency-bound", "imbalance", {"sm_active_pct": 1.0, "warps_per_scheduler": 0.25}),  # one warp works
    (
        "latency-bound",
        "occupancy",
        {"waves_per_sm": 42.0, "sm_active_pct": 49.0, "resident_block_limit": 1.0},
    ),
    (
        "latency-bound",
        "occupancy",
        {"achieved_occupancy_pct": 45.0, "warps_per_scheduler": 7.2, "block_lifetime": 143.0},
    ),
    (
        "latency-bound",
        "occupancy",
        {
            "theoretical_occupancy_pct": 25.0,
            "achieved_occupancy_pct": 24.0,
            "allowed_warps_per_scheduler": 4.0,
            "warps_per_scheduler": 3.8,
            "occupancy_limiter": "registers",
        },
    ),
    ("latency-bound", "synchronisation", stalls(block_barrier=5.9, global_memory_dependency=1.3)),
    ("latency-bound", "dependency", stalls(global_memory_dependency=5.6, fixed_latency_dependency=1.9)),
    ("latency-bound", "dependency", stalls(fixed_latency_dependency=5.0)),
    ("latency-bound", "dependency", {"inst_mix_mov_pct": 54.0, "alu_busy_pct": 70.0}),  # a debug build
    ("latency-bound", None, {}),  # stalls were not collected
    ("balanced", None, {"issue_busy_pct": 68.0, "l1_throughput_pct": 60.0, "sm_throughput_pct": 66.0}),
    ("balanced", None, {"dram_throughput_pct": 70.0, "alu_busy_pct": 66.0, "memory_throughput_pct": 70.0}),
]


@pytest.mark.parametrize(
    ("cls", "limiter", "values"), CALLS, ids=[f"{c}-{m}-{i}" for i, (c, m, _) in enumerate(CALLS)]
)
def test_class_and_limiter(cls: str, limiter: str | None, values: dict[str, Any]):
    verdict = judge(**values)
    assert (verdict.cls, verdict.limiter) == (cls, limiter), verdict.claim


def test_every_limiter_of_the_design_is_reached():
    reached: dict[str, set[str]] = {}
    for cls, limiter, _ in CALLS:
        if limiter:
            reached.setdefault(cls, set()).add(limiter)
    assert reached == LIMITERS


@pytest.mark.parametrize(
    ("values", "cls", "limiter"),
    [
        (
            {"sm_throughput_pct": 12.0, "memory_throughput_pct": 18.0, "waves_per_sm": 0.2},
            "latency-bound",
            "small-grid",
        ),
        ({"sm_throughput_pct": 45.0, "memory_throughput_pct": 85.0}, "memory-bound", None),
        ({"sm_throughput_pct": 88.0, "memory_throughput_pct": 40.0}, "compute-bound", None),
        ({"sm_throughput_pct": 78.0, "memory_throughput_pct": 76.0}, "balanced", None),
        ({"sm_throughput_pct": 45.0, "memory_throughput_pct": 50.0}, "latency-bound", None),
    ],
)
def test_two_maxima_alone_never_name_a_unit(values: dict[str, Any], cls: str, limiter: str | None):
    """Both under 60 % is latency, not "memory because memory is larger"."""
    verdict = diagnose(launch(**values)).verdict
    assert (verdict.cls, verdict.limiter) == (cls, limiter)


@pytest.mark.parametrize(
    ("blocks", "found"),
    [(1.0, ("latency-bound", "small-grid")), (2.0, ("undetermined", None))],
    ids=["one runs on one SM", "two may be as many as there are SMs"],
)
def test_one_block_is_too_few_for_any_number_of_sms(blocks: float, found: tuple[str, str | None]):
    verdict = diagnose(launch(grid_size=blocks, block_size=64.0)).verdict
    assert (verdict.cls, verdict.limiter) == found
    told = verdict.claim == "The grid is one block: it runs on one SM, and the others stay empty."
    assert told is (blocks == 1)


def test_a_maximum_is_named_by_its_leading_member():
    """88 % of compute throughput may be the load/store pipe, not arithmetic."""
    verdict = diagnose(
        launch(
            sm_throughput_pct=88.0,
            memory_throughput_pct=40.0,
            lsu_busy_pct=88.0,
            breakdowns={"sm_throughput_pct": {"sm__inst_executed_pipe_lsu" + ELAPSED: 88.0}},
        )
    ).verdict
    assert verdict.limiter == "lsu-issue"


# ------------------------------------------------------------------- both sides of each threshold

DRAM_65 = {"dram_throughput_pct": 65.0, "memory_throughput_pct": 65.0}
EMPTY_WAVES = {"sm_active_pct": 70.0, "resident_block_limit": 4.0}
FEW = {"theoretical_occupancy_pct": 30.0, "warps_per_scheduler": 3.8}
EDGES: list[tuple[str, dict[str, Any], str | None, dict[str, Any], str | None]] = [
    ("blocks per SM", {"blocks_per_sm": 0.89}, "small-grid", {"blocks_per_sm": 0.91}, None),
    ("a wave half full", {"waves_per_sm": 0.45, "warps_per_scheduler": 3.9}, "small-grid",
     {"waves_per_sm": 0.55, "warps_per_scheduler": 3.9}, "occupancy"),
    ("warps of half a wave", {"waves_per_sm": 0.3, "warps_per_scheduler": 3.9}, "small-grid",
     {"waves_per_sm": 0.3, "warps_per_scheduler": 6.0}, None),
    ("launch latency", {"kernel_duration": 4.9e-6}, "small-grid", {"kernel_duration": 6e-6}, None),
    ("one warp alone", {"sm_active_pct": 1.4, "warps_per_scheduler": 0.3}, "imbalance",
     {"sm_active_pct": 1.4, "sm_throughput_pct": 0.3, "warps_per_scheduler": 0.6, "waves_per_sm": 0.2},
     "small-grid"),
    ("SM activity", {"waves_per_sm": 5.05, "grid_size": 505, "sm_active_pct": 84.0}, "tail",
     {"waves_per_sm": 5.05, "grid_size": 505, "sm_active_pct": 86.0}, None),
    ("leftover blocks", {**EMPTY_WAVES, "waves_per_sm": 1.5, "grid_size": 198, "sm_active_pct": 82.0}, "tail",
     {**EMPTY_WAVES, "waves_per_sm": 1.5, "grid_size": 303, "sm_active_pct": 82.0}, None),
    ("what leftover blocks explain", {**EMPTY_WAVES, "waves_per_sm": 1.4, "grid_size": 140}, "tail",
     {**EMPTY_WAVES, "waves_per_sm": 1.4, "grid_size": 140, "sm_active_pct": 60.0}, "imbalance"),
    ("a whole last wave", {**EMPTY_WAVES, "waves_per_sm": 1.4, "grid_size": 140}, "tail",
     {**EMPTY_WAVES, "waves_per_sm": 2.0, "grid_size": 200}, "imbalance"),
    ("the least busy SM", {**EMPTY_WAVES, "sm_active_min_pct": 69.0}, "imbalance",
     {**EMPTY_WAVES, "sm_active_min_pct": 71.0}, None),
    ("the mean SM", {**EMPTY_WAVES, "sm_imbalance_pct": 11.0}, "imbalance",
     {**EMPTY_WAVES, "sm_imbalance_pct": 9.0}, None),
    ("short blocks in many waves",
     {**EMPTY_WAVES, "block_lifetime": 1900.0, "waves_per_sm": 11.0}, "occupancy",
     {**EMPTY_WAVES, "block_lifetime": 1900.0, "waves_per_sm": 9.0}, "imbalance"),
    ("a start and an end", {**EMPTY_WAVES, "kernel_duration": 16e-6, "sm_imbalance_pct": 3.0,
     "sm_active_pct": 70.0, **stalls(block_barrier=5.0)}, "synchronisation",
     {**EMPTY_WAVES, "kernel_duration": 20e-6, "sm_imbalance_pct": 3.0, "sm_active_pct": 70.0,
      **stalls(block_barrier=5.0)}, None),
    ("a unit full while SMs work", {**EMPTY_WAVES, "waves_per_sm": 1.5, "fp64_busy_pct": 90.0}, "fp64",
     {**EMPTY_WAVES, "waves_per_sm": 1.5, "fp64_busy_pct": 74.0}, "imbalance"),
    ("life of the only block",
     {"sm_active_pct": 70.0, "resident_block_limit": 1.0, "block_lifetime": 15e3}, "occupancy",
     {"sm_active_pct": 70.0, "resident_block_limit": 1.0, "block_lifetime": 25e3}, "imbalance"),
    ("DRAM of a steady launch",
     {"dram_throughput_pct": 76.0, "l1_throughput_pct": 70.0, "kernel_duration": 1e-3}, None,
     {"dram_throughput_pct": 81.0, "l1_throughput_pct": 70.0, "kernel_duration": 1e-3}, "dram"),
    ("duration of a steady launch",
     {"dram_throughput_pct": 76.0, "kernel_duration": 25e-6, **stalls(block_barrier=7.0)}, "dram",
     {"dram_throughput_pct": 76.0, "kernel_duration": 18e-6, **stalls(block_barrier=7.0)}, "synchronisation"),
    ("eligible warps",
     {"issue_busy_pct": 75.0, "alu_busy_pct": 50.0, "warps_eligible_per_scheduler": 2.1}, "int",
     {"issue_busy_pct": 75.0, "alu_busy_pct": 50.0, "warps_eligible_per_scheduler": 1.9}, None),
    ("two units close", {"fp64_busy_pct": 66.0, "dram_throughput_pct": 55.0}, None,
     {"fp64_busy_pct": 66.0, "dram_throughput_pct": 53.0}, "fp64"),
    ("a unit beside", {"fp64_busy_pct": 61.0, "dram_throughput_pct": 51.0}, None,
     {"fp64_busy_pct": 61.0, "dram_throughput_pct": 49.0}, "fp64"),
    ("stalls that agree", {**DRAM_65, **stalls(global_memory_dependency=3.2)}, "dram",
     {**DRAM_65, **stalls(global_memory_dependency=2.8, shared_memory_dependency=3.0)}, "dependency"),
    ("a unit that shares the blame",
     {**DRAM_65, "fp64_busy_pct": 50.0, **stalls(shared_memory_dependency=5.0)}, None,
     {**DRAM_65, "fp64_busy_pct": 44.0, **stalls(shared_memory_dependency=5.0)}, "dependency"),
    ("barriers", stalls(block_barrier=4.1, misc=2.0), "synchronisation",
     stalls(block_barrier=3.9, misc=2.0), None),
    ("barriers beside wgmma",
     {**stalls(block_barrier=5.0), "warpgroup_mma_inst": 9.0, "inst_mix_barrier_pct": 0.6},
     "synchronisation",
     {**stalls(block_barrier=5.0), "warpgroup_mma_inst": 9.0, "inst_mix_barrier_pct": 0.4}, None),
    ("waiting for data", stalls(global_memory_dependency=4.1), "dependency",
     stalls(global_memory_dependency=3.9), None),
    ("issue rate", {**stalls(block_barrier=5.0), "warps_issued_per_scheduler": 0.79}, "synchronisation",
     {**stalls(block_barrier=5.0), "warps_issued_per_scheduler": 0.81}, None),
    ("life of a block", {"achieved_occupancy_pct": 45.0, "block_lifetime": 1900.0}, "occupancy",
     {"achieved_occupancy_pct": 45.0, "block_lifetime": 2100.0}, None),
    ("occupancy kept", {"achieved_occupancy_pct": 69.0, "block_lifetime": 500.0}, "occupancy",
     {"achieved_occupancy_pct": 71.0, "block_lifetime": 500.0}, None),
    ("warps allowed",
     {**FEW, "allowed_warps_per_scheduler": 4.7, "achieved_occupancy_pct": 20.0}, "occupancy",
     {**FEW, "allowed_warps_per_scheduler": 4.8, "achieved_occupancy_pct": 20.0}, "imbalance"),
    ("warps resident",
     {**FEW, "allowed_warps_per_scheduler": 4.0, "achieved_occupancy_pct": 25.0}, "occupancy",
     {**FEW, "warps_per_scheduler": 4.1, "allowed_warps_per_scheduler": 5.0, "achieved_occupancy_pct": 25.0},
     None),
    ("host against device", {"l2_fill_sysmem_pct": 0.5, "l2_fill_device_pct": 0.12}, "sysmem",
     {"l2_fill_sysmem_pct": 0.5, "l2_fill_device_pct": 0.13}, None),
    ("fills from the host", {"l2_fill_sysmem_pct": 0.11, "l2_fill_device_pct": 0.0}, "sysmem",
     {"l2_fill_sysmem_pct": 0.09, "l2_fill_device_pct": 0.0}, None),
    ("a hot slice", {"l2_busiest_slice_pct": 26.0, "l2_throughput_pct": 2.0}, "l2",
     {"l2_busiest_slice_pct": 24.0, "l2_throughput_pct": 2.0}, None),
    ("uneven slices", {"l2_busiest_slice_pct": 82.0, "l2_throughput_pct": 10.0}, "l2",
     {"l2_busiest_slice_pct": 78.0, "l2_throughput_pct": 10.0}, None),
    ("a hot slice beside idle SMs",
     {"l2_busiest_slice_pct": 35.0, "l2_throughput_pct": 1.1, "sm_active_pct": 83.0}, "l2",
     {"l2_busiest_slice_pct": 20.0, "l2_throughput_pct": 20.0, "sm_active_pct": 97.0}, None),
    ("atomics at one address", {"l2_atomics_per_cycle": 0.26}, "l2", {"l2_atomics_per_cycle": 0.24}, None),
    ("atomics at many", {"l2_atomics_per_cycle": 0.99}, "l2", {"l2_atomics_per_cycle": 1.2}, None),
    ("idle units", {"l2_atomics_per_cycle": 0.5, "fp64_busy_pct": 39.0}, "l2",
     {"l2_atomics_per_cycle": 0.5, "fp64_busy_pct": 41.0}, None),
    ("MOV", {"inst_mix_mov_pct": 41.0}, "dependency", {"inst_mix_mov_pct": 39.0}, None),
    ("L1 and issue together",
     {"l1_throughput_pct": 91.0, "issue_busy_pct": 82.0, "warps_eligible_per_scheduler": 1.0}, None,
     {"l1_throughput_pct": 93.0, "issue_busy_pct": 82.0, "warps_eligible_per_scheduler": 1.0}, "l1"),
    ("issue beside a full L1",
     {"l1_throughput_pct": 88.0, "issue_busy_pct": 79.0, "warps_eligible_per_scheduler": 1.0}, "l1",
     {"l1_throughput_pct": 88.0, "issue_busy_pct": 80.5, "warps_eligible_per_scheduler": 1.0}, None),
]  # fmt: skip


@pytest.mark.parametrize("edge", EDGES, ids=[edge[0] for edge in EDGES])
def test_thresholds(edge: tuple[str, dict[str, Any], str | None, dict[str, Any], str | None]):
    _, one_side, one, other_side, other = edge
    assert (judge(**one_side).limiter, judge(**other_side).limiter) == (one, other)


@pytest.mark.parametrize(
    ("values", "unit", "percent"),
    [
        ({"tensor_busy_pct": 21.0}, "tensor", 21.0),  # no opcodes: constants never reach this
        ({"tensor_busy_pct": 19.0}, "tensor", None),
        ({"fma_busy_pct": 50.0, "fma_heavy_busy_pct": 59.0}, "int", None),
        ({"fma_busy_pct": 50.0, "fma_heavy_busy_pct": 61.0}, "int", 61.0),
        ({"fma_busy_pct": 50.0, "fma_pipe_integer_pct": 49.0}, "int", None),
        ({"fma_busy_pct": 50.0, "fma_pipe_integer_pct": 51.0}, "int", 50.0),
        ({"lsu_busy_pct": 84.0, "l1_throughput_pct": 86.5}, "l1", None),  # it is the load/store pipe
        ({"lsu_busy_pct": 84.0, "l1_throughput_pct": 88.0}, "l1", 88.0),
    ],
)
def test_what_counts_as_a_unit(values: dict[str, Any], unit: str, percent: float | None):
    assert measure(launch(**values)).get(unit) == percent


# ------------------------------------------------------------------- pipes of an issue-bound launch

ISSUE: dict[str, Any] = {
    "issue_busy_pct": 80.4,
    "sm_throughput_pct": 80.0,
    "warps_eligible_per_scheduler": 4.9,
}


USED: dict[str, Any] = {"issue_busy_pct": 74.0, "sm_throughput_pct": 73.0}


def test_a_pipe_far_below_the_issue_slots_is_not_their_limit():
    """A conversion kernel: XU 63 %, ALU 54 %, issue slots 80 %."""
    verdict = judge(**ISSUE, xu_busy_pct=63.2, alu_busy_pct=53.6)
    assert (verdict.cls, verdict.limiter) == ("compute-bound", None)
    assert verdict.claim.startswith("Instructions fill the issue slots: 80.4")
    assert "XU" not in verdict.claim


@pytest.mark.parametrize(
    ("values", "limiter"),
    [
        ({"lsu_busy_pct": 67.6, "fma_busy_pct": 67.0, **stalls(not_selected=3.0)}, None),
        ({"lsu_busy_pct": 67.6, "fma_busy_pct": 67.0, **stalls(not_selected=3.0, global_queue_full=1.6)},
         "lsu-issue"),
        ({"lsu_busy_pct": 67.6, "fma_busy_pct": 67.0, "inst_mix_fp32_pct": 55.0}, "fp32"),
        ({"xu_busy_pct": 68.0, "alu_busy_pct": 65.0, **stalls(math_pipe_busy=1.1)}, "xu"),
        ({"xu_busy_pct": 68.0, "alu_busy_pct": 65.0, **stalls(math_pipe_busy=0.9)}, None),
        ({"xu_busy_pct": 61.0, "alu_busy_pct": 50.0}, "xu"),
    ],
    ids=["a tie", "warps queue", "mostly FP32", "a queue", "no queue", "far ahead"],
)  # fmt: skip
def test_the_pipe_of_used_issue_slots_has_a_queue_or_leads(values: dict[str, Any], limiter: str | None):
    verdict = judge(**{**ISSUE, **USED, **values, "warps_issued_per_scheduler": 0.75})
    assert (verdict.cls, verdict.limiter) == ("compute-bound", limiter)


def test_used_issue_slots_without_a_count_of_ready_warps_share_the_blame():
    """A library's matrix product: issue 70, load/store 59, FMA 57, and no counts of the scheduler."""
    verdict = judge(issue_busy_pct=70.1, lsu_busy_pct=59.2, fma_busy_pct=57.0, sm_throughput_pct=68.5)
    assert verdict.cls == "balanced"


def test_two_resident_warps_need_only_one_of_them_ready():
    few = {"issue_busy_pct": 75.0, "alu_busy_pct": 60.0, "warps_per_scheduler": 2.0}
    few |= {"allowed_warps_per_scheduler": 2.0, "theoretical_occupancy_pct": 12.5}
    assert judge(**few, warps_eligible_per_scheduler=1.1).limiter == "int"
    assert judge(**few, warps_eligible_per_scheduler=0.9).limiter != "occupancy"


def test_where_the_issue_slots_are_not_fed_the_next_unit_is_judged():
    waits = stalls(math_pipe_busy=4.0, fixed_latency_dependency=2.0)
    verdict = judge(issue_busy_pct=72.0, fma_busy_pct=67.0, warps_eligible_per_scheduler=1.0, **waits)
    assert verdict.limiter == "fp32"


def test_waiting_is_no_limit_where_a_unit_is_busy_and_slots_are_used():
    waits = stalls(block_barrier=5.0)
    assert judge(**waits, fp64_busy_pct=64.0, issue_busy_pct=58.0).limiter == "synchronisation"
    busy = judge(**waits, fp64_busy_pct=64.0, issue_busy_pct=62.0, warps_eligible_per_scheduler=1.0)
    assert busy.limiter != "synchronisation"
    assert "No unit is busy" not in busy.claim


# ------------------------------------------------------------------- reasons to wait


def test_a_full_queue_is_a_reason_to_wait():
    verdict = judge(**stalls(global_queue_full=6.9))
    assert (verdict.cls, verdict.limiter) == ("latency-bound", "dependency")
    assert "lg_throttle" in verdict.claim
    assert "no single reason" not in verdict.claim


@pytest.mark.parametrize("kind", ["load", "store"])
def test_a_full_queue_of_scattered_accesses_is_uncoalesced_access(kind: str):
    sectors = f"global_{kind}_sectors_per_request"
    verdict = judge(**stalls(global_queue_full=6.9), **{sectors: 31.0})
    assert (verdict.cls, verdict.limiter) == ("memory-bound", "l1")
    assert f"Scattered {kind}s" in verdict.claim
    assert judge(**stalls(global_queue_full=6.9), **{sectors: 15.0}).cls == "latency-bound"


def test_an_empty_kernel_is_no_debug_build():
    empty = {"inst_mix_mov_pct": 50.0, "warps_per_block": 8, "grid_size": 6000}
    debug = judge(**empty, inst_executed=6000 * 8 * 300)
    assert "debug build" in debug.claim
    assert "debug build" not in judge(**empty, inst_executed=6000 * 8 * 2).claim
    assert "debug build" not in judge(inst_mix_mov_pct=50.0, inst_executed=4.0).claim


# ------------------------------------------------------------------- what must not be called


TWO_AN_SM: dict[str, Any] = {
    "usable_sm_count": 108,
    "grid_size": 339,
    "blocks_per_sm": 3.14,
    "waves_per_sm": 1.57,
}
"""339 blocks, two of which fit an SM: 123 are left for 108 SMs after the first wave."""


@pytest.mark.parametrize("active", [63.0, 72.0, 83.0])
def test_a_wave_that_leaves_no_sm_without_a_block_is_no_tail(active: float):
    verdict = judge(**TWO_AN_SM, sm_active_pct=active, kernel_duration=90e-6)
    assert verdict.limiter != "tail"
    assert verdict.confidence != "high"
    assert any("equal blocks would" in row.text for row in (*verdict.evidence, *verdict.against))


def test_a_tail_tells_its_blocks_and_what_they_explain():
    verdict = judge(waves_per_sm=1.2, grid_size=120, blocks_per_sm=1.2, sm_active_pct=60.0)
    assert "of 1.2 waves it has 20 blocks for 100 SMs" in verdict.claim.replace("1.20", "1.2")
    said = {row.metric: row.text for row in verdict.evidence}
    assert said["sm_active_pct"] == "of the time an SM has work; equal blocks would give 60.0\u202f%"


def test_a_short_launch_of_one_wave_with_even_sms_is_its_start_and_end():
    """`sm_imbalance_pct` of 3 to 5 % in 6 microseconds is how blocks are handed out."""
    verdict = judge(
        kernel_duration=6.6e-6, waves_per_sm=1.0, blocks_per_sm=6.0, grid_size=600, sm_active_pct=53.2,
        sm_active_min_pct=88.9, sm_imbalance_pct=3.3,
    )  # fmt: skip
    assert (verdict.cls, verdict.limiter) == ("latency-bound", None)
    assert "ramp-up and drain" in verdict.claim


def test_sms_that_were_counted_even_are_not_called_unequal():
    even = {"waves_per_sm": 13.6, "blocks_per_sm": 163.0, "grid_size": 16300, "sm_active_pct": 83.2}
    assert judge(**even).limiter == "imbalance"
    verdict = judge(**even, sm_active_min_pct=82.2, sm_imbalance_pct=8.9)
    assert verdict.limiter is None
    assert "does not say why" in verdict.claim


def test_without_waves_idle_sms_have_no_named_cause():
    verdict = judge(waves_per_sm=None, wave_efficiency_pct=None, sm_active_pct=60.0)
    assert (verdict.cls, verdict.limiter) == ("latency-bound", None)


def test_dram_at_half_of_a_short_launch_is_ramp_up():
    verdict = judge(dram_throughput_pct=55.0, kernel_duration=1e-5)
    assert (verdict.cls, verdict.limiter) == ("latency-bound", None)


def test_barrier_samples_beside_warp_group_mma_are_not_synchronisation():
    waiting = stalls(block_barrier=4.2, global_memory_dependency=3.0)
    assert judge(**waiting).limiter == "synchronisation"
    hopper = judge(**waiting, warpgroup_mma_inst=1e6, inst_mix_barrier_pct=0.01)
    assert (hopper.cls, hopper.limiter) == ("latency-bound", None)


def test_few_warps_of_a_warp_specialised_kernel_are_its_design():
    few = {"warps_per_scheduler": 1.2, "allowed_warps_per_scheduler": 2.0, "theoretical_occupancy_pct": 12.5}
    assert judge(**few).limiter == "occupancy"
    assert judge(**few, mbarrier_inst=1e6).limiter is None


def test_a_stream_through_the_fabric_of_a_big_l2_is_dram():
    """A100 and H100 count L2 traffic between the halves: a stream reads 83 % there."""
    members = {
        "memory_throughput_pct": {"lts__t_sectors" + ELAPSED: 83.0, "dram__cycles_active" + ELAPSED: 72.0}
    }
    values = {
        "dram_throughput_pct": 72.0,
        "l2_throughput_pct": 83.0,
        "l2_return_pct": 50.0,
        "breakdowns": members,
    }
    assert judge(**values, compute_capability=80).limiter == "dram"
    assert judge(**values, compute_capability=86).limiter == "l2"


def test_the_l2_headline_of_hopper_alone_is_not_l2():
    members = {"memory_throughput_pct": {"lts__t_sectors" + ELAPSED: 49.0}}
    share = measure(
        launch(compute_capability=90, l2_throughput_pct=86.0, dram_throughput_pct=30.0, breakdowns=members)
    )
    assert share.get("l2") == 49.0


def test_entries_that_stop_at_half_are_doubled_where_they_do():
    members = {"memory_throughput_pct": {"l1tex__data_pipe_lsu_wavefronts" + ELAPSED: 40.6}}
    for cc, percent in ((75, 81.2), (80, 40.6)):
        shares = measure(launch(compute_capability=cc, memory_throughput_pct=percent, breakdowns=members))
        assert shares.get("l1") == pytest.approx(percent)


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ({"fma_busy_pct": 50.0}, "fp32"),
        ({"fma_busy_pct": 50.0, "fma_pipe_integer_pct": 90.0}, "int"),
        ({"fma_busy_pct": 41.4, "fma_heavy_busy_pct": 77.9}, "int"),  # IMAD runs on the heavy half only
        ({"fma_busy_pct": 71.2, "fma_heavy_busy_pct": 67.7}, "fp32"),
        ({"fma_busy_pct": 60.0, "fma_pipe_half_pct": 79.0}, "fp16"),
        ({"fma_busy_pct": 50.0, "roofline_fp32_pct": 1.0}, "int"),
    ],
)
def test_the_fma_pipe_is_named_after_what_it_runs(values: dict[str, Any], unit: str):
    assert max(measure(launch(**values)).units.values(), key=lambda s: s.percent).unit.id == unit


def test_tensor_cores_are_judged_by_operations_where_both_are_known():
    kernel = launch(tensor_inst=1e6, tensor_busy_pct=43.3, tensor_fp16_share_pct=86.7)
    assert measure(kernel).get("tensor") == 86.7


def test_the_lead_is_the_difference_of_the_numbers_that_are_shown():
    found = judge(
        tensor_inst=1e7,
        tensor_fp16_share_pct=86.7,
        tensor_busy_pct=43.3,
        sm_active_pct=94.3,
        l2_throughput_pct=42.3,
    )
    assert [row.value for row in found.evidence[:2]] == [86.7, 42.3]
    assert "44.4 points behind" in found.evidence[1].text


@pytest.mark.parametrize(
    ("values", "uses"),
    [
        ({}, None),
        ({"tensor_inst": 0}, False),
        ({"tensor_inst": 8}, True),
        ({"flops_tensor_int8": 1e9}, True),
        ({"flops_tensor_fp16": 0.0}, None),  # one type says nothing about the others
    ],
)
def test_whether_tensor_cores_ran(values: dict[str, Any], uses: bool | None):
    assert uses_tensor(launch(**values)) is uses


def test_dram_reads_alone_decide_only_when_they_are_enough():
    assert diagnose(launch(dram_read_pct=78.0, kernel_duration=4e-5)).verdict.limiter == "dram"
    assert diagnose(launch(dram_read_pct=53.0, kernel_duration=4e-5)).verdict.cls == "undetermined"


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_any_combination_of_metrics_gets_an_answer_in_the_words_of_the_design(data: st.DataObject):
    needs = {need for r in RULES.values() for need in r.needs if isinstance(need, str) and need[0] != "@"}
    ids = sorted(set(FULL_GPU) | needs)
    waiting = [id for id in load().metrics if id.startswith("stall_cycles_")]
    numbers = [id for id in (*ids, *waiting) if id != "occupancy_limiter"]
    chosen = data.draw(st.lists(st.sampled_from(numbers), unique=True))
    any_number = st.sampled_from([0.0, 0.3, 1.0, 4.0, 30.0, 61.0, 79.0, 96.0, 5000.0])
    values = {id: data.draw(any_number) for id in chosen}
    found = diagnose(launch(**values))
    verdict = found.verdict
    assert verdict.limiter is None or verdict.limiter in LIMITERS[verdict.cls]
    assert verdict.cls in {*LIMITERS, "balanced", "undetermined"}
    assert verdict.confidence in ("high", "medium", "low")
    assert "{" not in verdict.claim
    assert all(isinstance(row.value, int | float) for row in (*verdict.evidence, *verdict.against))
    assert len(found.findings) + len(found.skipped) <= len(RULES)


# ------------------------------------------------------------------- unreliable, failed, undetermined


def test_an_unreliable_value_feeds_nothing():
    """A hit rate of 119.7 % in a 3 us launch is kept, and no rule reads it."""
    rate = Value(
        "l2_hit_rate_pct",
        119.7,
        "%",
        "exact",
        ("lts__t_sector_hit_rate.pct",),
        "unreliable: above 100 %",
        False,
    )
    own = Value("l2_hit_rate_from_l1_pct", 119.7, "%", "derived", (), "unreliable: above 100 %", False)
    found = diagnose(
        launch(**{**FULL_GPU, "kernel_duration": 3.2e-6}, l2_hit_rate_pct=rate, l2_hit_rate_from_l1_pct=own)
    )
    read = {id for finding in found.findings for id in finding.metrics}
    quoted = {e.metric for e in (*found.verdict.evidence, *found.verdict.against)}
    assert not {"l2_hit_rate_pct", "l2_hit_rate_from_l1_pct"} & (read | quoted)
    assert "l2-misses" in {s.id for s in found.skipped}


def test_an_unreliable_throughput_is_not_a_full_unit():
    doubtful = Value(
        "dram_throughput_pct", 152.0, "%", "exact", (), "unreliable: above 100 %", reliable=False
    )
    assert judge(dram_throughput_pct=doubtful).limiter != "dram"


def test_a_failed_launch_is_not_judged():
    kernel = builders.kernel(failed="the duration is not a number", dram_throughput_pct=95.0, grid_size=1)
    found = diagnose(kernel)
    assert (found.verdict.cls, found.verdict.limiter) == ("failed", None)
    assert "the duration is not a number" in found.verdict.claim
    assert found.verdict.evidence == found.findings == ()
    assert found.verdict.experiment is not None
    assert (found.verdict.experiment.remedy, found.verdict.experiment.gain_at_most) == ("fix-launch", None)


def test_undetermined_says_what_would_decide():
    """What is missing is a value with a reason, and the section that brings it is named."""
    absent = {
        id: Value(id, None, "%", reason="not collected: section SpeedOfLight")
        for id in ("sm_throughput_pct", "memory_throughput_pct", "dram_throughput_pct")
    }
    verdict = diagnose(launch(**absent, grid_size=4096, blocks_per_sm=30.0, waves_per_sm=15.5)).verdict
    assert (verdict.cls, verdict.evidence) == ("undetermined", ())
    assert verdict.experiment is not None
    assert (verdict.experiment.remedy, verdict.experiment.gain_reason) == (
        "collect",
        "what is in the report gives no bound",
    )
    assert verdict.missing[1] == "How busy the SMs were: not collected; `--section SpeedOfLight` collects it."
    assert any("WarpStateStats" in sentence or "warps wait" in sentence for sentence in verdict.missing)


def test_the_bound_is_where_the_next_unit_is_as_full_as_it_gets():
    found = judge(lsu_busy_pct=88.0, sm_throughput_pct=86.0, dram_throughput_pct=46.0, l1_throughput_pct=25.0)
    assert found.experiment is not None
    assert (
        "2 x before DRAM limits. The best kernels reach 92.0\u202f% of that peak." in found.experiment.expect
    )


def test_what_the_best_kernels_reach_is_said_only_of_a_bound():
    idle = {id: 3.0 for id in ("dram_throughput_pct", "issue_busy_pct", "lsu_busy_pct", "sm_throughput_pct")}
    found = judge(
        **{
            **idle,
            "alu_busy_pct": 3.0,
            "fma_busy_pct": 3.0,
            "l2_throughput_pct": 7.0,
            "l1_throughput_pct": 99.9,
        }
    )
    assert found.limiter == "l1"
    assert found.experiment is not None
    assert "best kernels" not in found.experiment.expect


def test_what_another_counter_says_is_not_called_missing():
    known = launch(dram_read_pct=1.0, dram_write_pct=0.9, issue_busy_pct=14.2, kernel_duration=1e-3)
    found = diagnose(known).verdict
    assert found.cls == "undetermined"
    assert not [
        sentence for sentence in found.missing if sentence.startswith(("How busy DRAM", "The issue rate"))
    ]
    assert [sentence for sentence in found.missing if sentence.startswith("How busy the memory system")]


def test_what_this_gpu_does_not_count_is_not_called_missing():
    """No --section brings DRAM counters of a GPU that has no DRAM of its own."""
    absent = Value(
        "dram_throughput_pct", None, "%", reason="not on this GPU (CC 7.2); absent: integrated", lack="absent"
    )
    found = diagnose(launch(dram_throughput_pct=absent, grid_size=4096, blocks_per_sm=30.0)).verdict
    assert found.cls == "undetermined"
    assert found.missing
    assert not [sentence for sentence in found.missing if "DRAM" in sentence]


def test_what_to_watch_has_no_loose_end_where_bytes_are_unknown():
    full = judge(dram_throughput_pct=76.0, memory_throughput_pct=76.0)
    assert full.experiment is not None
    assert full.experiment.watch == "dram_throughput_pct stays where it is."


def test_one_side_alone_does_not_make_latency():
    verdict = diagnose(launch(dram_throughput_pct=20.0, kernel_duration=1e-3)).verdict
    assert verdict.cls == "undetermined"


def test_roofline_counters_alone_can_show_a_full_pipe():
    verdict = diagnose(launch(roofline_fp32_pct=66.0, roofline_dram_pct=40.0, kernel_duration=1e-3)).verdict
    assert (verdict.cls, verdict.limiter) == ("compute-bound", "fp32")


# ------------------------------------------------------------------- confidence, evidence, experiment


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"dram_throughput_pct": 91.0}, "DRAM is full: 91.0"),
        ({"dram_throughput_pct": 66.0}, "DRAM is nearest to full: 66.0"),
        ({"l2_throughput_pct": 63.0}, "L2 is nearest to full: L2 at 63.0"),
        (
            {"issue_busy_pct": 75.0, "alu_busy_pct": 60.0, "inst_mix_integer_pct": 50.0},
            "Integer instructions fill the issue slots",
        ),
        (  # conversions and half precision run on the ALU as well
            {"issue_busy_pct": 75.0, "alu_busy_pct": 60.0, "inst_mix_integer_pct": 11.6},
            "Instructions fill the issue slots: 75.0\u202f% of them used, ALU pipe at 60.0",
        ),
        ({"lsu_busy_pct": 68.0}, "come nearest to filling the load/store pipe: 68.0"),
    ],
)
def test_only_what_is_full_is_called_full(values: dict[str, float], says: str):
    assert says in diagnose(launch(**{**FULL_GPU, **values})).verdict.claim


def test_a_unit_at_two_thirds_is_less_sure_where_another_was_not_measured():
    values = {**FULL_GPU, "l2_throughput_pct": 66.0, "memory_throughput_pct": 66.0}
    every = judge(**values)
    some = diagnose(launch(**{id: n for id, n in values.items() if id != "dram_throughput_pct"})).verdict
    assert (every.limiter, some.limiter) == ("l2", "l2")
    assert (every.confidence, some.confidence) == ("medium", "low")


SMALL_GRID = {"grid_size": 32, "usable_sm_count": 48, "blocks_per_sm": 32 / 48, "waves_per_sm": 32 / 384}


def test_what_a_small_grid_costs_is_no_bound_where_working_sms_have_room():
    expect = diagnose(
        launch(**SMALL_GRID, issue_busy_pct=10.0, warps_per_scheduler=1.0)
    ).verdict.experiment.expect
    assert expect == (
        "About 1.5 x from the empty SMs alone, if the work divides evenly. 12 x as many blocks could run at "
        "once: more is gained where they hide each other's waiting."
    )
    full = {**SMALL_GRID, "issue_busy_pct": 90.0, "warps_per_scheduler": 8.0}
    assert "as many blocks" not in diagnose(launch(**full)).verdict.experiment.expect
    one_each = {**SMALL_GRID, "waves_per_sm": 32 / 48}
    assert "as many blocks" not in diagnose(launch(**one_each)).verdict.experiment.expect


@pytest.mark.parametrize(
    ("values", "confidence", "says"),
    [
        (
            {"sm_active_pct": 60.0, "issue_busy_pct": 10.0},
            "high",
            "it has room, and the empty ones have more",
        ),
        ({"issue_busy_pct": 10.0}, "medium", "it has room, and the empty ones have more"),
        ({"sm_active_pct": 60.0, "issue_busy_pct": 1.7}, "medium", "the grid is not the whole cause"),
        (  # a unit of the working SMs is busy, if not their issue slots
            {"sm_active_pct": 60.0, "issue_busy_pct": 1.7, "fp64_busy_pct": 60.0},
            "high",
            "it has room, and the empty ones have more",
        ),
    ],
    ids=["three measurements", "waves follow from the grid", "working SMs are idle", "one unit works"],
)
def test_a_small_grid_is_sure_where_it_explains_how_idle_the_gpu_is(
    values: dict[str, float], confidence: str, says: str
):
    verdict = diagnose(launch(**SMALL_GRID, warps_per_scheduler=1.0, **values)).verdict
    assert (verdict.limiter, verdict.confidence) == ("small-grid", confidence)
    assert any(row.text.endswith(says) for row in verdict.against)


def test_a_maximum_of_the_whole_time_is_quoted_as_such_and_said_once():
    maxima = {"sm_throughput_pct": 77.1, "memory_throughput_pct": 33.0, "sm_active_pct": 90.0}
    verdict = diagnose(launch(**maxima)).verdict
    assert verdict.claim == (
        "The SMs are busy with instructions: SM throughput (which pipe was not collected) at 77.1\u202f% of "
        "peak."
    )
    assert verdict.evidence[0].value == 77.1
    assert verdict.evidence[0].text == (
        "of peak: SM throughput (which pipe was not collected), of the whole time; 85.7\u202f% while an SM "
        "has work"
    )


PRINTED = {id: n for id, n in FULL_GPU.items() if not id.startswith(("lsu_", "alu_", "fma_", "fp64_", "xu_"))}
"""What a printed details page holds: no pipe."""


def test_l1_throughput_alone_is_not_called_its_data_stage():
    printed = {**PRINTED, "l1_throughput_pct": 91.0, "memory_throughput_pct": 89.0, "l1_hit_rate_pct": 95.0}
    whole = diagnose(launch(**printed, lsu_busy_pct=20.0, **stalls(global_queue_full=8.0))).verdict
    assert (whole.limiter, whole.confidence) == ("l1", "high")
    verdict = diagnose(launch(**printed, **stalls(global_queue_full=8.0))).verdict
    assert (verdict.limiter, verdict.confidence) == ("l1", "medium")
    assert "whether its data stage or load/store issue was not collected" in verdict.claim
    assert not any("next unit" in row.text for row in verdict.evidence)
    assert any("pipe_lsu_pct" in row and "lsu_wavefronts_pct" in row for row in verdict.missing)
    assert verdict.experiment is not None
    assert "Up to" not in verdict.experiment.expect


@pytest.mark.parametrize(
    "maxima",
    [
        {"sm_throughput_pct": 83.14, "memory_throughput_pct": 83.14},
        {"sm_throughput_pct": 83.2, "memory_throughput_pct": 84.0, "mem_pipes_busy_pct": 83.14},
    ],
    ids=["compute and memory read the same", "the pipes of memory instructions"],
)
def test_what_contains_load_store_issue_names_it_where_no_pipe_was_printed(maxima: dict[str, float]):
    verdict = diagnose(
        launch(**{**PRINTED, "l1_throughput_pct": 84.1, "l1_hit_rate_pct": 95.0, **maxima})
    ).verdict
    assert (verdict.cls, verdict.limiter, verdict.confidence) == ("compute-bound", "lsu-issue", "medium")
    assert verdict.missing


def test_a_maximum_that_contains_load_store_issue_does_not_name_what_issue_slots_do():
    busy = {"issue_busy_pct": 85.0, "sm_throughput_pct": 85.0, "mem_pipes_busy_pct": 7.0}
    verdict = diagnose(launch(**{**PRINTED, **busy})).verdict
    assert (verdict.cls, verdict.limiter) == ("compute-bound", None)


def test_an_sm_maximum_that_no_pipe_explains_is_not_hidden_behind_l1():
    """`sm__throughput` has no member of L1's data stage: 91 % of it are some pipe."""
    some = {id: n for id, n in PRINTED.items() if id != "issue_busy_pct"}
    units = measure(launch(**{**some, "l1_throughput_pct": 93.0, "sm_throughput_pct": 91.0})).units
    assert units["sm"].value == 91.0


def test_three_independent_measurements_make_high_confidence():
    full = {"dram_throughput_pct": 91.0, "memory_throughput_pct": 91.0}
    assert (
        judge(**full, **stalls(global_memory_dependency=8.0), dram_bandwidth=8e11, dram_bytes=5e9).confidence
        == "high"
    )
    assert judge(**full).confidence == "medium"


def test_a_close_runner_up_lowers_it_and_is_named():
    verdict = judge(dram_throughput_pct=86.0, l1_throughput_pct=79.0, **stalls(global_memory_dependency=8.0))
    assert verdict.confidence != "high"
    assert any("open" in e.text for e in verdict.against)


def test_without_stalls_latency_has_low_confidence_and_says_what_is_missing():
    verdict = judge()
    assert (verdict.limiter, verdict.confidence) == (None, "low")
    assert verdict.missing
    assert "was not collected" in verdict.claim


@pytest.mark.parametrize(
    ("cls", "limiter", "values"), CALLS, ids=[f"{c}-{m}-{i}" for i, (c, m, _) in enumerate(CALLS)]
)
def test_every_verdict_can_be_checked_and_tested(cls: str, limiter: str | None, values: dict[str, Any]):
    verdict = judge(**values)
    assert verdict.claim.endswith(".")
    assert "{" not in verdict.claim
    assert verdict.evidence
    for row in (*verdict.evidence, *verdict.against):
        assert isinstance(row.value, int | float), "every row has a number"
        assert row.text
    experiment = verdict.experiment
    assert experiment is not None
    texts = (
        experiment.title,
        experiment.change,
        experiment.why,
        experiment.expect,
        experiment.watch,
        experiment.disproved_if,
    )
    assert all(texts)
    assert not re.search(r"[{}]", " ".join(texts))
    assert experiment.run[0].startswith("ncu ")


def test_the_experiment_follows_the_finding():
    conflicts = {
        "shared_load_ways": 32.0,
        "shared_load_bank_conflicts": 6.5e7,
        "shared_load_wavefronts": 6.7e7,
    }
    members = {"memory_throughput_pct": {"l1tex__data_pipe_lsu_wavefronts" + ELAPSED: 90.2}}
    full = {"l1_throughput_pct": 90.5, "shared_wavefront_share_pct": 94.0, "breakdowns": members}
    padded, tiled = judge(**full, **conflicts).experiment, judge(**full).experiment
    assert padded is not None
    assert tiled is not None
    assert padded.title == "Pad the shared tile by one column"
    assert padded.remedy == "pad-shared"
    assert tiled.title == "Tile in registers"
    assert "32-way bank conflicts on shared-memory loads" in judge(**full, **conflicts).claim


def test_commands_hold_no_name_that_a_shell_would_read():
    kernel = launch(**{**FULL_GPU, "dram_throughput_pct": 91.0})
    hostile = Kernel("/tmp/a b.ncu-rep", builders.raw_kernel("f; rm -rf ~"), kernel.metrics, kernel.signals)
    experiment = diagnose(hostile).verdict.experiment
    assert experiment is not None
    assert "rm -rf" not in " ".join(experiment.run)
    assert experiment.run[1] == "ncukit compare 'a b.ncu-rep' after.ncu-rep"


# ------------------------------------------------------------------- stalls


def test_counters_and_samples_are_never_mixed():
    both = {
        "stall_cycles_selected": 1.0,
        "stall_cycles_block_barrier": 1.0,
        "stall_samples_selected": 1e3,
        "pc_samples": 1e3,
    }
    found = waits(launch(**both))
    assert found is not None
    assert found.source == "counters"
    assert found.of("block_barrier") == 50.0
    samples = waits(launch(stall_samples_selected=100.0, stall_samples_block_barrier=900.0, pc_samples=1e3))
    assert samples is not None
    assert (samples.source, samples.of("block_barrier")) == ("samples", 90.0)


def test_a_handful_of_samples_is_noise():
    assert waits(launch(stall_samples_selected=1.0, stall_samples_block_barrier=1.0, pc_samples=2.0)) is None


def test_no_stall_talk_when_schedulers_are_busy():
    busy = {**stalls(block_barrier=8.0), "warps_issued_per_scheduler": 0.85}
    assert (
        judge(**busy, issue_busy_pct=85.0, alu_busy_pct=60.0, sm_throughput_pct=84.0).cls == "compute-bound"
    )


# ------------------------------------------------------------------- the data files


def _placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{([\w-]+)\}", text))


@pytest.mark.parametrize("name", entries())
def test_every_row_and_placeholder_is_known(name: str):
    known = set(load().metrics) | set(load().signals)
    words = set(_WORDS) | {"resource", "state", "why", "sides"}
    entry = entries()[name]
    rows = [*entry.get("for", ()), *entry.get("against", ())]
    for row in rows:
        metric = row["metric"]
        assert metric in known or metric.removeprefix("@") in _QUOTES
        assert ("when" not in row) or row["when"][0] in known
    texts = [t for row in rows for t in (row.get("text"), row.get("open")) if t] + list(
        entry.get("claim", ())
    )
    for experiment in entry.get("experiment", ()):
        assert experiment.get("finding", "idle-sms") in RULES
        assert set(experiment.get("needs", ())) <= known
        texts += [v for v in experiment.values() if isinstance(v, str)]
    for text in texts:
        assert _placeholders(text) <= known | words, text


def test_every_unit_that_can_limit_has_an_entry_with_an_experiment():
    for unit in load_units().units.values():
        if unit.cls:
            entry = entries()[f"{unit.cls}/{unit.limiter or 'unknown'}"]
            assert "finding" not in entry["experiment"][-1], "the last experiment fits always"
            assert set(unit.metrics) <= set(load().metrics) | set(load().signals)
