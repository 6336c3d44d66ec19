"""Links of the memory system: which there are, what is zero, what is unknown and why; the chart of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit.judge.facts import Facts
from ncukit.judge.ledger import FactsOnDemand
from ncukit.judge.memory_flow import LINKS, memory_links
from ncukit.model import Diagnosis, Kernel, Roofline, Value, Verdict
from ncukit.model.shares import Link, MemoryLinks
from ncukit.render.cells import Cells, Tips
from ncukit.render.view.memory import memory
from ncukit.render.view.memory_chart import THICKEST, THINNEST, WIDTH, chart, thickness
from tests.builders import kernel

STREAM = {
    "global_load_inst": 1000,
    "l1_to_l2_read_bytes": 128_000,
    "l1_to_l2_write_bytes": 64_000,
    "dram_read_bytes": 128_000,
    "dram_write_bytes": 0,
    "dram_throughput_pct": 91.0,
    "l2_hit_rate_from_l1_pct": 33.3,
}
SIGNALS = {"global_load_bytes": 128_000, "link_dram_read_pct": 61.5, "l2_sysmem_read_bytes": 0}


def stream(**changed: Any) -> Kernel:
    return kernel(signals=SIGNALS, **{**STREAM, **changed})


def link(found: MemoryLinks, id: str) -> Link:
    return next(one for one in found.links if one.id == id)


def drawn(made: Kernel, limiter: str | None = None) -> dict[str, Any]:
    verdict = Verdict("memory-bound", limiter, "high", "")
    return memory(Cells(made, Tips()), Diagnosis(made, Roofline(), verdict, facts=FactsOnDemand(made)))


# what the links are


def test_reads_go_towards_the_kernel_and_writes_away_from_it() -> None:
    distance = {"kernel": 0, "l1": 1, "shared": 1, "l2": 2, "dram": 3, "sysmem": 3, "peer": 3}
    for one in LINKS:
        inward = distance[one.target] < distance[one.source]
        assert inward == ("load" in one.id or "read" in one.id or one.id in ("texture", "copies", "tma")), (
            one.id
        )


def test_a_link_has_the_numbers_of_the_report_and_its_own_share() -> None:
    reads = link(memory_links(Facts.of(stream())), "dram-reads")
    assert (reads.bytes.value, reads.share and reads.share.value, reads.used) == (128_000, 61.5, True)


def test_a_link_that_moved_nothing_stays_and_one_nobody_counted_is_unknown() -> None:
    found = memory_links(Facts.of(stream()))
    assert link(found, "dram-writes").used is False
    assert link(found, "peer-reads").used is None
    assert link(found, "peer-reads").bytes.reason == "not given by the test"


def test_requests_alone_show_that_a_link_was_used() -> None:
    found = link(memory_links(Facts.of(kernel(local_load_inst=5))), "local-loads")
    assert (found.bytes.known, found.used) == (False, True)


def test_a_link_that_the_gpu_lacks_is_left_out() -> None:
    absent = Value(
        "tma_load_bytes", None, "byte", reason="not on this GPU (CC 8.6); absent: below CC 9.0", lack="absent"
    )
    assert "tma" not in [one.id for one in memory_links(Facts.of(kernel(tma_load_bytes=absent))).links]
    assert "tma" in [one.id for one in memory_links(Facts.of(kernel())).links]


def test_the_limit_is_the_fullest_unit_only_if_it_is_full() -> None:
    assert memory_links(Facts.of(stream())).hot == "dram"
    assert memory_links(Facts.of(stream(dram_throughput_pct=40.0))).hot is None


def test_the_notes_say_what_a_number_does_not_mean() -> None:
    found = memory_links(Facts.of(kernel(l1_hit_rate_pct=0, l1_sectors=10, async_copy_bypass_bytes=64)))
    assert any("L1 served nothing" in note for note in found.notes)
    assert any("Asynchronous copies" in note for note in found.notes)
    assert memory_links(Facts.of(kernel())).notes == ()


@pytest.mark.parametrize(
    ("used", "says"),
    [
        (
            {"async_copy_bypass_bytes": 8e8},
            "(cp.async) go past registers: the requests of global loads do not",
        ),
        ({"tma_load_bytes": 8e8}, "(TMA) go past registers and are not among the global loads"),
    ],
)
def test_what_global_loads_hold_of_asynchronous_copies(used: dict[str, float], says: str) -> None:
    """32,768 requests never moved 608 MB: sectors of cp.async count in the bytes of global loads."""
    assert any(says in note for note in memory_links(Facts.of(kernel(**used))).notes)


# how a lane is drawn

shares = st.floats(0, 400)


def lane(share: float | None, moved: float | None = 1.0) -> Link:
    value = None if share is None else Value("s", share, "%", "exact")
    return Link(
        "x", "l2", "dram", "x", Value("b", moved, "byte", "exact" if moved is not None else None), None, value
    )


@given(shares, shares)
def test_a_larger_share_is_never_drawn_thinner(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert THINNEST <= thickness(lane(low)) <= thickness(lane(high)) <= THICKEST


def test_the_thickness_is_one_to_fourteen_pixels_over_the_share() -> None:
    assert [thickness(lane(x)) for x in (0.0, 50.0, 100.0)] == [1.0, 7.5, 14.0]


def test_nothing_and_unknown_are_dashed() -> None:
    assert thickness(lane(50.0, 0.0)) == thickness(lane(50.0, None)) == 0
    assert thickness(lane(None)) > 0


# the chart


def test_the_chart_has_a_box_for_each_unit_and_a_lane_for_each_link() -> None:
    found = drawn(stream(), "dram")["chart"]
    assert [b["name"] for b in found["boxes"]] == [
        "Kernel", "L1/TEX", "Shared", "L2", "DRAM", "System", "Peer GPUs",
    ]  # fmt: skip
    assert len(found["lanes"]) == len(LINKS)
    assert [b["name"] for b in found["boxes"] if b["hot"]] == ["DRAM"]
    assert [x["label"] for x in found["lanes"] if x["state"] == "hot"] == ["128\u202fkB"]


def test_only_the_verdict_makes_a_box_red() -> None:
    assert not any(b["hot"] for b in drawn(stream(), "occupancy")["chart"]["boxes"])


def test_boxes_do_not_cover_each_other_and_lanes_stay_between_them() -> None:
    found = drawn(stream())["chart"]
    boxes = [(b["x"], b["y"], b["x"] + b["w"], b["y"] + b["h"]) for b in found["boxes"]]
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        assert 0 <= x0 < x1 <= WIDTH
        assert y1 <= found["height"]
        for a0, b0, a1, b1 in boxes[i + 1 :]:
            assert x1 <= a0 or a1 <= x0 or y1 <= b0 or b1 <= y0
    for one in found["lanes"]:
        inside = [b for b in boxes if b[0] < one["end"] and one["x"] < b[2] and b[1] <= one["y"] <= b[3]]
        assert inside == []


def test_an_unknown_lane_says_unknown_and_the_text_alternative_tells_why_numbers_are_missing() -> None:
    part = drawn(stream())
    assert "unknown" in [x["label"] for x in part["chart"]["lanes"]]
    assert "Unknown: " in part["chart"]["desc"]
    assert "DRAM → L2 128\u202fkB" in part["chart"]["desc"]
    words = "".join(next(iter(p.values())) for note in part["notes"] for p in note)
    assert "not given by the test" in words


def test_the_table_beside_it_holds_every_link() -> None:
    part = drawn(stream())
    assert [r["what"] for r in part["links"]] == [one.what for one in LINKS]
    assert next(r for r in part["links"] if r["what"] == "DRAM → L2")["share"]["text"] == "61.5\u202f%"


def test_without_any_traffic_counter_there_is_no_chart_but_the_levels_stay() -> None:
    part = drawn(kernel(dram_throughput_pct=40.0))
    assert part["chart"] is None
    assert part["links"] == []
    assert part["rows"]


def test_an_estimate_and_an_unreliable_number_carry_their_mark_in_the_chart() -> None:
    guess = Value("l1_hit_rate_pct", 152.0, "%", "exact", reason="unreliable: above 100 %", reliable=False)
    made = stream(l1_hit_rate_pct=guess)
    found = chart(Cells(made, Tips()), memory_links(Facts.of(made)), None)
    assert found is not None
    near = next(b for b in found["boxes"] if b["name"] == "L1/TEX")
    assert near["lines"][0]["text"] == "hits 152.0\u202f% !"


@pytest.mark.parametrize("cc", [75, 90])
def test_the_chart_of_an_empty_launch_is_not_drawn_whatever_the_gpu(cc: int) -> None:
    assert drawn(kernel(compute_capability=cc))["chart"] is None
    assert drawn(kernel(compute_capability=cc, global_load_inst=0, local_load_inst=0))["chart"] is None
    counted = kernel(
        signals={"shared_load_requests": 0}, compute_capability=cc, global_load_inst=0, local_load_inst=0
    )
    assert drawn(counted)["chart"] is not None, "a kernel that touched no memory has a chart of dashed lanes"
