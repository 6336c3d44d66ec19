"""A sweep: one run for each point of the parameters, in one folder, here or on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.errors import ReportError, UsageError
from ncukit.model.run import Run
from ncukit.record import dataclass
from ncukit.run.directory import RECORD, inside, read_record, slug, whole
from ncukit.run.options import ProfileOptions
from ncukit.run.plan import Carried, prepare
from ncukit.run.session import Listener, Session, interrupted
from ncukit.run.target import Target
from ncukit.run.tools.failures import Failure

Finish = Callable[[Path, tuple[Mapping[str, Any], ...]], object]
"""Makes the page of all points."""
MOST = 64
"""Points of a sweep; more is more likely a slip than a wish."""


@dataclass(frozen=True)
class Point:
    """Parameters of a sweep and the absolute path of the run directory for them."""

    params: Mapping[str, str]
    folder: Path

    @property
    def started(self) -> bool:
        """Whether there is a run to go on with."""
        return (self.folder / RECORD).is_file()


@dataclass(frozen=True)
class Reached:
    """What the run of a point came to; ``where`` is the machine, "" for this one."""

    point: Point
    status: str
    evidence: bool
    failure: Failure | None = None
    gpu: str | None = None
    where: str = ""

    @classmethod
    def of(cls, point: Point, carried: Carried, where: str = "") -> Reached:
        """Return what ``carried`` came to at ``point``."""
        run = carried.run
        return cls(point, run.status, carried.evidence, carried.failure, _gpu(run), where)

    @classmethod
    def failed(cls, point: Point, failure: Failure, where: str = "") -> Reached:
        """Return that nothing came of ``point``."""
        return cls(point, "failed", False, failure, None, where)


Carry = Callable[[Sequence[Point]], Iterator[Reached]]
"""Carries points out and yields what they came to, in any order."""


def carry_sweep(
    target: Target,
    options: ProfileOptions,
    carry: Carry,
    finish: Finish,
    *,
    output: Path | None = None,
    resume: Path | None = None,
    environ: Mapping[str, str] | None = None,
    listener: Listener | None = None,
) -> Carried:
    """Carry out every point that is not done yet; the first failure and all evidence are those of the points.

    Raises:
        UsageError: there are too many points, or see `ncukit.run.plan.carry_out`.
    """
    if len(options.points) > MOST:
        raise UsageError(f"the sweep has {len(options.points):,} points", f"give at most {MOST}")
    session = prepare(target, options, output=output, resume=resume, environ=environ, listener=listener)
    reached: dict[Path, Reached] = {}
    try:
        session.update(status="running", error=None)
        folder = session.directory.path.absolute()
        names = point_names(options.points)
        points = [
            Point(params, inside(folder, name)) for params, name in zip(options.points, names, strict=True)
        ]
        for one in carry(points):
            reached[one.point.folder] = one
            session.update(points=tuple(_entry(reached[p.folder]) for p in points if p.folder in reached))
        return _ended(session, [reached[p.folder] for p in points], finish)
    except KeyboardInterrupt as stop:
        interrupted(session, stop, evidence=any(one.evidence for one in reached.values()))
        raise
    finally:
        session.directory.close()


def point_names(points: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the folder of each point, all different.

    >>> point_names([{"n": "1"}, {"n": "2"}]), point_names([{"s": "(1)"}, {"s": "[1]"}])
    (['n=1', 'n=2'], ['1-s=-1', '2-s=-1'])
    """
    names = [slug("-".join(f"{key}={value}" for key, value in params.items())) for params in points]
    if len(set(names)) < len(names):
        return [f"{number}-{name}" for number, name in enumerate(names, 1)]
    return names


def done_before(point: Point) -> Reached | None:
    """Return what a point came to whose run is complete, with every file as it was recorded; else None."""
    try:
        run = read_record(point.folder)
    except ReportError:
        return None
    files = [file for step in run.steps for file in step.files]
    if run.status != "complete" or not all(whole(point.folder, file) for file in files):
        return None
    return Reached(point, "complete", True, None, _gpu(run))


def _ended(session: Session, reached: Sequence[Reached], finish: Finish) -> Carried:
    failed = [(one.point.folder.name, one.failure) for one in reached if one.failure is not None]
    named = [replace(failure, message=f"{name}: {failure.message}") for name, failure in failed]
    for failure in named[1:]:
        session.listener.note(failure.message)
    cause = named[0] if named else None
    evidence = any(one.evidence for one in reached)
    status = "complete" if cause is None else "incomplete" if evidence else "failed"
    gpus = sorted({one.gpu for one in reached if one.gpu})
    if len(gpus) > 1:
        session.note(f"points were measured on different GPUs: {', '.join(gpus)}; compare shares of peak")
    session.update(status=status, error=None if cause is None else cause.as_dict())
    if evidence:
        finish(session.directory.path, session.run.points)
    return Carried(session.directory.path, replace(session.run), cause, evidence)


def _entry(one: Reached) -> dict[str, Any]:
    error = None if one.failure is None else one.failure.as_dict()
    return {
        "params": dict(one.point.params),
        "directory": one.point.folder.name,
        "status": one.status,
        "error": error,
    }


def _gpu(run: Run) -> str | None:
    return None if run.gpu is None else str(run.gpu.get("name"))
