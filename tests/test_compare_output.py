"""A comparison shown: page, terminal, Markdown, JSON, JUnit XML, annotations; safe whatever a name holds."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ncukit.comparison import compare
from ncukit.comparison.baseline import side_of
from ncukit.comparison.gates import apply, parse
from ncukit.comparison.rows import RATIOS
from ncukit.metrics import load
from ncukit.model.comparison import Comparison
from ncukit.render import html
from ncukit.render.compare.changes import ELSEWHERE, explained, ranked
from ncukit.render.compare.github import github_text
from ncukit.render.compare.json import comparison_text as as_json
from ncukit.render.compare.junit import junit_text
from ncukit.render.compare.markdown import markdown_text
from ncukit.render.compare.names import LABELS
from ncukit.render.compare.page import DETAILED, page_view
from ncukit.render.compare.text import NAME, comparison_text
from ncukit.render.notebook import comparison_html, kernel_html, roofline_html
from ncukit.render.text.parts import flat
from ncukit.render.view.rows import FAMILIES
from ncukit.schemas import text as schema_text
from tests.compared import A100, H100, SPILL, SPILLED, compared, launch, unknown
from tests.diagnoses import HOSTILE, transpose
from tests.test_html import Page

GATES = ("dram_bytes > +5%", "kernel_duration > 1.02x", "spill_inst > 0", "registers_per_thread > 255")
ROOF = {
    "kernel_duration": 1e-3,
    "flops_fp32": 1e9,
    "flops_total": 1e9,
    "dram_bytes": 1e8,
    "peak_dram_bandwidth": 1e12,
    "peak_flop_rate_fp32": 1e13,
    "sm_clock": 1e9,
    "dram_clock": 1e9,
    "inst_executed": 1e6,
    "stall_cycles_block_barrier": 4.0,
    "stall_cycles_global_memory_dependency": 6.0,
    "inst_mix_fp32_pct": 60.0,
    "inst_mix_integer_pct": 40.0,
    "theoretical_occupancy_pct": 50.0,
    "achieved_occupancy_pct": 45.0,
    "occupancy_limiter": "registers",
    "registers_per_thread": 64,
    "grid_size": 1000,
    "block_size": 256,
}
FASTER = {**ROOF, "kernel_duration": 0.8e-3, "dram_bytes": 0.7e8, "stall_cycles_block_barrier": 1.0}


def gated(comparison: Comparison, *texts: str, **options: Any) -> Comparison:
    return apply(comparison, [parse(text) for text in texts], **options)


KINDS: dict[str, Callable[[], Comparison]] = {
    "versions": lambda: gated(compared(launch("gemm", **ROOF), launch("gemm", **FASTER)), *GATES),
    "gpus": lambda: compared(launch("gemm", **{**ROOF, **A100}), launch("gemm", **{**FASTER, **H100})),
    "spilling": lambda: compared(launch("gemm", **SPILL), launch("gemm", **SPILLED)),
    "same": lambda: compared(launch("gemm", **ROOF), launch("gemm", **ROOF)),
    "unknown": lambda: compared(launch("gemm"), launch("gemm")),
    "failed": lambda: compared(launch("gemm", failed="it hung"), launch("gemm", **ROOF)),
    "nothing": lambda: gated(compared([launch("a"), launch("b", 1)], [launch("c"), launch("d", 1)]), *GATES),
    "many": lambda: gated(
        compared(
            [launch(f"k{n}", n, **{**ROOF, "grid_size": n + 1}) for n in range(12)],
            [launch(f"k{n}", n, **{**FASTER, "grid_size": n + 1}) for n in range(11)],
        ),
        GATES[0],
    ),
    "hostile": lambda: gated(
        compared(launch(HOSTILE, **{**ROOF, "gpu_name": HOSTILE}), launch(HOSTILE, **ROOF)), GATES[0]
    ),
    "hostile many": lambda: compared(
        [launch(HOSTILE + str(n), n, **ROOF) for n in range(3)],
        [launch(HOSTILE + str(n), n, **FASTER) for n in range(2)],
    ),
}
each = pytest.mark.parametrize("kind", KINDS)


@cache
def comparison(kind: str) -> Comparison:
    return KINDS[kind]()


@cache
def page(kind: str) -> tuple[str, Page]:
    text = html.page(page_view(comparison(kind), generated="2026-11-29 17:50 UTC"), plotly="directory")
    return text, Page(text)


# The page


@each
def test_every_element_is_closed_and_every_id_is_there_once(kind: str) -> None:
    found = page(kind)[1]
    assert found.faults == []
    assert found.open == []
    assert [id for id, count in Counter(found.ids).items() if count > 1] == []


@each
def test_every_link_has_its_target(kind: str) -> None:
    found = page(kind)[1]
    targets = {value[1:] for tag, name, value in found.attributes if (tag, name) == ("a", "href")}
    assert targets - set(found.ids) == set()
    labels = {v for _, name, v in found.attributes if name in ("aria-controls", "aria-labelledby")}
    assert labels - set(found.ids) == set()


@each
def test_nothing_in_the_page_reaches_the_network(kind: str) -> None:
    found = page(kind)[1]
    assert any(value.startswith("default-src 'none'") for _, _, value in found.attributes)
    links = [v for _, name, v in found.attributes if name in ("src", "href", "action")]
    assert [link for link in links if not link.startswith("#") and link != html.PLOTLY_FILE] == []


@pytest.mark.parametrize("kind", ["hostile", "hostile many"])
def test_a_hostile_name_stays_text(kind: str) -> None:
    text, found = page(kind)
    assert found.tags["img"] == 0
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert "\x00" not in text


@pytest.mark.parametrize("kind", ["versions", "many"])
def test_a_page_is_small(kind: str) -> None:
    assert len(page(kind)[0].encode()) < 300_000


@each
def test_the_view_is_json(kind: str) -> None:
    json.dumps(page_view(comparison(kind), generated=""), allow_nan=False)


def test_what_differs_is_told_before_any_number() -> None:
    text = page("gpus")[0]
    assert text.index("! gpu differs") < text.index('id="verdict-claim"')
    plain = comparison_text(comparison("gpus"), color=False, encoding="utf-8")
    assert plain.index("COMPARABLE") < plain.index("VERDICT") < plain.index("CHANGED")


def test_base_is_outlined_and_other_filled_on_one_roofline_with_the_way_between() -> None:
    view = page_view(comparison("versions"), generated="")
    (figure,) = view["figures"].values()
    symbols = [s for trace in figure["data"] for s in trace.get("marker", {}).get("symbol", ()) if len(s) > 1]
    assert {"circle-open", "circle"} <= set(symbols)
    way = figure["data"][0]
    assert way["mode"] == "lines"
    assert way["x"] == [pytest.approx(10), pytest.approx(1e9 / 0.7e8, rel=1e-3), None]


def test_two_gpus_have_a_roofline_each_under_their_own_roofs() -> None:
    view = page_view(comparison("gpus"), generated="")
    assert set(view["figures"]) == {"roof-1-base", "roof-1-other"}
    assert "One roofline a GPU" in view["blocks"][0]["roofline"]["sentence"][0]["text"]


def test_many_pairs_are_a_table_and_the_largest_changes_in_full() -> None:
    view = page_view(comparison("many"), generated="")
    assert len(view["pairs"]) == 11
    assert len(view["blocks"]) == DETAILED
    assert [p["linked"] for p in view["pairs"]] == [True] * DETAILED + [False] * 5
    assert [row["name"] for row in view["unmatched"]["rows"]] == ["k11"]


def test_launches_without_a_counterpart_are_counted_and_grouped_by_name_and_reason() -> None:
    base = [launch("fill", n, grid_size=n + 1, kernel_duration=1e-6 * (n + 1)) for n in range(4)]
    repeats = [launch("copy", n, grid_size=8, inst_executed=5, kernel_duration=1e-6) for n in (4, 6)]
    found = page_view(compared([*base, *repeats], launch("add")), generated="")["unmatched"]
    assert flat(found["sentence"]).startswith("7 launches without a counterpart")
    assert [(row["name"], row["launches"], row["duration"]) for row in found["rows"]] == [
        ("fill", "1–4", "1.00–4.00\u202fµs"),
        ("copy", "5, 7", "1.00\u202fµs"),
        ("add", "1", "unknown"),
    ]


def test_of_several_sides_the_one_without_a_counterpart_is_named_and_the_launch_counted_once() -> None:
    both = launch("both")
    base = side_of([both, launch("fill", 1)], "base.ncu-rep")
    others = [side_of([both], name) for name in ("a.ncu-rep", "b.ncu-rep")]
    found = page_view(compare(base, others), generated="")["unmatched"]
    reasons = [flat(row["reason"]) for row in found["rows"]]
    assert reasons == ["no launch of this name on a.ncu-rep", "no launch of this name on b.ncu-rep"]
    assert flat(found["sentence"]).startswith("1 launch without")


def test_numbers_far_apart_have_a_unit_each_and_their_change_is_a_factor() -> None:
    base = {**ROOF, "dram_bytes": 311e3}
    found = compared(launch(**base), launch(**{**FASTER, "kernel_duration": 2e-2, "dram_bytes": 5.34e9}))
    rows = {row["id"]: row for row in page_view(found, generated="")["blocks"][0]["changes"]["rows"]}
    bytes_ = rows["dram_bytes"]
    assert [bytes_[side]["text"] for side in ("base", "other")] == ["311\u202fkB", "5.34\u202fGB"]
    assert bytes_["change"] == "17,170\u202f×"
    assert page_view(found, generated="")["pairs"][0]["change"] == "20.0\u202f×"


def test_a_change_to_nearly_nothing_is_not_called_all_of_it() -> None:
    found = compared(launch(**{**ROOF, "dram_bytes": 13.8e6}), launch(**{**FASTER, "dram_bytes": 128}))
    rows = {row["id"]: row for row in page_view(found, generated="")["blocks"][0]["changes"]["rows"]}
    assert rows["dram_bytes"]["change"] == "−99.999\u202f%"


def test_pairs_sort_by_duration_whatever_unit_it_is_shown_in() -> None:
    base = [launch("a", 0, kernel_duration=8e-6), launch("b", 1, kernel_duration=2e-3)]
    rows = page_view(compared(base, base), generated="")["pairs"]
    assert {row["base"]: row["base_sort"] for row in rows} == {"8.00\u202fµs": 8e-6, "2.00\u202fms": 2e-3}


@pytest.mark.parametrize(
    ("other", "elements", "told"),
    [
        (FASTER, (), False),
        (FASTER, (1e6,), True),
        ({**FASTER, **H100, "flops_fp32": 2e9, "flops_total": 2e9}, (), True),
    ],
    ids=["one GPU", "elements were given", "other work on another GPU"],
)
def test_quantities_per_unit_of_work_are_told_where_they_are_asked_for_or_needed(
    other: dict[str, Any], elements: tuple[float, ...], told: bool
) -> None:
    found = compared(launch(**ROOF), launch(**other), elements=elements)
    text, everything = (
        comparison_text(found, color=False, encoding="utf-8", width=100, verbose=v) for v in (False, True)
    )
    assert ("PER UNIT OF WORK" in text) is told
    assert "PER UNIT OF WORK" in everything
    assert ("DRAM bytes per output element" in text) is bool(elements)
    assert "| DRAM bytes per FLOP | 0.100 | " in markdown_text(found)


def test_c45_what_all_pairs_come_to_together_is_told_everywhere() -> None:
    found = comparison("many")
    view = page_view(found, generated="")
    time, *_, intensity = view["totals"]["rows"]
    assert (time["base"], time["other"], time["change"]) == (
        "11.0\u202fms", "8.80\u202fms", "−20.0\u202f%",
    )  # fmt: skip
    assert (intensity["base"], intensity["pairs"]) == ("10", "11 pairs")
    assert {"to": "together", "text": "Together"} in view["contents"]
    shown = comparison_text(found, color=False, encoding="utf-8", width=100)
    assert "TOGETHER  Sums over the pairs" in shown
    assert re.search(r"FLOP per DRAM byte +10 +14\.3 ", shown)
    assert "| FLOP per DRAM byte | 10 |" in markdown_text(found)
    assert "never means of ratios" in html.page(page_view(found, generated=""), plotly="directory")
    assert {total["id"]: total["pairs"] for total in json.loads(as_json(found))["others"][0]["totals"]} == {
        id: 11 for id in ("kernel_duration", "flops_total", "dram_bytes", *RATIOS)
    }
    assert page_view(comparison("versions"), generated="")["totals"]["rows"] == []


@pytest.mark.parametrize("kind", ["versions", "gpus", "spilling"])
def test_the_table_of_changes_fits_a_terminal_and_its_head_stands_over_its_columns(kind: str) -> None:
    lines = comparison_text(comparison(kind), color=False, encoding="utf-8", width=80).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("CHANGED"))
    table = lines[start : lines.index(next(line for line in lines[start:] if "without a change" in line))]
    assert not [line for line in table if "…" in line[30:]]
    at = lines[start].index("base") + len("base")
    assert {line[at - 1] != " " and line[at : at + 1] in (" ", "") for line in table} == {True}


def test_stalls_that_one_side_lacks_say_so() -> None:
    bare = {id: value for id, value in ROOF.items() if not id.startswith("stall_")}
    found = compared(launch("gemm", **ROOF), launch("gemm", **bare))
    (block,) = page_view(found, generated="")["blocks"]
    for row in block["stalls"]["rows"]:
        assert (row["other"]["state"], row["change"]) == ("missing", "")


def test_rows_come_in_the_order_of_what_they_explain() -> None:
    rows = page_view(comparison("versions"), generated="")["blocks"][0]["changes"]["rows"]
    assert [row["id"] for row in rows[:2]] == ["kernel_duration", "dram_bytes"]
    assert rows[1]["explains"] == "15.0\u202f%"  # 0.03 ms of 0.2 ms


def test_every_metric_that_a_table_can_show_has_a_name_of_its_own() -> None:
    shown = [id for id in load().metrics if not any(fnmatchcase(id, pattern) for pattern in ELSEWHERE)]
    assert [id for id in shown if id not in LABELS] == []
    assert [name for name, n in Counter(LABELS[id] for id in shown).items() if n > 1] == []
    families = {row.id for family in FAMILIES for row in family.rows}
    assert [id for id in shown if id not in families and len(LABELS[id]) > NAME] == []


def test_what_repeats_another_row_comes_last() -> None:
    def order(**neutral: float) -> list[str]:
        base = {"kernel_duration": 1e-3} | dict.fromkeys(neutral, 40.0)
        (pair,) = compared(launch("gemm", **base), launch("gemm", **base | neutral)).pairs
        return [row.id for row in ranked(pair.rows)]

    rates = {"l2_read_hit_rate_pct": 80.0, "l2_hit_rate_from_l1_pct": 80.0}
    assert order(**rates, l2_hit_rate_pct=70.0, registers_per_thread=42.0)[:2] == [
        "l2_hit_rate_pct",
        "registers_per_thread",
    ]
    assert order(**rates, registers_per_thread=42.0)[-1] == "registers_per_thread"  # they repeat nothing here


@pytest.mark.parametrize(
    ("share", "text"), [(-0.04, "≈ 0"), (0.0, "≈ 0"), (0.3, "0.3"), (15.0, "15.0"), (-12.0, "−12.0")]
)
def test_a_share_that_is_next_to_nothing_reads_so(share: float, text: str) -> None:
    assert explained(share) == f"{text}\u202f%"


def test_stall_reasons_subtract_and_are_not_read_as_good_or_bad() -> None:
    block = page_view(comparison("versions"), generated="")["blocks"][0]
    found = {row["label"]: row["change"] for row in block["stalls"]["rows"]}
    assert found == {"Memory dependency": "0.0", "Synchronisation": "−3.0"}
    assert not [row for row in block["changes"]["rows"] if row["id"].startswith("stall_")]


# The terminal and Markdown


def test_the_terminal_shows_the_same_in_80_columns(golden: Callable[[str, str], None]) -> None:
    text = comparison_text(comparison("versions"), color=False, encoding="utf-8")
    golden("compare.txt", text + "\n")
    assert max(map(len, text.splitlines())) <= 80


@each
def test_the_terminal_cannot_be_steered_by_a_name(kind: str) -> None:
    text = comparison_text(comparison(kind), color=False, encoding="ascii", verbose=True)
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())


def test_markdown_for_a_pull_request(golden: Callable[[str, str], None]) -> None:
    golden("compare.md", markdown_text(comparison("versions")))
    golden("compare-many.md", markdown_text(comparison("many")))


@each
def test_the_tables_of_markdown_have_as_many_cells_as_their_heads(kind: str) -> None:
    text = markdown_text(comparison(kind))
    block: list[int] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            block.append(len(re.findall(r"(?<!\\)\|", line)))
        elif block:
            assert len(set(block)) == 1, line
            block = []
    outside = re.sub(r"(?<![`\\])(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
    tags = set(re.findall(r"(?<!\\)</?([a-z]+)", outside))
    assert tags <= {"details", "summary", "sub"}


# JSON


@each
def test_json_follows_its_schema(kind: str) -> None:
    schema = Draft202012Validator(json.loads(schema_text("ncukit.comparison/1")))
    data = json.loads(as_json(comparison(kind)))
    fault = best_match(schema.iter_errors(data))
    assert fault is None, f"{fault.json_path}: {fault.message}"


def test_what_programs_rely_on_in_the_json() -> None:
    data = json.loads(as_json(comparison("versions")))
    assert list(data) == ["schema", "base", "others", "gates", "failed"]
    pair = data["others"][0]["pairs"][0]
    row = pair["rows"]["dram_bytes"]
    assert (row["base"]["value"], row["other"]["value"]) == (1e8, 0.7e8)
    assert (row["change"], row["change_unit"], row["reading"]) == (pytest.approx(-30), "%", "better")
    assert (row["comparable"], row["noise"]) == ("same", 2.0)
    assert pair["summary"]["trend"] == "faster"
    assert pair["summary"]["speedup"] == pytest.approx(1.25)


def test_a_change_from_nothing_is_null_and_the_base_says_so() -> None:
    found = compared(launch(local_store_inst=0), launch(local_store_inst=7))
    row = json.loads(as_json(found))["others"][0]["pairs"][0]["rows"]["local_store_inst"]
    assert (row["change"], row["ratio"], row["base"]["value"], row["reading"]) == (None, None, 0, "worse")


# JUnit XML

# The structure that junit-10.xsd of Jenkins' xUnit plug-in allows: element -> attributes, children.
JUNIT: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}),
    "testsuite": (
        {
            *("name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp"),
            *("hostname", "id", "package", "file", "line"),
        },
        {"properties", "testcase", "system-out", "system-err", "testsuite"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": (
        {"name", "assertions", "time", "classname", "status", "class", "file", "line", "group"},
        {"skipped", "error", "failure", "system-out", "system-err", "properties"},
    ),
    "failure": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}
REQUIRED = {"testsuite": {"name"}, "testcase": {"name"}, "property": {"name", "value"}}


def junit(kind: str, **options: Any) -> ET.Element:
    return ET.fromstring(junit_text(gated(comparison(kind), *GATES, **options)))


@each
def test_junit_has_the_structure_that_ci_systems_read(kind: str) -> None:
    def check(element: ET.Element) -> None:
        attributes, children = JUNIT[element.tag]
        assert set(element.attrib) <= attributes, element.tag
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib), element.tag
        assert {child.tag for child in element} <= children, element.tag
        for child in element:
            check(child)

    root = junit(kind)
    assert root.tag == "testsuites"
    check(root)


def test_junit_counts_what_failed_and_what_was_let_pass() -> None:
    suite = junit("versions").find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "0")
    (failure,) = suite.iter("failure")
    assert failure.get("type") == "undecided"
    assert failure.get("message") == "cannot be decided: other: not given by the test"
    allowed = junit("versions", allow_unknown=True).find("testsuite")
    assert allowed is not None
    assert (allowed.get("failures"), allowed.get("skipped")) == ("0", "1")


def test_a_case_of_junit_names_gate_side_and_kernel() -> None:
    cases = list(junit("versions").iter("testcase"))
    assert [case.get("name") for case in cases] == list(GATES)
    assert {case.get("classname") for case in cases} == {"after.ncu-rep.gemm"}


# Annotations


def test_annotations_of_github_name_the_gate_and_what_was_measured(
    golden: Callable[[str, str], None],
) -> None:
    found = gated(
        compared(launch("gemm", **FASTER), launch("gemm", **ROOF)), *GATES, "dram_bytes > +1%",
        beyond_noise=True,
    )  # fmt: skip
    golden("compare-github.txt", github_text(found) + "\n")


def test_a_name_cannot_start_another_command() -> None:
    found = gated(compared(launch("k\n::error::x", **ROOF), launch("k\n::error::x", **{**ROOF})), GATES[2])
    text = github_text(found)
    assert len(text.splitlines()) == 2
    assert "k%0A::error::x" in text


# Notebooks


def test_a_notebook_shows_launches_comparisons_and_rooflines_as_tables() -> None:
    diagnosis = transpose()
    for shown in (
        kernel_html(diagnosis.kernel),
        roofline_html(diagnosis.roofline),
        comparison_html(comparison("versions")),
        comparison_html(comparison("many")),
    ):
        found = Page(shown)
        assert found.faults == []
        assert found.open == []
        assert found.tags["table"] == 1
        assert found.tags["script"] == 0


def test_a_notebook_says_what_is_missing() -> None:
    lost = launch("k", dram_bytes=unknown("dram_bytes", "not collected: X"))
    assert "not collected" in kernel_html(lost)
    assert "failed: it hung" in kernel_html(launch("k", failed="it hung"))


def test_a_hostile_name_stays_text_in_a_notebook() -> None:
    shown = kernel_html(launch(HOSTILE, gpu_name=HOSTILE)) + comparison_html(comparison("hostile"))
    assert Page(shown).tags["img"] == 0


def test_the_objects_themselves_know_how_they_are_shown() -> None:
    import ncukit.api.reports  # noqa: F401  registers the renderers

    diagnosis = transpose()
    assert (diagnosis.kernel._repr_html_() or "").startswith("<div>")
    assert "Roofline" in (diagnosis.roofline._repr_html_() or "")
    assert "<table>" in (comparison("versions")._repr_html_() or "")


def test_a_terminal_shows_what_an_object_is_in_a_line_not_all_that_it_holds() -> None:
    diagnosis = transpose()
    found = gated(comparison("versions"), "dram_bytes < 1")
    name = diagnosis.kernel.name
    assert repr(diagnosis).startswith(f"<Diagnosis {name}: {diagnosis.verdict.cls}, ")
    assert repr(diagnosis.kernel).startswith(f"<Kernel {name} on {diagnosis.kernel.gpu}, launch 1: ")
    assert repr(found) == (
        "<Comparison of before.ncu-rep with after.ncu-rep; pairs: 1, gates failed: 0 of 1>"
    )
    (pair,) = found.pairs
    assert repr(pair) == f"<Pair {pair.base.kernel.name}, {pair.other.kernel.name}: {pair.summary.claim}>"
    assert all(len(repr(one)) < 1000 for one in (diagnosis.kernel.raw, found.base, found.others[0]))


def test_a_page_can_be_written(tmp_path: Path) -> None:
    from ncukit import write_comparison

    target = write_comparison(comparison("versions"), tmp_path / "c.html")
    assert "plotly" in target.read_text(encoding="utf-8")
