"""A timeline as JSON, text, page and Perfetto trace: pinned words, foreign names as data, bounded size."""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ncukit.errors import UsageError
from ncukit.model import Kernel
from ncukit.render import html
from ncukit.render.advice import of_trace
from ncukit.render.cells import Tips
from ncukit.render.timeline.html import write_timeline
from ncukit.render.timeline.json import timeline_data
from ncukit.render.timeline.section import timeline_section
from ncukit.render.timeline.strip import ITEMS, strip
from ncukit.render.timeline.text import timeline_text
from ncukit.render.timeline.trace import events, write_trace
from ncukit.schemas import text as schema_text
from ncukit.trace.launch_choice import choose_launch
from ncukit.trace.nsys import open_trace
from ncukit.trace.region import analyse, describe
from ncukit.trace.scope import in_range, whole
from tests.builders import kernel, raw_kernel
from tests.command import ncukit
from tests.nsys_builder import COPY_ASYNC, LAUNCH, Builder

US, MS = 1_000, 1_000_000
HOSTILE = "void </script><img src=x onerror=alert(1)>::operator<< <\x1b[31m\u202e{{7*7}}>(int*)"
SCHEMA = Draft202012Validator(json.loads(schema_text("ncukit.timeline/1")))


def training(steps: int = 20, name: str = "gemm(float*)") -> Builder:
    """Steps with a copy, kernels on two streams, a collective, a wait, and a range around each."""
    builder = Builder()
    for i in range(steps):
        at = i * MS
        builder.nvtx("step", at, at + 900 * US)
        builder.copy("h2d", 1 << 20, at, at + 90 * US, call=(COPY_ASYNC, at - 20 * US, at - 10 * US))
        builder.kernel(name, at + 100 * US, at + 400 * US, call=(LAUNCH, at + 10 * US, at + 15 * US))
        builder.kernel(
            "ncclDevKernel_AllReduce(int)",
            at + 300 * US,
            at + 600 * US,
            stream=20,
            call=(LAUNCH, at + 20 * US, at + 25 * US),
        )
        builder.api("cudaStreamSynchronize_v3020", at + 30 * US, at + 610 * US)
    return builder


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    return training().write(tmp_path / "t.sqlite")


def data_of(path: Path, range: str | None = None) -> dict[str, Any]:
    trace = open_trace(path)
    scope = whole(trace) if range is None else in_range(trace, range)
    data = json.loads(json.dumps(timeline_data(describe(scope), choose_launch(scope)), allow_nan=False))
    fault = best_match(SCHEMA.iter_errors(data))
    assert fault is None, f"{fault.json_path}: {fault.message}"
    return data


# ---- JSON --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("range", [None, "step"])
def test_the_json_has_the_pinned_shape(trace_file: Path, range: str | None) -> None:
    data = data_of(trace_file, range)
    assert data["schema"] == "ncukit.timeline/1"
    assert {"id", "name", "span", "busy", "sum", "gaps"} <= data["devices"][0].keys()
    assert data["devices"][0]["gaps"].keys() == {"copy", "empty"}
    assert {"name", "n", "total", "median", "min", "max"} <= data["kernels"][0].keys()
    assert {"class", "share", "evidence", "experiment"} <= data["region"].keys()
    assert data["range"] == range


def test_times_are_seconds_and_give_back_every_nanosecond(tmp_path: Path) -> None:
    builder = Builder()
    builder.kernel("k(int)", 1_700_000_000_000_000_123, 1_700_000_000_000_012_468)
    builder.kernel("k(int)", 1_700_000_000_000_100_000, 1_700_000_000_000_100_001)
    data = data_of(builder.write(tmp_path / "t.sqlite"))
    assert round(data["kernel_total"] * 1e9) == 12_346
    assert round(data["devices"][0]["sum"] * 1e9) == 12_346


@pytest.mark.parametrize("name", ["trace-07", "trace-09", "trace-10", "trace-11", "trace-13"])
def test_real_traces_follow_the_schema(name: str, shared: Path) -> None:
    data = data_of(shared / "reports" / "nsys" / f"{name}.sqlite")
    assert sum(data["region"]["shares"].values()) == pytest.approx(100)
    for device in data["devices"]:
        parts = device["busy"] + device["gaps"]["copy"] + device["gaps"]["empty"] + device["foreign"]
        assert parts == pytest.approx(device["span"])


# ---- the terminal ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("verbose", [False, True])
def test_the_text_fits_the_terminal_and_its_characters(
    trace_file: Path, encoding: str, width: int, verbose: bool
) -> None:
    trace = open_trace(trace_file)
    text = timeline_text(
        analyse(trace), choose_launch(whole(trace)), encoding=encoding, width=width, verbose=verbose
    )
    text.encode(encoding)
    command = re.compile(r"ncu |--|nsys |\.sqlite$")
    assert [row for row in text.splitlines() if len(row) > width and not command.search(row)] == []
    for word in ("REGION", "KERNELS", "LAUNCH FOR NCU", "COPIES", "WAITS", "RANGES", "NEXT EXPERIMENT"):
        assert word in text


def test_the_text_says_class_share_and_the_command_for_ncu(trace_file: Path) -> None:
    trace = open_trace(trace_file)
    timeline = analyse(trace)
    text = timeline_text(timeline, choose_launch(whole(trace)))
    assert f"REGION  {timeline.region.cls}" in text
    assert "not a benchmark" in text
    assert "--launch-count 1" in text
    assert "capacity-bound, scheduler-bound" in text


def test_the_text_ends_with_where_to_look_next(trace_file: Path) -> None:
    trace = open_trace(trace_file)
    timeline, choice = analyse(trace), choose_launch(whole(trace))
    advice = of_trace(timeline, choice)
    _, said = timeline_text(timeline, choice, width=120).rsplit(
        "\n\nSTOP  " if advice.stop else "\n\nNEXT  ", 1
    )
    assert said.startswith(advice.title)
    assert all(command.split()[0] in said for command in advice.commands)


def test_the_numbers_of_a_kernel_are_never_cut_for_its_name(tmp_path: Path) -> None:
    builder = Builder()
    for i, name in enumerate(
        ("a_kernel_with_a_name_of_more_than_fifty_characters_in_all(int)", "small(int)")
    ):
        for at in (10 * MS * i, 10 * MS * i + 2 * MS):
            length = MS if at % (10 * MS) else 5_300
            builder.kernel(name, at, at + length, call=(LAUNCH, at - 20 * US, at - 10 * US))
    builder.api("cudaDeviceSynchronize_v3020", 12_900 * US, 3_000 * MS)
    builder.kernel("late(int)", 3_000 * MS, 3_001 * MS, call=(LAUNCH, 2_999 * MS, 2_999 * MS + 10))
    trace = open_trace(builder.write(tmp_path / "t.sqlite"))
    table = timeline_text(analyse(trace), None, width=80).split("KERNELS")[1].split("\n\n")[0]
    head, *rows = table.splitlines()[1:-2]
    assert head.endswith("without it")
    assert rows
    assert all(row.endswith("\u00d7") for row in rows), rows


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    trace = open_trace(training(3, HOSTILE).write(tmp_path / "t.sqlite"))
    text = timeline_text(analyse(trace), choose_launch(whole(trace)), verbose=True)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", text)


# ---- the page --------------------------------------------------------------------------------------------


def page_of(path: Path, target: Path, **options: Any) -> str:
    trace = open_trace(path)
    scope = whole(trace)
    write_timeline(target, scope, describe(scope), choose_launch(scope), **options)
    return target.read_text(encoding="utf-8")


def test_the_page_is_one_file_that_needs_nothing(trace_file: Path, tmp_path: Path) -> None:
    page = page_of(trace_file, tmp_path / "t.html")
    assert "default-src 'none'" in unescape(page)
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", page)
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert hashlib.sha256(trace_file.read_bytes()).hexdigest() in page
    assert len(page) < 200_000  # the figure library alone is 4 MB


def test_foreign_names_are_data_on_the_page(tmp_path: Path) -> None:
    builder = training(3, HOSTILE)
    builder.nvtx(HOSTILE, 0, 3 * MS)
    page = page_of(builder.write(tmp_path / "t.sqlite"), tmp_path / "t.html")
    assert "<img" not in page
    assert "49>" not in page
    assert page.count("</script>") == page.count("<script")
    assert not re.search("[\x1b\u202e]", page)


def test_the_folder_of_the_machine_is_not_on_the_page(trace_file: Path, tmp_path: Path) -> None:
    page = page_of(trace_file, tmp_path / "t.html", command=f"ncukit timeline {trace_file} -o t.html")
    assert str(tmp_path) not in page


def test_an_existing_page_is_kept_without_force(trace_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "t.html"
    target.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        page_of(trace_file, target)
    assert target.read_text() == "mine"
    assert "the whole trace" in page_of(trace_file, target, force=True)


# ---- the strip -------------------------------------------------------------------------------------------

spans = st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 3000)), min_size=1, max_size=120)


def drawn(lanes: list[dict[str, Any]]) -> int:
    return sum(len(lane["items"]) // 5 for lane in lanes)


@settings(max_examples=60, deadline=None)
@given(spans, st.integers(10, 60))
def test_the_strip_stays_within_its_budget_and_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], budget: int
) -> None:
    builder = Builder()
    for start, length in rows:
        builder.kernel("k(int)", start, start + length + 1)
    scope = whole(open_trace(builder.write(tmp_path_factory.mktemp("t") / "t.sqlite")))
    found = strip(scope, 0, items=budget)
    (lane,) = (lane for lane in found["lanes"] if lane["kind"] == "kernel")
    assert len(lane["items"]) // 5 <= max(10, budget // len(found["lanes"]))
    assert sum(lane["items"][3::5]) == len(rows)
    low, length = found["window"]
    for at, long, _, _, busy in zip(*(lane["items"][i::5] for i in range(5)), strict=True):
        assert 0 <= at <= at + long <= length
        assert 0 < busy <= long
    assert lane["items"][0] == min(start for start, _ in rows) - low


def test_a_short_trace_is_drawn_in_full(trace_file: Path) -> None:
    found = strip(whole(open_trace(trace_file)), 0)
    assert {lane["resolution"] for lane in found["lanes"]} == {0}
    assert found["detail"] is None
    assert {lane["kind"] for lane in found["lanes"]} == {"range", "launch", "wait", "kernel", "copy", "gap"}


def test_a_long_trace_is_merged_and_a_part_of_it_is_there_in_full(tmp_path: Path) -> None:
    builder = training(3000)
    trace = open_trace(builder.write(tmp_path / "t.sqlite"))
    found = strip(whole(trace), 0, around=2000 * MS)
    assert drawn(found["lanes"]) <= ITEMS
    assert drawn(found["detail"]["lanes"]) <= ITEMS // 2
    start, length = found["detail"]["window"]
    assert start < 2000 * MS < start + length
    assert {lane["resolution"] for lane in found["detail"]["lanes"]} == {0}
    assert len(json.dumps(found)) < 250_000
    for lane in found["lanes"]:
        for long, n in zip(lane["items"][1::5], lane["items"][3::5], strict=True):
            assert n == 1 or long < 2 * lane["resolution"]  # or gaps would vanish in one long bar


# ---- the part of a kernel's page ------------------------------------------------------------------------


def measured(name: str = "gemm", demangled: str = "gemm(float *)") -> Kernel:
    return kernel(
        raw=raw_kernel(name, demangled=demangled),
        dram_throughput_pct=55.0,
        sm_throughput_pct=12.0,
        kernel_duration=1e-4,
    )


def test_kernel_efficiency_and_busy_share_stand_apart(tmp_path: Path) -> None:
    """A kernel at 55 % of DRAM that the region launches every 600 us: two verdicts, both said."""
    builder = Builder()
    for i in range(1000):
        at = i * 600 * US
        builder.kernel("gemm(float*)", at, at + 100 * US, call=(LAUNCH, at - 8 * US, at - 3 * US))
    section = timeline_section(analyse(open_trace(builder.write(tmp_path / "t.sqlite"))), measured())
    rows = {row["name"]: (row["tool"], row["cell"]["text"].replace("\u202f", " ")) for row in section["both"]}
    assert rows == {
        "Kernel efficiency": ("ncu", "55.0 %"),
        "GPU busy": ("nsys", "16.7 %"),
        "Profiled time": ("ncu", "100 µs"),
        "Traced time": ("nsys", "100 µs"),
        "This kernel": ("nsys", "16.7 %"),
    }
    said = "".join(str(next(iter(part.values()))) for part in section["region"])
    assert said.startswith("Region: launch-bound.")
    assert "never combined" in json.dumps(section["both_note"])


def test_the_section_of_a_kernels_page_renders_with_its_strip(trace_file: Path) -> None:
    trace = open_trace(trace_file)
    scope = whole(trace)
    timeline = describe(scope)
    tips = Tips()
    section = timeline_section(timeline, measured(), strip(scope, 0), tips)
    parts = html._environment().get_template("parts/timeline.html").module
    page = parts.section(section, "kernel-1-timeline") + parts.assets()
    assert 'id="kernel-1-timeline"' in page
    assert "Kernel efficiency" in page
    assert 'class="strip"' in page
    assert "createElementNS" in page
    keys = set(re.findall(r'data-t="0/([^"]+)"', page))
    assert keys
    assert keys <= tips.as_dict()["k"]["0"].keys()


def test_spaces_in_names_do_not_part_a_kernel_from_itself(trace_file: Path) -> None:
    section = timeline_section(analyse(open_trace(trace_file)), measured(demangled="gemm(float *)"))
    assert "Traced time" in {row["name"] for row in section["both"]}


def test_a_kernel_that_is_not_in_the_trace_is_said_to_be_missing(trace_file: Path) -> None:
    section = timeline_section(analyse(open_trace(trace_file)), measured("softmax", "softmax(int)"))
    assert "Traced time" not in {row["name"] for row in section["both"]}
    assert "not in the trace" in json.dumps(section["both_note"])


@pytest.mark.parametrize(
    ("trace", "report"),
    [("trace-10.sqlite", "sm100-b200-ncu2025.2-01"), ("trace-07.sqlite", "sm80-a100-pcie-40gb-ncu2020.3-02")],
)
def test_report_and_trace_of_one_program_find_each_other(trace: str, report: str, shared: Path) -> None:
    from ncukit.api import read

    timeline = analyse(open_trace(shared / "reports" / "nsys" / trace))
    kernels = list(read(shared / "reports" / "ncu" / f"{report}.ncu-rep").kernels())
    found = [timeline_section(timeline, k) for k in kernels]
    traced = [s for s in found if "Traced time" in {row["name"] for row in s["both"]}]
    assert traced
    for section in traced:
        tools = {row["name"]: row["tool"] for row in section["both"]}
        assert (tools["Profiled time"], tools["Traced time"]) == ("ncu", "nsys")


# ---- the trace for Perfetto --------------------------------------------------------------------------------


def test_the_perfetto_trace_holds_every_event_once(trace_file: Path, tmp_path: Path) -> None:
    scope = whole(open_trace(trace_file))
    path = write_trace(tmp_path / "t.json.gz", scope)
    data = json.loads(gzip.decompress(path.read_bytes()))
    found = data["traceEvents"]
    assert sum(e["ph"] == "X" and e["cat"] == "kernel" for e in found) == 40
    assert sum(e["ph"] == "X" and e["cat"] == "copy" for e in found) == 20
    assert sum(e["ph"] == "X" and e["cat"].startswith("cuda") for e in found) == 80
    assert sum(e["ph"] == "X" and e["cat"] == "nvtx" for e in found) == 20
    starts, ends = ([e["id"] for e in found if e["ph"] == ph] for ph in "sf")
    assert sorted(starts) == sorted(ends) == sorted(set(starts))
    assert len(starts) == 60
    first = next(e for e in found if e["ph"] == "X" and e["cat"] == "kernel")
    assert (first["ts"], first["dur"]) == (100.0, 300.0)


def test_ranges_that_may_overlap_are_asynchronous_events(tmp_path: Path) -> None:
    builder = training(1)
    builder.nvtx("outer", -10, 500 * US, type=60)
    scope = whole(open_trace(builder.write(tmp_path / "t.sqlite")))
    assert [e["ph"] for e in events(scope) if e["name"] == "outer"] == ["b", "e"]


def test_a_trace_is_written_into_a_new_folder_with_the_usual_permissions(
    trace_file: Path, tmp_path: Path
) -> None:
    path = write_trace(tmp_path / "new" / "t.json", whole(open_trace(trace_file)))
    other = tmp_path / "other"
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode


def test_a_trace_that_cannot_be_written_is_wrong_use(trace_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write"):
        write_trace(tmp_path / "file" / "t.json", whole(open_trace(trace_file)))


def test_an_existing_trace_is_kept_without_force(trace_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "t.json"
    target.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        write_trace(target, whole(open_trace(trace_file)))
    assert target.read_text() == "mine"
    assert json.loads(write_trace(target, whole(open_trace(trace_file)), force=True).read_text())[
        "traceEvents"
    ]


# ---- the command -------------------------------------------------------------------------------------------


timeline = functools.partial(ncukit, "timeline")


def test_json_is_all_that_stdout_holds(trace_file: Path, tmp_path: Path) -> None:
    done = timeline(trace_file, "--json", "-o", "t.html", "--trace", "t.json", cwd=tmp_path)
    assert done.returncode == 0
    assert best_match(SCHEMA.iter_errors(json.loads(done.stdout))) is None
    assert done.stderr.split() == ["t.html", "t.json"]
    assert (tmp_path / "t.html").is_file()
    assert (tmp_path / "t.json").is_file()


def test_a_trace_without_gpu_work_ends_with_4_and_no_sql(tmp_path: Path) -> None:
    builder = Builder()
    builder.nvtx("step", 0, 100)
    path = builder.write(tmp_path / "cpu.sqlite")
    done = timeline(path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    error, hint = done.stderr.splitlines()
    assert error == f"error: no GPU kernel ran in {path}"
    assert hint.startswith("hint: Possible reasons, likeliest first: (1) the program used the CPU only")
    assert not re.search(r"sqlite3|Traceback|no such table", done.stderr)
    error_json = json.loads(timeline(path, "--json", cwd=tmp_path).stdout)
    assert error_json["error"]["code"] == "no-gpu-kernel"


def test_the_command_leaves_the_trace_and_its_folder_alone(trace_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "only"
    folder.mkdir()
    path = folder / "t.sqlite"
    path.write_bytes(trace_file.read_bytes())
    before = path.stat()
    assert timeline(path, cwd=tmp_path).returncode == 0
    assert [p.name for p in folder.iterdir()] == ["t.sqlite"]
    assert (path.stat().st_mtime_ns, path.read_bytes()) == (before.st_mtime_ns, trace_file.read_bytes())


def test_a_kernel_that_is_asked_for_and_missing_is_a_usage_error(trace_file: Path, tmp_path: Path) -> None:
    done = timeline(trace_file, "--kernel", "softmax", cwd=tmp_path)
    assert done.returncode == 2
    assert "no kernel of the region matches 'softmax'" in done.stderr


def test_where_no_launch_can_be_chosen_the_rest_is_still_shown(tmp_path: Path) -> None:
    builder = Builder()
    builder.copy("h2d", 1 << 20, 0, 1000)
    done = timeline(builder.write(tmp_path / "t.sqlite"), cwd=tmp_path)
    assert done.returncode == 0
    assert "transfer-bound" in done.stdout
    assert "no kernel ran, only copies and memory sets" in done.stdout
    assert "no launch to choose" in done.stdout
