"""Run a command of ncukit in a forked process with limits, and say what came of it."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 30.0
"""[s]"""
MEMORY = 2_000_000_000
"""Largest growth of the resident set [byte]."""
CODES = (0, 1, 2, 3, 4, 5, 10)


@dataclass(frozen=True)
class Ended:
    """How a command ended: ``code`` None where it was stopped or killed by ``signal``."""

    code: int | None
    signal: int | None
    seconds: float
    memory: int
    out: str
    err: str
    cpu: float = 0.0
    """[s] of the command and the processes that it waited for."""

    def fault(self) -> str | None:
        """Return what is wrong with this end, None where it is as it must be."""
        if self.signal is not None:
            return (
                f"hangs: {TIMEOUT:.0f} s"
                if self.signal == signal.SIGKILL
                else f"killed by signal {self.signal}"
            )
        if self.code not in CODES:
            return f"exit code {self.code}"
        if self.memory > MEMORY:
            return f"memory {self.memory / 1e9:.1f} GB"
        for words in ("Traceback", "internal error", "not enough memory"):
            if words in self.err or words in self.out:
                return words
        if self.code == 0 and not self.out.strip():
            return "success without a result"
        if self.code in (1, 2, 3, 4) and self.err.count("error: ") != self.err.count("hint: "):
            return "an error without a hint"
        if self.code in (1, 2, 3, 4) and "error: " not in self.err:
            return "failure without a word"
        return None


def run(words: Sequence[str], folder: Path, begin: Callable[[], object] = int) -> Ended:
    """Run ``ncukit`` with ``words`` in ``folder``; what was imported before is not imported again.

    The process leads a session of its own, and calls ``begin`` first.
    """
    out, err = folder / "stdout", folder / "stderr"
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _child(words, folder, out, err, begin)
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() - began > TIMEOUT:
            os.killpg(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            break
        time.sleep(0.002)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    said = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
    before = folder / "resident"
    grown = usage.ru_maxrss * 1024 - (int(before.read_text()) if before.exists() else 0)
    before.unlink(missing_ok=True)
    return Ended(code, killed, time.monotonic() - began, grown, *said, usage.ru_utime + usage.ru_stime)


def _resident() -> int:
    """Return the memory [byte] of this process that is in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _child(words: Sequence[str], folder: Path, out: Path, err: Path, begin: Callable[[], object]) -> None:
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.argv = ["ncukit", *words]
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _fork_workers()
        begin()
        # A fork begins with pages of its parent: they, and their highest number, do not count.
        Path("/proc/self/clear_refs").write_text("5")
        (folder / "resident").write_text(str(_resident()))
        if words[0] == "experiment-page":
            _experiment_page(words[1])
        else:
            from ncukit.__main__ import main

            main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _fork_workers() -> None:
    """Let worker processes be forked: a new interpreter would import for seconds what is here already."""
    import multiprocessing
    from multiprocessing import util
    from multiprocessing.connection import Connection

    forked = multiprocessing.get_context("fork")

    def pipe() -> tuple[Connection, Connection]:
        """A worker must not hold the end of its parent, or it never hears that this is closed."""
        ours, theirs = multiprocessing.Pipe()
        util.register_after_fork(ours, Connection.close)
        return ours, theirs

    forked.Pipe = pipe  # type: ignore[method-assign]
    multiprocessing.get_context = lambda method=None: forked  # type: ignore[assignment]


def _experiment_page(record: str) -> None:
    """Write the page of a record, which no command does alone; errors end as those of commands."""
    import ncukit.api as api
    from ncukit.errors import NcukitError

    try:
        print(api.write_experiment(api.read_experiment(record), "page.html"))
    except NcukitError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        raise SystemExit(error.exit_code) from error
