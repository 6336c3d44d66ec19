"""Occupancy, findings and provenance on the page: what is said, what would lift it, what is unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from ncukit import schemas
from ncukit.judge import diagnose
from ncukit.judge.ledger import FactsOnDemand
from ncukit.model import Diagnosis, Evidence, Finding, Kernel, Place, Roofline, Value, Verdict
from ncukit.model.kernel import Recorded
from ncukit.render.cells import Cells, Tips
from ncukit.render.charts import charts_data
from ncukit.render.json import kernel_text, report_text
from ncukit.render.panels import Panel, panels
from ncukit.render.text import show_text
from ncukit.render.view import page_view
from ncukit.render.view.families import families
from ncukit.render.view.findings import findings
from ncukit.render.view.occupancy import section
from ncukit.render.view.verdict import HALF, verdict
from tests.builders import kernel
from tests.diagnoses import FILE, H100, H100_LIMITS, charted, transpose

LATENCY = Verdict("latency-bound", "occupancy", "medium", "Too few warps")
DRAM = Verdict("memory-bound", "dram", "high", "DRAM is full")


def on_h100(signals: dict[str, Any] | None = None, **launch: Any) -> Kernel:
    return kernel(signals=H100_LIMITS | (signals or {}), **{**H100, **launch})


def shown(made: Kernel, verdict: Verdict = DRAM) -> tuple[dict[str, Any], Any]:
    return section(Cells(made, Tips()), Diagnosis(made, Roofline(), verdict, facts=FactsOnDemand(made)))


def spoken(line: list[dict[str, Any]]) -> str:
    return "".join(
        part["cell"]["text"] if "cell" in part else str(next(iter(part.values()))) for part in line
    ).replace("\u202f", " ")


def words(part: dict[str, Any]) -> str:
    return " ".join(map(spoken, part["lift"]))


# Occupancy


def test_the_sentence_says_theoretical_achieved_and_what_sets_it() -> None:
    part, _ = shown(on_h100(block_size=256, registers_per_thread=80))
    text = spoken(part["sentence"])
    assert (
        text
        == "Theoretical 37.5 % (24 of 64 warps an SM, in 3 blocks); achieved: 70.0 %. It is set by registers."
    )


def test_a_tie_is_named_and_that_one_alone_changes_nothing() -> None:
    part, _ = shown(on_h100(block_size=384, registers_per_thread=168, shared_mem_dynamic=200 * 1024))
    assert "It is set by registers and shared memory, both at once." in spoken(part["sentence"])
    assert "relieving one of them alone changes nothing" in words(part)
    assert [row["name"] for row in part["limits"] if row["binds"]] == ["Registers", "Shared memory"]


def test_what_lets_one_more_block_fit_is_said_with_its_number() -> None:
    part, _ = shown(on_h100(block_size=256, registers_per_thread=80))
    assert "At most 64 registers a thread would let one more block fit." in words(part)
    assert next(row["next"] for row in part["limits"] if row["name"] == "Registers") == "64"


def test_more_occupancy_is_advised_only_where_the_verdict_names_it() -> None:
    made = on_h100(block_size=256, registers_per_thread=80)
    assert "need not be faster" in words(shown(made, DRAM)[0])
    assert "worth a try" in words(shown(made, LATENCY)[0])
    assert "Whether it limits is open" in words(
        shown(made, replace(DRAM, cls="undetermined", limiter=None))[0]
    )


def test_a_full_sm_needs_nothing() -> None:
    part, _ = shown(on_h100(block_size=256, registers_per_thread=32))
    assert "Every warp an SM can hold fits" in words(part)
    assert "need not be faster" not in words(part)


def test_a_grid_that_is_too_small_is_not_blamed_on_the_limits() -> None:
    part, _ = shown(on_h100({"launched_warps_per_scheduler": 1.0}, block_size=256, registers_per_thread=80))
    assert "it brings 4 warps to an SM, fewer than the 24 that fit" in words(part)


def test_the_loss_at_run_time_is_told_from_the_limit() -> None:
    part, _ = shown(on_h100(block_size=256, registers_per_thread=32))
    assert "30 points of it are lost while it runs" in words(part)


def test_a_smaller_carve_out_than_the_sm_could_have_is_said() -> None:
    part, _ = shown(
        on_h100(block_size=256, registers_per_thread=32, shared_mem_config=32_768, shared_mem_dynamic=20_000)
    )
    assert (
        "With 228 KiB of shared memory an SM instead of the 32 KiB of this run, 8 blocks would fit"
        in words(part)
    )


def test_without_device_attributes_it_is_unknown_and_says_what_is_missing() -> None:
    part, figure = shown(kernel(block_size=256))
    assert figure is None
    assert part["limits"] == []
    assert "Unknown: the registers a thread uses" in spoken(part["sentence"])
    assert "the size of the register file" in spoken(part["sentence"])


def test_the_figure_marks_this_launch_on_every_curve() -> None:
    part, figure = shown(on_h100(block_size=256, registers_per_thread=80, shared_mem_dynamic=10_240))
    marks = [trace for trace in figure["data"] if trace["mode"] == "markers"]
    assert [(mark["x"], mark["y"]) for mark in marks] == [([80], [24]), ([256], [24]), ([10.0], [24])]
    assert [row["axis"] for row in part["curves"]] == ["Registers", "Threads", "Shared memory"]
    assert part["curves"][0] == {
        "axis": "Registers", "here": "24 at 80", "better": "32 at 64", "worse": "16 at 81", "note": "",
    }  # fmt: skip
    assert "here, next more at 32 at 64" in part["label"]


def test_the_curve_drawn_is_the_curve_computed() -> None:
    made = on_h100(block_size=256, registers_per_thread=80)
    _, figure = shown(made)
    line = figure["data"][0]
    steps = dict(zip(line["x"], line["y"], strict=True))
    assert (steps[16], steps[81]) == (64, 16)
    assert line["line"]["shape"] == "hv"


# Panels


PANEL = Panel("Hits", [0.0, 1.0, 2.5], [1.0, 3.0, 2.0], ["a", "b<", "c"], (0.0, 2.5), 4.0, "x <&>")


@pytest.mark.parametrize("count", [1, 3, 5])
def test_panels_do_not_overlap_wide_or_slim(count: int) -> None:
    figure = panels([PANEL] * count, columns=3, height=100)
    assert figure is not None
    for axes in (figure["layout"], figure["slim"]):
        boxes = [
            (*axes[f"xaxis{n or ''}"]["domain"], *axes[f"yaxis{n or ''}"]["domain"])
            for n in [0, *range(2, count + 1)]
        ]
        for i, (x0, x1, y0, y1) in enumerate(boxes):
            assert 0 <= x0 < x1 <= 1
            assert 0 <= y0 < y1 <= 1
            for a0, a1, b0, b1 in boxes[i + 1 :]:
                assert x1 <= a0 or a1 <= x0 or y1 <= b0 or b1 <= y0
    assert figure["slim"]["height"] >= figure["layout"]["height"]


def test_words_of_a_panel_are_text_never_markup_and_plain_data() -> None:
    figure = panels([PANEL], columns=3, height=100)
    assert figure is not None
    text = json.dumps(figure)
    assert "b<" not in text
    assert "x &lt;&amp;&gt;" in text
    assert panels([], columns=3, height=100) is None


# Findings

FOUND = Finding(
    "uncoalesced", "memory", "Loads are uncoalesced", "high",
    detail="18 sectors a request.", advice="Let neighbouring threads load neighbouring words.",
    metrics={"x": Value("global_load_sectors_per_request", 18.0, "sector/request", "derived")},
    gain_pct=40.0, gain_kind="local", formula="the excess sectors over all sectors",
    against=(Evidence("l1_hit_rate_pct", 12.0, "%", "of them hit L1: the excess goes on to L2"),),
    watch="`global_load_sectors_per_request` falls to 4", disproved_if="it falls and the clean time does not",
    places=(Place("a.cu:12", 0x40, "  x = in[i * n];", 8000, "sector", 91.0, "the load itself"),),
)  # fmt: skip


def test_a_finding_shows_all_that_is_needed_to_test_it() -> None:
    made = replace(transpose(), findings=(FOUND,), skipped=())
    (row,) = findings(Cells(made.kernel, Tips()), made)["rows"]
    told = {r["name"]: spoken(r["text"]) for r in row["rows"]}
    assert told == {
        "Try": "Let neighbouring threads load neighbouring words.",
        "Watch": "global_load_sectors_per_request falls to 4",
        "Disproved if": "it falls and the clean time does not",
        "Gain": "Of one unit's work (local): the excess sectors over all sectors.",
    }
    assert spoken(row["against"][0]["text"]) == "of them hit L1: the excess goes on to L2"
    assert spoken(row["places"][0]) == "a.cu:12 x = in[i * n]; 8,000 sectors, 91.0 % of all; the load itself"
    assert (row["global"], row["local"]) == (None, "≈\u202f40.0\u202f%")


def test_every_finding_of_the_rules_says_how_to_test_it() -> None:
    made = diagnose(
        kernel(
            kernel_duration=1e-3, grid_size=4, block_size=32, sm_count=108, waves_per_sm=0.01,
            dram_throughput_pct=3.0, memory_throughput_pct=4.0, sm_throughput_pct=5.0, sm_active_pct=4.0,
            warps_issued_per_scheduler=0.05,
        )
    )  # fmt: skip
    rows = findings(Cells(made.kernel, Tips()), made)["rows"]
    assert rows
    for row in rows:
        assert {"Try", "Watch", "Disproved if"} <= {r["name"] for r in row["rows"]}, row["id"]


# Provenance

COMMAND = "/opt/nv/ncu --clock-control none --set full -o /home/someone/out.ncu-rep ./app --in=/data/x"
MADE = Recorded("2024.1.1", "560.35.03", "12.6", COMMAND, "none", "all")


def rows_of(made: Recorded) -> dict[str, str]:
    page = page_view(replace(FILE, made=made), [transpose()], generated="now")
    return {row["name"]: spoken(row["text"]) for row in page["provenance"]}


def facts_of(made: Recorded) -> dict[str, tuple[str, str]]:
    page = page_view(replace(FILE, made=made), [transpose()], generated="now")
    return {f["name"]: (f["word"], spoken(f["text"])) for f in page["kernel"]["quality"]["facts"]}


def test_what_the_report_says_about_its_making_is_on_the_page_with_its_source() -> None:
    rows = rows_of(MADE)
    assert rows["Profiled with"].startswith("ncu --clock-control none --set full -o out.ncu-rep app --in=x")
    assert rows["Versions"].startswith("ncu 2024.1.1, CUDA 12.6, driver 560.35.03, from the report.")
    assert rows["Clock control"].startswith("none (--clock-control of ncu’s command line). Clocks were left")
    assert rows["Cache control"].startswith(
        "all (ncu’s default; its command line names none). All caches were"
    )
    assert "/home" not in " ".join(rows.values())


def test_what_is_not_recorded_is_said_to_be_so() -> None:
    rows = rows_of(Recorded())
    assert rows["Profiled with"] == "The command line is not in the report."
    assert "ncu, CUDA, driver: not recorded in the report." in rows["Versions"]
    assert rows["Clock control"].startswith("Not recorded in the report")
    assert "ncu, CUDA: not recorded" in rows_of(Recorded(driver="1.2"))["Versions"]


def test_unlocked_clocks_and_warm_caches_are_cautions() -> None:
    assert facts_of(MADE)["Clocks"][0] == "! unlocked"
    assert facts_of(MADE)["Caches"][0] == "✓ cold"
    assert facts_of(replace(MADE, cache_control="none"))["Caches"][0] == "! warm"
    assert facts_of(Recorded())["Caches"][0] == "– not recorded"


# One story about tensor cores whose pipe counter reads half


def geforce(**changed: Any) -> Diagnosis:
    return diagnose(
        kernel(
            signals={"tensor_fp16_share_pct": 86.7, "tensor_busy_pct": 45.9, **changed.pop("signals", {})},
            **{
                "gpu_name": "NVIDIA GeForce RTX 4060 Ti",
                "compute_capability": 89,
                "kernel_duration": 1e-3,
                "sm_active_pct": 94.3,
                "pipe_tensor_pct": 43.3,
                "tensor_inst": 8_000_000,
                "flops_tensor_fp16": 3.4e13,
                "sm_throughput_pct": 43.3,
                "memory_throughput_pct": 42.0,
                "l2_throughput_pct": 42.0,
                "dram_throughput_pct": 4.6,
                "issue_slot_utilization_pct": 12.0,
                **changed,
            },
        )
    )


def test_the_claim_the_bars_and_the_finding_tell_one_story_about_tensor_cores() -> None:
    made = geforce()
    found = verdict(Cells(made.kernel, Tips()), made)
    assert "86.7 %" in spoken(found["claim"])
    bars = {bar["label"]: bar["cell"]["text"].replace("\u202f", " ") for bar in found["glance"]}
    assert bars["Tensor cores, by operations"] == "86.7 %"
    assert bars[HALF] == "43.3 %"
    assert "43.3" not in spoken(found["deck"])
    (busiest,) = [x for x in made.findings if x.id == "busiest-unit"]
    assert "at 91.9 % of peak while an SM has work (86.7 % of the whole time)" in busiest.title.replace(
        "\u202f", " "
    )
    foot = next(f for f in families(Cells(made.kernel, Tips()), ()) if f["id"].endswith("speed_of_light"))[
        "foot"
    ]
    assert "counter reads half here: by operations tensor cores reach 86.7 %" in spoken(foot)


def test_on_other_gpus_and_without_operations_the_pipe_counter_stands() -> None:
    for made in (geforce(compute_capability=80), geforce(signals={"tensor_fp16_share_pct": None})):
        labels = [bar["label"] for bar in verdict(Cells(made.kernel, Tips()), made)["glance"]]
        assert HALF not in labels


def test_where_l2_has_two_halves_its_bar_is_what_the_verdict_judges() -> None:
    made = diagnose(
        kernel(
            signals={"l2_return_pct": 69.4, "l2_input_pct": 40.0},
            compute_capability=90,
            l2_throughput_pct=88.3,
            dram_throughput_pct=68.5,
            memory_throughput_pct=69.4,
            sm_throughput_pct=30.0,
        )
    )
    bars = {bar["label"]: bar["cell"]["text"] for bar in verdict(Cells(made.kernel, Tips()), made)["glance"]}
    assert bars["L2 return port"] == "69.4\u202f%"
    assert "L2" not in bars


def test_dram_known_by_its_bytes_alone_has_a_bar_and_one_number() -> None:
    made = diagnose(
        kernel(
            signals={"dram_read_pct": 60.0, "dram_write_pct": 30.0},
            kernel_duration=1e-3,
            l2_throughput_pct=40.0,
        )
    )
    found = verdict(Cells(made.kernel, Tips()), made)
    assert {bar["label"]: bar["cell"]["text"] for bar in found["glance"] if bar["hot"]} == {
        "DRAM": "90.0\u202f%"
    }
    assert found["evidence"][0]["n"]["text"] == "90.0\u202f%"
    assert "90.0\u202f% of peak" in made.verdict.claim


def test_a_unit_outside_the_sm_has_one_number() -> None:
    made = diagnose(kernel(sm_active_pct=50.0, dram_throughput_pct=91.0, memory_throughput_pct=91.0))
    (busiest,) = [x for x in made.findings if x.id == "busiest-unit"]
    assert "whole time" not in busiest.title


# The same as JSON


def test_the_json_of_the_charts_holds_the_numbers_of_the_page() -> None:
    data = charts_data(charted())
    assert list(data) == ["memory", "occupancy", "issue_slots", "over_time"]
    links = {link["id"]: link for link in data["memory"]["links"]}
    assert (links["shared-loads"]["bytes"], links["shared-loads"]["share_pct"]) == (9e9, 84.6)
    assert (links["dram-writes"]["bytes"], links["dram-writes"]["reason"]) == (0, None)
    assert (links["peer-reads"]["bytes"], links["peer-reads"]["reason"]) == (None, "not given by the test")
    assert data["memory"]["hit_rates_pct"] == {"l1": 0.2, "l2": 50.0}
    assert (data["occupancy"]["warps"], data["occupancy"]["theoretical_pct"]) == (24, 37.5)
    assert data["issue_slots"]["issued_pct"] == pytest.approx(7.0)
    assert data["issue_slots"]["idle_pct"] == pytest.approx(3.0)
    (dram,) = data["over_time"]
    assert (dram["unit"], dram["times"][1], dram["values"][:2]) == ("%", 1e-6, [20.0, 21.0])


def test_what_was_not_collected_has_no_key_and_a_failed_launch_none() -> None:
    assert charts_data(diagnose(kernel())) == {}
    assert charts_data(diagnose(kernel(failed="the pass failed", dram_read_bytes=1))) == {}
    assert list(charts_data(diagnose(kernel(warps_issued_per_scheduler=0.3)))) == ["issue_slots"]


def test_the_json_of_a_diagnosis_with_charts_fits_its_schema() -> None:
    made = charted()
    text = "".join(report_text("a.ncu-rep", [kernel_text(made.kernel, diagnosis=made)]))
    schema = json.loads(Path(schemas.__file__).with_name("kernel-1.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(json.loads(text))


# The same in the terminal


def told(*, verbose: bool = False, width: int = 80, encoding: str = "utf-8") -> str:
    return show_text(FILE, [charted()], color=False, encoding=encoding, verbose=verbose, width=width)


def test_the_terminal_has_the_used_links_the_slots_and_the_binding_limit() -> None:
    text = told()
    for line in (
        "MEMORY  the limit is Shared memory; hit rates: L1/TEX 0.2 %, L2 50.0 %",
        "  shared loads  9.00 GB             84.6 %  █████████████▌··",
        "ISSUE SLOTS  Schedulers issue in 7.0 % of the cycles in which SMs work; the",
        "  Its issue slots: issued 7.0 %; empty 93.0 %",
        "  Memory queue full   78.4 %     72.9 %  L1/TEX 90.5 % (full)",
        "  registers       3  20,480 of 65,536           64",
        "OVER TIME  sampled: DRAM throughput (--verbose: values)",
    ):
        assert line in text.splitlines() or any(line in row for row in text.splitlines()), line
    assert "warps an SM, of 64" not in text
    assert "barriers" not in text


def test_verbose_adds_every_limit_the_what_ifs_and_the_values_over_time() -> None:
    text = told(verbose=True)
    assert "warps an SM, of 64, all else as launched" in text
    assert "  registers" in text
    assert "24 at 80  32 at 64        16 at 81" in text
    assert "DRAM throughput  48.5 %   79.0 %      400" in text


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_of_the_charts_is_wider_than_the_terminal(width: int, encoding: str) -> None:
    text = told(verbose=True, width=width, encoding=encoding)
    text.encode(encoding)
    body = text[text.index("MEMORY") : text.index("FINDINGS") if "FINDINGS" in text else None]
    assert [row for row in body.splitlines() if cell_len(row) > width and "ncu" not in row] == []
