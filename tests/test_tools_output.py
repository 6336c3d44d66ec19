"""An output counts only when this run created it, whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncukit.run.tools.failures import Context, judge, stamp
from ncukit.run.tools.process import Completed

MAGIC = b"NVR\0"
GOOD = MAGIC + b"body"


def run(*lines: str, code: int = 0, timed_out: bool = False) -> Completed:
    return Completed(("ncu",), code, timed_out=timed_out, lines=tuple(("stdout", line) for line in lines))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "profile.ncu-rep"


def test_a_new_file_is_the_result(path: Path) -> None:
    before = stamp(path)
    path.write_bytes(GOOD)
    outcome = judge(run(), path, before, Context(), MAGIC)
    assert (outcome.path, outcome.failure) == (path, None)


def test_an_old_file_is_never_taken_for_a_new_one(path: Path) -> None:
    path.write_bytes(GOOD)
    outcome = judge(run("==PROF== Report: " + str(path)), path, stamp(path), Context(), MAGIC)
    assert outcome.path is None
    assert outcome.failure is not None
    assert outcome.failure.id == "stale-output.old"


@pytest.mark.parametrize("how", ["replaced", "rewritten"])
def test_the_same_bytes_written_again_are_new(path: Path, how: str) -> None:
    path.write_bytes(GOOD)
    os.utime(path, ns=(0, 0))
    before = stamp(path)
    if how == "replaced":
        beside = path.with_name("beside")
        beside.write_bytes(GOOD)
        os.utime(beside, ns=(0, 0))
        beside.replace(path)
    else:
        path.write_bytes(GOOD)
    assert judge(run(), path, before, Context(), MAGIC).path == path


def test_no_file_is_told_with_the_last_words(path: Path) -> None:
    outcome = judge(run("==PROF== Disconnected from process 7"), path, None, Context(), MAGIC)
    assert outcome.failure is not None
    assert outcome.failure.id == "stale-output.missing"
    assert "Disconnected from process 7" in outcome.failure.hint


@pytest.mark.parametrize("data", [b"", b"NV", MAGIC, b"junk and more of it"])
def test_a_damaged_file_is_no_result(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    outcome = judge(run(), path, None, Context(), MAGIC)
    assert outcome.path is None
    assert outcome.failure is not None
    assert outcome.failure.id == "stale-output.unreadable"


def test_the_cause_is_told_rather_than_the_missing_file(path: Path) -> None:
    outcome = judge(run("==ERROR== LaunchFailed", code=9), path, None, Context(), MAGIC)
    assert outcome.failure is not None
    assert outcome.failure.code == "launch-failed"


def test_what_a_stopped_run_left_is_no_result(path: Path) -> None:
    path.write_bytes(GOOD)
    outcome = judge(run(timed_out=True), path, None, Context(), MAGIC)
    assert outcome.path is None
    assert outcome.failure is not None
    assert outcome.failure.code == "timeout"


def test_remarks_come_along(path: Path) -> None:
    path.write_bytes(GOOD)
    line = "==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling"
    outcome = judge(run(line), path, None, Context(), MAGIC)
    assert (outcome.path, outcome.failure) == (path, None)
    assert [note.code for note in outcome.notes] == ["mig-clocks"]
