"""Real reports against real reports: GPUs and versions compare with sensible rows and reasons."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

import ncukit
from ncukit.comparison import compare
from ncukit.comparison.baseline import Choice, read_side
from ncukit.comparison.facts import explain
from ncukit.comparison.gates import apply, parse
from ncukit.comparison.pairs import Steering
from ncukit.model.comparison import Comparison, Pair, Row, Side
from ncukit.render.compare.json import comparison_text
from ncukit.render.compare.markdown import markdown_text
from ncukit.render.compare.page import page_view
from ncukit.render.compare.text import comparison_text as terminal
from ncukit.render.html import page
from ncukit.schemas import text as schema_text
from tests.conftest import reports
from tests.test_html import Page

Compared = Callable[..., Comparison]
PAIRS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "A100, H100": (
        "sm80-a100-pcie-40gb-ncu2021.2-02", "sm90-h100-80gb-hbm3-ncu2024.1-m01", ("node=sgemm",)
    ),
    "A100, H800": ("sm80-a100-80gb-pcie-ncu2024.1-02", "sm90-h800-ncu2023.3-01", ("1=1",)),
    "H800, GH200": ("sm90-h800-ncu2023.3-01", "sm90-gh200-480gb-ncu2025.1-01", ()),
    "T4, RTX 4090": (
        "sm75-t4-ncu2024.2-01", "sm89-rtx-4090-ncu2023.1-04", ("matrix_addition2D=copyGmem",)
    ),
    "GH200, algorithms": ("sm90-gh200-120gb-ncu2025.2-01", "sm90-gh200-120gb-ncu2025.2-02", ()),
    "GTX 1660 Super, versions": (
        "sm75-gtx-1660-super-ncu2024.1-01", "sm75-gtx-1660-super-ncu2024.1-02",
        ("naive_gemm=sgemm_global",),
    ),
    "RTX 3070, RTX 5060 Ti": (
        "sm86-rtx-3070-ncu2022.3-01", "sm120-rtx-5060-ti-ncu2025.2-01", ("VecAdd=regex:^transposeMatrix$",)
    ),
    "GB10, versions": ("sm121-gb10-ncu2026.1-m01", "sm121-gb10-ncu2026.1-m02", ()),
    "GTX 1660 Ti, RTX 4090": ("sm75-gtx-1660-ti-ncu2022.4-01", "sm89-rtx-4090-ncu2023.1-01", ()),
    "B200, RTX 4060 Ti": (
        "sm100-b200-ncu2025.3-m02", "sm89-rtx-4060-ti-ncu2025.4-m01", ()
    ),
}  # fmt: skip
each_pair = pytest.mark.parametrize("names", PAIRS)


@cache
def side(name: str) -> Side:
    path = next(path for path in reports() if path.stem == name)
    return read_side(path, Choice())


@cache
def of(names: str) -> Comparison:
    base, other, words = PAIRS[names]
    return compare(side(base), [side(other)], steering=Steering.of(words))


def first(names: str) -> Pair:
    return of(names).pairs[0]


def row(names: str, id: str) -> Row:
    found = first(names).row(id)
    assert found is not None
    return found


@each_pair
def test_every_row_has_a_change_or_a_reason(names: str, shared: Path) -> None:
    for pair in of(names).pairs:
        for found in pair.rows:
            if found.reading == "unknown":
                assert found.change is None
                assert found.reason.split(":")[0] in ("base", "other", "both"), found
            elif found.reading == "not-comparable":
                assert found.change is None
                assert found.why, found.id
            elif not isinstance(found.base.value, str):
                assert found.change is not None or found.base.unit == "bool", found.id
            assert found.comparable == "same" or found.why, found.id


@each_pair
def test_every_page_renders_whole_and_small(names: str, shared: Path) -> None:
    view = page_view(of(names), generated="2026-11-29 17:50 UTC")
    text = page(view, plotly="directory")
    found = Page(text)
    assert (found.faults, found.open) == ([], [])
    assert len(text.encode()) < 300_000
    assert all(len(json.dumps(figure)) < 15_000 for figure in view["figures"].values())


@each_pair
def test_the_other_formats_hold(names: str, shared: Path) -> None:
    schema = Draft202012Validator(json.loads(schema_text("ncukit.comparison/1")))
    fault = best_match(schema.iter_errors(json.loads(comparison_text(of(names)))))
    assert fault is None, f"{fault.json_path}: {fault.message}"
    text = terminal(of(names), color=False, encoding="utf-8", verbose=True)
    assert max(map(len, text.splitlines())) <= 80
    assert len(markdown_text(of(names))) < 65_000  # what a comment of GitHub holds


@each_pair
def test_no_folder_of_a_machine_is_shown(names: str, shared: Path) -> None:
    text = json.dumps(page_view(of(names), generated="")["provenance"])
    assert "/home/" not in text
    assert "/users/" not in text
    assert "/root/" not in text


# The two GH200 reports of one program: two algorithms for the same table


def test_two_algorithms_of_one_program_are_told_apart(shared: Path) -> None:
    pair = first("GH200, algorithms")
    assert pair.matched == "function, grid and NVTX range; the signatures differ"
    assert pair.same_gpu
    assert pair.summary.trend == "slower"
    assert pair.summary.speedup == pytest.approx(86532768 / 584798336)
    assert "the limit moved from L1/TEX (memory-bound) to occupancy (latency-bound)" in pair.summary.claim
    assert row("GH200, algorithms", "registers_per_thread").change == pytest.approx(100 * 27 / 62)
    assert row("GH200, algorithms", "shared_mem_dynamic").reading == "moved"


def test_the_same_clocks_modes_and_tool_are_found_in_the_files(shared: Path) -> None:
    facts = {fact.id: fact.status for fact in first("GH200, algorithms").facts}
    assert {id: facts[id] for id in ("gpu", "clocks", "caches", "tool", "collected")} == {
        "gpu": "ok", "clocks": "ok", "caches": "ok", "tool": "ok", "collected": "ok",
    }  # fmt: skip
    assert (facts["shape"], facts["kernel"], facts["work"]) == ("warn", "warn", "no")


def test_a_basic_report_explains_by_the_busy_time_of_its_units(shared: Path) -> None:
    explained = {r.id: r.explains for r in first("GH200, algorithms").rows if r.explains is not None}
    assert max(explained, key=lambda id: explained[id] or 0) == "sm_throughput_pct"
    assert (explained["l1_throughput_pct"] or 0) < 0  # it was the limit, and pulled the other way


def test_gates_trip_and_pass_on_a_real_pair(shared: Path) -> None:
    gates = ("dram_bytes > +5%", "kernel_duration > 1.02x", "registers_per_thread > 255", "spill_inst > 0")
    found = apply(of("GH200, algorithms"), [parse(text) for text in gates])
    assert [outcome.state for outcome in found.gates] == ["tripped", "tripped", "passed", "undecided"]
    assert found.gates[3].message.startswith(
        "cannot be decided: other: not collected: section SourceCounters"
    )
    back = compare(side(PAIRS["GH200, algorithms"][1]), [side(PAIRS["GH200, algorithms"][0])])
    found = apply(back, [parse(text) for text in gates[:2]])
    assert [outcome.state for outcome in found.gates] == ["passed", "passed"]


# Across architectures


@pytest.mark.parametrize("names", ["A100, H100", "T4, RTX 4090", "B200, RTX 4060 Ti"])
def test_between_architectures_nothing_is_called_better_without_a_ground(names: str, shared: Path) -> None:
    pair = first(names)
    assert not pair.same_gpu
    assert next(fact for fact in pair.facts if fact.id == "gpu").status == "warn"
    classes = {found.comparable for found in pair.rows}
    assert classes == {"same", "share", "no"}
    for id in ("sm_throughput_pct", "pipe_tensor_pct"):
        assert row(names, id).comparable in ("no", "share")


@pytest.mark.parametrize(
    ("names", "id", "comparable", "why"),
    [
        ("A100, H100", "sm_throughput_pct", "no", "list different units"),
        ("A100, H100", "dram_throughput_pct", "share", "share of its own peak"),
        ("A100, H100", "l2_hit_rate_pct", "same", ""),
        ("A100, H100", "flops_fp64", "same", ""),
        ("T4, RTX 4090", "l2_hit_rate_pct", "same", ""),
        ("T4, RTX 4090", "achieved_occupancy_pct", "share", "(32 and 48)"),
        ("T4, RTX 4090", "pipe_fp16_pct", "no", "FMA pipe"),
        ("T4, RTX 4090", "dram_bytes", "same", ""),
        ("A100, H800", "stall_share_tensor_sync_pct", "no", "only CC 9.0"),
        ("B200, RTX 4060 Ti", "stall_cycles_constant_cache_miss", "no", "from CC 10.0 there is no state"),
    ],
)
def test_reasons_on_real_reports(names: str, id: str, comparable: str, why: str, shared: Path) -> None:
    found = row(names, id)
    assert found.comparable == comparable
    assert why in found.why


def test_rates_of_two_gpus_are_shares_of_their_own_peaks(shared: Path) -> None:
    found = row("T4, RTX 4090", "dram_bandwidth")
    base, other = found.shares
    assert found.comparable == "share"
    assert base == pytest.approx(88, abs=2)
    assert other == pytest.approx(94, abs=2)
    assert found.change is not None
    assert found.change > 100  # many more bytes a second, and about as near to what each could


def test_what_one_side_did_not_collect_is_unknown_with_its_reason(shared: Path) -> None:
    found = row("H800, GH200", "flops_fp32")
    assert found.base.known
    assert (found.change, found.reading) == (None, "unknown")
    assert found.reason.startswith("other: not collected: section ")
    assert next(f for f in first("H800, GH200").facts if f.id == "collected").status == "warn"


def test_another_architecture_without_dram_counters_is_unknown_and_says_why(shared: Path) -> None:
    found = row("RTX 3070, RTX 5060 Ti", "dram_bytes")
    assert found.base.known
    assert found.reason.startswith("other: not collected")


def test_a_gpu_without_dram_unit_says_so(shared: Path) -> None:
    assert row("GB10, versions", "dram_bytes").reason.startswith("both: not on this GPU (CC 12.1)")


def test_another_kernel_on_another_gpu_is_not_called_faster(shared: Path) -> None:
    claim = first("T4, RTX 4090").summary.claim
    assert claim.startswith("Other work on another GPU: 52.6\u202fµs on Tesla T4, 127\u202fµs on ")


def test_launches_without_a_counterpart_are_listed(shared: Path) -> None:
    (against,) = of("T4, RTX 4090").others
    assert [u.sample.kernel.name for u in against.only_other] == [
        "naiveGmem", "transposeSmem", "transposeSmemPad", "transposeSmemUnrollPad",
    ]  # fmt: skip


# Versions on one GPU


def test_another_version_of_the_same_work_is_judged_by_its_time(shared: Path) -> None:
    pair = first("GTX 1660 Super, versions")
    assert pair.same_gpu
    assert pair.summary.trend == "faster"
    assert row("GTX 1660 Super, versions", "flops_fp32").reading == "same"
    assert next(fact for fact in pair.facts if fact.id == "work").status == "ok"
    assert next(fact for fact in pair.facts if fact.id == "spread").text.startswith("Base 4.79")


def test_the_issue_account_closes_on_real_reports(shared: Path) -> None:
    """Instructions x cycles / (warps x SMs x clock) is the duration: no more than a rest of 10 % is left."""
    terms = (
        *("inst_executed", "warp_cycles_per_issued_instruction", "warps_active_per_scheduler"),
        *("sm_active_pct", "sm_clock", "sm_count"),
    )
    for names in ("GTX 1660 Super, versions", "T4, RTX 4090", "A100, H100"):
        pair = first(names)
        account = explain({r.id: r for r in pair.rows}, pair.base.kernel, pair.other.kernel)
        found = {id: share for id, (share, _) in account.items()}
        assert sum(found[id] for id in terms) == pytest.approx(100, abs=10), names
        parts = sum(share for id, share in found.items() if id.startswith("stall_cycles_"))
        assert parts == pytest.approx(found["warp_cycles_per_issued_instruction"], abs=10), names


def test_source_lines_that_changed_are_matched_by_their_text(shared: Path) -> None:
    path = next(path for path in reports() if path.stem == "sm89-rtx-4090-ncu2023.1-04")
    base, other = (
        read_side(path, Choice(lambda k, n=name: k.name == n, lines=True))
        for name in ("transposeSmem", "transposeSmemPad")
    )
    (pair,) = compare(base, [other]).pairs
    assert pair.no_lines == ""
    (line, *_) = pair.lines
    assert line.text == "smemTranspose.cu: tile[threadIdx.y][threadIdx.x] = mat[idx];"
    assert (line.base_line, line.other_line) == (65, 103)


def test_a_hundred_launches_of_one_shape_are_repeats_with_a_spread(shared: Path) -> None:
    (sample,) = side("sm86-rtx-3050-ti-laptop-gpu-ncu2022.4-m01").samples
    assert sample.repeats == 100
    low, high = sample.spread["kernel_duration"]
    assert low < (sample.duration or 0) < high


def test_a_baseline_of_a_real_report_compares_as_the_report_does(shared: Path, tmp_path: Path) -> None:
    from ncukit.comparison import baseline

    report = side("sm90-h800-ncu2023.3-01")
    baseline.write(tmp_path, "main", report, created="now")
    kept = baseline.read(tmp_path, "main")
    for pair in compare(kept, [report]).pairs:
        assert [r.id for r in pair.rows if r.change] == []
        assert all(r.base.value == r.other.value for r in pair.rows)


def test_frames_of_many_real_reports_are_one_table(shared: Path) -> None:
    paths = [path for path in reports() if "rtx-4090" in path.stem]
    table: Any = ncukit.read(paths).frame(form="wide")
    assert table["gpu"].unique().tolist() == ["NVIDIA GeForce RTX 4090"]
    by = ncukit.read([paths[0], *(p for p in reports() if "gtx-1660-ti" in p.stem)]).frame(by="gpu")
    assert list(by.columns) == ["NVIDIA GeForce RTX 4090", "NVIDIA GeForce GTX 1660 Ti"]
    assert by.loc[("warmingUp", "kernel_duration")].notna().all()
