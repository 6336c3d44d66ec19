"""Files appear only when they are whole, and take the place of nothing but files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncukit.errors import UsageError
from ncukit.files import beside, write_bytes, write_text


def test_parts_and_files_follow_each_other(tmp_path: Path) -> None:
    middle = tmp_path / "middle"
    middle.write_bytes(b"b" * 1_000_000)
    assert write_bytes(tmp_path / "out", b"a", middle, b"c").read_bytes() == b"a" + b"b" * 1_000_000 + b"c"


def test_a_pipe_or_a_folder_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = sorted(os.listdir(tmp_path))
    for name, mode in (("pipe", Path.is_fifo), ("folder", Path.is_dir)):
        with pytest.raises(UsageError, match="it is no file") as caught:
            write_text(tmp_path / name, "text", hint="elsewhere")
        assert caught.value.hint == "elsewhere"
        assert mode(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("begin", [b"NVR\0", b"SQLite format 3\0"])
def test_what_was_measured_is_never_replaced(tmp_path: Path, begin: bytes) -> None:
    (tmp_path / "own").write_bytes(begin + b"measured")
    with pytest.raises(UsageError, match="which --force does not replace"):
        write_text(tmp_path / "own", "page", force=True)
    assert (tmp_path / "own").read_bytes() == begin + b"measured"
    assert os.listdir(tmp_path) == ["own"]


def test_a_file_is_not_called_as_stdout_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="- is no file"):
        write_text(Path("-"), "text")
    write_text(Path("./folder/-"), "text")
    assert os.listdir() == ["folder"]


@pytest.mark.parametrize("target", ["other", "nowhere", "/dev/null", "link"])
def test_a_link_is_neither_replaced_nor_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(UsageError, match=f"it is a link to {target}"):
        write_text(tmp_path / "link", "new")
    with pytest.raises(UsageError, match="exists already"):
        write_text(tmp_path / "link", "new", force=False)
    assert (tmp_path / "other").read_text() == "kept"
    assert os.readlink(tmp_path / "link") == target
    assert sorted(os.listdir(tmp_path)) == ["link", "other"]


@pytest.mark.parametrize("force", [True, False])
def test_a_name_that_is_too_long_is_the_callers_mistake(tmp_path: Path, force: bool) -> None:
    with pytest.raises(UsageError, match="File name too long"):
        write_text(tmp_path / ("a" * 300), "text", force=force)


def test_a_fault_of_another_file_is_not_blamed_on_this_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_bytes(tmp_path / "out", b"a", tmp_path / "gone")
    assert caught.value.filename == tmp_path / "gone" or caught.value.filename == str(tmp_path / "gone")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_told_of_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*out: No space left"), beside(tmp_path / "out"):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []
