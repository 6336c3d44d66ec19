"""Ctrl-C at every step: exit code 130, one line (two where something is kept), nothing left behind.

More places than these: ``python -m tests.interruptions 200``.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ncukit.report import wire
from tests import interruptions
from tests.conftest import CHECKOUT
from tests.interruptions import WORKS, at_work, left_over, stopped
from tests.mutations.run import Ended, run
from tests.mutations.warm import warm
from tests.runs import RUN, WORKLOAD, Lab, furnished, wait_for, whole

PLACES = (0.1, 0.7)
STAGES = {"timing": 0, "nsys": 1, "ncu": 2}
"""Of a run: how often the script ran before."""


@pytest.fixture(scope="module", autouse=True)
def _prepared(without_code: Path) -> Iterator[None]:
    """Disassembly takes half of the time of each; ``python -m tests.interruptions`` has it."""
    warm()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interruptions, "COPY", without_code / "copy-dram.ncu-rep")
        yield


@pytest.fixture(scope="module")
def lengths(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], int]:
    """Return how many functions a command calls; measured once."""
    known: dict[str, int] = {}

    def length(name: str) -> int:
        if name not in known:
            known[name] = interruptions.length(name, tmp_path_factory.mktemp(name))
        return known[name]

    return length


@pytest.mark.parametrize("name", WORKS)
def test_a_command_that_is_interrupted_leaves_nothing_behind(
    name: str, lengths: Callable[[str], int], tmp_path: Path
) -> None:
    for place in PLACES:
        folder = tmp_path / str(place)
        folder.mkdir()
        assert interruptions.tried(name, place, lengths(name), folder) is None


def test_who_presses_ctrl_c_ten_times_gets_the_same(lengths: Callable[[str], int], tmp_path: Path) -> None:
    assert interruptions.tried("report", 0.7, lengths("report"), tmp_path, often=True) is None


@pytest.mark.parametrize(
    ("number", "words", "code"),
    [
        (signal.SIGTERM, "stopped by SIGTERM", 143),
        (signal.SIGHUP, "stopped by SIGHUP", 129),
        (signal.SIGINT, "interrupted", 130),
    ],
)
def test_signals_that_ask_for_the_end_are_named(
    number: signal.Signals, words: str, code: int, tmp_path: Path
) -> None:
    interruptions.furnish(tmp_path)
    page = ("report", "in/a.ncu-rep", "-o", "page.html")
    ended = run(page, tmp_path, lambda: _after(2000, number))
    assert (ended.code, ended.err.strip()) == (code, f"error: {words}")
    assert left_over(tmp_path) == []


def _after(calls: int, number: signal.Signals, sent: Path | None = None) -> None:
    """Send ``number`` to this process at its ``calls``-th call of a function, and make the file ``sent``."""
    left = calls

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            sys.setprofile(None)
            os.kill(os.getpid(), number)
            if sent is not None:
                sent.touch()

    sys.setprofile(count)


def test_an_interruption_is_json_too(tmp_path: Path) -> None:
    interruptions.furnish(tmp_path)
    ended = run(("metrics", "in/a.ncu-rep", "--json"), tmp_path, lambda: _after(2000, signal.SIGINT))
    error = json.loads(ended.out)["error"]
    assert (error["code"], error["message"], error["exit_code"]) == ("interrupted", "interrupted", 130)


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As under nohup, and in the background of a script."""
    interruptions.furnish(tmp_path)
    sent = tmp_path / "sent"

    def begin() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _after(2000, signal.SIGINT, sent)

    ended = run(("show", "in/a.ncu-rep"), tmp_path, begin)
    assert (ended.code, sent.exists()) == (0, True), ended


@pytest.mark.parametrize("times", [1, 2])
def test_what_a_destructor_swallows_comes_back(times: int) -> None:
    program = f"""
import contextlib, os, signal, sys, time
from ncukit import signals as interruption

class Closed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

with contextlib.ExitStack() as stack:
    for _ in range({times}):
        stack.enter_context(interruption.heard())
    try:
        Closed()
        for _ in range(500):
            time.sleep(0.01)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize("words", [("doctor",), ("show", str(interruptions.COPY), "--json")], ids=" ".join)
def test_while_it_is_loaded_it_ends_without_a_traceback(words: tuple[str, ...]) -> None:
    program = f"""
import runpy, sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
sys.argv = ["ncukit", *{words!r}]
runpy.run_module("ncukit", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")
    if "--json" in words:
        assert json.loads(done.stdout)["error"]["code"] == "interrupted"


MOMENTS = {
    "before it is heard": """
import ncukit.signals as module
real = module.heard
def heard():
    comes()
    return real()
module.heard = heard
""",
    "when a child was forked": """
real = os.fork
def fork():
    if pid := real():
        print("child", pid)
        comes()
    return pid
os.fork = fork
""",
    "while a class is made": """
import dataclasses
real = dataclasses.Field.__set_name__
def named(field, owner, name):
    real(field, owner, name)
    if owner.__name__ == "Finding":
        comes()
dataclasses.Field.__set_name__ = named
""",
    "while arguments are read": """
from typer import core
real = core.TyperCommand.parse_args
def parsed(*arguments):
    comes()
    return real(*arguments)
core.TyperCommand.parse_args = parsed
""",
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_named_at_any_moment(moment: str, number: signal.Signals) -> None:
    program = f"""
import os, sys
from ncukit.__main__ import main
def comes():
    os.kill(os.getpid(), {int(number)})
{MOMENTS[moment]}
sys.argv = ["ncukit", "show", {str(interruptions.COPY)!r}]
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    word = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
    assert (done.returncode, done.stderr.strip()) == (128 + number, f"error: {word}")
    for child in re.findall(r"child (\d+)", done.stdout):
        assert not Path(f"/proc/{child}").exists()


def children() -> set[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(process) for task in tasks for process in task.read_text().split()}


def blocked(status: str) -> bool:
    """Return whether Ctrl-C does not reach a process, by its ``/proc/.../status``."""
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line[:6] in ("SigBlk", "SigIgn")]
    return any(mask & 1 << (signal.SIGINT - 1) for mask in masks)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.usefixtures("reader_of_users")
@pytest.mark.parametrize("start", [wire._fork, wire._execute])
def test_no_ctrl_c_reaches_a_reader_from_its_first_moment_on(
    monkeypatch: pytest.MonkeyPatch, start: Callable[[str, bool], wire._Start]
) -> None:
    """The terminal sends it to all: a child that is still loading would show a traceback."""
    monkeypatch.setattr(wire, "_starter", lambda: start)
    before = children()
    reader = wire.Reader(str(interruptions.COPY))
    (child,) = children() - before
    assert blocked(Path(f"/proc/{child}/status").read_text())
    assert not blocked(Path("/proc/self/status").read_text())
    reader.close()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_no_ctrl_c_reaches_a_worker_from_its_first_moment_on() -> None:
    """In a process of its own: only the first start of multiprocessing starts its tracker too."""
    program = """
from pathlib import Path
from ncukit.dataset.build import _Worker
if __name__ == "__main__":
    worker = _Worker(len)
    print(Path(f"/proc/{worker.process.pid}/status").read_text(), "|", Path("/proc/self/status").read_text())
    worker.end()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    worker, own = done.stdout.split("|")
    assert (blocked(worker), blocked(own)) == (True, False)


# ---- a run ---------------------------------------------------------------------------------------


@pytest.fixture
def lab(lab: Lab) -> Lab:
    """A lab with a folder of its own for temporary files."""
    (lab.folder / "tmp").mkdir()
    lab.env(TMPDIR=str(lab.folder / "tmp"))
    return lab


def goes_on(lab: Lab, folder: Path) -> None:
    """Check that the run in ``folder`` holds whole files alone, says that it was stopped, and can go on."""
    list(whole(folder))
    assert at_work(lab.folder) == []
    assert left_over(lab.folder) == []
    record = json.loads((folder / "run.json").read_text())
    assert (record["status"], record["error"]["code"]) in (
        ("failed", "interrupted"),
        ("incomplete", "interrupted"),
    )
    assert {step["state"] for step in record["steps"]} <= {"done", "failed"}
    before = {step["name"] for step in record["steps"] if step["state"] == "done"}
    bodies = len(lab.bodies()) if (lab.folder / "runs").exists() else 0
    again = lab("profile", "--resume", str(folder))
    assert again.code == 0, again.err
    record = json.loads((folder / "run.json").read_text())
    assert (record["status"], record["error"]) == ("complete", None)
    assert len(lab.bodies()) - bodies == len({"timing", "timeline", "counters"} - before)
    assert left_over(lab.folder) == []


def interrupted(lab: Lab, *words: str, before: int = 0) -> list[str]:
    """Press Ctrl-C thrice when the script runs for the ``before``-th time and one; return what was said.

    Once is enough; more must not break off the cleaning up.
    """
    lab.script(
        WORKLOAD
        + f"""
import os, pathlib, time
if pathlib.Path("hold").exists() and len(open(os.environ["RUNS"]).readlines()) == {before + 1}:
    pathlib.Path("held").touch()
    time.sleep(60)
"""
    )
    (lab.folder / "hold").touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "ncukit", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    wait_for((lab.folder / "held").exists, process)
    for _ in range(3):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    out, err = process.communicate(timeout=30)
    (lab.folder / "hold").unlink()
    assert (process.returncode, out) == (130, "")
    return [line for line in err.splitlines() if not line.startswith("note: ")]


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_that_is_interrupted_says_how_it_goes_on(lab: Lab, stage: str) -> None:
    said = interrupted(lab, *RUN, before=STAGES[stage])
    (folder,) = lab.runs()
    assert said == [
        "error: interrupted",
        f"hint: what is done is kept: ncukit profile --resume {folder.relative_to(lab.folder)} goes on",
    ]
    goes_on(lab, folder)


def test_a_sweep_that_is_interrupted_goes_on_as_a_whole(lab: Lab) -> None:
    said = interrupted(lab, *RUN, "--param", "n=8,16", "-o", "sweep", "--skip-ncu", before=3)
    assert said[1] == "hint: what is done is kept: ncukit profile --resume sweep goes on"
    assert left_over(lab.folder) == []
    again = lab("profile", "--resume", "sweep")
    assert again.code == 0, again.err
    assert json.loads((lab.folder / "sweep" / "run.json").read_text())["status"] == "complete"
    assert len(lab.bodies()) == 5  # of four, the one that was interrupted twice


@pytest.mark.parametrize(
    ("words", "before"),
    [
        (("time", "work.py", "--kernel", "gemm"), 0),
        (("experiment", "work.py", "--baseline", "gemm", "--control", "n=8,16", "-o", "out"), 3),
    ],
)
def test_what_keeps_nothing_leaves_nothing(lab: Lab, words: tuple[str, ...], before: int) -> None:
    assert interrupted(lab, *words, before=before) == ["error: interrupted"]
    assert (at_work(lab.folder), left_over(lab.folder)) == ([], [])
    assert not (lab.folder / "out").exists()


@pytest.mark.parametrize("place", [0.02, 0.97])
def test_a_run_can_be_interrupted_between_its_steps(lab: Lab, place: float, run_length: int) -> None:
    ended = stopped((*RUN, "-o", "here"), lab.folder, int(place * run_length))
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    if (folder := lab.folder / "here").exists():
        goes_on(lab, folder)
    else:  # nothing was recorded yet: nothing is kept, and nothing is said to be
        assert (left_over(lab.folder), "hint" in ended.err) == ([], False)


@pytest.fixture(scope="module")
def run_length(tmp_path_factory: pytest.TempPathFactory, stands: Path) -> int:
    """How many functions a run calls, once templates are compiled: the first run calls twice as many."""
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            made = furnished(tmp_path_factory.mktemp("length"), patch, stands)
            ended: Ended = stopped((*RUN, "-o", "here"), made.folder, interruptions.NEVER)
            assert ended.code == 0, ended.err
    return interruptions.calls(made.folder)
