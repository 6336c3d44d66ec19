"""What a command takes, and one line of the table that says it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
SCRIPT = Path(sys.executable).with_name("ncukit")  # what a user runs
NCUKIT = (str(SCRIPT),) if SCRIPT.exists() else (sys.executable, "-m", "ncukit")
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""As installed: modules are compiled once, not in every run."""
STEP = 0.02
"""[s] between two looks at the memory of a command; looking takes a twentieth of the time at most."""


@dataclass(frozen=True)
class Cost:
    """What a command took: wall and CPU time [s], peak memory [byte] of all its processes, its output."""

    seconds: float
    cpu: float
    peak: int
    out: str


@dataclass(frozen=True)
class Row:
    """What ncukit took, what stands beside it, and whether the bar was met; None: there is no bar."""

    what: str
    ours: str
    beside: str = ""
    found: str = ""
    bar: str = ""
    met: bool | None = None


def ratio(what: str, ours: float, beside: float, unit: str, name: str, limit: float | None = None) -> Row:
    """Return the row of a ratio that may be ``limit`` at most.

    >>> ratio("--help", 0.18, 0.12, "s", "typer", 1.5)
    Row(what='--help', ours='0.18 s', beside='0.12 s (typer)', found='1.50 x', bar='1.5 x', met=True)
    """
    found = ours / beside
    return Row(
        what,
        amount(ours, unit),
        f"{amount(beside, unit)} ({name})",
        f"{found:.2f} x",
        "" if limit is None else f"{limit:.3g} x",
        None if limit is None else round(found, 2) <= limit,
    )


def amount(value: float, unit: str) -> str:
    """Return a time [s] or a memory [byte] for a reader.

    >>> amount(0.123, "s"), amount(12.3, "s"), amount(340e6, "byte")
    ('0.12 s', '12.3 s', '340 MB')
    """
    if unit == "byte":
        return f"{value / 1e6:.0f} MB"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def measured(argv: Sequence[object], cwd: Path = CHECKOUT, env: dict[str, str] | None = None) -> Cost:
    """Run ``argv`` and return what it took, all processes that it starts included.

    Raises:
        SystemExit: it failed.
    """
    before, start = os.times(), time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=cwd,
        env=env or COMPILED,
    )
    peak, over = [0], threading.Event()

    def look() -> None:
        step = STEP
        while not over.wait(step):
            began = time.thread_time()
            peak[0] = max(peak[0], memory(process.pid))
            step = max(STEP, 20 * (time.thread_time() - began))

    looker = threading.Thread(target=look)
    looker.start()
    out, err = process.communicate()
    over.set()
    looker.join()
    if process.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, argv))}\n{err}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(time.perf_counter() - start, cpu, peak[0], out)


def memory(session: int) -> int:
    """Return the memory [byte] of all processes of a session; what they share counts once."""
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                text = (entry / "smaps_rollup").read_text()
                total += 1024 * int(text.partition("\nPss:")[2].split()[0])
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile
    return total


def in_turns(commands: Sequence[Sequence[str]], rounds: int) -> list[float]:
    """Return the median run time [s] of each command, measured in turns after one run of each.

    Every other turn goes backwards: what runs second finds files, and caches, as the first left them.

    Raises:
        subprocess.CalledProcessError: a command failed.
    """
    times: list[list[float]] = [[] for _ in commands]
    for turn in range(rounds + 1):
        pairs = list(zip(commands, times, strict=True))
        for argv, taken in pairs if turn % 2 else reversed(pairs):
            start = time.perf_counter()
            subprocess.run(
                argv,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                check=True,
                cwd=CHECKOUT,
                env=COMPILED,
            )
            if turn:
                taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]
