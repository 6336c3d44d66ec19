"""Launches from a child process that runs the native reader: some files crash it."""

from __future__ import annotations

import errno
import faulthandler
import json
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import asdict
from typing import IO

from ncukit.errors import ReaderCrashed
from ncukit.model import RawKernel, RuleResult, Wanted
from ncukit.model.kernel import Code
from ncukit.report import native
from ncukit.report.native import Plain
from ncukit.signals import undisturbed

# ---- Launches from what the reading process sent: the other end of `ncukit.report.native`


def raw_kernel(plain: Plain, codes: MutableMapping[int, Code] | None = None) -> RawKernel:
    """Return the launch that `results` described; ``codes`` keeps what launches of one report share."""
    function, demangled, mangled = plain["names"]
    sass = plain.get("sass")
    shared = _code(plain, {} if codes is None else codes)
    return RawKernel(
        plain["index"],
        function,
        demangled,
        mangled,
        workload=plain["workload"],
        metrics=plain["metrics"],
        instances={name: tuple((id, n) for id, n in rows) for name, rows in plain["instances"].items()},
        units=plain.get("units", {}),
        sections=tuple(plain.get("sections", ())),
        rules=tuple(_rule_result(rule) for rule in plain.get("rules", ())),
        nvtx=tuple(plain.get("nvtx", ())),
        source_files=plain.get("source_files", {}),
        sass=shared.text if shared is not None else None if sass is None else dict(sass),
        lines={pc: (file, line) for pc, file, line in plain.get("lines", ())},
        code=shared,
        by_pc=_columns(plain),
        functions=tuple(plain.get("functions", ())),
        series={name: (tuple(times), tuple(v)) for name, (times, v) in plain.get("series", {}).items()},
    )


def _rule_result(rule: Plain) -> RuleResult:
    messages = tuple((kind, title, text) for kind, title, text in rule["messages"])
    focus = tuple((metric, value, information) for metric, value, information in rule["focus"])
    return RuleResult(**{**rule, "messages": messages, "focus": focus})


def _code(plain: Plain, codes: MutableMapping[int, Code]) -> Code | None:
    """Return the code of the launch that was described; ``codes`` remembers those sent before."""
    if (body := plain.get("body")) is not None:
        lines = tuple(None if line is None else (line[0], line[1]) for line in body["lines"])
        texts = {file: dict(rows) for file, rows in body["texts"]}
        codes[plain["code"]] = Code(
            tuple(body["pcs"]), tuple(body["sass"]), tuple(body["files"]), lines, texts
        )
    return codes.get(plain["code"]) if "code" in plain else None


def _columns(plain: Plain) -> dict[str, Mapping[int, int]]:
    """Return the counters by PC of the launch that was described."""
    found: dict[str, list[list[int]]] = plain.get("by_pc", {})
    return {name: dict(zip(pcs, values, strict=True)) for name, (pcs, values) in found.items()}


# ---- Run the native reader in a child process: some files crash it, and take the process with them
# The child is forked where that is safe (one thread, the native library not in use), a new interpreter
# elsewhere. It loads the library and parses the file at once, while the parent loads all else, and waits to
# be told what is wanted. Results come through a pipe as length-prefixed JSON, one a launch, so that reading
# and translating overlap and memory stays bounded.

_LENGTH = struct.Struct("<I")
_END = b"\x00"
_DAMAGED = b"\x01"
_FAULT = b"\x02"
ENDING = (signal.SIGTERM, signal.SIGHUP)
"""What ends a child; blocked while it starts, so that its parent ends it."""
_PATIENCE = 0.2
"""[s] that a child gets to end by itself before it is killed."""
_HANG = 25
_BYTES_PER_SECOND = 1 << 20
"""A child that reads slower than this, with `_HANG` [s] to spare, hangs."""


class Reader:
    """A child process that parses one report, whose container is sound, and answers one request.

    `close` it if it is never asked.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._status: int | None = None
        self._process = os.getpid()
        try:
            with undisturbed(*ENDING):
                self._wait, self._requests, self._answers = _starter()(path)
        except KeyboardInterrupt:  # held back until the child was there, unless another thread took it
            self.__del__()
            raise

    @property
    def ours(self) -> bool:
        """Whether this process started the child; one that was forked since must not ask it."""
        return self._process == os.getpid()

    def results(self, wanted: Wanted) -> Iterator[native.Plain]:
        """Yield every result, as `native.results` does.

        Raises:
            ReaderCrashed: the child died (abort, segmentation fault), or the library raised.
            MemoryError: the child has no memory to load the library.
            RuntimeError: the child has a fault of its own, which is none of the file.
        """
        detail = ""
        try:
            with suppress(BrokenPipeError):
                _send(self._requests, json.dumps(asdict(wanted), default=sorted).encode())
            while (message := _receive(self._answers)) is not None:
                if message == _END:
                    return
                if message[:1] == _DAMAGED:
                    detail = message[1:].decode(errors="replace")
                    break
                if message[:1] == _FAULT:
                    fault = message[1:].decode(errors="replace")
                    if fault.startswith(("MemoryError", "ImportError")) and _memory_is_limited():
                        raise MemoryError(fault)
                    raise RuntimeError(f"the reading child: {fault}")
                yield json.loads(message)
        finally:
            self.close()
        raise self._crashed(detail)

    def close(self, patience: float = _PATIENCE) -> None:
        """End the child, at once when its ``patience`` [s] is over, and reap it."""
        if self._status is None:
            for pipe in (self._requests, self._answers):
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
            self._status = self._wait(patience)

    def __del__(self) -> None:
        if hasattr(self, "_answers"):
            self.close()

    def _crashed(self, detail: str) -> ReaderCrashed:
        status = self._status or 0
        how = detail or (signal.Signals(-status).name if status < 0 else f"exit code {status}")
        if -status == signal.SIGALRM:
            how = "it made no progress"
        hint = "the file is damaged inside; copy it again from where it was made, or profile again"
        if _memory_is_limited():
            hint = f"memory is limited here (ulimit -v): raise the limit; if it fails again, {hint}"
        return ReaderCrashed(self.path, f"{self.path}: the reader crashed on this file ({how})", hint)


def _memory_is_limited() -> bool:
    """Return whether the memory of a process is limited: the library aborts where it gets none."""
    import resource

    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    return any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in limits)


def results(path: str, wanted: Wanted) -> Iterator[native.Plain]:
    """Yield every result of the report at ``path``, read in a child process."""
    yield from Reader(path).results(wanted)


_Start = tuple[Callable[[float], int], IO[bytes], IO[bytes]]


def _starter() -> Callable[[str], _Start]:
    """Return how to start a child here: a fork copies locks that other threads and the library may hold."""
    safe = threading.active_count() == 1 and not {"ncu_report", "pyarrow"} & sys.modules.keys()
    return _fork if safe else _execute


def _pipes() -> tuple[int, int, int, int]:
    """Return the ends of two pipes, above the numbers that the child gives to others.

    Raises:
        OSError: so many files cannot be open here; none of these is.
    """
    import fcntl

    ends: list[int] = []
    try:
        for _ in range(2):
            pair = os.pipe()
            try:
                for end in pair:
                    ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 5))
            finally:
                for end in pair:
                    os.close(end)
    except OSError as error:
        for end in ends:
            os.close(end)
        if error.errno == errno.EINVAL:  # not even 5 can be a number
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE)) from error
        raise
    return ends[0], ends[1], ends[2], ends[3]


def _fork(path: str) -> _Start:
    request_out, request_in, answer_out, answer_in = _pipes()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as in a daemon
            stream.flush()
    pid = os.fork()
    if pid == 0:
        try:
            for number in ENDING:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            os.close(request_in)
            os.close(answer_out)
            serve(path, request_out, answer_in)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(request_out)
    os.close(answer_in)
    return _reaper(pid), os.fdopen(request_in, "wb"), os.fdopen(answer_out, "rb", buffering=1 << 20)


def _execute(path: str) -> _Start:
    request_out, request_in, answer_out, answer_in = _pipes()
    program = "import sys; from ncukit.report.wire import serve; serve(sys.argv[1], 3, 4)"
    files = [(os.POSIX_SPAWN_DUP2, request_out, 3), (os.POSIX_SPAWN_DUP2, answer_in, 4)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-P", "-c", program, path]
    pid = os.posix_spawn(sys.executable, command, environment, file_actions=files, setsigmask=[signal.SIGINT])
    os.close(request_out)
    os.close(answer_in)
    return _reaper(pid), os.fdopen(request_in, "wb"), os.fdopen(answer_out, "rb", buffering=1 << 20)


def _reaper(pid: int) -> Callable[[float], int]:
    def wait(patience: float) -> int:
        deadline = time.monotonic() + patience
        try:
            while time.monotonic() < deadline:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.001)
            os.kill(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except (
            ChildProcessError
        ):  # where SIGCHLD is ignored the system reaps it, and tells nobody how it ended
            return 0

    return wait


def serve(path: str, requests: int, answers: int) -> None:
    """Parse ``path``, wait for what is wanted, answer, on two file descriptors; runs in the child.

    What the library prints goes nowhere, and an alarm ends a child that makes no progress.
    """
    faulthandler.disable()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    with os.fdopen(requests, "rb") as incoming, os.fdopen(answers, "wb", buffering=1 << 20) as outgoing:
        try:
            seconds = _HANG + os.path.getsize(path) // _BYTES_PER_SECOND
            _alarm(seconds)
            context = native.load(path)
            _alarm(0)
            request = _receive(incoming)
            if request is None:
                return
            _alarm(seconds)
            for plain in native.results(context, _wanted(request)):
                _alarm(0)  # what waits here is a caller that takes its time
                _send(outgoing, json.dumps(plain).encode())
                _alarm(seconds)
            _alarm(0)
            _send(outgoing, _END)
        except BrokenPipeError:
            return
        except (OSError, *native.DAMAGE) as error:
            _send(outgoing, _DAMAGED + _words(error))
        except Exception as error:
            _send(outgoing, _FAULT + _words(error))


def _words(error: Exception) -> bytes:
    return f"{type(error).__name__}: {error}".encode(errors="replace")


def _alarm(seconds: int) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)


def _wanted(request: bytes) -> Wanted:
    fields = json.loads(request)
    for name in ("metrics", "instances", "breakdowns", "by_pc", "series"):
        fields[name] = None if fields[name] is None else frozenset(fields[name])
    return Wanted(**fields)


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(_LENGTH.pack(len(message)))
    pipe.write(message)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    message = pipe.read(size)
    return message if len(message) == size else None
