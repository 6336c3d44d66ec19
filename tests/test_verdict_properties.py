"""What must hold of every verdict, whatever was measured."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ncukit.judge import diagnose
from ncukit.metrics import load
from ncukit.metrics.normalise import normalise
from ncukit.model import Value, Verdict
from tests import builders
from tests.test_rules import launch
from tests.test_verdict import FULL_GPU

RANK = ("low", "medium", "high")
PERCENT = st.floats(0, 100)
UNITS = (
    "issue_busy_pct",
    "dram_throughput_pct",
    "l2_throughput_pct",
    "l1_throughput_pct",
    "lsu_busy_pct",
    "alu_busy_pct",
    "fma_busy_pct",
    "fp64_busy_pct",
    "xu_busy_pct",
)
"""How busy the units of a launch were: all that decides once the GPU is full."""

AMOUNTS = {"byte", "inst", "sector", "request", "wavefront", "conflict", "FLOP", "branch"}
"""Units of what grows with the work."""

STATES = ("global_memory_dependency", "block_barrier", "global_queue_full", "math_pipe_busy", "not_selected")


@st.composite
def launches(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a long launch that fills the GPU, with any use of its units and any reason to wait."""
    values = {**FULL_GPU, **{id: draw(PERCENT) for id in UNITS}}
    values["sm_throughput_pct"] = max(values[id] for id in UNITS if id[:2] not in ("dr", "l1", "l2"))
    values["memory_throughput_pct"] = max(values[f"{id}_throughput_pct"] for id in ("dram", "l1", "l2"))
    values["warps_eligible_per_scheduler"] = draw(st.floats(0, 8))
    if draw(st.booleans()):
        shares = {f"stall_cycles_{state}": draw(st.floats(0, 10)) for state in STATES}
        issued = min(1.0, values["issue_busy_pct"] / 100)
        values |= {**shares, "stall_cycles_selected": 1.0, "warps_issued_per_scheduler": issued}
    return values


def answer(verdict: Verdict) -> tuple[str, str | None]:
    return verdict.cls, verdict.limiter


def amounts() -> list[str]:
    catalog = load()
    return [
        id for id, metric in (*catalog.metrics.items(), *catalog.signals.items()) if metric.unit in AMOUNTS
    ]


@settings(deadline=None, max_examples=60)
@given(launches(), st.floats(0.05, 50), st.data())
def test_the_same_work_done_longer_has_the_same_class(
    values: dict[str, Any], factor: float, data: st.DataObject
):
    """Percentages stay, amounts and time grow alike: nothing about the limiter changes."""
    chosen = data.draw(st.lists(st.sampled_from(amounts()), unique=True, max_size=12))
    launch_facts = {"registers_per_thread", "stack_size", "l2_cache_size", "max_shared_mem_per_sm"}
    grows = {
        id: data.draw(st.floats(1e3, 1e12))
        for id in chosen
        if id not in launch_facts and load_family(id) not in ("launch", "context") and "per_sm" not in id
    }
    before = diagnose(launch(**values, **grows)).verdict
    longer = {id: number * factor for id, number in grows.items()}
    after = diagnose(launch(**{**values, "kernel_duration": 1e-3 * factor}, **longer)).verdict
    assert answer(after) == answer(before)


def load_family(id: str) -> str:
    catalog = load()
    return (catalog.metrics.get(id) or catalog.signals[id]).family


@settings(deadline=None, max_examples=150)
@given(launches(), st.data())
def test_what_was_not_measured_makes_no_verdict_surer(values: dict[str, Any], data: st.DataObject):
    """Taking measurements away never raises the confidence in the same answer.

    What spoke against it is left where it is: without it there would be less to doubt.  Stall states are
    collected together, and go together.
    """
    before = diagnose(launch(**values)).verdict
    groups: dict[str, set[str]] = {}
    for id in values:
        groups.setdefault("stalls" if id.startswith("stall_") else id, set()).add(id)
    against = {row.metric for row in before.against}
    free = sorted(name for name, ids in groups.items() if not ids & against)
    gone = {id for name in data.draw(st.sets(st.sampled_from(free))) for id in groups[name]}
    after = diagnose(launch(**{id: n for id, n in values.items() if id not in gone})).verdict
    if answer(after) == answer(before):
        assert RANK.index(after.confidence) <= RANK.index(before.confidence)
    if after.cls == "undetermined":
        assert after.confidence == "low"


def test_the_pipe_in_front_of_l1_says_not_how_full_l1_is():
    """A unit that was not measured may be as full as the first, whatever is known of what feeds it."""
    values = {
        **FULL_GPU,
        **dict(zip(UNITS, (5, 20, 75.33, 55.6, 20, 25, 17.1, 27.8, 30.7), strict=True)),
        "sm_throughput_pct": 30.7,
        "memory_throughput_pct": 75.33,
        "warps_eligible_per_scheduler": 0.5,
    }
    known = diagnose(launch(**values)).verdict
    without = diagnose(launch(**{id: n for id, n in values.items() if id != "l1_throughput_pct"})).verdict
    assert answer(known) == answer(without) == ("memory-bound", "l2")
    assert known.confidence == without.confidence == "low"


@settings(deadline=None, max_examples=100)
@given(launches(), st.floats(62, 100), st.floats(0, 0.9), st.floats(0, 1))
def test_a_fuller_dram_still_is_the_limit(values: dict[str, Any], dram: float, rest: float, part: float):
    values = {**values, **{id: rest * values[id] for id in UNITS}, "sm_throughput_pct": 0.0}
    values |= {"dram_throughput_pct": dram, "memory_throughput_pct": dram}
    assume(answer(diagnose(launch(**values)).verdict) == ("memory-bound", "dram"))
    fuller = dram + part * (100 - dram)
    more = {**values, "dram_throughput_pct": fuller, "memory_throughput_pct": fuller}
    assert answer(diagnose(launch(**more)).verdict) == ("memory-bound", "dram")


@settings(deadline=None, max_examples=50)
@given(launches(), st.randoms(use_true_random=False))
def test_the_order_of_measurements_says_nothing(values: dict[str, Any], shuffler: random.Random):
    items = list(values.items())
    shuffler.shuffle(items)
    first, second = diagnose(launch(**values)), diagnose(launch(**dict(items)))
    assert (first.verdict, first.findings) == (second.verdict, second.findings)


@settings(deadline=None, max_examples=100)
@given(launches(), st.data())
def test_an_unreliable_value_counts_like_an_absent_one(values: dict[str, Any], data: st.DataObject):
    ids = data.draw(st.sets(st.sampled_from(UNITS), min_size=1))
    doubtful = {id: Value(id, 250.0, "%", reason="unreliable: above 100 %", reliable=False) for id in ids}
    absent = diagnose(launch(**{id: n for id, n in values.items() if id not in ids})).verdict
    assert answer(diagnose(launch(**{**values, **doubtful})).verdict) == answer(absent)


# ------------------------------------------------------------------- values that are none

RUN = {
    "launch__grid_size": 4096,
    "launch__block_size": 256,
    "launch__waves_per_multiprocessor": 12.0,
    "profiler__replayer_passes": 5,
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 0,
    "device__attribute_multiprocessor_count": 108,
}


def counters(value: float, *, run: bool) -> dict[str, Any]:
    """Return every counter that the catalog knows, all reading ``value``; with ``run`` a launch that ran."""
    catalog = load()
    throughput = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    names = {*catalog.raw_names, *catalog.signal_names, "sm__pipe_alu_cycles_active.avg.pct", throughput}
    members = {f"breakdown:{throughput}": "sm__pipe_alu_cycles_active.avg.pct,dram__cycles_active.avg.pct"}
    fixed = RUN if run else {}
    return {**dict.fromkeys(sorted(names), value), **members, **fixed}


@pytest.mark.parametrize("run", [True, False])
@pytest.mark.parametrize(
    ("value", "classes", "words"),
    [
        (math.inf, {"undetermined"}, "does not show what limits"),
        (-math.inf, {"undetermined"}, "does not show what limits"),
        (math.nan, {"failed"}, "the counters are NaN"),
        (0.0, {"failed"}, "did not run"),
        (0, {"failed"}, "did not run"),
    ],
)
def test_a_launch_of_one_value_only_is_never_judged(value: float, classes: set[str], words: str, run: bool):
    kernel = normalise(builders.raw_kernel("k", counters(value, run=run)))
    verdict = diagnose(kernel).verdict
    assert verdict.cls in classes
    assert words in verdict.claim
    assert verdict.limiter is None
    assert verdict.evidence == ()
    if verdict.cls == "undetermined":
        assert verdict.confidence == "low"
        assert verdict.missing


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_no_mixture_of_odd_values_breaks_a_diagnosis_or_enters_it(data: st.DataObject):
    odd = st.sampled_from([math.inf, -math.inf, math.nan, 1e300, -1e300, 2.0**63, -7.0])
    given_values = counters(30.0, run=True)
    for name in data.draw(st.lists(st.sampled_from(sorted(given_values)), unique=True, max_size=60)):
        if not isinstance(given_values[name], str):
            given_values[name] = data.draw(odd)
    found = diagnose(normalise(builders.raw_kernel("k", given_values)))
    rows = (*found.verdict.evidence, *found.verdict.against)
    assert all(isinstance(row.value, int | float) and math.isfinite(row.value) for row in rows)
    assert "unknown" not in found.verdict.claim
    assert all(
        value.number is None or math.isfinite(value.number)
        for finding in found.findings
        for value in finding.metrics.values()
    )
