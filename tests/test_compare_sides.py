"""What a side of a comparison is read from: reports, repeats, runs, baselines; what files say."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import ncukit
from ncukit.comparison import baseline, compare
from ncukit.comparison.baseline import Choice, read_side
from ncukit.errors import ReportEmpty, ReportError, ReportFormatError, ReportNotFound, UsageError
from ncukit.metrics import load
from ncukit.model.comparison import Recorded
from ncukit.model.run import Run, Timing
from ncukit.report.reader import option, recorded
from ncukit.run.directory import PROFILE, RECORD, TIMING
from ncukit.schemas import text as schema_text
from tests.builders import TARGET
from tests.compared import launch
from tests.conftest import each_report

SAMPLES = {path.stem: path for path in ncukit.demo_reports()}
ONE, MANY = SAMPLES["copy-dram"], SAMPLES["several-launches"]


@pytest.fixture
def choice(tmp_path: Path) -> Choice:
    return Choice(baselines=tmp_path / "baselines", isolate=False)


def timing(median: float, **fields: Any) -> Timing:
    return Timing("cuda-events", 100, median, 0.01 * median, 0.99 * median, 1.02 * median, **fields)


def run_directory(folder: Path, report: Path, median: float) -> Path:
    folder.mkdir()
    shutil.copy(report, folder / PROFILE)
    run = Run(
        "2026-11-29T17:50:00Z",
        "0.1.0",
        TARGET,
        {},
        tools={"ncu": {"path": "/usr/bin/ncu", "version": "2025.3.0"}},
        git={"revision": "abc123", "modified": False},
        clock_control="none",
        cache_control="all",
        status="complete",
    )
    (folder / RECORD).write_text(json.dumps(run.as_dict()), encoding="utf-8")
    (folder / TIMING).write_text(json.dumps(timing(median).as_dict()), encoding="utf-8")
    return folder


# Reports


def test_a_report_is_a_side_with_its_file_and_all_its_launches(choice: Choice) -> None:
    side = read_side(MANY, choice)
    assert (side.kind, side.label, side.launches) == ("report", "several-launches.ncu-rep", 4)
    assert [sample.launches for sample in side.samples] == [(1,), (2,), (3,), (4,)]
    assert side.files[0].size == MANY.stat().st_size


def test_a_folder_holds_repeats_of_one_measurement(tmp_path: Path, choice: Choice) -> None:
    folder = tmp_path / "before"
    folder.mkdir()
    for n in range(3):
        shutil.copy(MANY, folder / f"{n}.ncu-rep")
    side = read_side(folder, choice)
    assert (side.kind, side.label, side.launches) == ("repeats", "before", 12)
    assert [sample.repeats for sample in side.samples] == [3, 3, 3, 3]
    assert side.samples[0].spread["kernel_duration"][0] == side.samples[0].duration


def test_several_paths_are_repeats_as_well(choice: Choice) -> None:
    assert [s.repeats for s in read_side([ONE, ONE], choice).samples] == [2]


def test_only_the_wanted_launches_are_kept(choice: Choice) -> None:
    chosen = replace(choice, keep=lambda kernel: kernel.index == 2)
    assert [s.launches for s in read_side(MANY, chosen).samples] == [(3,)]
    with pytest.raises(ReportEmpty):
        read_side(MANY, replace(choice, keep=lambda kernel: False))


def test_source_lines_are_read_when_they_are_asked_for(choice: Choice) -> None:
    kernel = read_side(ONE, replace(choice, lines=True)).samples[0].kernel
    assert kernel.raw.code is not None
    assert kernel.raw.code.files
    assert read_side(ONE, choice).samples[0].kernel.raw.code is None


@pytest.mark.parametrize("name", ["nothing.ncu-rep", "nothing"])
def test_what_is_not_there_lists_the_baselines_that_are(name: str, choice: Choice) -> None:
    with pytest.raises(ReportNotFound) as found:
        read_side(name, choice)
    assert found.value.hint == "check the path"
    baseline.write(choice.baselines, "nothin", read_side(ONE, choice), created="now")
    with pytest.raises(ReportNotFound) as found:
        read_side(name, choice)
    assert found.value.hint == "baselines: nothin"


def test_an_empty_folder_is_no_side(tmp_path: Path, choice: Choice) -> None:
    with pytest.raises(ReportNotFound, match="holds no report"):
        read_side(tmp_path, choice)


# Runs


def test_a_run_brings_its_clean_time_and_what_was_recorded(tmp_path: Path, choice: Choice) -> None:
    side = read_side(run_directory(tmp_path / "run", ONE, 2e-3), choice)
    assert side.kind == "run"
    assert side.timing is not None
    assert side.timing.median == 2e-3
    assert (side.recorded.git, side.recorded.clock_control) == ("abc123", "none")


@pytest.mark.parametrize(
    ("after", "reading", "trend"),
    [(1.0e-3, "same", "unchanged"), (2.0e-3, "worse", "slower"), (0.5e-3, "better", "faster")],
)
def test_clean_times_decide_where_both_sides_have_one(
    after: float, reading: str, trend: str, tmp_path: Path, choice: Choice
) -> None:
    sides = [
        read_side(run_directory(tmp_path / name, ONE, time), choice)
        for name, time in (("a", 1e-3), ("b", after))
    ]
    (against,) = compare(sides[0], sides[1:]).others
    assert against.clean is not None
    assert against.clean.reading == reading
    assert against.pairs[0].summary.trend == trend
    assert against.pairs[0].summary.confidence == "high"


def test_a_clean_time_on_one_side_alone_is_unknown(tmp_path: Path, choice: Choice) -> None:
    base = read_side(run_directory(tmp_path / "a", ONE, 1e-3), choice)
    (against,) = compare(base, [read_side(ONE, choice)]).others
    assert against.clean is not None
    assert (against.clean.change, against.clean.reason) == (None, "other: not measured")


def test_times_of_different_clocks_do_not_compare(tmp_path: Path, choice: Choice) -> None:
    base = read_side(run_directory(tmp_path / "a", ONE, 1e-3), choice)
    assert base.timing is not None
    host = replace(base, timing=replace(base.timing, timer="host"))
    (against,) = compare(base, [host]).others
    assert against.clean is not None
    assert (against.clean.comparable, against.clean.reading) == ("no", "not-comparable")


def test_a_run_without_counters_says_how_to_get_them(tmp_path: Path, choice: Choice) -> None:
    folder = run_directory(tmp_path / "a", ONE, 1e-3)
    (folder / PROFILE).unlink()
    with pytest.raises(ReportNotFound) as found:
        read_side(folder, choice)
    assert found.value.hint.startswith("ncukit profile --resume")


# Baselines


def test_a_baseline_compares_like_the_report_it_was_made_of(choice: Choice) -> None:
    report = read_side(MANY, choice)
    path = baseline.write(choice.baselines, "main", report, created="2026-11-29")
    assert path == choice.baselines / "main.json"
    kept = read_side("main", choice)
    assert (kept.kind, kept.label, kept.launches) == ("baseline", "baseline:main", 4)
    (against,) = compare(kept, [report]).others
    assert len(against.pairs) == 4
    for pair in against.pairs:
        assert {row.id for row in pair.rows if row.change} == set()
        for row in pair.rows:
            assert row.base.value == row.other.value
            assert (row.base.sources, row.base.quality) == (row.other.sources, row.other.quality)
        assert pair.base.diagnosis.verdict.limiter == pair.other.diagnosis.verdict.limiter
        assert len(pair.base.diagnosis.roofline.points) == len(pair.other.diagnosis.roofline.points)


def test_a_baseline_is_small_and_holds_no_raw_value(choice: Choice) -> None:
    path = baseline.write(choice.baselines, "one", read_side(ONE, choice), created="now")
    assert path.stat().st_size < 60_000
    data = json.loads(path.read_text(encoding="utf-8"))
    assert "metrics" in data["kernels"][0]
    assert set(data["kernels"][0]["metrics"]) <= set(load().metrics)
    assert "dram__bytes_read.sum" in data["sources"]


def test_a_baseline_follows_its_schema(choice: Choice) -> None:
    schema = Draft202012Validator(json.loads(schema_text("ncukit.baseline/1")))
    path = baseline.write(choice.baselines, "one", read_side([ONE, ONE], choice), created="now")
    schema.validate(json.loads(path.read_text(encoding="utf-8")))


def test_one_metric_is_one_line_so_that_a_change_reads_well_in_a_diff(choice: Choice) -> None:
    path = baseline.write(choice.baselines, "one", read_side(ONE, choice), created="now")
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if '"dram_bytes": [' in line]
    assert len(lines) == 1


def test_the_spread_and_doubts_of_a_baseline_are_kept(choice: Choice) -> None:
    from ncukit.comparison.baseline import side_of
    from ncukit.model import Value

    doubt = Value("l2_hit_rate_pct", 152.0, "%", "exact", ("x",), "unreliable: above 100 %", reliable=False)
    side = side_of([launch("f", n, kernel_duration=1e-3 + n * 1e-4, l2_hit_rate_pct=doubt) for n in range(3)])
    baseline.write(choice.baselines, "b", side, created="now")
    (sample,) = baseline.read(choice.baselines, "b").samples
    assert (sample.repeats, sample.spread["kernel_duration"]) == (3, (1e-3, pytest.approx(1.2e-3)))
    kept = sample.kernel.metrics["l2_hit_rate_pct"]
    assert (kept.value, kept.reliable, kept.reason) == (152.0, False, "unreliable: above 100 %")


def test_a_metric_that_a_baseline_is_too_old_for_is_unknown(choice: Choice) -> None:
    path = baseline.write(choice.baselines, "old", read_side(ONE, choice), created="now")
    data = json.loads(path.read_text(encoding="utf-8"))
    del data["kernels"][0]["metrics"]["dram_bytes"]
    path.write_text(json.dumps(data), encoding="utf-8")
    value = baseline.read(choice.baselines, "old").samples[0].kernel.metrics["dram_bytes"]
    assert (value.value, value.reason) == (None, "not in the baseline: it is older than this metric")


def test_a_baseline_is_replaced_only_by_force(choice: Choice) -> None:
    side = read_side(ONE, choice)
    baseline.write(choice.baselines, "main", side, created="now")
    with pytest.raises(UsageError, match="exists already"):
        baseline.write(choice.baselines, "main", side, created="now")
    baseline.write(choice.baselines, "main", side, created="later", force=True)
    assert baseline.baseline_names(choice.baselines) == ["main"]


@pytest.mark.parametrize("name", ["", "../main", "a/b", ".hidden", "a b", "x" * 200])
def test_a_name_that_could_leave_the_folder_is_refused(name: str, choice: Choice) -> None:
    with pytest.raises(UsageError, match="is no name for a baseline"):
        baseline.path_of(choice.baselines, name)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"schema": "ncukit.baseline/2"}', '{"schema": "ncukit.baseline/1"}', "\x00" * 40],
)
def test_a_damaged_baseline_is_an_error_of_its_own(content: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ReportFormatError, match=r"is damaged|is not of schema"):
        baseline.read_file(path)


# What a report says of itself


def test_options_are_found_in_a_command_line() -> None:
    command = "/opt/ncu --clock-control=none --cache-control none -o a ./run"
    assert option(command, "--clock-control", "base") == "none"
    assert option(command, "--cache-control", "all") == "none"
    assert option(command, "--set", "basic") == "basic"


def test_a_file_that_is_no_report_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello", encoding="utf-8")
    assert recorded(tmp_path / "a") == Recorded()
    (tmp_path / "b").touch()
    assert recorded(tmp_path / "b") == Recorded()


@each_report()
def test_real_reports_name_the_ncu_that_wrote_them(report: Path) -> None:
    """The file names of the corpus come from the same field, read another way."""
    found = recorded(report)
    if report.suffix == ".nsight-cuprof-report":
        assert found.ncu is None
        return
    assert found.ncu is not None
    year_minor = report.stem.split("-ncu")[1].rsplit("-", 1)[0]
    assert found.ncu.startswith(f"{year_minor}.")
    assert (found.command is None) == (found.clock_control is None)


def test_errors_of_sides_are_report_errors(tmp_path: Path, choice: Choice) -> None:
    (tmp_path / "x.ncu-rep").write_bytes(ONE.read_bytes()[:1000])
    with pytest.raises(ReportError):
        read_side(tmp_path / "x.ncu-rep", choice)
