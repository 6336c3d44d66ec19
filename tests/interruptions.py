"""Ctrl-C in the middle of commands, wherever that is: at the n-th function that ncukit calls.

    python -m tests.interruptions 200         each command, stopped at 200 places spread over it

The signal goes to the whole process group, as a terminal sends it: children hear it as well.  Passed is: exit
code 130 and the words of an interruption, or near the end the whole result, as the work was done already;
no traceback; no process, temporary file or half a file left; and where something is kept, the same work can
go on.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.mutations.run import Ended, run
from tests.mutations.warm import warm

CHECKOUT = Path(__file__).resolve().parents[1]
SAMPLES = CHECKOUT / "reports" / "samples"
COPY, TRACE = SAMPLES / "copy-dram.ncu-rep", SAMPLES / "gemm-tensor.sqlite"
NEVER = 10**12
DONE = 0.95
"""From this part of its calls on a command may have done its work."""
T = TypeVar("T")


@dataclass(frozen=True)
class Work:
    """A command and the names of the files that it makes."""

    words: tuple[str, ...]
    makes: tuple[str, ...] = ()
    keeps: bool = False
    """Whether what was done stays, and the same command goes on with it."""


WORKS = {
    "report": Work(("report", "in/a.ncu-rep", "-o", "page.html"), ("page.html",)),
    "metrics": Work(("metrics", "in/a.ncu-rep", "--json")),
    "show": Work(("show", "in/a.ncu-rep")),
    "compare": Work(("compare", "in/a.ncu-rep", "in/b.ncu-rep", "-o", "page.html"), ("page.html",)),
    "timeline": Work(("timeline", "trace.sqlite", "-o", "page.html"), ("page.html",)),
    "dataset": Work(("dataset", "build", "in", "-o", "fleet", "--workers", "1"), ("fleet",), keeps=True),
    "index": Work(("index", "in", "-o", "page.html", "--workers", "1"), ("page.html",)),
}


def furnish(folder: Path) -> None:
    """Put the inputs of the commands into ``folder``."""
    (folder / "tmp").mkdir()
    (folder / "in").mkdir()
    for name in ("a.ncu-rep", "b.ncu-rep"):
        shutil.copy(COPY, folder / "in" / name)
    shutil.copy(TRACE, folder / "trace.sqlite")


def stopped(words: tuple[str, ...], folder: Path, at: int, *, often: bool = False) -> Ended:
    """Run ``ncukit``; at the ``at``-th call of a Python function Ctrl-C comes, ``often``: ten times.

    How many calls there were stands in the file ``calls``.
    """
    leader = 0

    def begin() -> None:
        nonlocal leader
        leader = os.getpid()
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "tmp")
        calls = os.open(folder / "calls", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        seen = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal seen
            if event != "call" or os.getpid() != leader:
                return
            seen += 1
            if seen % 100 == 0:
                os.pwrite(calls, b"%d" % seen, 0)
            if seen >= at and (seen - at) % 50 == 0 and seen < at + (500 if often else 1):
                os.killpg(0, signal.SIGINT)

        sys.setprofile(count)

    return run(words, folder, begin)


def calls(folder: Path) -> int:
    """Return how many functions the last command called."""
    return int((folder / "calls").read_text())


def left_over(folder: Path) -> list[str]:
    """Return the temporary and hidden files below ``folder``."""
    found = [path for path in folder.rglob("*") if path.name.startswith(".") or path.parent.name == "tmp"]
    return sorted(str(path.relative_to(folder)) for path in found)


def at_work(folder: Path, patience: float = 3.0) -> list[str]:
    """Return the processes that still work in ``folder``; they get ``patience`` [s] to end."""
    end = time.monotonic() + patience
    while found := _in(folder):
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return found


def _in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place = os.readlink(process / "cwd")
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if place.startswith(str(folder)) and state != "Z" and process.name != str(os.getpid()):
            found.append(line)
    return found


def fault(work: Work, folder: Path, ended: Ended, place: float) -> str | None:
    """Return what is wrong with the end of a command interrupted at ``place``, None where nothing is."""
    said = [line for line in ended.err.splitlines() if line.strip()]
    if running := at_work(folder):
        return f"still at work: {running}"
    if "Traceback" in ended.err or "Exception ignored" in ended.err or "internal error" in ended.err:
        return "traceback"
    if left := left_over(folder):
        return f"left over: {left}"
    if ended.code == 0:
        if place < DONE:
            return "not interrupted"
        made = all((folder / name).exists() for name in work.makes)
        return None if made and ended.out.strip() else "success without a result"
    if ended.code != 130:
        return f"exit code {ended.code}, signal {ended.signal}"
    words = ["error", "hint"] if work.keeps and len(said) > 1 else ["error"]
    if [line.partition(":")[0] for line in said] != words or said[0] != "error: interrupted":
        return f"it says {said}"
    for page in folder.glob("*.html"):
        if not page.read_text(encoding="utf-8").rstrip().endswith("</html>"):
            return f"half a file: {page.name}"
    return None


def tried(name: str, place: float, total: int, folder: Path, *, often: bool = False) -> str | None:
    """Stop the command ``name`` at ``place`` (0 to 1) of its ``total`` calls; return what was wrong."""
    work = WORKS[name]
    furnish(folder)
    ended = stopped(work.words, folder, 1 + int(place * total), often=often)
    if (wrong := fault(work, folder, ended, place)) is not None:
        return f"{wrong}\n{ended.err}"
    if work.keeps:
        again = run(work.words, folder)
        if again.code != 0 or left_over(folder):
            return f"it does not go on: {again.err} {left_over(folder)}"
    return None


def length(name: str, folder: Path) -> int:
    """Return how many functions the command ``name`` calls when nothing stops it."""
    for number in range(2):  # the first fills caches
        place = folder / str(number)
        place.mkdir()
        furnish(place)
        ended = stopped(WORKS[name].words, place, NEVER)
        assert ended.code == 0, ended.err
    return calls(place)


def main() -> int:
    """Stop each command at many places; print a table; return 1 where one was at fault."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--command", choices=WORKS, action="append")
    parser.add_argument("--often", action="store_true", help="press Ctrl-C ten times")
    options = parser.parse_args()
    # In the background of a script Ctrl-C is ignored, and what starts here would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warm()
    wrong = 0
    print("| command | functions called | stopped at | faults |")
    print("| --- | ---: | ---: | ---: |")
    for name in options.command or WORKS:
        total = _fresh(lambda folder, name=name: length(name, folder))
        faults = 0
        for number in range(options.count):
            place = (number + 0.5) / options.count
            found = _fresh(
                lambda folder, name=name, place=place, total=total: tried(
                    name, place, total, folder, often=options.often
                )
            )
            if found:
                faults += 1
                print(f"{name} at {place:.4f}: {found}", file=sys.stderr)
        print(f"| `{name}` | {total:,} | {options.count} | {faults} |", flush=True)
        wrong += faults
    return min(wrong, 1)


def _fresh(work: Callable[[Path], T]) -> T:
    with tempfile.TemporaryDirectory(prefix="ncukit-stopped-") as folder:
        return work(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
