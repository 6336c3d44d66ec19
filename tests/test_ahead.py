"""A command begins to read its report before it has loaded, and ends what it began for nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncukit.api import demo_reports
from ncukit.cli import COMMANDS
from ncukit.errors import ReportError
from ncukit.model import Wanted
from ncukit.read import ahead, isolate, native
from ncukit.read.report import Source

pytestmark = pytest.mark.usefixtures("reader_of_users")
SAMPLE, OTHER = map(str, demo_reports()[:2])
NAMES = Wanted(metrics=frozenset({"gpu__time_duration.sum"}))


@pytest.fixture(autouse=True)
def _ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(isolate, "_starter", lambda: isolate._fork)
    yield
    ahead.end()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What readers were begun for."""
    found: list[str] = []
    made = isolate.Reader

    def reader(path: str, **how: bool) -> isolate.Reader:
        found.append(path)
        return made(path, **how)

    monkeypatch.setattr(isolate, "Reader", reader)
    return found


def test_what_was_begun_is_what_the_command_reads(begun: list[str]) -> None:
    ahead.start(["metrics", "--json", SAMPLE, OTHER])
    assert begun == [SAMPLE]
    expected = list(native.results(native.load(SAMPLE), NAMES))
    source = Source(SAMPLE)
    assert begun == [SAMPLE]
    assert [raw.demangled for raw in source.launches(NAMES)] == [plain["names"][1] for plain in expected]
    assert [raw.metrics for raw in source.launches(NAMES)], "the second time it is read anew"
    assert begun == [SAMPLE, SAMPLE]


def test_a_path_may_be_written_in_two_ways(begun: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(SAMPLE).parent)
    ahead.start(["compare", f"./{Path(SAMPLE).name}"])
    Source(Path(SAMPLE).name)
    assert len(begun) == 1


def test_another_report_is_read_by_itself(begun: list[str]) -> None:
    ahead.start(["compare", SAMPLE, OTHER])
    assert list(Source(OTHER).launches(NAMES))
    assert begun == [SAMPLE, OTHER]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["show"],
        ["show", "-"],
        ["show", "/no/such.ncu-rep"],
        ["show", str(Path(SAMPLE).parent)],
        ["show", __file__],
        ["--debug", "show", SAMPLE],
        *([command, SAMPLE] for command in COMMANDS if command not in ahead.COMMANDS),
    ],
    ids=" ".join,
)
def test_else_nothing_is_begun(begun: list[str], words: list[str]) -> None:
    """Above all not while a program is timed or measured whose arguments are reports."""
    ahead.start(words)
    assert begun == []


def test_the_commands_are_known() -> None:
    assert set(COMMANDS) >= ahead.COMMANDS


def test_what_is_begun_for_nothing_is_ended_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "load", lambda path: time.sleep(60))
    ahead.start(["show", SAMPLE])
    ((reader, _),) = ahead._begun
    start = time.monotonic()
    ahead.end()
    assert time.monotonic() - start < isolate._PATIENCE
    assert reader._status == -9
    assert ahead.take(SAMPLE) is None


def test_another_process_does_not_take_it() -> None:
    ahead.start(["show", SAMPLE])
    if (pid := os.fork()) == 0:
        os._exit(ahead.take(SAMPLE) is not None)
    assert os.waitpid(pid, 0)[1] == 0
    assert ahead.take(SAMPLE) is not None


def test_where_no_process_can_be_had_the_command_says_so_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", none)
    ahead.start(["show", SAMPLE])
    assert ahead.take(SAMPLE) is None
    with pytest.raises(BlockingIOError):
        Source(SAMPLE)


def test_the_library_gets_no_file_whose_container_is_not_sound(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened = tmp_path / "opened"
    monkeypatch.setattr(native, "load", lambda path: opened.write_text(path))
    damaged = tmp_path / "cut.ncu-rep"
    damaged.write_bytes(Path(SAMPLE).read_bytes()[:-1])
    ahead.start(["show", str(damaged)])
    ((reader, _),) = ahead._begun
    reader.close(patience=20)
    assert reader._status == 0
    assert not opened.exists()
    with pytest.raises(ReportError):
        Source(damaged)
    ahead.end()
    ahead.start(["show", SAMPLE])
    ((reader, _),) = ahead._begun
    reader.close(patience=20)
    assert opened.read_text() == SAMPLE


@pytest.mark.parametrize(
    "words", [("show",), ("report", "--force", "-o", "page.html"), ("metrics", "--json")]
)
def test_a_command_reads_once(words: tuple[str, ...], tmp_path: Path) -> None:
    """The library tells of itself where it is loaded: in one process for one report."""
    log = tmp_path / "log"
    (tmp_path / "ncu_report.py").write_text(
        f"import os\nopen({str(log)!r}, 'a').write(f'{{os.getpid()}}\\n')\nraise ImportError('no library')\n"
    )
    command = [sys.executable, "-m", "ncukit", *words, SAMPLE]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "no library" in done.stderr
    assert len(log.read_text().splitlines()) == 1


def test_a_file_that_changed_since_is_read_anew(begun: list[str], tmp_path: Path) -> None:
    place = tmp_path / "a.ncu-rep"
    place.write_bytes(Path(SAMPLE).read_bytes())
    ahead.start(["show", str(place)])
    place.write_bytes(Path(OTHER).read_bytes())
    names = [raw.demangled for raw in Source(place).launches(NAMES)]
    assert names == [raw.demangled for raw in Source(OTHER).launches(NAMES)]
    assert begun[:2] == [str(place)] * 2


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path: Path) -> None:
    place = tmp_path / "a.ncu-rep"
    place.write_bytes(Path(SAMPLE).read_bytes())
    source = Source(place)
    assert list(source.launches(NAMES))
    assert source.described(1).warnings == ()
    place.write_bytes(Path(OTHER).read_bytes())
    (said,) = source.described(1).warnings
    assert said.startswith("it changed while it was read")
