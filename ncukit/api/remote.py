"""Points of a sweep on the workers of a Dask cluster: the same run as here, one at a time on each GPU."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ncukit.collect.carry import CHANGED, Carried, at_point, carry_out
from ncukit.collect.directory import RECORD, set_aside
from ncukit.collect.options import ProfileOptions
from ncukit.collect.sweep import Carry, Point, Reached, done_before
from ncukit.collect.target import Target
from ncukit.collect.turn import turn
from ncukit.errors import NcukitError, UsageError
from ncukit.record import dataclass
from ncukit.tools.failures import Failure


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
    from ncukit.diagnose.isolate import launch_for_ncu
    from ncukit.render.run.page import finisher

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
