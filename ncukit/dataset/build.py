"""Bring a dataset up to date in local processes or on a cluster."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote

from ncukit.dataset.inputs import (
    ERRORS,
    METRICS,
    Entry,
    Outcome,
    State,
    Task,
    crashed,
    expand,
    extract,
    locked,
)
from ncukit.dataset.rows import NOWHERE, is_left, is_part
from ncukit.errors import NcukitError
from ncukit.files import beside
from ncukit.folders import Folder
from ncukit.record import dataclass
from ncukit.signals import put_off, safe_path, undisturbed

# ---- Tasks in local processes: one that dies takes its task with it, nothing else
#  ``concurrent.futures`` and ``multiprocessing.Pool`` give up, or hang, when a worker is killed; a damaged
# report can make the native reader do just that.

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


def run_here(
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


# ---- Bring a dataset up to date: what to read, who reads it, what it leaves

SAVE_EVERY = 5.0
"""[s] between two saves of the state: what a killed build has to do again."""

RETRIED = ("reader-crashed", "report-not-found", "internal")
"""Errors that may not lie in the content of a report: it is read again each time."""

Progress = Callable[[int, int, str], None]
"""Called with (reports done, reports to read, file just done)."""


@dataclass(frozen=True)
class Built:
    """What a build did, and what the dataset holds now."""

    folder: str
    reports: int
    launches: int
    read: int
    unchanged: int
    removed: int
    errors: tuple[Mapping[str, Any], ...]
    """Of every report that cannot be used: file, path and the error in its JSON form."""
    why_all: str = ""
    """Why everything had to be read again; empty where it had not."""
    notes: tuple[str, ...] = ()
    """What was left out, or found damaged and read again."""


@dataclass(frozen=True)
class Plan:
    """What a build has to do: ``tasks`` to read, paths that are ``unchanged``, paths that are ``gone``.

    ``damaged`` names the parts whose reports are read again for that reason.
    """

    tasks: tuple[Task, ...]
    unchanged: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    why_all: str = ""
    damaged: tuple[str, ...] = ()


def build(
    inputs: Iterable[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
) -> Built:
    """Bring the dataset ``folder`` up to date with the reports that ``inputs`` name; see `ncukit.api`."""
    home = Path(os.path.abspath(folder))
    found = expand(inputs)
    with locked(home) as own:
        from ncukit.dataset.rows import fingerprint

        state = State.load(home)
        if state is None:
            state = State(fingerprint())
        todo = plan(found.files, state, own, fingerprint(), force=force, keep=keep)
        state.fingerprint = fingerprint()
        state.doubt(todo.tasks)
        if todo.tasks:
            state.save(home)  # whatever ends this build, the next one goes on
        for path in todo.gone:
            _remove(own, state.files.pop(path).parts)
        try:
            with closing(_outcomes(todo.tasks, workers or _cores(), dask)) as outcomes:
                unchanged = _gather(outcomes, state, own, len(todo.tasks), progress)
        finally:
            with put_off():
                state.save(home)
                _sweep(own, state)
        _write_tables(home, state)
    read = len(todo.tasks) - unchanged
    return Built(
        str(folder),
        len(state.files),
        sum(entry.launches for entry in state.files.values()),
        read,
        unchanged + len(todo.unchanged),
        len(todo.gone),
        tuple(_error(path, entry) for path, entry in sorted(state.files.items()) if entry.error),
        todo.why_all,
        (*found.skipped, *(f"{part} is damaged: its report is read again" for part in todo.damaged)),
    )


def plan(
    files: Mapping[str, str],
    state: State,
    folder: Folder,
    fingerprint: str,
    *,
    force: bool = False,
    keep: bool = False,
) -> Plan:
    """Return what has to be done; ``files`` maps absolute paths to names.

    A report is unchanged when size and time of change are as they were; where only the time differs, its
    task compares the content first.  Reports that the dataset holds and ``files`` does not name stay, unless
    they are gone from the disk and ``keep`` is not set.
    """
    stale = state.fingerprint != fingerprint
    tasks, unchanged, damaged = [], [], []
    place = str(folder.path)
    for path, file in files.items():
        entry = state.files.get(path)
        broken = [part for part in entry.parts if not _whole(folder, part)] if entry is not None else []
        damaged += [part for part in broken if folder.find(part) is not None]
        found = _stat(path)
        retried = entry is not None and entry.error is not None and entry.error["code"] in RETRIED
        known = entry if not broken and not force and not stale and not retried else None
        if known is not None and found is not None and known.same_file(found):
            unchanged.append(path)
            continue
        size = found.st_size if found is not None else 0
        tasks.append(Task(path, file, place, size, known.sha256 if known else ""))
    others = state.files.keys() - files.keys()
    gone = [path for path in others if not keep and _stat(path) is None]
    why = ""
    if stale and state.files:
        why = "the dataset was made by another version of ncukit or of its code: everything is read again"
        again = others - set(gone)
        tasks += [
            Task(path, state.files[path].file, place, found.st_size)
            for path in sorted(again)
            if (found := _stat(path)) is not None
        ]
    return Plan(tuple(tasks), tuple(unchanged), tuple(sorted(gone)), why, tuple(damaged))


def _outcomes(tasks: Sequence[Task], workers: int, dask: str | None) -> Generator[Outcome, None, None]:
    """Yield the outcome of every task, from a cluster or from local processes.

    On a cluster, and where there are fewer reports than processes, the native reader gets a process of its
    own: a crash leaves the worker alone, and one long report is read and translated on two cores.
    """
    if dask is not None or len(tasks) < workers:
        tasks = [replace(task, isolate=True) for task in tasks]
    if dask is not None:
        from ncukit.cluster import run

        return run(extract, tasks, dask, crashed)
    return run_here(extract, tasks, workers, crashed)


def _gather(
    outcomes: Iterator[Outcome], state: State, folder: Folder, total: int, progress: Progress | None
) -> int:
    """Take over every outcome; return how many reports turned out to be unchanged."""
    import time

    unchanged = 0
    saved = time.monotonic()
    for done, outcome in enumerate(outcomes, 1):
        before = state.files.get(outcome.path)
        if outcome.unchanged and before is not None:
            unchanged += 1
            state.files[outcome.path] = replace(before, mtime_ns=outcome.mtime_ns)
        else:
            if before is not None:
                _remove(folder, set(before.parts) - set(outcome.parts))
            state.files[outcome.path] = Entry.of(outcome)
        if progress is not None:
            progress(done, total, outcome.file)
        if time.monotonic() - saved > SAVE_EVERY:
            state.save(folder.path)
            saved = time.monotonic()
    return unchanged


def _whole(folder: Folder, part: str) -> bool:
    """Return whether the part file begins and ends as Parquet does."""
    try:
        with folder.open_file(part) as file:
            head = file.read(4)
            file.seek(-4, os.SEEK_END)
            return head == file.read(4) == b"PAR1"
    except OSError:
        return False


def _remove(folder: Folder, parts: Iterable[str]) -> None:
    for part in parts:
        folder.remove(part)


def _sweep(folder: Folder, state: State) -> None:
    """Remove what killed builds left: their files that nothing knows of, and empty partitions."""
    known = {part for entry in state.files.values() for part in entry.parts}
    for partition in folder.names():
        if not partition.startswith("gpu="):
            continue
        with suppress(OSError):  # a link, or a file
            with folder.folder(partition) as inner:
                names = [f"{partition}/{name}" for name in inner.names()]
            for name in names:
                if name not in known and (is_part(name) or is_left(name)) and folder.holds(name):
                    folder.remove(name)
            folder.remove_folder(partition)


def _write_tables(folder: Path, state: State) -> None:
    """Write the table of errors, and that of the metrics."""
    import pyarrow as pa
    import pyarrow.parquet

    from ncukit.dataset.rows import ERROR_COLUMNS as columns
    from ncukit.dataset.rows import metrics_table

    errors = [_error(path, entry) for path, entry in sorted(state.files.items()) if entry.error]
    tables = {ERRORS: pa.Table.from_pylist(errors, schema=columns), METRICS: metrics_table()}
    for name, table in tables.items():
        with beside(folder / name) as written:
            pyarrow.parquet.write_table(table, written)


def _error(path: str, entry: Entry) -> dict[str, Any]:
    error = entry.error or {}
    head = {"file": entry.file, "path": path, "sha256": entry.sha256, "size": entry.size}
    return head | {name: error.get(name) for name in ("code", "message", "hint")}


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def gpu_of(part: str) -> str | None:
    """Return the GPU of a part file by its folder; None where it is not known.

    >>> gpu_of("gpu=NVIDIA%20A40/x.parquet")
    'NVIDIA A40'
    """
    name = unquote(part.split("/")[0].partition("=")[2])
    return None if name == NOWHERE else name
