"""Many reports as one Parquet dataset: one schema, brought up to date in steps, no bad file stops it."""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet
import pytest
import typer

from ncukit import cli, demo_reports, signals
from ncukit.api import build_dataset, query_dataset, read
from ncukit.dataset import build, inputs, parts, survey
from ncukit.dataset.rows import code_hash, fingerprint, kernel_of, schema
from ncukit.errors import NcukitError, ReportNotFound, UsageError
from ncukit.metrics import load
from ncukit.render.answer import answer_text
from ncukit.roofline import place
from ncukit.run.tools.locate import install_command
from tests.conftest import CHECKOUT, build_here, follows_its_schema, no_shared, reports
from tests.ncurep import Device, Launch, write_report

pytestmark = pytest.mark.usefixtures("in_this_process")

SAMPLES = {path.stem: path for path in demo_reports()}
BROKEN = b"hello, this is no report\n" * 40


def dataset(folder: Path) -> Any:
    """Return the dataset as any program would open it."""
    return pyarrow.dataset.dataset(folder, partitioning="hive")


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dataset(folder).to_table().to_pylist()
    return sorted(found, key=lambda row: (row["file"], row["index"]))


def report(path: Path, *names: str, duration: float = 1000.0, gpu: str = "NVIDIA A40") -> Path:
    """Write a small report: one launch a name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metrics = {"gpu__time_duration.sum": duration}
    return write_report(
        path, [Launch(f"{name}(int)", metrics=metrics) for name in names], Device(gpu, (8, 6))
    )


def reports_in(folder: Path) -> Path:
    """Write three reports of two GPUs, five launches."""
    report(folder / "a.ncu-rep", "copy", "copy")
    report(folder / "deep" / "b.ncu-rep", "gemm", "copy", duration=5000.0)
    report(folder / "deep" / "er" / "c.ncu-rep", "gemm", gpu="NVIDIA H100 80GB HBM3")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with three reports of two GPUs, five launches."""
    return reports_in(tmp_path / "runs")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return tmp_path / "fleet"


def make(runs: Path, fleet: Path, **options: Any) -> build.Built:
    return build_dataset(runs, fleet, **{"workers": 1, **options})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of those reports and a bad one; tests only read it."""
    folder = tmp_path_factory.mktemp("built")
    (reports_in(folder / "runs") / "bad.ncu-rep").write_bytes(BROKEN)
    with pytest.MonkeyPatch.context() as patch:
        build_here(patch)
        make(folder / "runs", folder / "fleet")
    return folder / "fleet"


# Rows and schema


def test_any_program_finds_launches_only_with_the_one_schema(built: Path) -> None:
    found = dataset(built)
    assert found.schema.equals(schema())
    assert found.count_rows() == 5
    assert {"_errors.parquet", "_metrics.parquet", "_state.json"} < set(os.listdir(built))
    assert sorted(path.name for path in built.glob("gpu=*")) == [
        "gpu=NVIDIA%20A40",
        "gpu=NVIDIA%20H100%2080GB%20HBM3",
    ]
    assert {row["gpu"] for row in rows(built)} == {"NVIDIA A40", "NVIDIA H100 80GB HBM3"}


def test_the_schema_holds_every_metric_even_where_no_report_has_it(built: Path) -> None:
    table = dataset(built).to_table()
    assert set(load().metrics) < set(table.schema.names)
    assert table["dram_bytes"].null_count == 5
    assert str(table.schema.field("dram_bytes").type) == "double"
    assert str(table.schema.field("occupancy_limiter").type) == "string"


@pytest.mark.usefixtures("processes")
def test_a_row_says_what_was_launched_where(runs: Path, fleet: Path) -> None:
    make([str(runs / "deep" / "b.ncu-rep")], fleet)  # type: ignore[arg-type]
    gemm, copy = rows(fleet)
    assert (gemm["name"], gemm["demangled"], gemm["index"]) == ("gemm", "gemm(int)", 0)
    assert (copy["name"], copy["index"]) == ("copy", 1)
    assert gemm["file"] == str(runs / "deep" / "b.ncu-rep")
    assert gemm["sha256"] == read(gemm["file"]).file().sha256
    assert (gemm["cc"], gemm["grid"], gemm["block"]) == ("8.6", "1 x 1 x 1", "32 x 1 x 1")
    assert gemm["failed"] is None
    assert gemm["synthetic"] is False
    assert gemm["kernel_duration"] == 5e-6


@pytest.mark.parametrize("sample", SAMPLES)
def test_values_doubts_and_verdict_are_those_of_the_report(sample: str, fleet: Path) -> None:
    build_dataset(SAMPLES[sample], fleet, workers=1)
    for row, diagnosis in zip(rows(fleet), read(SAMPLES[sample]).diagnoses(), strict=True):
        kernel, verdict = diagnosis.kernel, diagnosis.verdict
        assert row["synthetic"] is True
        assert row["nvtx"] == list(kernel.raw.nvtx)
        assert (row["class"], row["limiter"]) == (verdict.cls, verdict.limiter)
        assert (row["confidence"], row["claim"]) == (verdict.confidence, verdict.claim)
        for id, value in kernel.metrics.items():
            assert row[id] == value.value, id
            assert (id in row["estimates"]) == (value.quality == "estimate"), id
        reasons = dict(row["reasons"])
        for id, value in kernel.metrics.items():
            if value.known:
                assert reasons.get(id) == value.reason, id


def test_what_a_ratio_over_nothing_lacks_is_in_the_row(fleet: Path) -> None:
    build_dataset(SAMPLES["copy-dram"], fleet, workers=1)
    kernel = next(read(SAMPLES["copy-dram"]).kernels())
    undefined = {id: v.reason for id, v in kernel.metrics.items() if (v.reason or "").startswith("undefined")}
    assert undefined
    assert undefined.items() <= dict(rows(fleet)[0]["reasons"]).items()


def test_a_row_gives_the_launch_back_as_far_as_the_roofline_needs_it(fleet: Path) -> None:
    build_dataset(SAMPLES["gemm-tensor"], fleet, workers=1)
    kernel = kernel_of(rows(fleet)[0])
    (original, *_) = read(SAMPLES["gemm-tensor"]).diagnoses()
    assert kernel.name == original.kernel.name
    points = {(p.precision, p.level): (p.intensity, p.achieved, p.attainable) for p in place(kernel).points}
    assert points == {
        (p.precision, p.level): (p.intensity, p.achieved, p.attainable) for p in original.roofline.points
    }


def test_a_failed_launch_is_a_row_with_its_reason_and_no_counters(tmp_path: Path, fleet: Path) -> None:
    launch = Launch("k()", metrics={"gpu__time_duration.sum": 5.0, "profiler__replayer_passes": 0})
    build_dataset(write_report(tmp_path / "a.ncu-rep", [launch]), fleet, workers=1)
    (row,) = rows(fleet)
    assert row["class"] == "failed"
    assert "zero replay passes" in row["failed"]
    assert row["kernel_duration"] is None
    assert row["grid_size"] == 1


def test_launches_of_two_gpus_in_one_report_part(tmp_path: Path, fleet: Path) -> None:
    other = {"device__attribute_display_name": "NVIDIA A100"}
    launches = [Launch("a()"), Launch("b()", metrics=other), Launch("c()")]
    build_dataset(write_report(tmp_path / "a.ncu-rep", launches), fleet, workers=1)
    assert {row["name"]: row["gpu"] for row in rows(fleet)} == {
        "a": "NVIDIA Test GPU",
        "b": "NVIDIA A100",
        "c": "NVIDIA Test GPU",
    }


def test_a_gpu_without_a_name_is_null(tmp_path: Path, fleet: Path) -> None:
    launch = Launch("a()", metrics={"device__attribute_display_name": None})
    build_dataset(
        [write_report(tmp_path / "a.ncu-rep", [launch]), report(tmp_path / "b.ncu-rep", "b")],
        fleet,
        workers=1,
    )
    assert {row["name"]: row["gpu"] for row in rows(fleet)} == {"a": None, "b": "NVIDIA A40"}


def test_a_long_report_is_written_in_row_groups(tmp_path: Path, fleet: Path) -> None:
    count = 2 * parts.ROWS + 1
    build_dataset(report(tmp_path / "a.ncu-rep", *["k"] * count), fleet, workers=1)
    (file,) = fleet.glob("gpu=*/*.parquet")
    assert pyarrow.parquet.ParquetFile(file).metadata.num_row_groups == 3
    assert [row["index"] for row in rows(fleet)] == list(range(count))


def test_what_the_columns_mean_is_beside_them(built: Path) -> None:
    table = {row["id"]: row for row in pyarrow.parquet.read_table(built / "_metrics.parquet").to_pylist()}
    assert list(table) == list(load().metrics)
    assert table["dram_bytes"]["unit"] == "byte"
    assert table["dram_bytes"]["meaning"] == load().metrics["dram_bytes"].meaning


# In steps


def test_the_second_time_nothing_is_read(runs: Path, fleet: Path) -> None:
    first = make(runs, fleet)
    assert (first.read, first.unchanged, first.reports, first.launches) == (3, 0, 3, 5)
    files = {path: path.stat().st_mtime_ns for path in fleet.glob("gpu=*/*")}
    again = make(runs, fleet, progress=lambda *_: pytest.fail("a report was read"))
    assert (again.read, again.unchanged, again.reports, again.launches) == (0, 3, 3, 5)
    assert {path: path.stat().st_mtime_ns for path in fleet.glob("gpu=*/*")} == files


def test_a_relative_name_and_another_folder_mean_the_same_report(
    runs: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(runs, fleet)
    monkeypatch.chdir(runs)
    assert build_dataset("deep/../**/*.ncu-rep", fleet, workers=1).read == 0


def test_a_changed_report_replaces_its_rows(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    report(runs / "a.ncu-rep", "new", gpu="NVIDIA H100 80GB HBM3")
    done = make(runs, fleet)
    assert (done.read, done.unchanged, done.launches) == (1, 2, 4)
    assert [row["name"] for row in rows(fleet) if row["file"].endswith("a.ncu-rep")] == ["new"]


def test_a_report_that_was_only_touched_is_not_read(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    os.utime(runs / "a.ncu-rep", (1, 1))
    before = {path: path.stat().st_mtime_ns for path in fleet.glob("gpu=*/*")}
    assert (make(runs, fleet).read, make(runs, fleet).unchanged) == (0, 3)
    assert {path: path.stat().st_mtime_ns for path in fleet.glob("gpu=*/*")} == before


def test_a_report_of_the_same_size_and_time_but_other_content_is_read_when_forced(
    runs: Path, fleet: Path
) -> None:
    make(runs, fleet)
    assert make(runs, fleet, force=True).read == 3


def test_rows_of_a_report_that_is_gone_go_unless_they_are_kept(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    (runs / "a.ncu-rep").unlink()
    kept = make(runs, fleet, keep=True)
    assert (kept.removed, kept.reports, len(rows(fleet))) == (0, 3, 5)
    done = make(runs, fleet)
    assert (done.removed, done.reports, len(rows(fleet))) == (1, 2, 3)


def test_reports_that_are_not_named_stay(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    done = make(runs / "deep", fleet)
    assert (done.reports, done.removed, len(rows(fleet))) == (3, 0, 5)


def test_the_last_launch_of_a_gpu_takes_its_partition_with_it(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    (runs / "deep" / "er" / "c.ncu-rep").unlink()
    make(runs, fleet)
    assert [path.name for path in fleet.glob("gpu=*")] == ["gpu=NVIDIA%20A40"]


def test_a_part_that_was_deleted_is_written_again(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    next(fleet.glob("gpu=NVIDIA%20H100*/*.parquet")).unlink()
    assert make(runs, fleet).read == 1
    assert len(rows(fleet)) == 5


def test_rows_of_another_version_are_all_computed_again(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    file = fleet / inputs.NAME
    file.write_text(json.dumps({**json.loads(file.read_text()), "fingerprint": "older"}))
    done = make(runs / "deep", fleet)
    assert (done.read, done.reports) == (3, 3)
    assert "another version" in done.why_all
    assert make(runs, fleet).why_all == ""


@pytest.mark.parametrize("why", ["stale", "forced"])
def test_a_build_that_is_broken_off_goes_on_with_what_it_did_not_read(
    runs: Path, fleet: Path, why: str
) -> None:
    make(runs, fleet)
    file = fleet / "_state.json"
    if why == "stale":
        file.write_text(json.dumps({**json.loads(file.read_text()), "fingerprint": "older"}))

    def stop(done: int, total: int, name: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        make(runs, fleet, force=why == "forced", progress=stop)
    command = "the same command without --force" if why == "forced" else "the same command"
    assert stopped.value.__notes__ == [f"what was read is kept in {fleet}: {command} reads the rest"]
    again = make(runs, fleet)
    assert (again.read, again.unchanged) == (len(json.loads(file.read_text())["files"]) - 1, 1)
    assert make(runs, fleet).read == 0


def test_rows_of_other_code_are_computed_again_without_a_new_version(tmp_path: Path) -> None:
    package = tmp_path / "ncukit"
    for name in ("rules.py", "rules.toml", "page.html"):
        (package / "judge").mkdir(parents=True, exist_ok=True)
        (package / "judge" / name).write_text("limit = 1\n")
    (package / "render").mkdir()

    def edited(name: str) -> bool:
        before = code_hash(package)
        (package / name).write_text("limit = 2\n")
        return code_hash(package) != before

    assert edited("judge/rules.py")
    assert edited("judge/rules.toml")
    assert edited("judge/new.py")
    assert not edited("render/page.py")  # no row depends on it
    assert not edited("judge/rules.py~")


@pytest.mark.parametrize("part", ["code_hash", "version"])
def test_the_fingerprint_follows_the_code_and_the_reader(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    before = fingerprint()
    monkeypatch.setattr(f"ncukit.dataset.rows.{part}", lambda *_: "other")
    assert fingerprint.__wrapped__() != before


# Bad files


def test_a_bad_report_is_a_row_in_the_table_of_errors_not_the_end(runs: Path, fleet: Path) -> None:
    (runs / "bad.ncu-rep").write_bytes(BROKEN)
    (runs / "cut.ncu-rep").write_bytes(SAMPLES["copy-dram"].read_bytes()[:5000])
    done = make(runs, fleet)
    assert (done.launches, len(done.errors)) == (5, 2)
    bad, cut = pyarrow.parquet.read_table(fleet / "_errors.parquet").to_pylist()
    assert (bad["file"], bad["code"]) == (str(runs / "bad.ncu-rep"), "report-format")
    assert "is text" in bad["message"]
    assert bad["hint"]
    assert bad["size"] == len(BROKEN)
    assert "truncated" in cut["message"]
    assert make(runs, fleet).read == 0


def test_a_report_that_is_mended_leaves_the_table(runs: Path, fleet: Path) -> None:
    (runs / "bad.ncu-rep").write_bytes(BROKEN)
    make(runs, fleet)
    report(runs / "bad.ncu-rep", "good")
    assert make(runs, fleet).errors == ()
    assert pyarrow.parquet.read_table(fleet / "_errors.parquet").num_rows == 0
    assert "good" in {row["name"] for row in rows(fleet)}


def test_rows_of_a_report_that_turns_bad_go(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    (runs / "a.ncu-rep").write_bytes(BROKEN)
    make(runs, fleet)
    assert len(rows(fleet)) == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_report_that_may_not_be_read_is_tried_again_each_time(runs: Path, fleet: Path) -> None:
    (runs / "a.ncu-rep").chmod(0)
    assert len(make(runs, fleet).errors) == 1
    (runs / "a.ncu-rep").chmod(0o600)
    assert make(runs, fleet).errors == ()


def test_a_pattern_that_means_nothing_is_an_error_and_changes_nothing(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    shutil.move(runs, runs.with_name("elsewhere"))
    with pytest.raises(ReportNotFound, match="no report matches"):
        make(runs, fleet)
    assert len(rows(fleet)) == 5


def test_a_folder_with_other_files_is_left_alone(runs: Path) -> None:
    with pytest.raises(UsageError, match="no dataset"):
        make(runs, runs)
    assert sorted(p.name for p in runs.iterdir() if p.name != "_lock") == ["a.ncu-rep", "deep"]


def test_a_file_is_no_folder_for_a_dataset(runs: Path) -> None:
    with pytest.raises(UsageError, match="is a file, and a dataset is a folder"):
        make(runs, runs / "a.ncu-rep")


def test_a_state_that_cannot_be_read_stops_before_anything_is_removed(runs: Path, fleet: Path) -> None:
    make(runs, fleet)
    (fleet / inputs.NAME).write_text("{")
    with pytest.raises(UsageError, match="cannot be used"):
        make(runs, fleet)
    assert len(rows(fleet)) == 5


# Processes


@pytest.mark.usefixtures("processes")
def test_two_workers_write_what_one_does(runs: Path, tmp_path: Path) -> None:
    make(runs, tmp_path / "one")
    make(runs, tmp_path / "two", workers=2)
    assert rows(tmp_path / "one") == rows(tmp_path / "two")


class Job:
    """A task of the tests: its number decides what the worker does."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.size = number


def obey(job: Job) -> tuple[int, int]:
    """Return the square; die of 3, hang at 5, fail at 7."""
    if job.number == 3:
        os.abort()
    if job.number == 5:
        signal.alarm(1)
        time.sleep(60)
    if job.number == 7:
        raise UsageError("seven")
    return job.number, job.number**2


def lost(job: Job, how: str) -> tuple[int, str]:
    return job.number, how


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_dies_or_hangs_loses_its_own_task_only(count: int) -> None:
    jobs = [Job(n) for n in (1, 2, 3, 4, 5, 6)]
    found = dict(build.run_here(obey, jobs, count, lost))
    assert found == {1: 1, 2: 4, 3: "SIGABRT", 4: 16, 5: "it made no progress", 6: 36}


def who(job: Job) -> int:
    """Return the process that does the job."""
    return os.getpid()


@pytest.mark.usefixtures("processes")
def test_a_process_is_replaced_once_it_read_so_much_that_its_memory_may_have_grown() -> None:
    """NVIDIA's reader keeps part of every report that it opened, so memory would grow with their number."""
    third = build._FILL // 3 + 1
    assert len(set(build.run_here(who, [Job(third) for _ in range(6)], 1, lost))) == 2
    assert len(set(build.run_here(who, [Job(1) for _ in range(6)], 1, lost))) == 1


@pytest.mark.usefixtures("processes")
def test_what_a_task_raises_ends_the_run_and_its_processes() -> None:
    before = children()
    with pytest.raises(UsageError, match="seven"):
        list(build.run_here(obey, [Job(7), Job(1)], 2, lost))
    assert children() == before


@pytest.mark.usefixtures("processes")
def test_a_run_that_is_left_early_leaves_no_process_behind() -> None:
    before = children()
    results = build.run_here(obey, [Job(1), Job(2)], 1, lost)
    next(results)
    assert len(children()) > len(before)
    results.close()  # type: ignore[attr-defined]
    assert children() == before


def children() -> set[int]:
    """Return the processes that this one started and that still run."""
    tasks = Path("/proc/self/task").glob("*/children")
    started = {int(process) for task in tasks for process in task.read_text().split()}
    return {process for process in started if "spawn_main" in Path(f"/proc/{process}/cmdline").read_text()}


@pytest.mark.usefixtures("processes")
def test_killed_workers_cost_the_reports_they_read_and_the_next_build_reads_them(
    runs: Path, fleet: Path
) -> None:
    for number in range(6):
        report(runs / f"more{number}.ncu-rep", *["k"] * 60)

    def kill(done: int, total: int, file: str) -> None:
        if done == 1:
            for process in children():
                os.kill(process, signal.SIGKILL)

    done = make(runs, fleet, workers=2, progress=kill)
    assert done.reports == 9
    assert {error["code"] for error in done.errors} <= {"reader-crashed"}
    assert len(done.errors) <= 2
    again = make(runs, fleet, workers=2)
    assert (again.read, again.errors) == (len(done.errors), ())
    assert len(rows(fleet)) == 365


def test_a_build_that_is_killed_loses_nothing(runs: Path, fleet: Path) -> None:
    for number in range(12):
        report(runs / f"more{number:02}.ncu-rep", *["k"] * 40)
    program = (
        "import os, signal, sys\n"
        "from ncukit.dataset import build\n"
        "if __name__ == '__main__':\n"
        "    build.SAVE_EVERY = 0\n"
        "    stop = lambda done, *_: os.kill(os.getpid(), signal.SIGKILL) if done == 4 else None\n"
        "    build.build([sys.argv[1]], sys.argv[2], workers=1, progress=stop)\n"
    )
    script = fleet.with_name("killed.py")
    script.write_text(program)
    killed = subprocess.run([sys.executable, script, runs, fleet], check=False, cwd=CHECKOUT)
    assert killed.returncode == -signal.SIGKILL
    assert dataset(fleet).schema.equals(schema())  # readable at any time
    (fleet / "gpu=NVIDIA%20A40" / ".x-0123456789ab.parquet.1.tmp").touch()
    (fleet / "gpu=NVIDIA%20A40" / "orphan-0123456789ab.parquet").touch()
    done = make(runs, fleet)
    assert done.unchanged >= 3
    assert (done.reports, done.launches, len(rows(fleet))) == (15, 485, 485)
    assert not list(fleet.glob("gpu=*/.*"))


@pytest.mark.parametrize("forced", [False, True], ids=["the first", "a rebuild"])
def test_a_build_that_is_killed_before_it_saves_goes_on(runs: Path, fleet: Path, forced: bool) -> None:
    if forced:
        make(runs, fleet)
    program = (
        "import os, signal, sys\n"
        "from ncukit.dataset import build\n"
        "stop = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"build.build([sys.argv[1]], sys.argv[2], workers=1, force={forced}, progress=stop)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, runs, fleet], check=False, cwd=CHECKOUT)
    assert killed.returncode == -signal.SIGKILL
    assert list(fleet.glob("gpu=*/*.parquet"))
    assert make(runs, fleet).read == 3
    assert len(rows(fleet)) == 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_signal_stops_the_last_saving(
    runs: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    real, saved = inputs.State.save, []

    def save(self: inputs.State, folder: Path) -> None:
        saved.append(len(self.files))
        if len(saved) == 2:
            os.kill(os.getpid(), number)
        real(self, folder)

    monkeypatch.setattr(inputs.State, "save", save)
    with signals.heard(), pytest.raises(KeyboardInterrupt):
        make(runs, fleet)
    assert saved == [0, 3]
    assert make(runs, fleet).read == 0


def test_two_builds_at_once_do_not_mix(runs: Path, fleet: Path) -> None:
    with inputs.locked(fleet), pytest.raises(UsageError, match="another build is at work"):
        make(runs, fleet)
    assert make(runs, fleet).launches == 5


@pytest.mark.skipif(not reports(), reason=no_shared())
@pytest.mark.usefixtures("processes")
def test_the_real_reports_twice_the_second_time_none_is_read(shared: Path, fleet: Path) -> None:
    everything = [shared / "reports" / name for name in ("ncu", "ncu-more", "broken")]
    first = build_dataset(everything, fleet)
    assert first.read == first.reports >= 80
    assert len(reports()) >= 66
    assert not {e["file"] for e in first.errors} & {str(path) for path in reports()}
    again = build_dataset(everything, fleet)
    assert (again.read, again.unchanged) == (0, first.reports)
    assert again.errors == first.errors
    assert dataset(fleet).schema.equals(schema())
    assert dataset(fleet).count_rows() == first.launches
    assert "internal" not in {error["code"] for error in first.errors}
    whole = {"bitflip", "concatenated", "trailing_garbage"}
    broken = {path.stem for path in (shared / "reports" / "broken").iterdir()}
    assert {Path(error["file"]).stem for error in first.errors} == broken - whole


# Questions


def duckdb() -> Any:
    return pytest.importorskip("duckdb", reason="duckdb is not installed")


def test_sql_is_answered_from_launches_metrics_and_errors(built: Path) -> None:
    duckdb()
    found = query_dataset(built, "SELECT gpu, count(*) AS n FROM launches GROUP BY gpu ORDER BY n DESC")
    assert found.columns == ("gpu", "n")
    assert found.rows == (("NVIDIA A40", 4), ("NVIDIA H100 80GB HBM3", 1))
    assert query_dataset(built, "SELECT unit FROM metrics WHERE id = 'dram_bytes'").rows == (("byte",),)
    assert query_dataset(built, "SELECT code FROM errors").rows == (("report-format",),)


def test_a_dataset_of_bad_reports_only_still_answers(tmp_path: Path, fleet: Path) -> None:
    duckdb()
    (tmp_path / "bad.ncu-rep").write_bytes(BROKEN)
    build_dataset(tmp_path / "bad.ncu-rep", fleet, workers=1)
    assert query_dataset(fleet, "SELECT count(*), max(dram_bytes) FROM launches").rows == ((0, None),)


@pytest.mark.parametrize(
    ("sql", "words"),
    [("SELECT nope FROM launches", "nope"), ("SELEKT 1", "syntax"), ("", "asks for nothing")],
)
def test_wrong_sql_is_a_usage_error(built: Path, sql: str, words: str) -> None:
    duckdb()
    with pytest.raises(UsageError, match=words):
        query_dataset(built, sql)


REACHING_OUT = (
    "SELECT * FROM read_text('secret')",
    "SELECT * FROM 'secret.csv'",
    "SELECT * FROM glob('*')",
    "COPY launches TO 'secret'",
    "COPY (SELECT 1) TO 'new.csv'",
    "COPY (SELECT 1) TO '.tmp/new.csv'",
    "EXPORT DATABASE 'new'",
    "ATTACH 'new.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET temp_directory = '.tmp'",
    "CALL enable_logging(storage_path = 'new')",
    "DELETE FROM launches",
)


def test_sql_reads_and_writes_nothing_but_the_dataset(
    runs: Path, fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb()
    make(runs, fleet)
    (tmp_path / ".tmp").mkdir()  # where DuckDB writes what does not fit into the memory
    for name in ("secret", "secret.csv"):
        (tmp_path / name).write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)

    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() if path.is_file() else b"" for path in tmp_path.rglob("*")}

    before, answered = content(), []
    for sql in REACHING_OUT:
        try:
            answered.append((sql, query_dataset(fleet, sql)))
        except UsageError:
            continue
    assert answered == []
    assert content() == before


def test_a_folder_that_is_no_dataset_says_how_to_make_one(tmp_path: Path) -> None:
    duckdb()
    with pytest.raises(UsageError) as caught:
        query_dataset(tmp_path / "nothing", "SELECT 1")
    assert "ncukit dataset build" in caught.value.hint


def test_a_long_cell_goes_on_below_and_loses_nothing() -> None:
    message = "runs/bad.ncu-rep is damaged: " + " ".join(f"word{n}" for n in range(40))
    shown = answer_text(["code", "message", "n"], [["report-damaged", message, 7]])
    first, *rest = shown.splitlines()[1:]
    assert (first.split()[0], first.split()[-1]) == ("report-damaged", "7")
    assert " ".join([*first.split()[1:-1], *" ".join(rest).split()]) == message
    assert {len(line) - len(line.lstrip()) for line in rest} == {first.index("runs")}
    assert max(map(len, shown.splitlines())) < 90


@pytest.mark.parametrize(("extra", "module"), [("query", survey), ("cluster", "ncukit.cluster")])
def test_without_an_extra_the_error_says_how_to_install_it(
    extra: str, module: Any, runs: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    make(runs, fleet)
    module = importlib.import_module(module) if isinstance(module, str) else module
    monkeypatch.setattr(module, "import_module", missing)
    uses = {
        "query": lambda: query_dataset(fleet, "SELECT 1"),
        "cluster": lambda: make(runs, fleet, dask="tcp://127.0.0.1:1", force=True),
    }
    with pytest.raises(NcukitError) as caught:
        uses[extra]()
    assert caught.value.hint == install_command(extra)


# A cluster


@pytest.fixture(scope="module")
def cluster() -> Any:
    """A Dask cluster of two processes on this machine."""
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="tcp"
    ) as made:
        yield made


dask = pytest.mark.filterwarnings("ignore")


@dask
def test_a_cluster_writes_what_local_workers_do(cluster: Any, runs: Path, tmp_path: Path) -> None:
    (runs / "bad.ncu-rep").write_bytes(BROKEN)
    there = make(runs, tmp_path / "there", dask=cluster.scheduler_address)
    here = make(runs, tmp_path / "here")
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    assert there.errors == here.errors
    assert make(runs, tmp_path / "there", dask=cluster.scheduler_address).read == 0


@dask
def test_workers_of_a_cluster_that_are_killed_midway_lose_nothing(
    cluster: Any, runs: Path, fleet: Path
) -> None:
    for number in range(8):
        report(runs / f"more{number}.ncu-rep", *["k"] * 40)

    def kill(done: int, total: int, file: str) -> None:
        if done == 2:
            for worker in cluster.workers.values():
                os.kill(worker.pid, signal.SIGKILL)

    done = make(runs, fleet, dask=cluster.scheduler_address, progress=kill)
    assert (done.read, done.errors) == (11, ())
    assert len(rows(fleet)) == done.launches == 325


@dask
def test_where_no_scheduler_answers_the_error_says_so(
    runs: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    from ncukit import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    with pytest.raises(NcukitError, match="no Dask scheduler answers"):
        make(runs, fleet, dask="tcp://127.0.0.1:9")


# The command line


def ncukit(monkeypatch: pytest.MonkeyPatch, *arguments: object, stdin: str = "") -> int:
    """Run the command line in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["ncukit", *map(str, arguments)])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object, stdin: str = "") -> tuple[int, str, str]:
        code = ncukit(monkeypatch, *arguments, stdin=stdin)
        return (code, *capsys.readouterr())

    return call


def test_the_command_says_what_it_did(run: Run, runs: Path, fleet: Path) -> None:
    first = run("dataset", "build", f"{runs}/**/*.ncu-rep", "-o", fleet, "-w", 1)
    assert first == (0, f"{fleet}: 5 launches of 3 reports (3 read, 0 unchanged)\n", "")
    (runs / "bad.ncu-rep").write_bytes(BROKEN)
    (runs / "a.ncu-rep").unlink()
    code, out, err = run("dataset", "build", runs, "-o", fleet, "-w", 1)
    assert code == 4
    assert out == f"{fleet}: 3 launches of 3 reports (1 read, 2 unchanged, 1 gone, 1 cannot be used)\n"
    assert err.splitlines()[0].startswith("error: ")
    assert err.splitlines()[1] == f"hint: {fleet}/_errors.parquet lists them"
    code, _, err = run("dataset", "build", runs, "-o", fleet, "-w", 1, "--quiet")
    assert (code, err) == (4, "")  # nothing is new, and still it cannot be used
    (runs / "bad.ncu-rep").unlink()
    assert run("dataset", "build", runs, "-o", fleet, "-w", 1)[0] == 0


def test_the_same_as_json(run: Run, runs: Path, fleet: Path) -> None:
    (runs / "bad.ncu-rep").write_bytes(BROKEN)
    code, out, _ = run("dataset", "build", runs, "-o", fleet, "-w", 1, "--json")
    found = follows_its_schema(out)
    assert code == 4
    assert found["schema"] == "ncukit.built/1"
    assert follows_its_schema((fleet / inputs.NAME).read_text())["schema"] == "ncukit.dataset/1"
    assert (found["reports"], found["launches"], found["read"]) == (4, 5, 4)
    assert [error["code"] for error in found["errors"]] == ["report-format"]


def test_only_bad_reports_end_with_exit_code_4(run: Run, tmp_path: Path, fleet: Path) -> None:
    (tmp_path / "bad.ncu-rep").write_bytes(BROKEN)
    assert run("dataset", "build", tmp_path / "bad.ncu-rep", "-o", fleet, "-w", 1)[0] == 4
    assert run("dataset", "build", tmp_path / "no*.ncu-rep", "-o", fleet)[0] == 4


def test_progress_is_shown_on_a_terminal_only(runs: Path, fleet: Path) -> None:
    import pty

    argv = [sys.executable, "-m", "ncukit", "dataset", "build", str(runs), "-o", str(fleet), "-w", "1"]
    master, slave = pty.openpty()
    process = subprocess.Popen(argv, stderr=slave, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)
    os.close(slave)
    shown = "".join(iter(lambda: terminal_text(master), ""))
    out, _ = process.communicate()
    os.close(master)
    assert "3/3" in shown
    assert (process.returncode, out.startswith(str(fleet))) == (0, True)


def terminal_text(master: int) -> str:
    """Return what a program wrote to a terminal meanwhile; nothing once it ended."""
    try:
        return os.read(master, 1 << 16).decode(errors="replace")
    except OSError:  # so Linux says that nobody can write any more
        return ""


def test_an_answer_as_table_csv_and_json(run: Run, built: Path) -> None:
    duckdb()
    sql = "SELECT name, count(*) AS n, max(dram_bytes) AS bytes FROM launches GROUP BY name ORDER BY name"
    assert run("dataset", "query", built, sql)[:2] == (
        0,
        "name  n  bytes\ncopy  3  –\ngemm  2  –\n",
    )
    assert run("dataset", "query", built, sql, "--format", "csv")[1] == "name,n,bytes\ncopy,3,\ngemm,2,\n"
    code, out, _ = run("dataset", "query", built, "-", "--json", stdin=sql)
    assert code == 0
    assert json.loads(out)[0] == {"name": "copy", "n": 3, "bytes": None}
    assert run("dataset", "query", built, sql, "--format", "xml")[0] == 2
    code, out, err = run("dataset", "query", built, "SELECT nope FROM launches", "--json")
    assert (code, follows_its_schema(out)["error"]["code"]) == (2, "usage")
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize("command", ["build", "query"])
def test_every_command_of_the_group_is_described_with_examples(run: Run, command: str) -> None:
    group = typer.main.get_command(cli.application()).commands["dataset"]  # type: ignore[attr-defined]
    code, out, _ = run("dataset", command, "--help")
    assert code == 0
    assert any(line.strip().startswith(f"ncukit dataset {command}") for line in out.splitlines())
    assert [p.name for p in group.commands[command].params if not getattr(p, "help", None)] == []
