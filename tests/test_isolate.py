"""The native reader runs in a child: what the child does never takes the caller with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ncukit.cli.output import as_error
from ncukit.errors import ReaderCrashed, ReportError
from ncukit.model import Wanted
from ncukit.report import native, wire
from ncukit.report.reader import Source

pytestmark = pytest.mark.usefixtures("reader_of_users")
NAMES = Wanted(metrics=frozenset({"gpu__time_duration.sum"}))


@pytest.fixture
def sample() -> str:
    from ncukit.api import demo_reports

    return str(demo_reports()[0])


@pytest.mark.parametrize("start", [wire._fork, wire._execute], ids=["forked", "a new interpreter"])
def test_every_kind_of_child_gives_the_same_results(monkeypatch, sample, start):
    monkeypatch.setattr(wire, "_starter", lambda: start)
    found = list(wire.results(sample, NAMES))
    assert found == list(native.results(native.load(sample), NAMES))
    assert found


def test_a_child_that_aborts_is_a_named_error_and_the_caller_lives(monkeypatch, sample):
    monkeypatch.setattr(wire, "_starter", lambda: wire._fork)
    monkeypatch.setattr(native, "load", lambda path: os.abort())
    with pytest.raises(ReaderCrashed) as caught:
        list(wire.results(sample, NAMES))
    assert "the reader crashed on this file (SIGABRT)" in caught.value.message
    assert caught.value.exit_code == 4


def test_a_child_that_dies_in_the_middle_gives_what_it_read_and_then_the_error(monkeypatch, sample):
    def dies_after_one(context, wanted):
        yield {"index": 0}
        os.kill(os.getpid(), signal.SIGSEGV)

    monkeypatch.setattr(wire, "_starter", lambda: wire._fork)
    monkeypatch.setattr(native, "results", dies_after_one)
    results = wire.results(sample, NAMES)
    assert next(results) == {"index": 0}
    with pytest.raises(ReaderCrashed, match="SIGSEGV"):
        next(results)


def test_a_child_that_raises_says_what(monkeypatch, sample):
    monkeypatch.setattr(wire, "_starter", lambda: wire._fork)
    monkeypatch.setattr(native, "results", lambda context, wanted: iter([{"bad": object()}]))
    with pytest.raises(ReaderCrashed, match="TypeError"):
        list(wire.results(sample, NAMES))


@pytest.mark.parametrize("isolated", [True, False], ids=["isolated", "in process"])
@pytest.mark.parametrize(
    "raised",
    [ValueError, TypeError, RuntimeError, OverflowError, MemoryError],
    ids=lambda kind: kind.__name__,
)
def test_what_the_library_raises_on_damaged_content_is_the_file_s_fault(
    monkeypatch, sample, raised, isolated
):
    monkeypatch.setattr(wire, "_starter", lambda: wire._fork)
    monkeypatch.setattr(native, "results", raising(raised("in the content")))
    with pytest.raises(ReportError, match=f"{raised.__name__}: in the content"):
        list(Source(sample, isolate=isolated).launches(NAMES))


@pytest.mark.parametrize("isolated", [True, False], ids=["isolated", "in process"])
@pytest.mark.parametrize(
    "raised",
    [NameError, ImportError, AssertionError, AttributeError, KeyError],
    ids=lambda kind: kind.__name__,
)
def test_a_fault_of_the_program_is_not_blamed_on_the_file(monkeypatch, sample, raised, isolated):
    monkeypatch.setattr(wire, "_starter", lambda: wire._fork)
    monkeypatch.setattr(native, "results", raising(raised("of ours")))
    with pytest.raises(Exception, match="of ours") as caught:
        list(Source(sample, isolate=isolated).launches(NAMES))
    assert not isinstance(caught.value, ReportError)
    assert raised.__name__ in repr(caught.value)
    assert as_error(caught.value).code == "internal"


def raising(error):
    def results(context, wanted):
        raise error
        yield

    return results


def test_a_new_interpreter_imports_nothing_from_the_current_folder(monkeypatch, sample, tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('taken from the current folder')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wire, "_starter", lambda: wire._execute)
    assert list(wire.results(os.path.abspath(sample), NAMES))


def test_a_child_that_hangs_is_ended(monkeypatch, sample):
    monkeypatch.setattr(wire, "_starter", lambda: wire._fork)
    monkeypatch.setattr(wire, "_HANG", 1)
    monkeypatch.setattr(native, "load", lambda path: time.sleep(60))
    began = time.monotonic()
    with pytest.raises(ReaderCrashed, match="made no progress"):
        list(wire.results(sample, NAMES))
    assert time.monotonic() - began < 10


def test_a_caller_that_takes_its_time_loses_nothing(monkeypatch, sample):
    monkeypatch.setattr(wire, "_starter", lambda: wire._fork)
    monkeypatch.setattr(wire, "_HANG", 1)
    big = [{"index": index, "text": "x" * (3 << 20)} for index in range(3)]  # more than a pipe holds
    monkeypatch.setattr(native, "results", lambda context, wanted: iter(big))
    results = wire.results(sample, NAMES)
    first = next(results)
    time.sleep(1.5)
    assert [first, *results] == big


def children() -> set[str]:
    """Return the processes that this one started and has not reaped; other tests may have some."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {process for task in tasks for process in task.read_text().split()}


def test_a_reader_that_is_never_asked_leaves_no_child_behind(sample):
    before = children()
    reader = wire.Reader(sample)
    assert children() > before
    reader.close()
    assert children() == before


def test_a_caller_that_stops_early_leaves_no_child_behind(sample):
    before = children()
    results = wire.results(sample, NAMES)
    next(results)
    results.close()
    assert children() == before


def test_beside_other_threads_nothing_is_forked():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert wire._starter() is wire._execute
    finally:
        stop.set()
        thread.join()


def test_with_the_native_library_in_use_nothing_is_forked(monkeypatch):
    monkeypatch.setitem(sys.modules, "ncu_report", object())
    assert wire._starter() is wire._execute


def test_a_missing_file_ends_in_the_reader_s_error(tmp_path: Path):
    with pytest.raises(ReaderCrashed):
        list(wire.results(str(tmp_path / "none.ncu-rep"), NAMES))


def test_where_children_are_not_waited_for_reports_are_read_all_the_same(sample):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        found = list(wire.results(sample, NAMES))
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert found == list(native.results(native.load(sample), NAMES))


@pytest.mark.parametrize("start", [wire._fork, wire._execute], ids=["forked", "a new interpreter"])
def test_a_report_that_goes_away_is_named(monkeypatch, tmp_path, start):
    monkeypatch.setattr(wire, "_starter", lambda: start)
    with pytest.raises(ReaderCrashed, match=r"FileNotFoundError: .*gone.ncu-rep"):
        list(wire.results(str(tmp_path / "gone.ncu-rep"), NAMES))


def test_a_report_is_read_anew_in_a_process_that_was_forked_since(sample):
    source = Source(sample)
    read_end, write_end = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.write(write_end, str(len(list(source.launches(NAMES)))).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        assert answer.read() == str(len(list(source.launches(NAMES)))) != "0"


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)], ids=str)
def test_a_process_without_standard_streams_reads_too(sample, closed, threads):
    program = f"""
import os, sys, threading, time
for _ in range({threads}):
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
from ncukit import read
sys.exit(10 + len(list(read({sample!r}).kernels())))
"""
    closing = " ".join(f"{number}>&-" for number in closed)
    done = subprocess.run(["sh", "-c", f'exec "$0" -c "$1" {closing}', sys.executable, program], check=False)
    assert done.returncode == 11


@pytest.mark.parametrize("closing", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["--version", "show --help", "show {sample}", "show {sample} --json"])
def test_the_command_line_needs_no_streams(sample, closing, words):
    command = f'exec "$0" -m ncukit {words.format(sample=sample)} {closing}'
    done = subprocess.run(["sh", "-c", command, sys.executable], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc")
def test_a_child_is_ended_when_its_start_is_interrupted(monkeypatch, sample):
    before, started = children(), []

    def fork(path):
        start = wire._fork(path)
        started.append((start, children() - before))
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return start

    monkeypatch.setattr(wire, "_starter", lambda: fork)
    with pytest.raises(KeyboardInterrupt):
        wire.Reader(sample)
    (((_, requests, answers), born),) = started
    assert requests.closed
    assert answers.closed
    assert len(born) == 1
    assert not born & children()


@pytest.mark.parametrize(
    "words", [("show",), ("report", "--force", "-o", "page.html"), ("metrics", "--json")]
)
def test_a_command_reads_once(words, sample, tmp_path):
    """The library tells of itself where it is loaded: in one process for one report."""
    log = tmp_path / "log"
    (tmp_path / "ncu_report.py").write_text(
        f"import os\nopen({str(log)!r}, 'a').write(f'{{os.getpid()}}\\n')\nraise ImportError('no library')\n"
    )
    command = [sys.executable, "-m", "ncukit", *words, sample]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "no library" in done.stderr
    assert len(log.read_text().splitlines()) == 1


def test_a_file_that_changes_while_it_is_read_is_told(sample, tmp_path):
    from ncukit.api import demo_reports

    place = tmp_path / "a.ncu-rep"
    place.write_bytes(Path(sample).read_bytes())
    source = Source(place)
    assert list(source.launches(NAMES))
    assert source.described(1).warnings == ()
    place.write_bytes(demo_reports()[1].read_bytes())
    (said,) = source.described(1).warnings
    assert said.startswith("it changed while it was read")


# ---- limits --------------------------------------------------------------------------------------


def limited(limit: str, sample: str) -> subprocess.CompletedProcess[str]:
    """Run ``show`` under a limit of the shell."""
    command = f'ulimit {limit} && exec "$0" -m ncukit show "$1" --json'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, sample], check=False, capture_output=True, text=True
    )


@pytest.mark.parametrize("files", [4, 5, 6, 8])
def test_where_hardly_a_file_can_be_open_the_error_says_so(sample, files):
    done = limited(f"-n {files}", sample)
    if done.returncode == 0:
        pytest.skip("this Python opens fewer files")
    if "init_import_site" in done.stderr:
        pytest.skip("this Python does not start with so few files")
    (error, hint) = done.stderr.splitlines()
    assert "Too many open files" in error
    assert hint == "hint: raise the limit of open files (ulimit -n)"
    assert json.loads(done.stdout)["error"]["code"] == "io"


def test_pipes_that_cannot_be_had_leave_no_file_open():
    program = """
import os, resource
from ncukit.report import wire as isolate
lowest = os.dup(0)
os.close(lowest)
resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 3, 100))
for _ in range(3):
    try:
        isolate._pipes()
    except OSError as error:
        assert error.errno == 24, error
    else:
        raise SystemExit("there were enough")
    assert os.dup(0) == lowest
    os.close(lowest)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kilobytes", [30_000, 50_000])
def test_where_memory_is_limited_a_reader_that_ends_names_it(sample, kilobytes):
    done = limited(f"-v {kilobytes}", sample)
    if done.returncode != 0:
        assert "memory" in done.stderr
        assert "internal error" not in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("limit", [1 << 27, -1], ids=["limited", "free"])
def test_a_crash_names_the_limit_of_memory_where_there_is_one(monkeypatch, sample, limit):
    monkeypatch.setattr(wire, "_starter", lambda: wire._fork)
    monkeypatch.setattr(native, "load", lambda path: os.abort())
    monkeypatch.setattr("resource.getrlimit", lambda which: (limit, limit))
    with pytest.raises(ReaderCrashed) as caught:
        list(wire.results(sample, NAMES))
    assert ("memory is limited here (ulimit -v)" in (caught.value.hint or "")) == (limit > 0)


@pytest.mark.parametrize("limit", [1 << 27, -1], ids=["limited", "free"])
def test_a_library_that_cannot_be_loaded_for_lack_of_memory_is_no_fault_of_ncukit(monkeypatch, sample, limit):
    def load(path):
        raise ImportError("failed to map segment from shared object")

    monkeypatch.setattr(wire, "_starter", lambda: wire._fork)
    monkeypatch.setattr(native, "load", load)
    monkeypatch.setattr("resource.getrlimit", lambda which: (limit, limit))
    with pytest.raises(MemoryError if limit > 0 else RuntimeError):
        list(wire.results(sample, NAMES))
