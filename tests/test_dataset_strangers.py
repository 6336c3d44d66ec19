"""Datasets that a stranger made or something damaged: nothing outside changes, and what is wrong is named."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from ncukit.dataset.survey import survey
from ncukit.model.comparison import Survey
from tests.command import Done, ncukit
from tests.ncurep import Device, Launch, write_report

pytestmark = pytest.mark.usefixtures("in_this_process")
METRICS = {"gpu__time_duration.sum": 1000.0}
WORK = "years of work"


def report(path: Path, *names: str) -> Path:
    """Write a report of launches of these names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    launches = [Launch(f"{name}(int)", metrics=METRICS) for name in names]
    return write_report(path, launches, Device(name="NVIDIA A40"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working folder: a report, a dataset of another, and beside it what must stay as it is."""
    report(tmp_path / "mine.ncu-rep", "mine")
    report(tmp_path / "theirs" / "their.ncu-rep", "their")
    assert build(tmp_path, "theirs").returncode == 0
    (victim := tmp_path / "victim").mkdir()
    for name in ("thesis.txt", "data.parquet", "notes.tmp", "a-0123456789ab.parquet"):
        (victim / name).write_text(WORK)
    return tmp_path


def build(work: Path, *inputs: object) -> Done:
    return ncukit("dataset", "build", *inputs, "-o", "ds", "--workers", "1", cwd=work)


def query(work: Path) -> Done:
    return ncukit("dataset", "query", "ds", "SELECT name FROM launches", "--json", cwd=work)


def index(work: Path) -> Done:
    return ncukit("index", ".", "--force", "--plotlyjs", "directory", "--workers", "1", cwd=work)


def unchanged(work: Path) -> bool:
    """Return whether nothing of the victim's folder was removed, emptied or added."""
    found = {path.name: path.read_text() for path in (work / "victim").iterdir()}
    return found == dict.fromkeys(("thesis.txt", "data.parquet", "notes.tmp", "a-0123456789ab.parquet"), WORK)


def sound(done: Done, *codes: int) -> None:
    """Check that a command ended without an internal error."""
    assert "internal error" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert done.returncode in (codes or (0,)), done.stderr


def state(work: Path, change: Callable[[Any], Any]) -> None:
    """Let the dataset's state say something else."""
    file = work / "ds" / "_state.json"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))


def entry(**changes: Any) -> Callable[[Any], Any]:
    """Return a change of what the state says of a report."""

    def change(data: Any) -> Any:
        (path,) = data["files"]
        data["files"] = {"/nonexistent/x.ncu-rep": {**data["files"][path], **changes}}
        return data

    return change


# Nothing outside changes


@pytest.mark.parametrize(
    "part",
    [
        "../victim/thesis.txt",
        "gpu=x/../../victim/data.parquet",
        "gpu=../victim/a-0123456789ab.parquet",
        "{absolute}",
        "_state.json",
        "gpu=x/a\0-0123456789ab.parquet",
        "",
        7,
    ],
)
def test_a_part_that_leads_outside_is_not_removed(part: object, work: Path) -> None:
    if part == "{absolute}":
        part = str(work / "victim" / "thesis.txt")
    state(work, entry(parts=[part]))
    sound(done := build(work, "mine.ncu-rep"), 2)
    assert "cannot be used" in done.stderr
    assert unchanged(work)
    sound(query(work), 2)
    sound(index(work))
    assert unchanged(work)


def test_a_part_behind_a_link_is_not_removed(work: Path) -> None:
    (work / "ds" / "gpu=evil").symlink_to("../victim")
    state(work, entry(parts=["gpu=evil/a-0123456789ab.parquet"]))
    sound(build(work, "mine.ncu-rep"))
    assert unchanged(work)


def test_a_lock_that_is_a_link_is_not_emptied(work: Path) -> None:
    (work / "ds" / "_lock").unlink()
    (work / "ds" / "_lock").symlink_to("../victim/thesis.txt")
    sound(done := build(work, "mine.ncu-rep"), 2)
    assert "_lock cannot be used: it is a link" in done.stderr
    assert unchanged(work)


def test_a_lock_that_is_another_name_of_a_file_is_not_emptied(work: Path) -> None:
    (work / "ds" / "_lock").unlink()
    (work / "ds" / "_lock").hardlink_to(work / "victim" / "thesis.txt")
    sound(build(work, "mine.ncu-rep"))
    assert unchanged(work)


def test_a_partition_that_is_a_link_is_not_swept(work: Path) -> None:
    (work / "ds" / "gpu=evil").symlink_to("../victim")
    sound(build(work, "mine.ncu-rep"))
    assert unchanged(work)


def test_a_partition_that_is_a_link_is_not_written_into(work: Path) -> None:
    (place,) = (work / "ds").glob("gpu=*")
    for file in place.iterdir():
        file.unlink()
    place.rmdir()
    place.symlink_to("../victim")
    sound(done := build(work, "mine.ncu-rep"), 2)
    assert "cannot write into" in done.stderr
    assert "it is a link" in done.stderr
    assert unchanged(work)


@pytest.mark.parametrize("name", ["_state.json", "_errors.parquet", "_metrics.parquet"])
def test_a_file_that_is_a_link_is_neither_read_nor_written(name: str, work: Path) -> None:
    (work / "ds" / name).rename(work / "kept")
    (work / "ds" / name).symlink_to("../victim/thesis.txt")
    sound(done := build(work, "mine.ncu-rep"), 2)
    assert "link" in done.stderr
    sound(query(work), 2)
    sound(index(work))
    assert unchanged(work)


def test_a_part_that_is_a_link_is_not_read(work: Path) -> None:
    (part,) = (work / "ds").glob("gpu=*/*.parquet")
    part.rename(work / "victim" / "a-0123456789ab.parquet")
    part.symlink_to("../../victim/a-0123456789ab.parquet")
    sound(done := query(work), 2)
    assert "not a regular file" in done.stderr
    assert [one.kernel.name for one in found(work).measured if one.kernel.name == "their"] == ["their"]
    assert any("it is a link" in one.reason for one in found(work).unusable)


def test_files_that_no_build_writes_stay(work: Path) -> None:
    (place,) = (work / "ds").glob("gpu=*")
    (place / "thesis.parquet").write_text(WORK)
    (place / "notes.tmp").write_text(WORK)
    (work / "ds" / "gpu=notes").write_text(WORK)
    sound(build(work, "mine.ncu-rep"))
    assert (place / "thesis.parquet").read_text() == WORK
    assert (place / "notes.tmp").read_text() == WORK
    assert (work / "ds" / "gpu=notes").read_text() == WORK


# What is damaged is named


def found(work: Path) -> Survey:
    return survey(work, workers=1)


STATES: dict[str, Callable[[Any], Any]] = {
    "a list": lambda data: [data],
    "a number": lambda data: 7,
    "files are a list": lambda data: {**data, "files": [1]},
    "an entry is text": lambda data: {**data, "files": {"/x": "y"}},
    "parts are a number": entry(parts=7),
    "a part is a number": entry(parts=[7]),
    "an error is text": entry(error="bad"),
    "an error has a list as code": entry(error={"code": [], "message": "", "hint": "", "exit_code": 4}),
    "a size beyond reason": entry(size=10**40),
    "a time beyond reason": entry(mtime_ns=10**40),
    "NUL in a path": lambda data: {**data, "files": {"/x\0y": next(iter(data["files"].values()))}},
    "half of a character": lambda data: {**data, "files": {"/\ud800": next(iter(data["files"].values()))}},
    "a relative path": lambda data: {**data, "files": {"x": next(iter(data["files"].values()))}},
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_of_another_form_is_refused_and_the_reports_are_read(name: str, work: Path) -> None:
    state(work, STATES[name])
    for command in (build(work, "mine.ncu-rep"), query(work)):
        sound(command, 2)
        assert "_state.json cannot be used" in command.stderr
    sound(index(work))
    assert sorted(one.kernel.name for one in found(work).measured) == ["mine", "their"]
    (damaged,) = [one for one in found(work).unusable if one.name == "ds"]
    assert "the dataset is damaged" in damaged.reason


def test_a_state_that_is_nested_deeply_is_refused(work: Path) -> None:
    (work / "ds" / "_state.json").write_text('{"a":' * 100_000)
    for command in (build(work, "mine.ncu-rep"), query(work)):
        sound(command, 2)
    sound(index(work))


def test_an_error_that_is_nested_deeply_does_no_harm(work: Path) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    state(work, entry(error={"code": "c", "message": "m", "hint": None, "exit_code": 4, "more": deep}))
    sound(build(work, "mine.ncu-rep"))
    sound(index(work))


FILES = ["_errors.parquet", "_metrics.parquet", "gpu=*/*.parquet"]


def cut(data: bytes, seed: int) -> bytes:
    return data[: len(data) * seed // 5]


def flipped(data: bytes, seed: int) -> bytes:
    at = random.Random(seed)
    changed = bytearray(data)
    for _ in range(4):
        changed[at.randrange(len(changed))] ^= 1 << at.randrange(8)
    return bytes(changed)


def flipped_at_the_end(data: bytes, seed: int) -> bytes:
    return data[:-400] + flipped(data[-400:], seed)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("damage", [cut, flipped, flipped_at_the_end])
@pytest.mark.parametrize("name", FILES)
def test_damaged_parquet_is_no_internal_error(
    name: str, damage: Callable[[bytes, int], bytes], seed: int, work: Path
) -> None:
    (file,) = (work / "ds").glob(name)
    file.write_bytes(damage(file.read_bytes(), seed))
    sound(query(work), 0, 2)
    sound(index(work))
    assert sorted(one.kernel.name for one in found(work).measured) == ["mine", "their"]
    sound(build(work, "mine.ncu-rep"))


def test_a_part_that_is_cut_is_named_and_its_report_is_read_again(work: Path) -> None:
    (file,) = (work / "ds").glob("gpu=*/*.parquet")
    file.write_bytes(file.read_bytes()[:-100])
    (named,) = [one for one in found(work).unusable if one.name.endswith(".parquet")]
    assert "the part of a dataset is damaged" in named.reason
    done = build(work, "theirs")
    assert "is damaged: its report is read again" in done.stderr
    assert "1 read" in done.stdout
    assert json.loads(query(work).stdout) == [{"name": "their"}]


def test_a_changed_page_of_a_part_is_noticed(work: Path) -> None:
    (file,) = (work / "ds").glob("gpu=*/*.parquet")
    data = bytearray(file.read_bytes())
    data[60] ^= 1
    file.write_bytes(data)
    assert any("the part of a dataset is damaged" in one.reason for one in found(work).unusable)
    assert sorted(one.kernel.name for one in found(work).measured) == ["mine", "their"]


CONTENT: dict[str, Callable[[Any], Any]] = {
    "other columns": lambda table: table.drop_columns(["name"]),
    "another type": lambda table: table.set_column(
        table.schema.get_field_index("index"), "index", pa.array(["x"] * table.num_rows)
    ),
    "no name": lambda table: with_value(table, "demangled", None),
    "no number": lambda table: with_value(table, "kernel_duration", float("nan")),
    "no time": lambda table: with_value(table, "kernel_duration", -1.0),
    "an infinity": lambda table: with_value(table, "compute_capability", float("inf")),
}


def with_value(table: Any, name: str, value: Any) -> Any:
    at = table.schema.get_field_index(name)
    return table.set_column(
        at, table.schema.field(at), pa.array([value] * table.num_rows, table.schema.types[at])
    )


@pytest.mark.parametrize("name", CONTENT)
def test_a_part_with_other_content_is_named_and_its_report_is_read(name: str, work: Path) -> None:
    (file,) = (work / "ds").glob("gpu=*/*.parquet")
    pyarrow.parquet.write_table(CONTENT[name](pyarrow.parquet.ParquetFile(file).read()), file)
    sound(index(work))
    assert sorted(one.kernel.name for one in found(work).measured) == ["mine", "their"]
    assert any("the part of a dataset is damaged" in one.reason for one in found(work).unusable)
    sound(query(work), 0, 2)


# What a folder holds


def test_a_link_out_of_a_folder_of_repeats_or_ranks_is_refused(tmp_path: Path) -> None:
    report(tmp_path / "private" / "secret.ncu-rep", "secret")
    report(tmp_path / "repeats" / "a.ncu-rep", "a")
    (tmp_path / "repeats" / "b.ncu-rep").symlink_to("../private/secret.ncu-rep")
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks" / "rank0.json").symlink_to("/etc/passwd")
    for words in (("compare", "repeats", "private"), ("ops", "ranks")):
        done = ncukit(*words, cwd=tmp_path)
        assert done.returncode == 4
        assert "is a link that leads out of the folder" in done.stderr
        assert "root:" not in done.stderr


def test_a_link_out_of_the_folder_is_named_and_not_read(tmp_path: Path) -> None:
    report(tmp_path / "private" / "secret.ncu-rep", "secret")
    report(tmp_path / "shown" / "a.ncu-rep", "a")
    (tmp_path / "shown" / "b.ncu-rep").symlink_to("../private/secret.ncu-rep")
    for given in ("shown", "shown/*.ncu-rep"):
        done = ncukit("dataset", "build", given, "-o", "ds", "--workers", "1", "--json", cwd=tmp_path)
        assert done.json["reports"] == 1
        assert done.json["notes"] == ["shown/b.ncu-rep is skipped: it is a link that leads out of the folder"]
        assert "note: shown/b.ncu-rep is skipped" in done.stderr
    seen = survey(tmp_path / "shown", workers=1)
    assert [one.kernel.name for one in seen.measured] == ["a"]
    assert [(one.name, one.reason) for one in seen.unusable] == [
        ("b.ncu-rep", "it is a link that leads out of the folder")
    ]


def test_a_link_that_the_user_named_is_followed(tmp_path: Path) -> None:
    report(tmp_path / "data" / "a.ncu-rep", "a")
    (tmp_path / "link.ncu-rep").symlink_to("data/a.ncu-rep")
    (tmp_path / "folder").symlink_to("data")
    for number, given in enumerate(("link.ncu-rep", "folder", "folder/*.ncu-rep")):
        done = ncukit(
            "dataset", "build", given, "-o", f"ds{number}", "--workers", "1", "--json", cwd=tmp_path
        )
        assert (done.json["reports"], done.json["launches"], done.json["notes"]) == (1, 1, [])
    assert len(survey(tmp_path / "folder", workers=1).measured) == 1


def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    report(tmp_path / "runs" / "a.ncu-rep", "a")
    (tmp_path / "runs" / "latest.ncu-rep").symlink_to("a.ncu-rep")
    done = ncukit("dataset", "build", "runs", "-o", "ds", "--workers", "1", "--json", cwd=tmp_path)
    assert (done.json["reports"], done.json["notes"]) == (2, [])


def test_a_name_that_is_no_text_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    report(tmp_path / "runs" / "a.ncu-rep", "a")
    report(tmp_path / "runs" / os.fsdecode(b"caf\xe9.ncu-rep"), "b")
    report(tmp_path / "runs" / os.fsdecode(b"d\xe9") / "c.ncu-rep", "c")
    done = ncukit("dataset", "build", "runs", "-o", "ds", "--workers", "1", "--json", cwd=tmp_path)
    assert done.json["reports"] == 1
    assert sorted(done.json["notes"]) == [
        r"runs/caf\xe9.ncu-rep is skipped: its name is not UTF-8",
        r"runs/d\xe9/c.ncu-rep is skipped: its name is not UTF-8",
    ]
    assert ncukit("index", "runs", "--workers", "1", cwd=tmp_path).returncode == 0
    seen = survey(tmp_path / "runs", workers=1)
    assert [one.kernel.name for one in seen.measured] == ["a"]
    assert sorted(one.name for one in seen.unusable) == [r"caf\xe9.ncu-rep", r"d\xe9"]
