"""A command runs to its end or to its time-out, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ncukit.errors import ToolError
from ncukit.run.tools.process import run

# Starts a child in the same session, one in a session of its own, and one that is orphaned at once; writes
# their process ids to argv[1], then sleeps.
FAMILY = """
import os, subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
children = [subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)]
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.write(write, str(os.getpid()).encode())
        time.sleep(300)
    os._exit(0)
os.wait()
pids = [os.getpid(), *(c.pid for c in children), int(os.read(read, 20))]
with open(sys.argv[1] + ".new", "w") as file:
    file.write(" ".join(map(str, pids)))
os.rename(sys.argv[1] + ".new", sys.argv[1])
print("0%", end="", flush=True)
time.sleep(float(sys.argv[2]))
"""


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.append(pid)
    return found


def wait_for(path: Path) -> list[int]:
    for _ in range(500):
        if path.exists():
            return [int(pid) for pid in path.read_text().split()]
        time.sleep(0.02)
    raise AssertionError("the family never started")


def gone(pids: list[int]) -> bool:
    end = time.monotonic() + 8
    while alive(pids) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pids)


def test_output_and_exit_code_are_kept_by_stream() -> None:
    done = run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.stdout, done.stderr, done.returncode, done.signal) == ("out", "err", 3, None)
    assert done.timed_out is False
    assert 0 < done.duration < 5


def test_a_signal_is_named() -> None:
    done = run(["sh", "-c", "kill -SEGV $$"])
    assert (done.returncode, done.signal) == (139, "SIGSEGV")


def test_no_shell_reads_the_arguments() -> None:
    assert run(["printf", "%s", "$(id) `id` ; * 'x'"]).stdout == "$(id) `id` ; * 'x'"


def test_there_is_no_standard_input() -> None:
    assert run(["cat"], timeout=5).timed_out is False


def test_a_command_that_cannot_be_started_is_an_error_with_its_reason(tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("no program")
    with pytest.raises(ToolError, match="No such file or directory") as missing:
        run([tmp_path / "missing"])
    with pytest.raises(ToolError, match="Permission denied"):
        run([plain])
    assert missing.value.code == "tool-missing"


def test_lines_and_unfinished_lines_are_passed_on_as_they_come() -> None:
    seen: list[tuple[str, bool]] = []
    run(["sh", "-c", "printf '0%%'; sleep 0.2; printf '....50%%\\n'"], on_text=lambda *a: seen.append(a))
    assert seen == [("0%", False), ("0%....50%", True)]


def test_output_is_bounded_and_keeps_its_beginning_and_its_end() -> None:
    done = run(["seq", "200000"], keep=2000)
    assert len(done.output) < 2500
    assert done.stdout.startswith("1\n2\n3\n")
    assert done.stdout.endswith("199999\n200000")
    assert "lines left out" in done.stdout


def test_a_line_without_end_is_broken_and_bounded() -> None:
    done = run([sys.executable, "-c", "import sys; sys.stdout.write('x' * 3_000_000)"], keep=200_000)
    assert len(done.output) < 400_000


def test_bytes_that_are_no_utf8_do_no_harm() -> None:
    assert run(["printf", r"a\377b"]).stdout == "a\ufffdb"


def test_a_command_that_closes_its_output_runs_on() -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(7)"
    assert run([sys.executable, "-c", code]).returncode == 7


def test_a_time_out_stops_children_sessions_and_orphans(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    start = time.monotonic()
    done = run([sys.executable, "-c", FAMILY, pids, "300"], timeout=2, grace=1)
    assert time.monotonic() - start < 10
    assert done.timed_out
    assert done.stdout == "0%"
    assert not alive(wait_for(pids))


def test_what_ignores_the_polite_request_is_killed(tmp_path: Path) -> None:
    done = run(["sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done"], timeout=0.5, grace=0.3)
    assert (done.timed_out, done.signal) == (True, "SIGKILL")
    assert not alive([int(done.stdout)])


def test_what_a_finished_command_leaves_behind_is_stopped(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    done = run([sys.executable, "-c", FAMILY, pids, "0"], timeout=30)
    assert (done.returncode, done.timed_out, done.stopped) == (0, False, 3)
    assert not alive(wait_for(pids))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_survives_the_caller(tmp_path: Path, number: signal.Signals) -> None:
    pids = tmp_path / "pids"
    argv = [sys.executable, "-c", FAMILY, str(pids), "300"]
    code = f"from ncukit.run.tools.process import run; run({argv!r})"
    caller = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    family = wait_for(pids)
    assert alive(family) == family
    caller.send_signal(number)
    caller.wait(10)
    assert gone(family)


def test_an_error_in_the_callback_stops_the_command(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    def fail(text: str, whole: bool) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([sys.executable, "-c", FAMILY, pids, "300"], on_text=fail)
    assert not alive(wait_for(pids))


def test_no_pipe_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run(["true"])
    with pytest.raises(ToolError):
        run(["/nonexistent"])
    assert len(os.listdir("/proc/self/fd")) == before
