"""Tasks in local processes: one that dies takes its task with it, nothing else.

``concurrent.futures`` and ``multiprocessing.Pool`` give up, or hang, when a worker is killed; a damaged
report can make the native reader do just that.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol, TypeVar

from ncukit.errors import NcukitError
from ncukit.interpreter import safe_path
from ncukit.interruption import undisturbed

_HANG = 60
_BYTES_PER_SECOND = 1 << 18
"""A task that takes longer than `_HANG` [s] and its size at this rate hangs."""
_FILL = 32 << 20
"""[byte] of reports after which a process is replaced: the native reader keeps part of their memory."""
_GENERATION = 50_000
"""Allocations between two collections: almost nothing of a launch is left to the collector."""


class Sized(Protocol):
    """What a task must tell: its size [byte]."""

    @property
    def size(self) -> int:
        """Size [byte] of what is read."""


T = TypeVar("T", bound=Sized)
R = TypeVar("R")


class _Worker:
    """A process that answers tasks on a pipe."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(work, other), daemon=True)
        with safe_path():
            resource_tracker.ensure_running()  # it unblocks signals when it starts
            with undisturbed():
                self.process.start()
        other.close()
        self.task: Any = None
        self.ready = False
        self.read = 0

    def give(self, task: Any) -> None:
        self.task = task
        self.read += task.size
        self.pipe.send(task)

    def end(self) -> str:
        """End the process; return how it ended."""
        self.pipe.close()
        self.process.join(1)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        code = self.process.exitcode or 0
        if code == -signal.SIGALRM:
            return "it made no progress"
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def run(
    work: Callable[[T], R], tasks: Sequence[T], workers: int, lost: Callable[[T, str], R]
) -> Generator[R, None, None]:
    """Yield ``work(task)`` of every task, in the order in which they end; the largest begin first.

    ``work`` must be importable by name.  ``lost(task, how)`` is the result of a task whose process died.

    Raises:
        NcukitError: a process cannot be started.
        Exception: what ``work`` raised; the other processes are ended.
    """
    left = sorted(tasks, key=lambda task: task.size)
    team: list[_Worker] = []
    try:
        for _ in range(min(workers, len(left))):
            team.append(_Worker(work))
        while team:
            for worker in _heard(team):
                answer = _answer(worker)
                if answer is None:
                    yield from _replaced(team, worker, work, lost, bool(left))
                    continue
                kind, result = answer
                if kind == "raised":
                    raise result
                if kind == "done":
                    worker.task = None
                    yield result
                worker.ready = True
                if left and worker.read < _FILL:
                    worker.give(left.pop())
                    continue
                team.remove(worker)
                worker.end()
                if left:
                    team.append(_Worker(work))
    finally:
        for worker in team:
            worker.process.kill()
            worker.end()


def _heard(team: list[_Worker]) -> list[_Worker]:
    by_pipe = {worker.pipe: worker for worker in team}
    return [by_pipe[pipe] for pipe in wait(by_pipe)]  # type: ignore[index]


def _answer(worker: _Worker) -> tuple[str, Any] | None:
    try:
        answer: tuple[str, Any] = worker.pipe.recv()
    except (EOFError, OSError):
        return None
    return answer


def _replaced(
    team: list[_Worker],
    worker: _Worker,
    work: Callable[[T], R],
    lost: Callable[[T, str], R],
    more: bool,
) -> Iterator[R]:
    """Take a dead worker out; put a new one in its place where there is work left."""
    team.remove(worker)
    how = worker.end()
    if not worker.ready:
        raise NcukitError(
            f"a worker process ended as it started ({how})",
            'in a script, call it under `if __name__ == "__main__":`',
        )
    if worker.task is not None:
        yield lost(worker.task, how)
    if more:
        team.append(_Worker(work))


def _serve(work: Callable[[Any], Any], pipe: Connection) -> None:
    """Answer tasks until the other side is gone; what the native library prints goes nowhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    gc.set_threshold(_GENERATION, 20, 100)
    try:
        pipe.send(("ready", None))
        while True:
            task = pipe.recv()
            signal.alarm(_HANG + task.size // _BYTES_PER_SECOND)
            try:
                answer = ("done", work(task))
            except Exception as error:
                answer = ("raised", error)
            signal.alarm(0)
            pipe.send(answer)
    except (EOFError, BrokenPipeError):
        return
