"""Reading traces: what an export holds whatever its version, and what is refused, with the reason."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ncukit.errors import (
    NcukitError,
    ReportEmpty,
    ReportFormatError,
    ReportNotFound,
    ToolError,
)
from ncukit.model.trace import Trace
from ncukit.trace.nsys import open_trace, report_version
from tests.conftest import no_shared, shared_folder
from tests.nsys_builder import LAUNCH, Builder

NSYS_FILES = sorted((shared_folder() / "reports" / "nsys").glob("*"))
each_file = pytest.mark.parametrize(
    "path",
    NSYS_FILES or [pytest.param(None, marks=pytest.mark.skip(reason=no_shared()))],
    ids=[path.name for path in NSYS_FILES] or ["no-files"],
)


def one_kernel(**options: object) -> Builder:
    builder = Builder(**options)  # type: ignore[arg-type]
    builder.kernel("k(int)", 1000, 3000, call=(LAUNCH, 100, 200))
    return builder


# ---- what every version of the export says ------------------------------------------------------------


def test_a_kernel_comes_with_its_names_place_and_configuration(tmp_path: Path) -> None:
    builder = Builder()
    builder.kernel(
        "void ns::scale<float>(float *)", 1000, 3000, grid=(128, 2, 1), block=(256, 1, 1), stream=14,
        registers=40, shared=(16, 4096), call=(LAUNCH, 100, 200),
    )  # fmt: skip
    trace = open_trace(builder.write(tmp_path / "t.sqlite"))
    row = {name: int(trace.kernels[name][0]) for name in trace.kernels.names()}
    assert trace.names[row["name"]] == "void ns::scale<float>(float *)"
    assert trace.names[row["short"]] == "scale"
    assert (row["start"], row["end"], row["device"], row["stream"]) == (1000, 3000, 0, 14)
    assert [row[f"grid_{a}"] for a in "xyz"] == [128, 2, 1]
    assert [row[f"block_{a}"] for a in "xyz"] == [256, 1, 1]
    assert (row["registers"], row["static_shared"], row["dynamic_shared"]) == (40, 16, 4096)
    assert trace.gpus[0].name == "NVIDIA Test GPU"
    assert trace.gpus[0].compute_capability == "9.0"


def ranges_of(path: Path) -> list[tuple[str, int, int, int]]:
    trace = open_trace(path)
    r = trace.ranges
    return [
        (trace.names[int(r["name"][i])], *(int(r[c][i]) for c in ("start", "end", "style")))
        for i in range(len(r))
    ]


@pytest.mark.parametrize("table", ["NVTX_EVENTS", "NVTX_EVENTS_V2", "NVTX_EVENTS_V3"])
def test_ranges_read_alike_whatever_the_name_of_their_table(tmp_path: Path, table: str) -> None:
    builder = one_kernel()
    builder.nvtx("outer", 0, 5000)
    builder.nvtx("inner", 10, 900, type=60)
    path = builder.write(tmp_path / "t.sqlite", renamed={"NVTX_EVENTS": table})
    assert ranges_of(path) == [("outer", 0, 5000, 59), ("inner", 10, 900, 60)]


def test_of_several_versions_of_a_table_the_newest_is_read(tmp_path: Path) -> None:
    builder = one_kernel()
    builder.nvtx("old", 0, 5000)
    path = builder.write(tmp_path / "t.sqlite", renamed={"NVTX_EVENTS": "NVTX_EVENTS_V2"})
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE NVTX_EVENTS_V10 AS SELECT * FROM NVTX_EVENTS_V2")
        db.execute("UPDATE NVTX_EVENTS_V10 SET text = 'new'")
    assert [name for name, *_ in ranges_of(path)] == ["new"]


@pytest.mark.parametrize("registered", [True, False], ids=["textId", "inline"])
@pytest.mark.parametrize("column", ["textId", "text", None])
def test_the_text_of_a_range_stands_in_the_row_or_in_the_string_table(
    tmp_path: Path, registered: bool, column: str | None
) -> None:
    if column == ("textId" if registered else "text"):
        pytest.skip("no text at all")
    builder = one_kernel()
    builder.nvtx("step", 0, 5000, registered=registered)
    without = [("NVTX_EVENTS", column)] if column else []
    assert ranges_of(builder.write(tmp_path / "t.sqlite", without=without)) == [("step", 0, 5000, 59)]


def test_without_a_table_of_ranges_the_trace_is_read_all_the_same(tmp_path: Path) -> None:
    trace = open_trace(one_kernel().write(tmp_path / "t.sqlite"))
    assert len(trace.ranges) == 0
    assert len(trace.kernels) == 1
    assert trace.notes == ()


def test_a_table_of_ranges_with_an_unknown_layout_is_not_read_as_no_ranges(tmp_path: Path) -> None:
    path = one_kernel().write(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE NVTX_EVENTS (begin INTEGER, label TEXT)")
    (note,) = open_trace(path).notes
    assert "NVTX" in note
    assert "unknown layout" in note


def test_a_domain_names_itself_and_marks_are_no_ranges(tmp_path: Path) -> None:
    builder = one_kernel()
    builder.nvtx("torch", 0, None, type=75, domain=3)
    builder.nvtx("aten::mm", 10, 900, domain=3)
    builder.nvtx("here", 20, None, type=34)
    trace = open_trace(builder.write(tmp_path / "t.sqlite"))
    assert [trace.names[int(i)] for i in trace.ranges["domain"]] == ["torch"]
    assert [trace.names[int(i)] for i in trace.ranges["name"]] == ["aten::mm"]


def test_a_range_that_never_ended_ends_with_the_trace_and_is_marked(tmp_path: Path) -> None:
    builder = one_kernel()
    builder.nvtx("open", 10, None)
    trace = open_trace(builder.write(tmp_path / "t.sqlite"))
    assert (int(trace.ranges["end"][0]), int(trace.ranges["open"][0])) == (3000, 1)


OLDER = [
    ("CUPTI_ACTIVITY_KIND_KERNEL", "mangledName"),
    ("CUPTI_ACTIVITY_KIND_KERNEL", "greenContextId"),
    ("CUPTI_ACTIVITY_KIND_KERNEL", "graphNodeId"),
    ("TARGET_INFO_GPU", "computeMajor"),
    ("TARGET_INFO_GPU", "computeMinor"),
    ("TARGET_INFO_GPU", "smCount"),
    ("TARGET_INFO_GPU", "memoryBandwidth"),
]


def test_columns_that_older_exports_lack_are_unknown_not_zero(tmp_path: Path) -> None:
    trace = open_trace(one_kernel(schema=None).write(tmp_path / "t.sqlite", without=OLDER))
    assert len(trace.kernels) == 1
    assert int(trace.kernels["graph_node"][0]) == -1
    assert trace.gpus[0].compute_capability is None
    assert trace.gpus[0].sms is None
    assert any("no schema version" in note for note in trace.notes)


def test_the_metadata_table_of_2022_is_read_as_well(tmp_path: Path) -> None:
    path = one_kernel().write(tmp_path / "t.sqlite", renamed={"META_DATA_EXPORT": "EXPORT_META_DATA"})
    assert open_trace(path).file.schema == "3.7.2"


def test_gpus_of_other_vendors_are_not_counted(tmp_path: Path) -> None:
    builder = one_kernel()
    builder.add(
        "TARGET_INFO_GPU", id=1, name="Intel(R) HD Graphics 630", cuDevice=0, computeMajor=0, smCount=0
    )
    assert list(open_trace(builder.write(tmp_path / "t.sqlite")).gpus) == [0]


def test_each_processs_own_device_number_becomes_the_machines(tmp_path: Path) -> None:
    builder = Builder(gpus=(0, 1))
    for pid, gpu in ((10, 0), (11, 1)):
        builder.add("TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=0, pid=pid)
        builder.kernel("k(int)", 1000, 3000, pid=pid)
    assert sorted(open_trace(builder.write(tmp_path / "t.sqlite")).kernels["device"].tolist()) == [0, 1]


# ---- numbers ------------------------------------------------------------


def test_times_below_zero_are_times_like_others(tmp_path: Path) -> None:
    builder = Builder()
    builder.kernel("k(int)", -500, 1500)
    trace = open_trace(builder.write(tmp_path / "t.sqlite"))
    assert trace.kernels.duration.tolist() == [2000]


def test_unsigned_samples_that_were_stored_signed_are_restored(tmp_path: Path) -> None:
    builder = one_kernel()
    builder.add(
        "TARGET_INFO_GPU_METRICS", typeId=1, sourceId=1, metricId=3, metricName="GPC Clock Frequency [Hz]"
    )
    builder.add("GPU_METRICS", timestamp=1, typeId=1, metricId=3, value=-1794967296)
    (series,) = open_trace(builder.write(tmp_path / "t.sqlite")).counters
    assert (series.name, series.max, series.mean) == ("GPC Clock Frequency [Hz]", 2_500_000_000, 2.5e9)


def test_rows_come_ordered_by_start_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    builder = Builder()
    for start in (500, 100, 900, 300):
        builder.kernel("k(int)", start, start + 50)
    trace = open_trace(builder.write(tmp_path / "t.sqlite"))
    assert trace.kernels["start"].tolist() == [100, 300, 500, 900]


def test_rows_without_valid_times_are_counted_and_left_out(tmp_path: Path) -> None:
    builder = one_kernel()
    builder.kernel("unfinished(int)", 5000, None)  # type: ignore[arg-type]
    builder.kernel("backwards(int)", 9000, 8000)
    builder.kernel("not collected(int)", 0, 0)
    trace = open_trace(builder.write(tmp_path / "t.sqlite"))
    assert len(trace.kernels) == 1
    assert trace.notes == ("3 of the kernels have no valid start and end: not counted in any time",)


def test_text_that_is_not_utf8_is_no_reason_to_fail(tmp_path: Path) -> None:
    path = one_kernel().write(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_NAME', CAST(x'476569df' AS TEXT))")
        db.execute("UPDATE StringIds SET value = CAST(x'6bdf28696e7429' AS TEXT) WHERE value = 'k(int)'")
    trace = open_trace(path)
    assert trace.names[int(trace.kernels["name"][0])] == "k\ufffd(int)"


# ---- the file stays as it was ------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.sqlite", "a b.sqlite", "50%.sqlite", "what?#.sqlite", "-dash.sqlite"])
def test_reading_changes_nothing_and_leaves_nothing_beside(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "only"
    folder.mkdir()
    path = one_kernel().write(folder / name)
    before = (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
    open_trace(path)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before
    assert [p.name for p in folder.iterdir()] == [name]


def test_a_file_in_a_folder_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "only"
    folder.mkdir()
    path = one_kernel().write(folder / "t.sqlite")
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        assert len(open_trace(path).kernels) == 1
    finally:
        folder.chmod(0o755)


# ---- what is refused, and why ------------------------------------------------------------


def test_an_unknown_schema_is_refused_with_its_number_and_read_by_force(tmp_path: Path) -> None:
    path = one_kernel(schema="4.0.1", product="2027.1.1.1").write(tmp_path / "t.sqlite")
    with pytest.raises(ReportFormatError, match=r"schema 4\.0\.1") as caught:
        open_trace(path)
    assert "--force" in caught.value.hint
    assert len(open_trace(path, force=True).kernels) == 1


def refused(path: Path) -> NcukitError:
    with pytest.raises(NcukitError) as caught:
        open_trace(path)
    assert caught.value.exit_code in (3, 4)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


def test_an_sqlite_file_that_is_not_nsights_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "slnx.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE FileSystemEntity (id INTEGER)")
        db.execute("CREATE TABLE Setting (id INTEGER)")
    error = refused(path)
    assert error.code == "not-nsight"
    assert "FileSystemEntity, Setting" in error.message


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:92\nsize 11751460\n", "git LFS pointer"),
        (b"NVR\x00\x08\x00\x00\x00", "Nsight Compute"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"<!doctype html><html>", "web page"),
        (b"", "empty"),
        (bytes(range(1, 200)), "not a trace of Nsight Systems"),
        (b"SQLite format 3\x00" + b"\xff" * 2000, "damaged"),
    ],
    ids=["lfs", "ncu", "gzip", "html", "empty", "junk", "sqlite-head"],
)
def test_other_files_are_refused_by_what_they_are(tmp_path: Path, head: bytes, words: str) -> None:
    path = tmp_path / "x.nsys-rep"
    path.write_bytes(head)
    assert words in refused(path).message


def test_a_missing_file_and_a_folder_are_two_things(tmp_path: Path) -> None:
    with pytest.raises(ReportNotFound, match="there is no file"):
        open_trace(tmp_path / "none.sqlite")
    with pytest.raises(ReportFormatError, match="is a folder"):
        open_trace(tmp_path)


def test_a_truncated_export_is_damaged_not_empty(tmp_path: Path) -> None:
    builder = Builder()
    for i in range(2000):
        builder.kernel(f"kernel_{i}(int)", i * 100, i * 100 + 50)
    whole = builder.write(tmp_path / "whole.sqlite").read_bytes()
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(whole[: len(whole) // 2])
    assert "damaged" in refused(cut).message


# ---- nothing ran on a GPU ---------------------------------------------------------------------------------


def empty(builder: Builder, path: Path) -> ReportEmpty:
    with pytest.raises(ReportEmpty) as caught:
        open_trace(builder.write(path))
    assert caught.value.message == f"no GPU kernel ran in {path}"
    assert (caught.value.exit_code, caught.value.code) == (4, "no-gpu-kernel")
    return caught.value


def test_without_any_cuda_call_the_program_used_the_cpu(tmp_path: Path) -> None:
    hint = empty(Builder(), tmp_path / "t.sqlite").hint
    assert "(1) the program used the CPU only" in hint
    assert "(2) CUDA was not traced: run nsys with --trace=cuda,nvtx" in hint
    assert "(3) the kernels ran outside the recorded window" in hint


def test_where_cuda_failed_that_comes_first(tmp_path: Path) -> None:
    builder = Builder(gpus=())
    for _ in range(3):
        builder.api("cuInit", 10, 20, returned=100)
    hint = empty(builder, tmp_path / "t.sqlite").hint
    assert hint.index("saw no GPU") < hint.index("cuInit returned error 100 (3 times)")


def test_where_the_trace_was_made_without_cuda_that_is_said(tmp_path: Path) -> None:
    builder = Builder()
    builder.add("META_DATA_CAPTURE", name="PROCESS_0:COLLECT_CUDA_TRACE", value="false")
    assert "(1) CUDA was not traced" in empty(builder, tmp_path / "t.sqlite").hint


def test_launches_without_gpu_work_mean_that_recording_failed(tmp_path: Path) -> None:
    builder = Builder()
    builder.api(LAUNCH, 10, 20)
    assert (
        "(1) 1 CUDA calls were traced (1 launches) but nothing on the GPU"
        in empty(builder, tmp_path / "t.sqlite").hint
    )


def test_calls_without_any_launch_mean_that_the_program_launched_nothing(tmp_path: Path) -> None:
    builder = Builder()
    builder.api("cudaGetDeviceCount_v3020", 10, 20)
    hint = empty(builder, tmp_path / "t.sqlite").hint
    assert "(1) the program launched nothing: 1 CUDA calls were traced" in hint
    assert "(2) 1 CUDA calls were traced (0 launches) but nothing on the GPU" in hint


# ---- real files ------------------------------------------------------------

VERDICTS = {
    "not-nsight-08.sqlite": "not-nsight",
    "nsys-lfs-pointer-02.nsys-rep": "report-format",
    "trace-04.qdrep": "no-gpu-kernel",
    "trace-06.nsys-rep": "no-gpu-kernel",
    "trace-12.sqlite": "no-gpu-kernel",
    "trace-14.sqlite": "no-gpu-kernel",
}


@each_file
def test_every_real_file_is_read_or_refused_with_its_reason(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.suffix in (".nsys-rep", ".qdrep") and path.stat().st_size > 1000:
        monkeypatch.setenv("NCUKIT_NSYS", str(_nsys()))
    trace, error = attempt(path)
    if error is None:
        assert path.name not in VERDICTS
        assert trace is not None
        assert trace.gpu_work > 0
    elif isinstance(error, ToolError):
        assert error.code == "tool-too-old"
        assert f"written by nsys {report_version(path)}" in error.message
    else:
        assert error.code == VERDICTS[path.name]
        assert path.name in error.message
        assert error.hint


def attempt(path: Path) -> tuple[Trace | None, NcukitError | None]:
    try:
        return open_trace(path), None
    except NcukitError as error:
        return None, error


def _nsys() -> Path:
    from tests.conftest import tool

    found = tool("nsys")
    if found is None:
        pytest.skip("no nsys to export the report")
    return found


def stats(nsys: Path, path: Path, report: str) -> list[dict[str, str]]:
    """Return the rows of a stock report of nsys about the export ``path``."""
    argv = [str(nsys), "stats", "-r", report, "-q", "--format", "csv", "--output", "-", str(path)]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return list(csv.DictReader(io.StringIO(text.strip())))


def assert_equals_stats(nsys: Path, path: Path, work: Path) -> None:
    """Compare every total and count of ``path`` with stock ``nsys stats``, to the nanosecond."""
    from ncukit.trace.region import analyse

    copy = work / "copy.sqlite"  # nsys stats adds indexes to the file that it reads
    copy.write_bytes(path.read_bytes())
    timeline = analyse(open_trace(path))
    kernels = {r["Name"]: r for r in stats(nsys, copy, "cuda_gpu_kern_sum") if r.get("Name")}
    assert {k.name: k.launches.total for k in timeline.kernels} == {
        n: int(r["Total Time (ns)"]) for n, r in kernels.items()
    }
    assert {k.name: k.launches.n for k in timeline.kernels} == {
        n: int(r["Instances"]) for n, r in kernels.items()
    }
    assert [round(k.launches.median, 1) for k in timeline.kernels] == [
        float(kernels[k.name]["Med (ns)"]) for k in timeline.kernels
    ]
    assert timeline.kernel_total == sum(int(r["Total Time (ns)"]) for r in kernels.values())
    api = [r for r in stats(nsys, copy, "cuda_api_sum") if r.get("Name")]
    assert sum(c.calls.total for c in timeline.calls) == sum(int(r["Total Time (ns)"]) for r in api)
    assert sum(c.calls.n for c in timeline.calls) == sum(int(r["Num Calls"]) for r in api)
    memory = [r for r in stats(nsys, copy, "cuda_gpu_mem_time_sum") if r.get("Operation")]
    if not memory and not _has_table(path, "ENUM_CUDA_MEMCPY_OPER"):
        return  # stock nsys cannot name the copies of an export of 2022, and prints none
    memsets = timeline.memsets.total if timeline.memsets else 0
    assert sum(c.total for c in timeline.copies) + memsets == sum(int(r["Total Time (ns)"]) for r in memory)


def _has_table(path: Path, name: str) -> bool:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone())


@pytest.mark.parametrize("name", ["trace-07", "trace-09", "trace-10", "trace-11", "trace-13"])
def test_totals_of_real_traces_equal_nsys_stats(name: str, nsys: Path, shared: Path, tmp_path: Path) -> None:
    assert_equals_stats(nsys, shared / "reports" / "nsys" / f"{name}.sqlite", tmp_path)


def test_totals_of_a_synthetic_trace_equal_nsys_stats(nsys: Path, tmp_path: Path) -> None:
    builder = Builder()
    rng = np.random.default_rng(5)
    at = 0
    for i in range(300):
        at += int(rng.integers(100, 9000))
        long = int(rng.integers(1, 20_000))
        builder.kernel(
            f"void k{i % 7}<int>(int*)", at, at + long, stream=7 + i % 3, call=(LAUNCH, at - 90, at - 10)
        )
        if i % 5 == 0:
            builder.copy("h2d", 4096 * i, at, at + 700, call=("cudaMemcpyAsync_v3020", at - 60, at - 20))
            builder.copy("d2h", 4096, at + 50, at + 800, call=("cudaMemcpy_v3020", at, at + 900), pinned=True)
        if i % 11 == 0:
            builder.memset(64, at + 5, at + 60, call=("cudaMemsetAsync_v3020", at, at + 4))
    assert_equals_stats(nsys, builder.write(tmp_path / "t.sqlite"), tmp_path)


# ---- traces made here with the real nsys ------------------------------------------------------------


@pytest.fixture(scope="session")
def cpu_only(nsys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of a program that uses no GPU, made by the real nsys."""
    folder = tmp_path_factory.mktemp("cpu")
    target = folder / "cpu.nsys-rep"
    argv = [
        str(nsys),
        "profile",
        "--trace=cuda,nvtx,osrt",
        "--sample=none",
        "--cpuctxsw=none",
        "--export=none",
    ]
    done = subprocess.run(
        [*argv, f"--output={target}", sys.executable, "-c", "print(sum(range(1000)))"],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(folder), "TMPDIR": str(folder)},
    )
    if not target.is_file():
        pytest.skip(f"nsys made no report here: {done.stderr[-200:]}")
    return target


def test_a_real_trace_of_a_cpu_program_says_so_and_stays_alone(
    cpu_only: Path, nsys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCUKIT_NSYS", str(nsys))
    before = sorted(p.name for p in cpu_only.parent.iterdir())
    with pytest.raises(ReportEmpty, match=r"no GPU kernel ran in .*cpu\.nsys-rep") as caught:
        open_trace(cpu_only)
    assert "likeliest first: (1) nsys saw no GPU on that machine" in caught.value.hint
    assert sorted(p.name for p in cpu_only.parent.iterdir()) == before


@pytest.mark.parametrize("lazy", ["true", "false"])
def test_an_export_with_or_without_its_empty_tables_reads_alike(
    cpu_only: Path, nsys: Path, tmp_path: Path, lazy: str
) -> None:
    target = tmp_path / "cpu.sqlite"
    argv = [str(nsys), "export", "--type=sqlite", f"--lazy={lazy}", f"--output={target}", str(cpu_only)]
    subprocess.run(argv, capture_output=True, check=True)
    with pytest.raises(ReportEmpty, match="no GPU kernel ran"):
        open_trace(target)


def test_kernels_added_to_a_complete_real_export_are_read(cpu_only: Path, nsys: Path, tmp_path: Path) -> None:
    target = tmp_path / "full.sqlite"
    argv = [str(nsys), "export", "--type=sqlite", "--lazy=false", f"--output={target}", str(cpu_only)]
    subprocess.run(argv, capture_output=True, check=True)
    with closing(sqlite3.connect(target)) as db, db:
        db.execute("INSERT INTO StringIds VALUES (900001, 'k(int)')")
        info = db.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)").fetchall()
        values = {name: 0 for _, name, *_ in info} | {"start": 10, "end": 2010, "demangledName": 900001}
        marks = ",".join("?" * len(values))
        db.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks})", list(values.values()))
    trace = open_trace(target)
    assert [trace.names[int(i)] for i in trace.kernels["name"]] == ["k(int)"]
    assert trace.kernels.duration.tolist() == [2000]


def test_without_nsys_the_needed_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new.nsys-rep"
    path.write_bytes(b"NVIDIA Tegra Profiler Report 2025@5@2@266-255236693005v0.\n" + bytes(100))
    monkeypatch.delenv("NCUKIT_NSYS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ncukit.run.tools.locate.FOLDERS", {"nsys": ()})
    error = refused(path)
    assert isinstance(error, ToolError)
    assert "nsys 2025.5.2.266 or newer" in error.hint
    assert "nsys export --type sqlite new.nsys-rep" in error.hint


def test_a_damaged_report_is_no_fault_of_nsys(
    nsys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCUKIT_NSYS", str(nsys))
    path = tmp_path / "cut.nsys-rep"
    path.write_bytes(b"NVIDIA Tegra Profiler Report 1.\n" + bytes(300))
    error = refused(path)
    assert isinstance(error, ReportFormatError)
    assert "damaged" in error.message
