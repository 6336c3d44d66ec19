"""A trace beside a report: one kernel found in both, each number from its own run, in page, text and JSON."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncukit import demo_reports, demo_traces, read, timeline, write_report
from ncukit.api import diagnose
from ncukit.errors import ReportError, UsageError
from ncukit.model import Kernel
from ncukit.model.diagnosis import ReportFile
from ncukit.model.trace import Timeline
from ncukit.quantity import NARROW
from ncukit.render.html import page
from ncukit.render.text import show_text
from ncukit.render.text.parts import flat
from ncukit.render.timeline.beside import Beside, beside
from ncukit.render.timeline.section import timeline_section
from ncukit.render.view import page_view
from ncukit.trace.launch_choice import Matcher
from ncukit.trace.nsys import open_trace
from ncukit.trace.region import analyse
from tests.builders import kernel, raw_kernel
from tests.command import Done, ncukit
from tests.nsys_builder import LAUNCH, Builder
from tests.torch_builder import training

US, MS = 1_000, 1_000_000
SHAPE = {
    **{"grid_dim_x": 64, "grid_dim_y": 1, "grid_dim_z": 1},
    **{"block_dim_x": 128, "block_dim_y": 1, "block_dim_z": 1, "registers_per_thread": 40},
}
SAMPLE = {path.stem: path for path in demo_reports()}["gemm-tensor"]
SEVERAL = {path.stem: path for path in demo_reports()}["several-launches"]
PAIRS = {
    "trace-10": "sm100-b200-ncu2025.2-01",
    "trace-07": "sm80-a100-pcie-40gb-ncu2020.3-02",
}


def measured(
    name: str = "gemm", demangled: str = "gemm(float *)", index: int = 0, **metrics: float
) -> Kernel:
    return kernel(
        raw=replace(raw_kernel(name, demangled=demangled), index=index),
        **{"dram_throughput_pct": 55.0, "kernel_duration": 2e-4, **SHAPE, **metrics},
    )


def traced(builder: Builder, folder: Path, **options: Any) -> Beside:
    return beside(builder.write(folder / "t.sqlite"), **options)


def steps(n: int = 20, **shape: Any) -> Builder:
    """Return a trace: every 600 us a gemm of 100 us, launched late, and a small kernel of 5 us."""
    shape = {"grid": (64, 1, 1), "block": (128, 1, 1), "registers": 40, **shape}
    builder = Builder()
    for i in range(n):
        at = i * 600 * US
        builder.nvtx("step", at - 10 * US, at + 300 * US)
        builder.kernel("gemm(float*)", at, at + 100 * US, call=(LAUNCH, at - 8 * US, at - 3 * US), **shape)
        builder.kernel(
            "relu(float*)", at + 200 * US, at + 205 * US, call=(LAUNCH, at + 190 * US, at + 195 * US)
        )
    return builder


def words(tree: Any) -> str:
    """Return all the text of a part of a view in reading order, with plain spaces."""
    if isinstance(tree, dict):
        return "".join(words(value) for key, value in tree.items() if key not in ("tip", "state", "to"))
    if isinstance(tree, list | tuple):
        return "".join(words(part) for part in tree)
    return str(tree).replace(NARROW, " ")


def rows(section: Mapping[str, Any]) -> dict[str, str]:
    return {row["name"]: words(row["cell"]) for row in section["both"]}


# ---- the same kernel in both -----------------------------------------------------------------------------


def matched(timeline: Timeline, kernel: Kernel) -> tuple[str, ...] | None:
    found = Matcher(timeline).find(kernel)
    return None if found is None else found.by


def test_name_then_grid_and_block_then_registers(tmp_path: Path) -> None:
    builder = steps(4)
    builder.kernel("gemm(float*)", 5 * MS, 6 * MS, grid=(8, 1, 1), block=(128, 1, 1), registers=40)
    builder.kernel("gemm(float*)", 7 * MS, 8 * MS, grid=(64, 1, 1), block=(128, 1, 1), registers=99)
    found = analyse(open_trace(builder.write(tmp_path / "t.sqlite")))
    match = Matcher(found).find(measured())
    assert match is not None
    assert match.by == ("name", "grid and block", "registers")
    assert (match.launches.n, match.launches.median) == (4, 100 * US)
    assert matched(found, measured(registers_per_thread=41)) == ("name", "grid and block")
    assert matched(found, measured(grid_dim_x=7)) == ("name",)
    assert matched(found, measured("relu", "relu(float *)")) == ("name",)
    assert matched(found, measured("softmax", "softmax(int)")) is None


@pytest.mark.parametrize(
    ("profiled", "traced"),
    [
        ("void f<(int)4, (bool)1>(int *)", "void f<4, true>(int*)"),
        ("<unnamed>::f(int)", "(anonymous namespace)::f(int)"),
        ("void f<256ul>(unsigned long)", "void f<256>(unsigned long)"),
        ("f(const float *)", "f(const float*)"),
    ],
)
def test_the_spellings_of_two_demanglers_are_one_name(profiled: str, traced: str, tmp_path: Path) -> None:
    builder = Builder()
    builder.kernel(traced, 0, 100, short="f")
    builder.kernel("void f<9>(char)", 200, 300, short="f")  # so that the function name alone decides nothing
    found = analyse(open_trace(builder.write(tmp_path / "t.sqlite")))
    assert (matched(found, measured("f", profiled)) or ("none",))[0] == "name"


def test_of_several_kernels_of_one_function_the_grid_decides(tmp_path: Path) -> None:
    builder = Builder()
    builder.kernel("void K<A>()", 0, 100, short="K", grid=(64, 1, 1), block=(128, 1, 1))
    builder.kernel("void K<B>()", 200, 300, short="K", grid=(9, 1, 1), block=(128, 1, 1))
    found = analyse(open_trace(builder.write(tmp_path / "t.sqlite")))
    match = Matcher(found).find(measured("K", "void K<spelled otherwise>()"))
    assert match is not None
    assert (match.kernel.name, match.by[0]) == ("void K<A>()", "function name")
    assert matched(found, measured("K", "void K<spelled otherwise>()", grid_dim_x=1)) is None


def test_shapes_hold_every_launch_once(tmp_path: Path) -> None:
    builder = steps(6)
    builder.kernel("gemm(float*)", 9 * MS, 9 * MS + 7 * US, grid=(8, 1, 1))
    (gemm, _) = analyse(open_trace(builder.write(tmp_path / "t.sqlite"))).kernels
    assert [(s.grid[0], s.launches.n, s.launches.total) for s in gemm.shapes] == [
        (64, 6, 600 * US),
        (8, 1, 7 * US),
    ]
    assert sum(s.launches.n for s in gemm.shapes) == gemm.launches.n == 7


# ---- one launch ------------------------------------------------------------------------------------------


def test_the_bound_is_that_of_amdahl_for_this_kernel(tmp_path: Path) -> None:
    """100 us of every 600 us: without the kernel the region takes 5/6 of the time."""
    found = traced(steps(1000), tmp_path)
    section = timeline_section(found.timeline, measured())
    (row,) = (row for row in section["both"] if row["name"] == "This kernel")
    assert words(row["cell"]) == "16.7 %"
    assert (
        "1,000 launches in all; without it the region would be at most 1.20 times as fast (Amdahl)"
        in row["note"]
    )
    said = words(section["region"])
    assert said.startswith("Region: launch-bound.")
    assert said.endswith(
        "This kernel runs 16.7 % of it; without it the region would be at most 1.20 times as fast."
    )


def test_profiled_against_traced_is_explained(tmp_path: Path) -> None:
    section = timeline_section(
        traced(steps(20), tmp_path).timeline, measured(sm_clock=1.0e9, sm_clock_max=2.0e9)
    )
    said = [words(text) for text in section["why"]]
    assert said[0] == (
        "Under ncu the launch took 2.00 × its traced time. Different there: the clock, the caches and "
        "the number of launches."
    )
    assert [text.split(".")[0] for text in said[1:]] == ["Clock", "Caches", "Number"]
    assert "1.00 GHz, 50.0 % of the highest" in said[1]
    assert "flushes" in said[2]
    assert "the trace has 20 like it" in said[3]


def test_kernels_that_overlap_in_the_trace_are_named_as_a_reason(tmp_path: Path) -> None:
    builder = steps(20)
    for i in range(20):
        builder.kernel("other(int)", i * 600 * US, i * 600 * US + 90 * US, stream=9)
    said = words(timeline_section(traced(builder, tmp_path).timeline, measured())["why"])
    assert "Company. ncu runs the launch alone; in the trace kernels overlap" in said


def test_bandwidth_is_ncus_bytes_over_ncus_time(tmp_path: Path) -> None:
    section = timeline_section(traced(steps(), tmp_path).timeline, measured(dram_bandwidth=5e11))
    (row,) = (row for row in section["both"] if row["name"] == "DRAM bandwidth")
    assert (row["tool"], words(row["cell"]), row["note"]) == (
        "ncu",
        "500 GB/s",
        "ncu's bytes over ncu's time",
    )
    assert "never combined" in words(section["both_note"])


def test_another_grid_is_said_and_no_launch_is_taken_for_another(tmp_path: Path) -> None:
    section = timeline_section(traced(steps(), tmp_path).timeline, measured(grid_dim_x=7))
    said = words(section["cautions"])
    assert "Other launches. The trace does not hold this kernel with grid 7×1×1 of block 128×1×1" in said
    assert "grid 64×1×1 of block 128×1×1 (20 launches): the traced time is theirs" in said


def test_other_registers_and_another_gpu_are_cautions(tmp_path: Path) -> None:
    found = traced(steps(), tmp_path).timeline
    other = measured(registers_per_thread=99, compute_capability=80)
    said = words(timeline_section(found, other)["cautions"])
    assert "Another build? The traced launches use 40 registers a thread, the profiled one 99" in said
    assert "Another GPU. The trace is of NVIDIA Test GPU, CC 9.0" in said
    assert timeline_section(found, measured(compute_capability=90))["cautions"] == []


def test_a_kernel_that_the_trace_lacks_has_no_share(tmp_path: Path) -> None:
    section = timeline_section(traced(steps(), tmp_path).timeline, measured("softmax", "softmax(int)"))
    assert "This kernel is not in the trace" in words(section["region"])
    assert "the longest there are gemm, relu" in words(section["both_note"])
    assert not {"Traced time", "This kernel"} & rows(section).keys()
    assert section["why"] == []


def test_the_strip_marks_the_kernel_of_the_report_and_shows_it_in_full(tmp_path: Path) -> None:
    builder = steps(3000)
    builder.kernel(
        "rare(int)", 1700 * MS, 1700 * MS + 9 * US, call=(LAUNCH, 1700 * MS - 9 * US, 1700 * MS - 5 * US)
    )
    found = traced(builder, tmp_path)
    rare = measured("rare", "rare(int)")
    lanes = found.lanes(*found.find([rare]))
    section = timeline_section(found.timeline, rare, lanes)
    assert [section["strip"]["names"][i] for i in section["strip"]["own"]] == ["rare"]
    start, length = section["strip"]["detail"]["window"]
    assert start < 1700 * MS < start + length


# ---- pages -------------------------------------------------------------------------------------------------


def html_of(kernels: list[Kernel], found: Beside | None) -> str:
    file = ReportFile("a.ncu-rep", 1, "0" * 64, len(kernels))
    return page(page_view(file, [diagnose(k) for k in kernels], generated="now", beside=found))


def test_the_page_of_one_launch_holds_both_verdicts(tmp_path: Path) -> None:
    text = html_of([measured()], traced(steps(), tmp_path))
    assert "No timeline" not in text
    assert text.count("<b>Region: launch-bound.</b>") == 2  # under the verdict, and over the strip
    assert 'class="strip"' in text
    assert "Missing: clean time, " in text
    assert "Missing: clean time, timeline" not in text
    assert "<dt>Timeline</dt>" in text
    assert "t.sqlite" in text
    assert str(tmp_path) not in text


def test_without_a_trace_the_page_says_how_to_add_one() -> None:
    text = html_of([measured()], None)
    assert "No timeline." in text
    assert "ncukit report a.ncu-rep --timeline run.nsys-rep" in text


def test_the_page_of_many_launches_marks_its_kernels_in_the_trace(tmp_path: Path) -> None:
    kernels = [
        measured(index=0),
        measured(index=1),
        measured("softmax", "softmax(int)", 2),
        measured("relu", "relu(float *)", 3),
    ]
    found = traced(steps(), tmp_path)
    view = page_view(
        ReportFile("a.ncu-rep", 1, "0" * 64, 4), [diagnose(k) for k in kernels], generated="now", beside=found
    )
    section = view["traced"]
    assert [(r["name"], r["own"], r["links"]) for r in section["rows"]] == [
        ("gemm", True, [1, 2]),
        ("relu", True, [4]),
    ]
    assert "Not in the trace: launch 3 softmax." in words(section["absent"])
    assert "The 2 kernels of this report that are in the trace take 100.0 % of its kernel time" in words(
        section["region"]
    )
    assert view["verdict"]["region"] == section["region"]
    text = page(view)
    assert "No timeline" not in text
    assert text.count('class="strip"') == 1
    assert "timeline" not in words(view["quality"]["sentence"])


def test_launches_that_the_trace_lacks_are_named_by_their_numbers(tmp_path: Path) -> None:
    kernels = [measured("other", "other(int)", n) for n in (0, 1)] + [measured(index=2)]
    view = page_view(
        ReportFile("a.ncu-rep", 1, "0" * 64, 3),
        [diagnose(k) for k in kernels],
        generated="now",
        beside=traced(steps(), tmp_path),
    )
    said = "Not in the trace: launch 1 other, launch 2 other."  # not "2 other": that reads as a count
    assert said in words(view["traced"]["absent"])


def test_the_folds_of_few_launches_have_the_region_of_each(tmp_path: Path) -> None:
    kernels = [measured(index=0), measured("softmax", "softmax(int)", 1)]
    view = page_view(
        ReportFile("a.ncu-rep", 1, "0" * 64, 2),
        [diagnose(k) for k in kernels],
        generated="now",
        beside=traced(steps(), tmp_path),
    )
    first, second = (words(fold["parts"]["verdict"]["region"]) for fold in view["folds"])
    assert "This kernel runs 17.2 % of it" in first
    assert "This kernel is not in the trace" in second


def test_hostile_names_of_a_trace_are_data_on_the_page_of_a_report(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>::f{{7*7}}(int*)"
    builder = steps(3)
    builder.kernel(hostile, 5 * MS, 6 * MS, short=hostile)
    builder.nvtx(hostile, 0, 6 * MS)
    found = traced(builder, tmp_path)
    for kernels in ([measured()], [measured(), measured(index=1)]):
        text = html_of(kernels, found)
        assert "<img" not in text
        assert text.count("</script>") == text.count("<script")


def test_the_pages_of_a_long_trace_stay_small(tmp_path: Path) -> None:
    text = html_of([measured()], traced(steps(4000), tmp_path))
    island = re.search(r'class="strip-data">(.*?)</script>', text, re.S)
    assert island is not None
    assert len(island[1]) < 100_000


@pytest.mark.parametrize(("trace", "report"), PAIRS.items())
def test_real_pairs_find_each_other_down_to_the_registers(trace: str, report: str, shared: Path) -> None:
    found = beside(shared / "reports" / "nsys" / f"{trace}.sqlite")
    kernels = list(read(shared / "reports" / "ncu" / f"{report}.ncu-rep").kernels(details=True))
    for one, match in zip(kernels, found.find(kernels), strict=True):
        assert match is not None, one.name
        assert match.by == ("name", "grid and block", "registers")
    text = html_of(kernels, found)
    assert "not in the trace" not in text.lower()


def test_the_real_pair_of_one_launch_keeps_both_times(shared: Path) -> None:
    found = beside(shared / "reports" / "nsys" / "trace-10.sqlite")
    (only,) = read(shared / "reports" / "ncu" / f"{PAIRS['trace-10']}.ncu-rep").kernels(details=True)
    shown = rows(timeline_section(found.timeline, only))
    assert (shown["Profiled time"], shown["Traced time"]) == ("22.6 µs", "11.6 µs")
    assert shown["GPU busy"] == "0.1 %"


# ---- words and JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("n", [1, 3])
def test_the_text_has_the_region_after_the_verdict(
    tmp_path: Path, encoding: str, width: int, verbose: bool, n: int
) -> None:
    kernels = [measured(index=i) for i in range(n)]
    text = show_text(
        ReportFile("a.ncu-rep", 1, "0" * 64, n),
        [diagnose(k) for k in kernels],
        color=False,
        encoding=encoding,
        verbose=verbose,
        width=width,
        beside=traced(steps(), tmp_path),
    )
    text.encode(encoding)
    assert text.index("VERDICT") < text.index("REGION  launch-bound") < text.index("QUALITY")
    joined = re.sub(r" \\\n +", " ", text)
    assert f"ncukit timeline {tmp_path / 't.sqlite'}" in joined
    (lacks,) = re.findall(r"^  -  missing +(.*)$", text, re.M)
    assert lacks.startswith("clean time")
    assert "timeline" not in lacks
    too_wide = [
        row for row in text.splitlines() if len(row) > width and not re.search(r"ncu|--|nsys |t.sqlite", row)
    ]
    assert too_wide == []


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``ncukit`` in a folder of the test."""
    return functools.partial(ncukit, cwd=tmp_path)


def test_one_trace_goes_with_every_report(run: Run, tmp_path: Path) -> None:
    (trace,) = demo_traces()
    done = run("report", SAMPLE, SEVERAL, "--timeline", trace, "-o", "pages/", "--plotlyjs", "directory")
    assert done.returncode == 0, done.stderr
    one, many = ((tmp_path / name).read_text() for name in done.stdout.split())
    assert "Region: transfer-bound." in one
    assert "This kernel runs 38.3" in one
    assert "No kernel of this report is in the trace" in many


def test_the_json_of_show_has_the_region_and_the_traced_kernel(run: Run, tmp_path: Path) -> None:
    from jsonschema import Draft202012Validator

    from ncukit.schemas import text as schema_text

    (trace,) = demo_traces()
    data = json.loads(run("show", SAMPLE, "--json", "--timeline", trace, "--range", "step").stdout)
    Draft202012Validator(json.loads(schema_text("ncukit.kernel/1"))).validate(data)
    assert list(data)[:2] == ["schema", "file"]
    assert (data["region"]["class"], data["region"]["range"]) == ("transfer-bound", "step")
    (kernel,) = data["kernels"]
    assert kernel["traced"]["matched_by"] == ["name", "grid and block", "registers"]
    assert kernel["traced"]["n"] == 48
    assert kernel["traced"]["max_speedup"] == pytest.approx(1 / (1 - kernel["traced"]["share"] / 100))
    alone = json.loads(run("show", SAMPLE, "--json").stdout)
    assert "region" not in alone
    assert "traced" not in alone["kernels"][0]
    assert kernel["metrics"] == alone["kernels"][0]["metrics"]


def test_a_trace_that_cannot_be_used_ends_before_anything_is_written(run: Run, tmp_path: Path) -> None:
    done = run("report", SAMPLE, "--timeline", SAMPLE, "-o", "x.html")
    assert done.returncode == 4
    assert "is a report of Nsight Compute (ncu), not of Nsight Systems" in done.stderr
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", SAMPLE, "--range", "step"], "--range is about a trace"),
        (["report", "--run", ".", "--timeline", "x.sqlite"], "--run and --timeline do not go together"),
        (["report", SAMPLE, "-t", *demo_traces(), "-r", "stepp"], "there is no NVTX range 'stepp'"),
    ],
)
def test_wrong_use_is_told(run: Run, arguments: list[object], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("suffix", [".sqlite", ".nsys-rep"])
def test_a_trace_in_the_place_of_a_report_leads_to_the_right_command(
    run: Run, tmp_path: Path, suffix: str
) -> None:
    wrong = tmp_path / f"my trace{suffix}"
    wrong.write_bytes(b"SQLite format 3\0" if suffix == ".sqlite" else b"NVIDIA Tegra Profiler Report 2024")
    done = run("show", wrong)
    assert done.returncode == 4
    assert f"ncukit timeline '{wrong}'" in done.stderr
    assert "--timeline" in done.stderr


# ---- the library ---------------------------------------------------------------------------------------


def test_the_verb_reads_a_trace_or_one_range_of_it() -> None:
    (trace,) = demo_traces()
    everything, steps_only = timeline(trace), timeline(trace, "step")
    assert (everything.range, steps_only.range) == (None, "step")
    assert everything.kernel_total == steps_only.kernel_total
    assert steps_only.windows != everything.windows
    with pytest.raises(UsageError, match="no NVTX range"):
        timeline(trace, "nothing")
    with pytest.raises(ReportError, match="not of Nsight Systems"):
        timeline(SAMPLE)


def test_a_trace_that_nobody_recorded_is_told(tmp_path: Path) -> None:
    (trace,) = demo_traces()
    said = words(timeline_section(timeline(trace), measured())["notes"])
    assert "no GPU was traced. written by tests/make_samples.py" in said
    assert timeline_section(traced(steps(), tmp_path).timeline, measured())["notes"] == []


def test_write_report_takes_a_trace(tmp_path: Path) -> None:
    (trace,) = demo_traces()
    text = write_report(SAMPLE, tmp_path / "x.html", timeline=trace).read_text()
    assert "Region: transfer-bound." in text


def test_a_trace_of_torch_was_not_exported_by_nsys(tmp_path: Path) -> None:
    written = beside(training().write(tmp_path / "t.json"))
    assert "written by torch's profiler" in flat(written.provenance())
    assert "exported by nsys" in flat(traced(steps(), tmp_path).provenance())
