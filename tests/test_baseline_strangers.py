"""Baselines and ncukit.toml in folders that may be a stranger's: nothing outside is read or replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncukit.comparison import baseline, options
from ncukit.comparison.options import load_settings
from ncukit.errors import ReportError, UsageError
from tests.command import Done, ncukit
from tests.ncurep import Launch, write_report

pytestmark = pytest.mark.usefixtures("in_this_process")
WORK = '{"schema": "mine"}'


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a report; beside it the user's own settings of another program."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "settings.json").write_text(WORK)
    (repo := tmp_path / "repo").mkdir()
    (repo / ".git").mkdir()
    write_report(repo / "x.ncu-rep", [Launch("k(int)", metrics={"gpu__time_duration.sum": 1000.0})])
    return repo


def keep(work: Path, *more: str) -> Done:
    return ncukit("baseline", "set", "settings", "x.ncu-rep", "--force", *more, cwd=work)


def refused(done: Done, words: str, work: Path) -> None:
    assert done.returncode == 2
    assert words in done.stderr
    assert (work.parent / "victim" / "settings.json").read_text() == WORK
    assert os.listdir(work.parent / "victim") == ["settings.json"]


@pytest.mark.parametrize(
    "place", ["../victim", "{absolute}", "inner/../../victim", "link", "link/deeper", "a\\u0000b"]
)
def test_baselines_stay_inside_the_folder_of_ncukit_toml(place: str, work: Path) -> None:
    (work / "link").symlink_to("../victim")
    place = str(work.parent / "victim") if place == "{absolute}" else place
    (work / "ncukit.toml").write_text(f'[compare]\nbaselines = "{place}"\n')
    refused(keep(work), "leads out of", work)


@pytest.mark.parametrize("link", [".ncukit", ".ncukit/baselines"])
def test_the_folder_of_baselines_is_no_link_out_of_the_repository(link: str, work: Path) -> None:
    (work / link).parent.mkdir(exist_ok=True)
    (work / link).symlink_to(work.parent / "victim")
    refused(keep(work), "leads out of", work)


def test_only_a_baseline_is_replaced(work: Path) -> None:
    refused(keep(work, "--folder", "../victim"), "it is not a baseline", work)
    assert keep(work).returncode == 0
    kept = work / ".ncukit" / "baselines" / "settings.json"
    kept.write_text(kept.read_text()[:500])  # a damaged one is one
    assert keep(work).returncode == 0
    assert kept.read_text().endswith("}\n")


def test_a_baseline_that_is_a_link_is_neither_read_nor_replaced(work: Path) -> None:
    assert keep(work).returncode == 0
    kept = work / ".ncukit" / "baselines" / "settings.json"
    kept.rename(work / "moved.json")
    for target in ("../../moved.json", "../../../victim/settings.json"):
        kept.symlink_to(target)
        refused(keep(work), "it is a link", work)
        assert baseline.baseline_names(kept.parent) == []
        assert not baseline.exists(kept.parent, "settings")
        with pytest.raises(ReportError, match="it is a link"):
            baseline.read_file(kept, found=True)
        kept.unlink()


def test_a_baseline_with_another_name_elsewhere_is_replaced_not_written(work: Path) -> None:
    assert keep(work).returncode == 0
    kept = work / ".ncukit" / "baselines" / "settings.json"
    (work / "other.json").hardlink_to(kept)
    kept.write_text(before := kept.read_text()[:500])
    assert keep(work).returncode == 0
    assert (work / "other.json").read_text() == before


# ---- where ncukit.toml is looked for ----


@pytest.fixture
def nested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders a/b/c, of which a has a ncukit.toml; the home is elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "ncukit.toml").write_text("[compare]\nallow_unknown = true\n")
    return tmp_path / "a" / "b" / "c"


def of_another(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    real = options.owner
    monkeypatch.setattr(options, "owner", lambda path: 4242 if path in paths else real(path))


def test_the_file_of_a_parent_counts(nested: Path) -> None:
    assert load_settings(nested).allow_unknown


def test_the_file_of_another_user_in_a_parent_does_not(nested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_another(monkeypatch, nested.parent.parent / "ncukit.toml")
    assert load_settings(nested).file is None


def test_the_search_ends_at_a_folder_of_another_user(nested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_another(monkeypatch, nested.parent)
    found = load_settings(nested)
    assert (found.file, found.baselines) == (None, nested / baseline.FOLDER)


def test_a_repository_of_another_user_is_one(nested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = nested.parent.parent
    (root / ".git").mkdir()
    of_another(monkeypatch, nested, nested.parent, root, root / "ncukit.toml")
    assert load_settings(nested).allow_unknown


def test_the_search_ends_at_the_home_folder(nested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(nested.parent))
    assert load_settings(nested).file is None
    monkeypatch.setenv("HOME", str(nested.parent.parent))
    assert load_settings(nested).allow_unknown


def test_a_file_that_is_a_link_is_not_followed(nested: Path) -> None:
    (nested / "ncukit.toml").symlink_to("../../ncukit.toml")
    with pytest.raises(UsageError, match="is a link, which is not followed"):
        load_settings(nested)
    assert load_settings(file=nested / "ncukit.toml").allow_unknown
