"""Source lines and SASS on the page: listed, linked, sorted, printed, downloaded, and small."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ncukit.judge import diagnose
from ncukit.judge.source_view import source_view
from ncukit.model import Diagnosis, Finding
from ncukit.render import html
from ncukit.render.by_instruction import gaps, plain, runs
from ncukit.render.json import kernel_text, report_text
from ncukit.render.view import page_view
from ncukit.render.view.source import hot_caption
from ncukit.schemas import text as schema
from tests import diagnoses
from tests.builders import code, kernel, raw_kernel
from tests.diagnoses import FILE, HOSTILE

TEXT = "\n".join(f"    statement({n});" for n in range(1, 90))
ROWS: list[Any] = [
    ("MOV R1, c[0x0][0x28]", {"inst": 64, "threads": 2048}, 3),
    ("LDG.E R2, [R4.64]", {"inst": 64, "threads": 2048, "sectors": 256, "ideal": 64, "lg_throttle": 20}, 7),
    ("@!P0 FADD R3, R2, R2", {"inst": 64, "threads": 1024, "long_scoreboard": 700, "wait": 80}, 8),
    ("FFMA R9, R3, R3, R9", {"inst": 64, "threads": 2048, "wait": 150}, 7),
    ("STG.E [R6.64], R3", {"inst": 64, "threads": 2048, "sectors": 64, "ideal": 64, "drain": 50}, 60),
    ("EXIT", {"inst": 64, "threads": 2048}, 60),
]


def launch(*rows: Any, index: int = 0, **fields: Any) -> Diagnosis:
    raw = raw_kernel("axpy", index=index, **code(*rows, **fields))
    return diagnose(kernel(raw=raw, gpu_name="H100", kernel_duration=1e-3, inst_executed=384))


@functools.cache
def large(count: int, index: int = 0) -> Diagnosis:
    """A launch of ``count`` instructions whose counters are nowhere alike, five instructions a line."""
    rows = [
        (
            f"@P{i % 6} IMAD.WIDE.U32 R{i % 250}, R{i * 7 % 250}, 0x{i:x}, c[0x0][0x{i * 5 % 4096:x}]",
            {
                "inst": 1_000_003 * i % 99_999_989,
                "threads": 7_000_003 * i % 999_999_937,
                "samples": 31 * i % 9973,
                "long_scoreboard": 17 * i % 997,
                "short_scoreboard": 13 * i % 499,
                "wait": 11 * i % 97,
                "barrier": 7 * i % 89,
                "sectors": 3_000_017 * i % 9_999_991,
                "ideal": i,
                "wavefronts": 2_000_003 * i % 8_999_993,
                "ideal_wavefronts": i,
                "local": 1_000_033 * i % 7_999_993,
            },
            1 + i // 5,
        )
        for i in range(1, count + 1)
    ]
    text = "\n".join(
        f"        out[{i}] = alpha * in[{i}] + beta * out[{i}];  // {i}" for i in range(count // 5 + 2)
    )
    return launch(*rows, index=index, text=text)


def view_of(*found: Diagnosis) -> dict[str, Any]:
    return page_view(replace(FILE, launches=len(found)), found, generated="2026-11-29")


def page(*found: Diagnosis) -> str:
    return html.page(view_of(*found), plotly="directory")


def section(*found: Diagnosis) -> dict[str, Any]:
    result: dict[str, Any] = view_of(*found)["kernel"]["source"]
    return result


# ------------------------------------------------------------------- data


def unrun(packed: list[Any]) -> list[Any]:
    return [x for value, n in zip(packed[::2], packed[1::2], strict=True) for x in [value] * n]


def ungap(packed: list[int], count: int) -> list[int]:
    found, at = [0] * count, -1
    for distance, value in zip(packed[::2], packed[1::2], strict=True):
        at += distance
        found[at] = value
    return found


@given(st.lists(st.one_of(st.integers(-3, 3), st.none(), st.booleans(), st.text(max_size=1))))
def test_runs_say_every_value_again(values: list[Any]) -> None:
    assert [repr(x) for x in unrun(runs(values))] == [repr(x) for x in values]


@given(st.lists(st.integers(0, 2**64)))
def test_gaps_say_every_count_again(column: list[int]) -> None:
    assert ungap(gaps(column), len(column)) == column


def test_the_data_of_a_launch_keep_to_the_schema() -> None:
    found = launch(*ROWS, text=TEXT)
    view = source_view(found.kernel)
    assert view is not None
    text = kernel_text(found.kernel, diagnosis=found, more={"source": plain(view)})
    document = json.loads("".join(report_text("a.ncu-rep", [text])))
    Draft202012Validator(json.loads(schema("ncukit.kernel/1"))).validate(document)
    assert document["kernels"][0]["source"]["stalls"]["long_scoreboard"] == [0, 0, 700, 0, 0, 0]
    assert document["kernels"][0]["hot_lines"][0]["place"] == "a.cu:8"


def test_a_page_with_sass_stays_small(pages: Path) -> None:
    assert len(page(large(3_000)).encode()) < 1_000_000
    assert (pages / "large.html").stat().st_size < 5_000_000


@pytest.mark.parametrize(("count", "budget"), [(150, 3_000_000), (1_000, 2_000_000)])
def test_a_page_of_many_launches_with_hot_lines_stays_small(count: int, budget: int) -> None:
    hot = large(60).hot
    found = [replace(d, hot=hot) for d in diagnoses.many(count)]
    text = page(*found)
    assert hot[0].place in text
    assert len(text.encode()) < budget


# ------------------------------------------------------------------- the listing


def test_the_source_of_a_short_kernel_is_listed_as_a_whole() -> None:
    listed = section(launch(*ROWS[:4], text="\n".join(TEXT.split("\n")[:12])))["lines"]
    assert [row["number"] for row in listed] == list(range(1, 13))
    assert {row["number"]: row["share"].replace("\u202f", "") for row in listed if row["cost"]} == {
        3: "", 7: "17.9%", 8: "82.1%",
    }  # fmt: skip


def test_of_a_long_one_the_hottest_lines_with_two_around_them() -> None:
    listed = section(launch(*ROWS, text=TEXT))["lines"]
    assert [row["number"] for row in listed] == [5, 6, 7, 8, 9, 10, 58, 59, 60, 61, 62]


def test_columns_that_are_zero_everywhere_are_named_and_not_shown() -> None:
    rows = [(sass, {**cost, "divergent": 0}, line) for sass, cost, line in ROWS]
    found = section(launch(*rows, text=TEXT))
    shown = [id for id, _, _ in found["data"]["columns"]]
    assert shown == ["instructions", "threads", "sectors", "excess_sectors"]
    assert "divergent" in found["zero"]
    assert "wavefronts" not in found["zero"]  # not collected: not zero


def test_every_column_says_what_it_counts_and_its_sum() -> None:
    meanings = {m["name"]: m for m in section(launch(*ROWS, text=TEXT))["meanings"]}
    excess = meanings["Excess sectors"]
    assert excess["total"].startswith("192")
    assert excess["raw"] == (
        "memory_l2_theoretical_sectors_global − memory_l2_theoretical_sectors_global_ideal"
    )


def test_without_counters_by_instruction_the_command_is_said() -> None:
    found = section(diagnoses.transpose())
    assert "SourceCounters" in found["collect"]
    assert "No source counters." in page(diagnoses.transpose())


def test_vanished_sources_are_said_and_the_compiler_that_wrote_them() -> None:
    text = page(launch(*ROWS, file="/tmp/torchinductor_me/ab/cabc.py"))
    assert "Inductor wrote some of them into a cache, from which they vanish." in text
    assert "<small>source not found; hottest:</small> @!P0 FADD R3, R2, R2" in text


def test_without_line_information_there_is_sass_alone_and_how_to_get_lines() -> None:
    text = page(launch(*(row[:2] for row in ROWS)))
    assert "No line information: build with <code>nvcc -lineinfo</code>" in text
    assert "The hottest of 6 instructions" in text


# ------------------------------------------------------------------- in a browser

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
PAGES: dict[str, Callable[[], list[Diagnosis]]] = {
    "small": lambda: [launch(*ROWS, text=TEXT)],
    "large": lambda: [large(20_000)],
    "found": lambda: [
        replace(launch(*ROWS, text=TEXT), findings=(Finding("x", "memory", "Slow", "high", source="a.cu:7"),))
    ],
    "lost": lambda: [launch(*ROWS)],
    "bare": lambda: [launch(*(row[:2] for row in ROWS))],
    "long": lambda: [
        launch(
            (
                "@!P2  LEA.HI.X R9, R3, c[0x0][0x174], RZ, 0x3, P1",
                {"inst": 9, "math_pipe_throttle": 90, "wait": 7},
            ),
            ("@P0 LDG.E.64.CONSTANT R12, [R10.64+0x1000]", {"inst": 9, "short_scoreboard": 90}),
        )
    ],
    "unsampled": lambda: [launch(("NOP", {"inst": 3}), ("EXIT", {"inst": 1}))],
    "sectors": lambda: [launch(("LDG.E R2, [R4.64]", {"sectors": 9, "ideal": 4}, 1), text="x = y;")],
    "two": lambda: [launch(*ROWS, text=TEXT), launch(*ROWS[:4], index=1, text=TEXT)],
    "many": lambda: [replace(d, hot=launch(*ROWS, text=TEXT).hot) for d in diagnoses.many(3)],
    "lazy": lambda: [replace(d, hot=launch(*ROWS, text=TEXT).hot) for d in diagnoses.many(201)],
    "hostile": lambda: [
        launch(
            (HOSTILE, {"inst": 5, "wait": 9}, 1),
            ("@P0 EXIT", {"inst": 5, "wait": 1}, 2),
            file=f"/src/{HOSTILE.replace('/', '')}.cu",
            text=f'=cmd|"/c calc"!A1\n-1+2 {HOSTILE}'.replace("\u2028", ""),
        )
    ],
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source-pages")
    for name, make in PAGES.items():
        html.write_page(folder / f"{name}.html", view_of(*make()), plotly="directory")
    return folder


def lines(tab: Any) -> Any:
    return tab.locator("table[aria-label=Source]").first


def sass(tab: Any) -> Any:
    return tab.locator("table[aria-label=SASS]").first


def column(table: Any, n: int) -> list[str]:
    """Return the texts of a column of the rows in sight."""
    return [text.replace("\u202f", "") for text in table.locator(f"tr.r td:nth-child({n})").all_inner_texts()]


pytest_browser = pytest.mark.browser


@pytest_browser
def test_a_line_marks_its_instructions_and_an_instruction_its_line(visit: Callable[..., Any]) -> None:
    tab = visit("small")
    lines(tab).locator("tr.r", has_text="statement(7)").click()
    assert sass(tab).locator("tr.on td.src").all_inner_texts() == ["LDG.E R2, [R4.64]", "FFMA R9, R3, R3, R9"]
    assert "a.cu:7" in tab.locator(".picked").inner_text()
    assert "2 instructions" in tab.locator(".picked").inner_text()
    sass(tab).locator("tr.r", has_text="FADD").click()
    assert lines(tab).locator("tr.on td.src").all_inner_texts() == ["    statement(8);"]
    assert sass(tab).locator("tr.cause td.src").all_inner_texts() == ["LDG.E R2, [R4.64]"]
    assert "waits for LDG.E R2, [R4.64] at +0x10, a.cu:7" in tab.locator(".picked").inner_text()


@pytest_browser
def test_no_instruction_and_no_reason_is_cut(visit: Callable[..., Any]) -> None:
    cells = sass(visit("long", width=1280)).locator("td.src, td.why")
    assert cells.count() == 4
    cut = "all => all.filter(td => td.scrollWidth > td.clientWidth).map(td => td.textContent)"
    assert cells.evaluate_all(cut) == []


def test_of_few_samples_it_is_said_that_they_do_not_rank() -> None:
    few = launch(("EXIT", {"inst": 1, "wait": 2}), ("NOP", {"inst": 1, "wait": 1}))
    assert hot_caption(few.hot) == "Hot lines, by 3 samples: too few to rank them."
    assert "too few" not in hot_caption(launch(*ROWS).hot)


@pytest_browser
def test_all_of_it_works_with_the_keyboard(visit: Callable[..., Any]) -> None:
    tab = visit("small")
    lines(tab).focus()
    tab.keyboard.press("End")
    tab.keyboard.press("Home")
    for _ in range(3):
        tab.keyboard.press("ArrowDown")
    current = lines(tab).get_attribute("aria-activedescendant")
    assert tab.locator(f"[id='{current}'] td.src").inner_text() == "    statement(8);"
    assert sass(tab).locator("tr.on").count() == 1
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == "SASS"
    assert sass(tab).locator("tr.cur td.src").inner_text() == "@!P0 FADD R3, R2, R2"
    tab.keyboard.press("ArrowUp")
    assert lines(tab).locator("tr.on td.at").inner_text() == "7"
    tab.keyboard.press("Escape")
    assert tab.locator("tr.on, tr.cur").count() == 0


@pytest_browser
def test_without_lines_enter_goes_to_what_an_instruction_waits_for(visit: Callable[..., Any]) -> None:
    tab = visit("bare")
    assert tab.locator("table[role=grid]").count() == 1
    sass(tab).locator("tr.r", has_text="FADD").click()
    tab.keyboard.press("Enter")
    assert sass(tab).locator("tr.cur td.src").inner_text() == "LDG.E R2, [R4.64]"


@pytest_browser
def test_columns_sort_and_the_order_is_said(visit: Callable[..., Any]) -> None:
    tab = visit("small")
    head = sass(tab).locator("th", has_text="Samples")
    head.locator("button").click()
    assert column(sass(tab), 2) == ["78.0%", "15.0%", "5.0%", "2.0%", "", ""]
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").click()
    assert column(sass(tab), 2)[-1] == "78.0%"
    sass(tab).locator("th", has_text="Excess").locator("button").click()
    assert column(sass(tab), 4)[0] == "LDG.E R2, [R4.64]"
    sass(tab).locator("th", has_text="Offset").locator("button").click()
    assert column(sass(tab), 1) == ["0000", "0010", "0020", "0030", "0040", "0050"]


@pytest_browser
def test_a_filter_and_the_hot_switch_leave_what_fits(visit: Callable[..., Any]) -> None:
    tab = visit("small")
    box = tab.locator("section.source .ctl", has_text="SASS")
    box.locator("input[type=search]").fill("r3, r3")
    assert column(sass(tab), 4) == ["FFMA R9, R3, R3, R9"]
    assert box.locator(".count").inner_text() == "1 of 6 instructions"
    box.locator("input[type=search]").fill("no such thing")
    assert "Nothing matches." in sass(tab).inner_text()
    box.locator("input[type=search]").fill("")
    box.locator("input[type=checkbox]").check()
    assert column(sass(tab), 4) == [
        "LDG.E R2, [R4.64]", "@!P0 FADD R3, R2, R2", "FFMA R9, R3, R3, R9", "STG.E [R6.64], R3",
    ]  # fmt: skip
    lines(tab).locator("tr.r", has_text="statement(7)").click()
    box.locator("input[type=search]").fill("EXIT")
    lines(tab).locator("tr.r", has_text="statement(8)").click()  # its instruction is hidden: shown again
    assert sass(tab).locator("tr.on").count() == 1


@pytest_browser
def test_twenty_thousand_instructions_stay_responsive(visit: Callable[..., Any]) -> None:
    tab = visit("large")
    assert sass(tab).get_attribute("aria-rowcount") == "20001"
    assert tab.locator("section.source tr").count() < 400
    spent = tab.evaluate(
        """async () => {
        const box = document.querySelectorAll('section.source .code')[1], t = performance.now();
        for (const part of [0.2, 0.9, 0.4, 1]) {
          box.scrollTop = part * box.scrollHeight;
          await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        }
        return performance.now() - t; }"""
    )
    assert sass(tab).locator("tr.r").last.locator("td").first.inner_text() == f"{16 * 19_999:04x}"
    assert tab.locator("section.source tr").count() < 400
    sorting = tab.evaluate(
        """() => { const t = performance.now();
        document.querySelectorAll('section.source [data-key=w]')[1].click(); return performance.now() - t }"""
    )
    sass(tab).focus()
    tab.keyboard.press("End")
    assert sass(tab).locator("tr.cur").count() == 1
    assert (spent, sorting) < (2_000, 2_000)  # on a loaded machine; some tens of ms on a quiet one


@pytest_browser
@pytest.mark.parametrize("name", ["small", "large", "two", "hostile"])
def test_the_page_never_scrolls_sideways(visit: Callable[..., Any], name: str) -> None:
    tab = visit(name)
    for width in (375, 1020, 1600):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


@pytest_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["small", "lost"])
def test_every_text_can_be_read_in_both_themes(visit: Callable[..., Any], name: str, scheme: str) -> None:
    tab = visit(name, scheme=scheme)
    lines(tab).locator("tr.r", has_text="8").first.click()
    ratios = tab.evaluate(
        """() => {
        const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(x => x / 255)
          .map(x => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b };
        const ground = e => { for (; e; e = e.parentElement) {
          const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c } };
        return [...document.querySelectorAll('.code td, .code td .lost, .code th, .picked')]
          .filter(e => e.textContent.trim())
          .map(e => [light(getComputedStyle(e).color), light(ground(e))].sort((a, b) => b - a))
          .map(([a, b]) => (a + 0.05) / (b + 0.05)); }"""
    )
    assert len(ratios) > 50
    assert min(ratios) >= 4.5


@pytest_browser
@pytest.mark.parametrize("name", ["large", "long", "small"])
def test_the_listing_fits_a_printed_page(visit: Callable[..., Any], name: str) -> None:
    tab = visit(name, width=720)
    tab.emulate_media(media="print")
    widest = "Math.max(...[...document.querySelectorAll('.srct')].map(t => t.getBoundingClientRect().right))"
    assert 300 < tab.evaluate(widest) <= 720


@pytest_browser
def test_print_shows_the_hottest_lines_and_no_switches(visit: Callable[..., Any]) -> None:
    tab = visit("large")
    assert not tab.locator(".printed").is_visible()
    tab.emulate_media(media="print")
    assert tab.locator(".printed").is_visible()
    assert not tab.locator(".panes").is_visible()
    assert not tab.locator("#download").is_visible()
    assert tab.locator(".printed table").count() == 2
    assert tab.locator(".printed tbody tr").count() < 80


@pytest_browser
def test_without_a_script_the_listing_shows(visit: Callable[..., Any]) -> None:
    tab = visit("small", java_script_enabled=False)
    assert tab.locator(".printed").is_visible()
    assert not tab.locator("#download").is_visible()
    assert "statement(8);" in tab.locator(".printed").inner_text()


@pytest_browser
def test_a_link_to_a_line_picks_it(visit: Callable[..., Any]) -> None:
    tab = visit("small", hash="#line-60")
    assert lines(tab).locator("tr.cur td.at").inner_text() == "60"
    assert sass(tab).locator("tr.on").count() == 2


@pytest_browser
def test_a_line_that_a_finding_names_is_a_link_to_it(visit: Callable[..., Any]) -> None:
    tab = visit("found")
    tab.locator(".finds a", has_text="a.cu:7").first.click()
    assert lines(tab).locator("tr.cur td.at").inner_text() == "7"


@pytest_browser
def test_each_launch_in_a_fold_has_its_own_lists(visit: Callable[..., Any]) -> None:
    tab = visit("two", hash="#kernel-2-line-8")
    second = tab.locator("#kernel-2-source")
    assert second.locator("tr.cur td.at").inner_text() == "8"
    assert tab.locator("#kernel-1-source tr.cur").count() == 0


@pytest_browser
def test_without_samples_executed_instructions_are_shares(visit: Callable[..., Any]) -> None:
    tab = visit("unsampled")
    assert column(sass(tab), 2) == ["75.0%", "25.0%"]
    assert "which of them cost time is not known" in tab.locator("section.source").inner_text()


@pytest_browser
def test_a_report_that_counted_sectors_alone_lists_them(visit: Callable[..., Any]) -> None:
    tab = visit("sectors")
    assert column(sass(tab), 4) == ["9"]
    assert column(sass(tab), 5) == ["5"]
    assert column(lines(tab), 3) == ["x = y;"]
    rows = list(csv.DictReader(io.StringIO(downloaded(tab, "sass"))))
    assert [(row["sectors"], row["excess_sectors"], row["share_pct"]) for row in rows] == [("9", "5", "")]


def downloaded(tab: Any, what: str) -> str:
    tab.locator("#download summary").click()
    with tab.expect_download() as found:
        tab.locator(f"[data-dl={what}]").click()
    return Path(found.value.path()).read_text(encoding="utf-8")


@pytest_browser
def test_the_page_gives_all_its_data_as_json(visit: Callable[..., Any]) -> None:
    found = launch(*ROWS, text=TEXT)
    view = source_view(found.kernel)
    assert view is not None
    expected = json.loads(kernel_text(found.kernel, diagnosis=found, more={"source": plain(view)}))
    document = json.loads(downloaded(visit("small"), "json"))
    assert (document["schema"], document["file"]) == ("ncukit.kernel/1", "transpose.ncu-rep")
    assert document["kernels"] == [expected]


@pytest_browser
def test_the_page_of_many_launches_gives_metrics_verdicts_and_hot_lines(visit: Callable[..., Any]) -> None:
    tab = visit("many")
    document = json.loads(downloaded(tab, "json"))
    Draft202012Validator(json.loads(schema("ncukit.kernel/1"))).validate(document)
    for kernel_, found in zip(document["kernels"], PAGES["many"](), strict=True):
        expected = json.loads(kernel_text(found.kernel, diagnosis=found))
        assert kernel_ == {key: expected[key] for key in kernel_}
        assert {"metrics", "verdict", "hot_lines"} <= set(kernel_)
    rows = list(csv.DictReader(io.StringIO(downloaded(tab, "hot"))))
    assert [row["place"] for row in rows[:2]] == ["a.cu:8", "a.cu:7"]
    assert len(rows) == 3 * 3


@pytest_browser
def test_a_fold_that_is_built_when_opened_has_its_hot_lines(visit: Callable[..., Any]) -> None:
    tab = visit("lazy", hash="#kernel-120")
    table = tab.locator("#kernel-120 table.hotl")
    table.wait_for()
    assert table.locator("tbody tr").first.inner_text().split("\t")[0] == "a.cu:8"
    document = json.loads(downloaded(tab, "json"))
    assert len(document["kernels"]) == 201
    assert "kernel_duration" in document["kernels"][200]["metrics"]


@pytest_browser
def test_metrics_lines_and_sass_as_csv(visit: Callable[..., Any]) -> None:
    tab = visit("small")
    metrics = {row["metric"]: row for row in csv.DictReader(io.StringIO(downloaded(tab, "metrics")))}
    assert (metrics["kernel_duration"]["value"], metrics["kernel_duration"]["unit"]) == ("0.001", "s")
    assert metrics["dram_bytes"]["value"] == ""
    assert metrics["dram_bytes"]["reason"]
    code_rows = list(csv.DictReader(io.StringIO(downloaded(tab, "sass"))))
    assert [row["sass"] for row in code_rows][1::3] == ["LDG.E R2, [R4.64]", "STG.E [R6.64], R3"]
    assert (code_rows[2]["stall_long_scoreboard"], code_rows[2]["waits_for_offset"]) == ("700", "16")
    by_line = {row["line"]: row for row in csv.DictReader(io.StringIO(downloaded(tab, "lines")))}
    assert (by_line["7"]["waiting"], by_line["7"]["share_pct"]) == ("170", "17")
    assert by_line["7"]["text"] == "    statement(7);"


@pytest_browser
def test_no_cell_of_a_csv_is_a_formula(visit: Callable[..., Any]) -> None:
    tab = visit("hostile")
    assert tab.locator("img").count() == 0
    for what in ("lines", "sass", "metrics"):
        for row in csv.reader(io.StringIO(downloaded(tab, what))):
            assert [x for x in row if x.lstrip()[:1] in ("=", "+", "-", "@")] == []
    rows = list(csv.DictReader(io.StringIO(downloaded(tab, "sass"))))
    assert rows[1]["sass"] == "'@P0 EXIT"
