"""The top-down account of issue slots: hand-computed shares, sums, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit.judge import diagnose
from ncukit.judge.facts import Facts
from ncukit.judge.memory_flow import split
from ncukit.judge.shares import states
from ncukit.model.shares import DISAGREE, Split
from ncukit.render.cells import Cells, Tips
from ncukit.render.view.split import section
from ncukit.render.view.stalls import fitting, stalls
from tests.builders import kernel

LOADS = {
    "sm_active_pct": 80.0,
    "warps_issued_per_scheduler": 0.25,
    "stall_cycles_selected": 1.0,
    "stall_cycles_not_selected": 0.5,
    "stall_cycles_global_memory_dependency": 6.0,
    "stall_cycles_shared_memory_dependency": 1.0,
    "stall_cycles_fixed_latency_dependency": 3.0,
    "dram_throughput_pct": 88.0,
    "l2_throughput_pct": 40.0,
}


def account(**changed: Any) -> Split:
    return split(Facts.of(kernel(**{**LOADS, **changed})))


def page(**changed: Any) -> dict[str, Any] | None:
    return section(diagnose(kernel(**{**LOADS, **changed})))


def test_time_slots_and_causes_come_out_by_hand() -> None:
    found = account()
    assert found.idle is not None
    assert found.issued is not None
    assert (found.idle.value, found.issued.value, found.source) == (20.0, 25.0, "counters")
    memory, execution = found.parts
    assert (memory.category, execution.category) == ("memory_dependency", "execution_dependency")
    assert memory.share == pytest.approx(70.0), "7 of 10 cycles: selected and not_selected do not wait"
    assert memory.slots == pytest.approx(70.0 * 0.75), "of the 75 % of the slots that stayed empty"
    assert [name for name, _ in memory.states] == ["long_scoreboard", "short_scoreboard"]
    assert memory.states[0][1] == pytest.approx(60.0)


def test_issue_slots_are_one_number_on_the_whole_page() -> None:
    """Another counter has the cycles in which a scheduler has a warp below it, and reads a little more."""
    found = account(signals={"issue_busy_pct": 23.5})
    assert found.issued is not None
    assert found.issued.value == 23.5
    assert sum(part.slots or 0.0 for part in found.parts) == pytest.approx(100 - 23.5)


def test_a_cause_names_the_units_behind_it_the_fullest_first() -> None:
    memory = account().parts[0]
    assert [(unit.unit, unit.percent, unit.full) for unit in memory.ceilings] == [
        ("dram", 88.0, True), ("l2", 40.0, False),
    ]  # fmt: skip


def test_counters_win_over_samples_and_how_far_they_differ_is_said() -> None:
    samples = {
        "pc_samples": 1000,
        "stall_samples_global_memory_dependency": 500,
        "stall_samples_selected": 500,
    }
    found = account(**samples)
    assert found.source == "counters"
    assert found.agreement is not None
    assert found.agreement > DISAGREE
    shown = page(**samples)
    assert shown is not None
    assert shown["apart"]
    assert any("they saw different executions" in p["text"] for p in shown["foot"])


def test_samples_alone_are_used_and_few_samples_are_noise() -> None:
    only = {key: None for key in LOADS if key.startswith("stall_cycles")}
    samples = {"stall_samples_global_memory_dependency": 90, "stall_samples_block_barrier": 30}
    assert account(**only, **samples, pc_samples=1000).source == "samples"
    assert account(**only, **samples, pc_samples=60).source is None


def test_what_was_not_collected_is_missing_not_zero() -> None:
    found = split(Facts.of(kernel()))
    assert (found.idle, found.issued, found.parts) == (None, None, ())
    assert found.missing == ("the issue rate", "why warps waited")
    assert section(diagnose(kernel())) is None
    known = split(Facts.of(kernel(warps_issued_per_scheduler=0.4)))
    assert known.missing == ("why warps waited",)


def test_without_the_issue_rate_causes_have_no_share_of_all_slots() -> None:
    found = account(warps_issued_per_scheduler=None)
    assert found.issued is None
    assert [part.slots for part in found.parts] == [None, None]
    shown = page(warps_issued_per_scheduler=None)
    assert shown is not None
    assert [row["slots"] for row in shown["rows"]] == ["", ""]


amounts = st.dictionaries(st.sampled_from(sorted(states())), st.floats(0, 1e6), min_size=3)


@given(amounts, st.floats(0, 1))
def test_shares_of_one_level_add_up(cycles: dict[str, float], issued: float) -> None:
    given = {f"stall_cycles_{state}": amount for state, amount in cycles.items()}
    found = split(Facts.of(kernel(warps_issued_per_scheduler=issued, **given)))
    if not found.parts:
        return
    assert sum(part.share for part in found.parts) == pytest.approx(100)
    assert sum(part.slots or 0 for part in found.parts) == pytest.approx(100 - 100 * issued, abs=1e-6)
    for part in found.parts:
        assert sum(share for _, share in part.states) == pytest.approx(part.share)
    assert [p.share for p in found.parts] == sorted((p.share for p in found.parts), reverse=True)


@given(st.floats(0.1, 1e5), st.floats(0.1, 1e5), st.floats(0, 1e5))
def test_more_waiting_in_one_state_never_lowers_its_share(a: float, b: float, more: float) -> None:
    def share(amount: float) -> float:
        found = split(
            Facts.of(kernel(stall_cycles_block_barrier=amount, stall_cycles_global_memory_dependency=b))
        )
        return next(part.share for part in found.parts if part.category == "synchronization")

    assert share(a) <= share(a + more) + 1e-9


def test_what_few_samples_say_is_not_compared_with_the_counters() -> None:
    def said(samples: int) -> str:
        more = {"stall_samples_global_memory_dependency": samples, "pc_samples": samples}
        return str(stalls(Cells(kernel(**{**LOADS, **more}), Tips()), frozenset())["sentence"][0]["text"])

    assert said(2) == "From counters. 2 stall samples: too few to say why warps wait."
    assert said(1000).startswith("Counters and sampling are two measurements; they differ by")


# the bars


def test_each_bar_fills_its_width_and_says_its_numbers() -> None:
    found = page()
    assert found is not None
    assert [bar["name"] for bar in found["bars"]] == [
        "Time of a mean SM", "Its issue slots", "Empty slots, by cause",
    ]  # fmt: skip
    for bar in found["bars"]:
        assert sum(part["width"] for part in bar["parts"]) == pytest.approx(100, abs=0.1)
    assert found["bars"][1]["text"] == "issued 25.0\u202f%; empty 75.0\u202f%"


@pytest.mark.parametrize(
    ("label", "width", "shown"), [("Waits 30 %", 30.0, True), ("Memory queue full 11 %", 11.0, False)]
)
def test_a_label_that_would_be_cut_is_left_out(label: str, width: float, shown: bool) -> None:
    assert fitting(label, width) == (label if shown else "")


def test_busy_schedulers_are_not_blamed_on_what_waits() -> None:
    found = page(warps_issued_per_scheduler=0.93)
    assert found is not None
    assert "they are busy" in found["sentence"][0]["text"]
    assert found["rows"] == []
    assert not any("cause" in bar["name"] for bar in found["bars"])
