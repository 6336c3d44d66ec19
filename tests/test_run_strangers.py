"""Run directories that a stranger made: nothing outside of them is read, written or deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ncukit.api import read_experiment
from ncukit.errors import ReportFormatError, UsageError
from ncukit.model.run import OutputFile
from ncukit.run.directory import LOGS, RunDirectory, inside, read_record, read_timing, whole
from tests.mutations import originals

WORK = "years of work"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory, and a folder of the user's own beside it."""
    (folder := tmp_path / "run").mkdir()
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "thesis.txt").write_text(WORK)
    (folder / "run.json").write_bytes(originals.records()[0])
    (folder / "timing.json").write_bytes(originals.timings()[0])
    return folder


def unchanged(run: Path) -> bool:
    victim = run.parent / "victim"
    return [path.name for path in victim.iterdir()] == ["thesis.txt"] and (
        victim / "thesis.txt"
    ).read_text() == WORK


def test_logs_that_are_a_link_are_refused_before_a_run_goes_on(run: Path) -> None:
    (run / LOGS).symlink_to("../victim")
    with pytest.raises(ReportFormatError, match="logs is a link"):
        RunDirectory.resume(run)
    assert unchanged(run)


def test_logs_that_become_a_link_meanwhile_are_not_written_into(run: Path) -> None:
    directory, _ = RunDirectory.resume(run)
    (run / LOGS).symlink_to("../victim")
    with pytest.raises(UsageError, match="it is a link"):
        directory.log("timing", "output")
    directory.close()
    assert unchanged(run)


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_a_file_that_is_written_takes_the_place_of_a_link(
    run: Path, make: Callable[[Path, Path], None]
) -> None:
    directory, record = RunDirectory.resume(run)
    for name in ("run.json", "new.json"):
        (run / name).unlink(missing_ok=True)
        make(run / name, run.parent / "victim" / "thesis.txt")
        directory.write(name, "new")
        assert (run / name).read_text() == "new"
        make(run / "other", run.parent / "victim" / "thesis.txt")
        directory.remove("other")
    directory.record(record)
    directory.close()
    assert unchanged(run)


def test_only_scratch_folders_of_this_user_are_removed_and_no_links(run: Path) -> None:
    beside = run.parent
    (beside / ".run.0123abcd.part").mkdir()
    (beside / ".run.0123abcd.part" / "link").symlink_to("../victim")
    (beside / ".run.89abcdef.part").symlink_to("victim")
    (beside / ".run.notours!.part").mkdir()
    (beside / ".run.0123abce.part").write_text(WORK)
    directory, _ = RunDirectory.resume(run)
    directory.close()
    assert sorted(path.name for path in beside.iterdir()) == [
        ".run.0123abce.part",
        ".run.89abcdef.part",
        ".run.notours!.part",
        "run",
        "victim",
    ]
    assert unchanged(run)


def test_a_scratch_folder_of_another_user_stays(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run.parent / ".run.0123abcd.part").mkdir()
    monkeypatch.setattr("os.geteuid", lambda: 4242)
    directory, _ = RunDirectory.resume(run)
    directory.close()
    assert (run.parent / ".run.0123abcd.part").is_dir()


@pytest.mark.parametrize("name", ["../victim/thesis.txt", "{absolute}", "link", "up/thesis.txt", "a\0b"])
def test_a_recorded_file_elsewhere_is_not_one_of_the_run(run: Path, name: str) -> None:
    (run / "link").symlink_to("../victim/thesis.txt")
    (run / "up").symlink_to("../victim")
    thesis = run.parent / "victim" / "thesis.txt"
    digest = hashlib.sha256(thesis.read_bytes()).hexdigest()
    name = str(thesis) if name == "{absolute}" else name
    assert not whole(run, OutputFile(name, thesis.stat().st_size, digest))
    (run / "copy").write_bytes(thesis.read_bytes())
    assert whole(run, OutputFile("copy", thesis.stat().st_size, digest))


@pytest.mark.parametrize("name", ["../victim/thesis.txt", "/etc/passwd", "up/thesis.txt", "up", ""])
def test_a_name_or_a_link_does_not_lead_out_of_a_run(run: Path, name: str) -> None:
    (run / "up").symlink_to("../victim")
    with pytest.raises(ReportFormatError):
        inside(run, name)
    assert inside(run, "profile.ncu-rep") == run / "profile.ncu-rep"


def test_a_record_that_is_a_link_is_refused(run: Path) -> None:
    for name, read in (("run.json", read_record), ("timing.json", read_timing)):
        (run / name).rename(run.parent / name)
        (run / name).symlink_to(f"../{name}")
        with pytest.raises(ReportFormatError, match=f"{name} is a link"):
            read(run)


def test_the_run_itself_may_be_a_link_of_the_user_s(run: Path) -> None:
    (run.parent / "latest").symlink_to("run")
    assert read_record(run.parent / "latest") == read_record(run)


def test_the_record_of_an_experiment_that_is_a_link_is_refused(run: Path) -> None:
    (run / "experiment.json").symlink_to("../victim/thesis.txt")
    with pytest.raises(ReportFormatError, match="is a link"):
        read_experiment(run)
