"""Runs: time, trace and measure a kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ncukit.api.reports import PathLike
from ncukit.errors import UsageError

if TYPE_CHECKING:
    from ncukit.collect.carry import Carried
    from ncukit.collect.options import ProfileOptions
    from ncukit.collect.session import Listener
    from ncukit.model.run import Timing


def profile(
    target: PathLike | Sequence[str],
    *,
    options: ProfileOptions | None = None,
    output: PathLike | None = None,
    resume: PathLike | None = None,
    listener: Listener | None = None,
    dask: str | None = None,
) -> Carried:
    """Time, trace and measure one kernel of ``target`` (a file, or words of a command) in a run directory.

    The result has the directory, the record (`ncukit.model.run.Run`) and the first failure, if any: what was
    gained before it is kept.  ``resume`` goes on with a run that was broken off, if ``target`` and
    ``options`` are those of its record.  With ``dask``, the address of a scheduler, workers that declare a
    GPU measure the points of a sweep; they see the same files under the same paths.

    Raises:
        UsageError: target and options do not fit, or the directory is in use.
        ReportError: the script cannot be read, or there is no run to resume.
        NcukitError: no cluster, or no worker of it with a GPU, does the work.
    """
    from ncukit.collect.carry import at_point, carry_out
    from ncukit.collect.options import ProfileOptions
    from ncukit.collect.session import Silent
    from ncukit.collect.sweep import Carry, Point, Reached, carry_sweep
    from ncukit.collect.target import Target, resolve
    from ncukit.diagnose.isolate import launch_for_ncu
    from ncukit.render.run.page import finisher
    from ncukit.render.run.sweep import write_sweep_page

    wanted, heard = options or ProfileOptions(), listener or Silent()
    words = [os.fspath(target)] if isinstance(target, str | os.PathLike) else list(target)
    found, command = resolve(words, wanted), " ".join(["ncukit profile", *words])

    def one(at: Target, chosen: ProfileOptions, new: Path | None, old: Path | None) -> Carried:
        finish = finisher(command)
        return carry_out(at, chosen, launch_for_ncu, output=new, resume=old, listener=heard, finish=finish)

    def here(points: Sequence[Point]) -> Iterator[Reached]:
        for number, point in enumerate(points, 1):
            heard.note(f"point {number} of {len(points)}: {point.folder.name}")
            place = (None, point.folder) if point.started else (point.folder, None)
            yield Reached.of(point, one(*at_point(found, wanted, point.params), *place))

    new, old = (None if path is None else Path(path) for path in (output, resume))
    carry: Carry = here
    if dask is not None:
        from ncukit.api.remote import carry_on_cluster

        if len(wanted.points) == 1:
            raise UsageError("a cluster measures the points of a sweep", "give several: --param n=1024,2048")
        carry = carry_on_cluster(found, wanted, dask, command, heard.note)
    elif len(wanted.points) == 1:
        return one(found.at(wanted.points[0]), wanted, new, old)
    return carry_sweep(
        found,
        wanted,
        carry,
        lambda path, points: write_sweep_page(path, points, command=command),
        output=new,
        resume=old,
        listener=listener,
    )


def time(
    target: PathLike | Sequence[str],
    *,
    options: ProfileOptions | None = None,
    listener: Listener | None = None,
) -> list[Timing]:
    """Check and time ``target`` without any profiler, once for each point of its parameters.

    Raises:
        UsageError: target and options do not fit.
        ReportError: the script cannot be read.
        ToolError: it fails, or its result is wrong (``wrong-result``).
    """
    import tempfile
    from dataclasses import replace

    from ncukit.collect.carry import at_point, carry_out
    from ncukit.collect.directory import read_timing
    from ncukit.collect.options import ProfileOptions
    from ncukit.collect.target import resolve
    from ncukit.diagnose.isolate import launch_for_ncu

    wanted = replace(options or ProfileOptions(), skip_nsys=True, skip_ncu=True)
    words = [os.fspath(target)] if isinstance(target, str | os.PathLike) else list(target)
    found, timings = resolve(words, wanted), []
    for point in wanted.points:
        with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
            path = Path(folder) / "run"
            try:
                carried = carry_out(
                    *at_point(found, wanted, point), launch_for_ncu, output=path, listener=listener
                )
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(*stop.args) from None  # the folder goes away: nothing can go on
            if carried.failure is not None:
                raise carried.failure.error()
            timings.append(read_timing(path))
    return timings
