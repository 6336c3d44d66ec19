"""A sweep: one run for each point of the parameters, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.collect.carry import Carried, at_point, prepare
from ncukit.collect.directory import RECORD, slug
from ncukit.collect.options import ProfileOptions
from ncukit.collect.session import Listener
from ncukit.collect.target import Target
from ncukit.errors import UsageError
from ncukit.tools.failures import Failure

Carry = Callable[[Target, ProfileOptions, Path | None, Path | None], Carried]
"""Carries one point out: (target, options, new directory or None, directory to resume or None)."""
Finish = Callable[[Path, tuple[Mapping[str, Any], ...]], object]
"""Makes the page of all points."""
MOST = 64
"""Points of a sweep; more is more likely a slip than a wish."""


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
        UsageError: there are too many points, or see `ncukit.collect.carry.carry_out`.
    """
    points = options.points
    if len(points) > MOST:
        raise UsageError(f"the sweep has {len(points):,} points", f"give at most {MOST}")
    session = prepare(target, options, output=output, resume=resume, environ=environ, listener=listener)
    try:
        session.update(status="running")
        cause: Failure | None = None
        evidence = False
        done: list[Mapping[str, Any]] = []
        for params in points:
            name = slug("-".join(f"{key}={value}" for key, value in params.items()))
            folder = session.directory.path / name
            session.listener.note(f"point {len(done) + 1} of {len(points)}: {name}")
            started = (folder / RECORD).is_file()
            one = carry(
                *at_point(target, options, params), None if started else folder, folder if started else None
            )
            cause, evidence = cause or one.failure, evidence or one.evidence
            error = None if one.failure is None else one.failure.as_dict()
            done.append({"params": dict(params), "directory": name, "status": one.run.status, "error": error})
            session.update(points=tuple(done))
        status = "complete" if cause is None else "incomplete" if evidence else "failed"
        session.update(status=status, error=None if cause is None else cause.as_dict())
        if evidence:
            finish(session.directory.path, session.run.points)
        return Carried(session.directory.path, replace(session.run), cause, evidence)
    finally:
        session.directory.close()
