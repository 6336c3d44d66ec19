"""Folders that may be a stranger's: no link and no name leads out, and nothing outside changes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ncukit.folders import Folder, Refused, components, is_own_way


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the user's own, which must stay as it is."""
    (folder := tmp_path / "victim").mkdir()
    (folder / "thesis.txt").write_text("years of work")
    return folder


@pytest.fixture
def theirs(tmp_path: Path, victim: Path) -> Path:
    """A stranger's folder that is full of links to the victim's."""
    (folder := tmp_path / "theirs").mkdir()
    (folder / "inner").mkdir()
    (folder / "file").symlink_to(victim / "thesis.txt")
    (folder / "dangling").symlink_to(victim / "new.txt")
    (folder / "gpu=x").symlink_to(victim)
    (folder / "inner" / "up").symlink_to("../../victim")
    os.mkfifo(folder / "pipe")
    return folder


def unchanged(victim: Path) -> bool:
    return os.listdir(victim) == ["thesis.txt"] and (victim / "thesis.txt").read_text() == "years of work"


def lock(folder: Folder, name: str) -> None:
    with folder.locked(name):
        pass


LINKS = ["file", "dangling", "gpu=x", "gpu=x/thesis.txt", "gpu=x/new.txt", "inner/up/thesis.txt"]
NAMES = ["../victim/thesis.txt", "/etc/passwd", "", ".", "..", "inner//x", "inner/../file", "./x", "a\0b"]
USES: dict[str, Callable[[Folder, str], object]] = {
    "read": Folder.read,
    "write": lambda folder, name: folder.write(name, b"theirs"),
    "create": lambda folder, name: folder.create(name).close(),
    "lock": lambda folder, name: lock(folder, name),
    "open": Folder.folder,
    "make": lambda folder, name: folder.folder(name, make=True),
}


@pytest.mark.parametrize("name", [*LINKS, *NAMES])
@pytest.mark.parametrize("use", USES)
def test_no_link_and_no_name_leads_out(use: str, name: str, theirs: Path, victim: Path) -> None:
    with Folder.open(theirs) as folder, pytest.raises(OSError):  # noqa: PT011 - of every kind
        USES[use](folder, name)
    assert unchanged(victim)


@pytest.mark.parametrize("name", [*LINKS[3:], *NAMES])
def test_nothing_outside_is_found_or_removed(name: str, theirs: Path, victim: Path) -> None:
    with Folder.open(theirs) as folder:
        assert folder.find(name) is None
        assert not folder.holds(name)
        assert not folder.remove(name)
        assert not folder.remove_folder(name, content=True)
    assert unchanged(victim)


def test_a_link_is_removed_and_not_what_it_leads_to(theirs: Path, victim: Path) -> None:
    with Folder.open(theirs) as folder:
        assert not folder.remove_folder("gpu=x", content=True)
        assert folder.remove("file")
        assert folder.remove("gpu=x")
        assert folder.remove_folder("inner", content=True)  # it holds a link
    assert sorted(os.listdir(theirs)) == ["dangling", "pipe"]
    assert unchanged(victim)


def test_a_link_is_called_one(theirs: Path) -> None:
    with Folder.open(theirs) as folder:
        for name in ("file", "gpu=x/thesis.txt"):
            with pytest.raises(Refused, match="it is a link"):
                folder.read(name)


def test_a_pipe_is_refused_at_once(theirs: Path) -> None:
    with Folder.open(theirs) as folder:
        for use in (USES["read"], USES["write"], USES["lock"]):
            with pytest.raises(Refused, match="it is not a regular file"):
                use(folder, "pipe")
    assert stat.S_ISFIFO((theirs / "pipe").lstat().st_mode)


def test_a_file_with_another_name_elsewhere_is_replaced_not_written(theirs: Path, victim: Path) -> None:
    (theirs / "page.html").hardlink_to(victim / "thesis.txt")
    (theirs / "_lock").hardlink_to(victim / "thesis.txt")
    with Folder.open(theirs) as folder, folder.locked("_lock"):
        folder.write("page.html", b"new")
        assert folder.read("page.html") == b"new"
    assert unchanged(victim)


def test_the_folder_itself_may_be_a_link_of_the_user_s(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "mine").symlink_to(victim)
    with Folder.open(tmp_path / "mine") as folder:
        assert folder.read("thesis.txt") == b"years of work"


def test_a_folder_that_is_replaced_by_a_link_meanwhile_stays_the_one_that_was_opened(
    tmp_path: Path, victim: Path
) -> None:
    (tmp_path / "work").mkdir()
    with Folder.open(tmp_path / "work") as folder:
        (tmp_path / "work").rename(tmp_path / "kept")
        (tmp_path / "work").symlink_to(victim)
        folder.write("new.txt", b"new")
        folder.remove("thesis.txt")
    assert os.listdir(tmp_path / "kept") == ["new.txt"]
    assert unchanged(victim)


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    (tmp_path / "_lock").write_text("as it was")
    with Folder.open(tmp_path) as one, Folder.open(tmp_path) as other:
        with one.locked("_lock"), pytest.raises(BlockingIOError):
            lock(other, "_lock")
        lock(other, "_lock")
    assert (tmp_path / "_lock").read_text() == "as it was"


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    opened = len(os.listdir("/proc/self/fd"))
    with Folder.open(tmp_path) as folder:
        with pytest.raises(Refused):
            folder.write("folder", b"text")
        with pytest.raises(FileNotFoundError):
            folder.write("nowhere/file", b"text")
    assert os.listdir(tmp_path) == ["folder"]
    assert len(os.listdir("/proc/self/fd")) == opened


def test_a_surrogate_in_a_name_is_a_byte(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    with Folder.open(tmp_path) as folder:
        folder.write(name, b"text")
        assert folder.names() == [name]
    assert components(name) == (name,)


# ---- the way to a folder ----


def test_a_way_through_links_of_the_user_s_own_is_their_own(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "link").symlink_to("victim")
    (tmp_path / "absolute").symlink_to(tmp_path / "link")
    (tmp_path / "up").symlink_to("victim/../absolute")
    for name in ("victim", "link", "absolute", "up", "up/not/there"):
        assert is_own_way(tmp_path / name)


def test_a_way_through_a_folder_that_others_can_write_is_not(tmp_path: Path) -> None:
    (tmp_path / "open" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("open/inner")
    for mode, own in ((0o777, False), (0o775, False), (0o1777, True), (0o755, True)):
        (tmp_path / "open").chmod(mode)
        for name in ("open", "open/inner", "link"):
            assert is_own_way(tmp_path / name) == own
    (tmp_path / "open").chmod(0o777)
    assert is_own_way(tmp_path / "open" / "inner", str(tmp_path / "open"))  # it leads to the home


def test_a_way_in_a_circle_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert not is_own_way(tmp_path / "a")


def test_a_way_past_another_user_is_not_the_user_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 4242)
    assert is_own_way(tmp_path / "inner") == (owner == 0)
