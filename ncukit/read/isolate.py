"""Run the native reader in a child process: some files crash it, and take the process with them.

The child is forked where the system can (nothing heavy is imported yet), spawned elsewhere; results come
through a pipe as length-prefixed JSON, one a launch, so that reading and translating overlap and memory stays
bounded.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Iterator
from typing import IO

from ncukit.errors import ReaderCrashed
from ncukit.model import Wanted
from ncukit.read import native

_LENGTH = struct.Struct("<I")
_END = b"\x00"
_FAILED = b"\x01"


def results(path: str, wanted: Wanted) -> Iterator[native.Plain]:
    """Yield what `native.results` yields, from a child process.

    Raises:
        ReaderCrashed: the child died (abort, segmentation fault) or the library raised.
    """
    child, pipe = _fork(path, wanted) if hasattr(os, "fork") else _spawn(path, wanted)
    finished = False
    try:
        while True:
            message = _receive(pipe)
            if message is None or message[:1] == _FAILED:
                break
            if message == _END:
                finished = True
                return
            yield json.loads(message)
        detail = "" if message is None else message[1:].decode(errors="replace")
    finally:
        pipe.close()
        status = child.wait(kill=not finished)
    raise _crashed(path, status, detail)


class _Forked:
    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self, *, kill: bool) -> int:
        """Reap the child; return its exit code, negative for a signal."""
        pid, status = os.waitpid(self.pid, os.WNOHANG) if kill else os.waitpid(self.pid, 0)
        if pid == 0:  # still running: the caller stopped early, or the pipe broke before the process ended
            status = self._give_up()
        return os.waitstatus_to_exitcode(status)

    def _give_up(self) -> int:
        import time

        for _ in range(20):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        return os.waitpid(self.pid, 0)[1]


def _fork(path: str, wanted: Wanted) -> tuple[_Forked, IO[bytes]]:
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(writer)
        return _Forked(pid), os.fdopen(reader, "rb", buffering=1 << 20)
    try:
        os.close(reader)
        _silence()
        with os.fdopen(writer, "wb", buffering=1 << 20) as pipe:
            _serve(path, wanted, pipe)
    finally:
        os._exit(0)


class _Spawned:
    def __init__(self, process: object) -> None:
        self.process = process

    def wait(self, *, kill: bool) -> int:
        """Reap the child; return its exit code, negative for a signal."""
        process = self.process
        if kill:
            process.join(0.2)  # type: ignore[attr-defined]
            process.kill()  # type: ignore[attr-defined]
        process.join()  # type: ignore[attr-defined]
        return int(process.exitcode or 0)  # type: ignore[attr-defined]


def _spawn(path: str, wanted: Wanted) -> tuple[_Spawned, IO[bytes]]:
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve_connection, args=(path, wanted, sender), daemon=True)
    process.start()
    sender.close()
    return _Spawned(process), os.fdopen(os.dup(receiver.fileno()), "rb")


def _serve_connection(path: str, wanted: Wanted, connection: object) -> None:
    with os.fdopen(os.dup(connection.fileno()), "wb") as pipe:  # type: ignore[attr-defined]
        _serve(path, wanted, pipe)


def _serve(path: str, wanted: Wanted, pipe: IO[bytes]) -> None:
    try:
        for plain in native.results(path, wanted):
            _send(pipe, json.dumps(plain).encode())
        _send(pipe, _END)
    except BrokenPipeError:
        pass
    except Exception as error:
        _send(pipe, _FAILED + f"{type(error).__name__}: {error}".encode())


def _silence() -> None:
    """Send what the native library prints on a crash to nowhere: the parent says it in its own words."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


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


def _crashed(path: str, status: int, detail: str) -> ReaderCrashed:
    how = detail or (signal.Signals(-status).name if status < 0 else f"exit code {status}")
    return ReaderCrashed(
        path,
        f"{path}: the reader crashed on this file ({how})",
        "the file is damaged inside; copy it again from where it was made, or profile again",
    )
