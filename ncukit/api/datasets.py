"""Many reports at once, sweeps on a cluster, and the samples that ship with ncukit."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import gmtime, strftime
from typing import TYPE_CHECKING, Literal

from ncukit.api.reports import PathLike
from ncukit.errors import NcukitError, UsageError
from ncukit.files import check_new
from ncukit.record import dataclass
from ncukit.run.directory import RECORD, set_aside, turn
from ncukit.run.options import ProfileOptions
from ncukit.run.plan import CHANGED, Carried, at_point, carry_out
from ncukit.run.sweep import Carry, Point, Reached, done_before
from ncukit.run.target import Target
from ncukit.run.tools.failures import Failure

if TYPE_CHECKING:
    from ncukit.dataset.build import Built
    from ncukit.dataset.survey import Answer


# ---- Points of a sweep on the workers of a Dask cluster: the same run as here, one at a time on each GPU


@dataclass(frozen=True)
class Job:
    """A point to measure, and all that a worker must know; paths are absolute."""

    point: Point
    target: Target
    options: ProfileOptions
    cwd: Path
    command: str = ""


def carry_on_cluster(
    target: Target, options: ProfileOptions, address: str, command: str, note: Callable[[str], None]
) -> Carry:
    """Return what carries points out on the workers at ``address`` that declare a GPU.

    A point whose run is complete stays as it is; one that was begun goes on, or begins anew where GPU or
    tools are others than then.
    """
    tools = {name: _absolute(path) for name, path in options.tools.items()}
    there = replace(options, tools=tools)
    source = None if target.source is None else target.source.absolute()

    def carry(points: Sequence[Point]) -> Iterator[Reached]:
        from ncukit.cluster import GPU, run

        left = []
        for point in points:
            if (found := done_before(point)) is not None:
                yield found
            else:
                left.append(Job(point, replace(target, source=source), there, Path.cwd(), command))
        for number, one in enumerate(run(carry_job, left, address, lost, resource=GPU), 1):
            on = f" on {one.where}" if one.where else ""
            note(f"{number} of {len(left)}: {one.point.folder.name}{on}: {one.status}")
            yield one

    return carry


def carry_job(job: Job) -> Reached:
    """Measure a point on this machine; what is wrong is in the result."""
    where = socket.gethostname()
    if not (job.point.folder.parent / RECORD).is_file():
        error = NcukitError(
            f"{where} does not see {job.point.folder.parent}",
            "workers need the same files under the same paths: give -o a shared folder",
            code="not-shared",
        )
        return Reached.failed(job.point, _failure(error), where)
    try:
        with turn():
            return Reached.of(job.point, _carried(job), where)
    except NcukitError as error:
        return Reached.failed(job.point, _failure(error), where)
    except Exception as error:  # of this point alone: the others are measured
        what = NcukitError(
            f"internal error on {where}: {type(error).__name__}: {error}", "report it", code="internal"
        )
        return Reached.failed(job.point, _failure(what), where)


def lost(job: Job, how: str) -> Reached:
    """Return the result of a job that took its workers with it."""
    error = NcukitError(
        f"{job.point.folder.name} took {how}",
        f"look at {job.point.folder}; --resume goes on with it",
        code="worker-lost",
    )
    return Reached.failed(job.point, _failure(error))


def _carried(job: Job) -> Carried:
    from ncukit.render.run.page import finisher
    from ncukit.trace.launch_choice import launch_for_ncu

    chosen_python = job.options.tools.get("python")
    here = job.target if chosen_python else replace(job.target, python=sys.executable)
    target, options = at_point(here, job.options, job.point.params)

    def carry(new: Path | None, old: Path | None) -> Carried:
        finish = finisher(job.command)
        return carry_out(target, options, launch_for_ncu, output=new, resume=old, finish=finish, cwd=job.cwd)

    folder = job.point.folder
    if not job.point.started:
        return carry(folder, None)
    try:
        return carry(None, folder)
    except UsageError as error:
        if error.code != CHANGED:
            raise
        set_aside(folder)  # half of it from one GPU and half from another would be no measurement
        return carry(folder, None)


def _failure(error: NcukitError) -> Failure:
    return Failure(error.code, error.code, error.message, error.hint)


def _absolute(path: str) -> str:
    return os.path.abspath(path) if os.sep in path else path


# ---- Many reports at once: as a dataset, as one index page


def build_dataset(
    inputs: PathLike | Iterable[PathLike],
    folder: PathLike,
    *,
    workers: int | None = None,
    dask: str | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> Built:
    """Bring the Parquet dataset ``folder`` up to date with the reports that ``inputs`` name.

    ``inputs`` are files, folders and patterns (``runs/**/*.ncu-rep``).  Reports that did not change since the
    last time are not read; those that are gone from the disk lose their rows unless ``keep`` is set, and
    those that ``inputs`` do not name stay.  ``workers`` local processes read (default: one a core), or those
    of the Dask scheduler at address ``dask``.  ``progress(done, total, file)`` is called after each report.

    In a script, call it under ``if __name__ == "__main__":`` because processes are started.

    Raises:
        ReportNotFound: one of the inputs names no file.
        UsageError: the folder holds something else, cannot be written to, or another build is at work there.
        NcukitError: no process, or no cluster, does the work.
    """
    from ncukit.dataset.build import build
    from ncukit.dataset.inputs import NAME

    given = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    try:
        return build(given, folder, workers=workers, dask=dask, force=force, keep=keep, progress=progress)
    except KeyboardInterrupt as stop:
        if os.path.exists(os.path.join(folder, NAME)):
            command = "the same command without --force" if force else "the same command"
            stop.add_note(f"what was read is kept in {os.fspath(folder)}: {command} reads the rest")
        raise


def query_dataset(folder: PathLike, sql: str) -> Answer:
    """Return the answer of the dataset ``folder`` to ``sql``; tables: launches, metrics, errors.

    Raises:
        UsageError: the folder is no dataset, or the SQL is wrong.
        NcukitError: DuckDB is not installed.
    """
    from ncukit.dataset.survey import query

    return query(folder, sql)


def write_index(
    folder: PathLike,
    output: PathLike | None = None,
    *,
    workers: int | None = None,
    force: bool = False,
    plotly: Literal["inline", "directory"] = "inline",
    command: str = "",
    progress: Callable[[int, int, str], None] | None = None,
) -> Path:
    """Write one page over a folder of runs, reports and datasets, and return where (``index.html`` in it).

    Reports that a dataset in the folder holds unchanged are not read again; ``workers`` processes read the
    others.  In a script, call it under ``if __name__ == "__main__":``.

    Raises:
        ReportNotFound: there is no such folder, or nothing in it.
        UsageError: the output exists and ``force`` is not given, or it cannot be written.
    """
    from ncukit.dataset.survey import survey
    from ncukit.render.html import write_page
    from ncukit.render.index.view import page_view

    target = Path(output) if output is not None else Path(folder) / "index.html"
    check_new(target, force=force)
    found = survey(folder, workers=workers, progress=progress)
    generated = strftime("%Y-%m-%d %H:%M UTC", gmtime())
    view = page_view(found, target, generated=generated, command=command)
    return write_page(target, view, force=force, plotly=plotly)


# ---- The samples that ship with ncukit


def demo_reports() -> list[Path]:
    """Return the sample reports that ship with ncukit.

    Raises:
        NcukitError: ncukit was installed without them.
    """
    return _samples("*.ncu-rep")


def demo_traces() -> list[Path]:
    """Return the sample traces that ship with ncukit, each with the name of the report it goes with.

    Raises:
        NcukitError: ncukit was installed without them.
    """
    return _samples("*.sqlite")


def _samples(pattern: str) -> list[Path]:
    from ncukit.files import folder

    try:
        found = sorted(folder("reports/samples").glob(pattern))
    except FileNotFoundError:
        found = []
    if not found:
        raise NcukitError("ncukit was installed without its samples", "reinstall ncukit")
    return found
