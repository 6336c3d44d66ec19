"""Run one command so that nothing outlives it, and follow what ncu says while it works."""

from __future__ import annotations

import codecs
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO, Literal

from ncukit.errors import ToolError
from ncukit.record import dataclass

# ---- What ncu says while it works: which launch, how far, how many passes

# ==PROF== Profiling "k" - 0 (1/1): 0%....50%....100% - 40 passes; older ncu without "(1/1)", without "- 0".
_START = re.compile(
    r'==PROF== Profiling "(?P<name>.*?)"(?: - (?P<index>\d+))?(?: \((?P<nth>\d+)/(?P<of>\d+)\))?:(?P<rest>.*)'
)
_PERCENT = re.compile(r"(?<!\d)(0|50|100)%")
_PASSES = re.compile(r"- (\d+) pass(?:es)?\b")


@dataclass(frozen=True)
class Progress:
    """How far ncu is with one launch: ``percent`` of its passes, ``passes`` once it is done.

    ``nth`` of ``of`` counts launches from 1; both are None in versions of ncu that do not say.
    """

    name: str
    percent: int = 0
    passes: int | None = None
    nth: int | None = None
    of: int | None = None

    @property
    def done(self) -> bool:
        """Whether ncu is finished with the launch."""
        return self.passes is not None

    def __str__(self) -> str:
        return f'{self.percent} % of "{self.name}"'


def parse_progress(text: str) -> Progress | None:
    """Return the progress that a line, or what there is of it, tells; None for any other line.

    Output of the program or a warning may stand in the middle of the line.

    >>> parse_progress('==PROF== Profiling "k" - 0 (1/2): 0%....50%hello....100% - 40 passes')
    Progress(name='k', percent=100, passes=40, nth=1, of=2)
    >>> str(parse_progress('==PROF== Profiling "k": 0%....50%'))
    '50 % of "k"'
    """
    if (start := _START.search(text)) is None:
        return None
    rest = start["rest"]
    passes = _PASSES.search(rest)
    return Progress(
        name=start["name"],
        percent=100 if passes else max(map(int, _PERCENT.findall(rest)), default=0),
        passes=int(passes[1]) if passes else None,
        nth=int(start["nth"]) if start["nth"] else None,
        of=int(start["of"]) if start["of"] else None,
    )


def last_progress(lines: Sequence[str]) -> Progress | None:
    """Return where ncu was last, from all its output; passes may stand on a later line than the start."""
    for at in range(len(lines) - 1, -1, -1):
        if found := parse_progress(lines[at]):
            if found.done:
                return found
            return parse_progress(f"{lines[at]} {' '.join(lines[at + 1 :])}") or found
    return None


# ---- Run one command: no shell, a time-out, bounded output, and nothing that outlives it

Stream = Literal["stdout", "stderr"]
OnText = Callable[[str, bool], None]
"""Called with a line and True; with what there is of an unfinished line and False."""

KEEP = 1 << 20
"""Characters of output kept by default: the first half and the last half."""
LINE = 1 << 16
"""A longer line is broken: a program may print megabytes without a newline."""
GRACE = 5.0
"""Time between SIGTERM and SIGKILL [s]: ncu needs it to give the clocks back."""
_SUPERVISOR = Path(__file__).with_name("_supervisor.py")


@dataclass(frozen=True)
class Completed:
    """What became of a command.

    ``returncode`` is the exit code, 128 + n after signal n; ``signal`` is the name of that signal;
    ``duration`` [s] is that of the command alone; ``stopped`` counts the processes that had to be stopped
    because they outlived the command or the time-out.
    """

    argv: tuple[str, ...]
    returncode: int
    signal: str | None = None
    duration: float = 0.0
    timed_out: bool = False
    stopped: int = 0
    lines: tuple[tuple[Stream, str], ...] = field(default=(), repr=False)
    """(stream, line) in the order of arrival, bounded: the first and the last of it, and a note between."""

    @property
    def output(self) -> str:
        """Both streams, in the order of arrival."""
        return "\n".join(line for _, line in self.lines)

    @property
    def stdout(self) -> str:
        """What went to standard output."""
        return "\n".join(line for stream, line in self.lines if stream == "stdout")

    @property
    def stderr(self) -> str:
        """What went to standard error."""
        return "\n".join(line for stream, line in self.lines if stream == "stderr")

    def tail(self, lines: int = 20) -> str:
        """Return the last ``lines`` lines of both streams."""
        return "\n".join(line for _, line in self.lines[-lines:])


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    on_text: OnText | None = None,
    keep: int = KEEP,
    grace: float = GRACE,
) -> Completed:
    """Run ``argv`` to its end, or stop it after ``timeout`` [s].

    The command gets a session of its own, no standard input, and a supervisor that stops all its processes,
    detached ones too, on time-out, on Ctrl-C, and when this process dies in whatever way.

    Raises:
        ToolError: ``argv[0]`` cannot be started (code ``tool-missing``).

    >>> done = run(["sh", "-c", "echo hello; exit 3"])
    >>> done.stdout, done.returncode, done.timed_out
    ('hello', 3, False)
    """
    args = tuple(os.fspath(a) for a in argv)
    control_read, control = os.pipe()
    status, status_write = os.pipe()
    pipes = (str(control_read), str(status_write))
    collector = _Collector(keep, on_text)
    start = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603 - an argument list, no shell
            [sys.executable, "-I", "-S", str(_SUPERVISOR), *pipes, str(grace), *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
            cwd=cwd,
            pass_fds=(control_read, status_write),
            start_new_session=True,
        )
    except BaseException:
        os.close(control)
        os.close(status)
        raise
    finally:
        os.close(control_read)
        os.close(status_write)
    with process, os.fdopen(status, "rb") as answer:
        timed_out = False
        try:
            timed_out = collector.pump(process, answer, None if timeout is None else start + timeout)
        finally:  # Ctrl-C comes through here too: the end of the control pipe is the order to stop
            os.close(control)
            collector.pump(process, answer, time.monotonic() + grace + 2 * GRACE)
    return _completed(args, collector, timed_out)


def _completed(args: tuple[str, ...], collector: _Collector, timed_out: bool) -> Completed:
    facts = json.loads(collector.report or b"{}")
    if "errno" in facts:
        raise ToolError(
            f"cannot start {args[0]}: {os.strerror(facts['errno'])}",
            "give the path of an executable file",
            code="tool-missing",
        )
    # Without a wait status it survived even SIGKILL, in an uninterruptible call of the driver.
    code = -signal.SIGKILL if facts.get("status") is None else os.waitstatus_to_exitcode(facts["status"])
    return Completed(
        argv=args,
        returncode=code if code >= 0 else 128 - code,
        signal=signal.Signals(-code).name if code < 0 else None,
        duration=facts.get("seconds", 0.0),
        timed_out=timed_out,
        stopped=facts.get("stopped", 0),
        lines=collector.finish(),
    )


class _Collector:
    """Cuts two byte streams into lines, keeps the first and the last of them, passes them on."""

    def __init__(self, keep: int, on_text: OnText | None) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decode = {"stdout": decoder("replace"), "stderr": decoder("replace")}
        self._open: dict[Stream, str] = {"stdout": "", "stderr": ""}
        self._half = keep // 2
        self._head: list[tuple[Stream, str]] = []
        self._head_size = 0
        self._tail: deque[tuple[Stream, str]] = deque()
        self._tail_size = 0
        self._lost = 0
        self._on_text = on_text
        self.report = b""

    def pump(self, process: subprocess.Popen[bytes], answer: IO[bytes], deadline: float | None) -> bool:
        """Collect until the supervisor and both streams end; return True when ``deadline`` came first."""
        pipes: tuple[tuple[IO[bytes] | None, Stream | None], ...] = (
            (process.stdout, "stdout"),
            (process.stderr, "stderr"),
            (answer, None),
        )
        with selectors.DefaultSelector() as selector:
            for pipe, name in pipes:
                if pipe is not None:
                    selector.register(pipe, selectors.EVENT_READ, name)
            while selector.get_map():
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return True
                for key, _ in selector.select(left):
                    if not (data := os.read(key.fd, 1 << 16)):
                        selector.unregister(key.fileobj)
                    elif key.data is None:
                        self.report += data
                    else:
                        self.add(key.data, data)
        return False

    def add(self, stream: Stream, data: bytes) -> None:
        text = self._open[stream] + self._decode[stream].decode(data)
        *whole, rest = text.split("\n")
        for line in whole:
            self._line(stream, line.removesuffix("\r"))
        while len(rest) >= LINE:
            self._line(stream, rest[:LINE])
            rest = rest[LINE:]
        self._open[stream] = rest
        if rest and self._on_text:
            self._on_text(rest, False)

    def finish(self) -> tuple[tuple[Stream, str], ...]:
        for stream, rest in self._open.items():
            if rest := rest + self._decode[stream].decode(b"", final=True):
                self._line(stream, rest)
        if self._lost:
            self._head.append(("stdout", f"[... {self._lost} lines left out ...]"))
        return (*self._head, *self._tail)

    def _line(self, stream: Stream, line: str) -> None:
        if self._on_text:
            self._on_text(line, True)
        if not self._tail and self._head_size + len(line) <= self._half:
            self._head.append((stream, line))
            self._head_size += len(line) + 1
            return
        self._tail.append((stream, line))
        self._tail_size += len(line) + 1
        while self._tail_size > self._half and len(self._tail) > 1:
            self._tail_size -= len(self._tail.popleft()[1]) + 1
            self._lost += 1
