"""Which change is tried first: kernels from written descriptions, each beside one that looks alike."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit.judge import diagnose
from ncukit.judge.facts import Facts
from ncukit.judge.ledger import DATA
from ncukit.judge.remedies import candidates
from ncukit.judge.remedies.candidate import MOST, Candidate
from ncukit.judge.remedies.proposal import NO_GAIN, TOUCHED
from ncukit.model.diagnosis import Trial
from tests import builders
from tests.test_rules import launch
from tests.test_verdict import stalls

A100: dict[str, Any] = {"sm_count": 108, "usable_sm_count": 108, "compute_capability": 80}
LONG: dict[str, Any] = {
    **A100,
    "kernel_duration": 1e-3,
    "grid_size": 10800,
    "blocks_per_sm": 100.0,
    "waves_per_sm": 12.5,
    "block_size": 256,
    "resident_block_limit": 8.0,
    "sm_active_pct": 99.0,
}
"""A millisecond, a hundred blocks an SM, all SMs at work."""


ONE: dict[str, Any] = {"blocks_per_sm": 1 / 108, "waves_per_sm": 1 / 864}
"""One block for all SMs."""


def first(**values: Any) -> Trial:
    found = diagnose(launch(**{**LONG, **values})).verdict.experiment
    assert found is not None
    return found


PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # A stream at 91 % of DRAM; the same at 76 %: bytes can still come sooner or be fewer.
    "stop": ({"dram_throughput_pct": 91.0}, {"dram_throughput_pct": 76.0}),
    # Float4 streams, DRAM at 87 % of a GPU on which copies reach 92, and half as full.
    "reduce-bytes": (
        {"dram_throughput_pct": 85.2, "issue_busy_pct": 9.0},
        {"dram_throughput_pct": 50.0, "issue_busy_pct": 9.0},
    ),
    # Threads a row apart: 16 wavefronts for each request fill L1; and one wavefront for each.
    "coalesce": (
        {"l1_throughput_pct": 97.0, "lsu_wavefronts_pct": 97.0,
         "lsu_busy_pct": 7.0, "dram_throughput_pct": 9.0},
        {"l1_throughput_pct": 45.0, "lsu_wavefronts_pct": 45.0,
         "lsu_busy_pct": 44.0, "dram_throughput_pct": 9.0},
    ),
    # A naive matrix product: a load for each FMA, the load/store unit full; and a tiled one with idle loads.
    "register-tile": (
        {"lsu_busy_pct": 93.0, "l1_throughput_pct": 93.0, "lsu_wavefronts_pct": 46.0, "fma_busy_pct": 18.0},
        {"lsu_busy_pct": 30.0, "l1_throughput_pct": 30.0, "lsu_wavefronts_pct": 30.0, "fma_busy_pct": 88.0},
    ),
    # A column of a 32 x 32 tile: 32-way conflicts; the same tile read by rows.
    "pad-shared": (
        {"l1_throughput_pct": 90.0, "lsu_wavefronts_pct": 90.0,
         "lsu_busy_pct": 6.0, "shared_mem_static": 4096,
         "shared_wavefront_share_pct": 94.0, "shared_load_ways": 32.0, "shared_excess_share_pct": 95.0},
        {"l1_throughput_pct": 90.0, "lsu_wavefronts_pct": 90.0,
         "lsu_busy_pct": 88.0, "shared_mem_static": 4096,
         "shared_wavefront_share_pct": 94.0, "shared_load_ways": 1.0, "shared_excess_share_pct": 0.0,
         "fma_busy_pct": 20.0},
    ),
    # A pointer chase: warps wait for loads, nothing is busy; and the same waits under a full DRAM.
    "more-in-flight": (
        {"issue_busy_pct": 20.0, "dram_throughput_pct": 30.0, "warps_eligible_per_scheduler": 0.3,
         **stalls(global_memory_dependency=7.0, fixed_latency_dependency=2.0)},
        {"issue_busy_pct": 20.0, "dram_throughput_pct": 91.0, "warps_eligible_per_scheduler": 0.3,
         **stalls(global_memory_dependency=7.0, fixed_latency_dependency=2.0)},
    ),
    # One accumulator: warps wait for their own results; and two chains, with issue slots full.
    "more-ilp": (
        {"issue_busy_pct": 25.0, "dram_throughput_pct": 3.0,
         **stalls(fixed_latency_dependency=6.0, global_memory_dependency=0.5)},
        {"issue_busy_pct": 88.0, "dram_throughput_pct": 3.0,
         **stalls(fixed_latency_dependency=3.0, global_memory_dependency=0.5)},
    ),
    # 36 tiles on 108 SMs for a millisecond; and 216.
    "more-blocks": (
        {"grid_size": 36, "blocks_per_sm": 36 / 108, "waves_per_sm": 36 / 864, "sm_active_pct": 33.0,
         "issue_busy_pct": 30.0, "dram_throughput_pct": 5.0},
        {"grid_size": 216, "blocks_per_sm": 2.0, "waves_per_sm": 0.25, "issue_busy_pct": 30.0,
         "dram_throughput_pct": 5.0},
    ),
    # 120 equal blocks, one an SM at a time: two rounds of which the second has 12; and a whole second round.
    "whole-waves": (
        {"grid_size": 120, "blocks_per_sm": 120 / 108, "waves_per_sm": 120 / 108, "resident_block_limit": 1.0,
         "sm_active_pct": 55.6, "issue_busy_pct": 40.0, "dram_throughput_pct": 5.0},
        {"grid_size": 216, "blocks_per_sm": 2.0, "waves_per_sm": 2.0, "resident_block_limit": 1.0,
         "sm_active_pct": 99.0, "issue_busy_pct": 40.0, "dram_throughput_pct": 5.0},
    ),
    # SMs idle a third of the time although the rounds are whole; and SMs that do not.
    "balance-work": (
        {"sm_active_pct": 66.0, "issue_busy_pct": 40.0, "dram_throughput_pct": 5.0},
        {"sm_active_pct": 98.0, "issue_busy_pct": 40.0, "dram_throughput_pct": 5.0},
    ),
    # A fill that lives 140 cycles a block; and blocks that live long enough.
    "more-work-per-block": (
        {"block_lifetime": 143.0, "achieved_occupancy_pct": 45.0, "theoretical_occupancy_pct": 100.0,
         "dram_throughput_pct": 52.0, "issue_busy_pct": 28.0},
        {"block_lifetime": 14300.0, "achieved_occupancy_pct": 45.0, "theoretical_occupancy_pct": 100.0,
         "dram_throughput_pct": 52.0, "issue_busy_pct": 28.0},
    ),
    # 2.4 microseconds for one block; and the same block for half a second.
    "fuse-launches": (
        {"kernel_duration": 2.4e-6, "grid_size": 1, **ONE, "sm_active_pct": 0.4, "issue_busy_pct": 6.0},
        {"kernel_duration": 0.5, "grid_size": 1, **ONE, "sm_active_pct": 0.9, "issue_busy_pct": 6.0},
    ),
    # One thread builds a scene: 461 loads in 29 microseconds; and a block that loads a million values.
    "time-first": (
        {"kernel_duration": 29e-6, "grid_size": 1, **ONE,
         "global_load_requests": 461.0, "issue_busy_pct": 2.0},
        {"kernel_duration": 29e-6, "grid_size": 1, **ONE, "global_load_requests": 1e6, "issue_busy_pct": 2.0},
    ),
    # A literal 2.0 in a float kernel on a GPU with two FP64 units; and the GPU that is made for doubles.
    "remove-fp64": (
        {"fp64_units_per_sm": 2.0, "fp64_busy_pct": 86.0, "issue_busy_pct": 2.9, "compute_capability": 89},
        {"fp64_units_per_sm": 32.0, "fp64_busy_pct": 86.0, "issue_busy_pct": 60.0},
    ),
    # Local arrays that leave L1; and a few spills beside the same full L2.
    "no-local-memory": (
        {"l2_local_share_pct": 80.0, "l2_throughput_pct": 75.0,
         "issue_busy_pct": 30.0, "registers_per_thread": 64},
        {"l2_local_share_pct": 3.0, "l2_throughput_pct": 75.0,
         "issue_busy_pct": 30.0, "registers_per_thread": 64},
    ),
    # A histogram of one bin: one slice of L2 works all the time; and atomics spread over all.
    "privatise-atomics": (
        {"l2_busiest_slice_pct": 95.0, "l2_throughput_pct": 3.0, "issue_busy_pct": 6.0},
        {"l2_busiest_slice_pct": 5.0, "l2_throughput_pct": 3.0, "issue_busy_pct": 6.0},
    ),
    # Managed memory that was never touched on the device; and one that was.
    "keep-on-device": (
        {"l2_fill_sysmem_pct": 0.32, "l2_fill_device_pct": 0.0, "issue_busy_pct": 25.0},
        {"l2_fill_sysmem_pct": 0.0, "l2_fill_device_pct": 40.0, "issue_busy_pct": 25.0},
    ),
    # Barriers in every step of a small tile; and the same code with most time in DRAM.
    "fewer-barriers": (
        {"issue_busy_pct": 30.0, "dram_throughput_pct": 20.0,
         **stalls(block_barrier=6.0, global_memory_dependency=1.0)},
        {"issue_busy_pct": 30.0, "dram_throughput_pct": 91.0,
         **stalls(block_barrier=2.0, global_memory_dependency=5.0)},
    ),
    # exp and sin everywhere, the XU pipe full; and as many with the FMA pipe full.
    "cheaper-math": (
        {"xu_busy_pct": 86.0, "issue_busy_pct": 40.0},
        {"xu_busy_pct": 40.0, "fma_busy_pct": 92.0, "issue_busy_pct": 60.0},
    ),
    # A generator of random numbers: logic fills the issue slots; and the same mix half asleep.
    "fewer-instructions": (
        {"issue_busy_pct": 84.0, "alu_busy_pct": 60.0},
        {"issue_busy_pct": 40.0, "alu_busy_pct": 30.0},
    ),
    # Nothing but the launch configuration; and a report that says what was busy.
    "collect": ({"sm_active_pct": None}, {"dram_throughput_pct": 91.0}),
}  # fmt: skip


@pytest.mark.parametrize("remedy", PAIRS)
def test_a_kernel_that_needs_it_gets_it_first(remedy: str) -> None:
    assert first(**PAIRS[remedy][0]).remedy == remedy


@pytest.mark.parametrize("remedy", PAIRS)
def test_one_that_looks_alike_does_not(remedy: str) -> None:
    assert first(**PAIRS[remedy][1]).remedy != remedy


def test_a_launch_without_valid_counters_is_to_be_mended_first() -> None:
    found = diagnose(launch(failed="the duration is not a number")).verdict
    assert found.experiment is not None
    assert (found.experiment.remedy, found.experiment.checks, found.alternatives) == ("fix-launch", (), ())


def test_code_that_was_built_for_debugging_is_built_again_first() -> None:
    assert first(inst_mix_mov_pct=54.0, alu_busy_pct=70.0, issue_busy_pct=70.0).remedy == "rebuild"


@pytest.mark.parametrize("remedy", PAIRS)
def test_what_it_brings_has_a_bound_or_a_reason(remedy: str) -> None:
    found = first(**PAIRS[remedy][0])
    if found.remedy in NO_GAIN:
        assert (found.gain_at_most, found.gain_reason) == (None, NO_GAIN[found.remedy])
        return
    assert found.gain_at_most is None or 1.0 <= found.gain_at_most <= MOST
    assert bool(found.gain_reason) == (found.gain_at_most is None)
    if found.remedy != "stop":
        assert found.checks[-1].metric == "clean_time"


@pytest.mark.parametrize("remedy", PAIRS)
def test_the_others_bring_less_or_cost_more(remedy: str) -> None:
    verdict = diagnose(launch(**{**LONG, **PAIRS[remedy][0]})).verdict
    assert verdict.experiment is not None
    assert len(verdict.alternatives) <= 2
    for other in verdict.alternatives:
        assert other.remedy != verdict.experiment.remedy
        assert other.gain_at_most <= (verdict.experiment.gain_at_most or MOST) + 0.01


def test_every_remedy_has_words() -> None:
    words = tomllib.loads((DATA / "remedies.toml").read_text(encoding="utf-8"))
    assert words.keys() >= {*TOUCHED, *NO_GAIN, *PAIRS}
    for entry in words.values():
        assert entry.keys() == {"title", "change", "why", "watch", "cost"}


@given(st.floats(0, 1), st.floats(0, 2))
def test_a_gain_is_bounded_by_what_is_removed_and_by_the_next_unit(removes: float, leaves: float) -> None:
    gain = Candidate("coalesce", removes, leaves).gain
    assert gain is not None
    assert gain <= MOST
    assert gain <= 1 / max(1 - removes, leaves, 1 / MOST) + 1e-9


def test_a_launch_always_gets_an_answer() -> None:
    assert [c.remedy for c in candidates(Facts.of(launch()))] != []


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("warm_up_kernel", "setup"),
        ("distribution_elementwise_grid_stride_kernel", "setup"),
        ("initialize_matrix", "setup"),
        ("fill_vector", "setup"),
        ("flash_fwd_kernel", "main"),
        ("integrate", "main"),
        ("randomised_svd_step", "main"),
    ],
)
def test_a_kernel_that_prepares_data_is_told_by_its_name(name: str, role: str) -> None:
    assert builders.kernel(raw=builders.raw_kernel(name)).role == role
