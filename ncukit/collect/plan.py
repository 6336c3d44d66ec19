"""What a run would execute, without executing any of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ncukit.collect import capture, identity, measure, tracing
from ncukit.collect.carry import run_name
from ncukit.collect.directory import PROFILE, TRACE, RunDirectory
from ncukit.collect.options import ProfileOptions
from ncukit.collect.session import Session, tool_failure
from ncukit.collect.target import Target
from ncukit.errors import ToolError
from ncukit.folders import Folder
from ncukit.model.run import Run
from ncukit.record import dataclass
from ncukit.tools import cuda, ncu, nsys, nvcc
from ncukit.tools.environment import child_environment


@dataclass(frozen=True)
class Planned:
    """One command that a run would execute; what only an earlier step can tell is in ``note``."""

    step: str
    command: tuple[str, ...]
    note: str = ""


class _Nowhere(RunDirectory):
    """A run directory that is not made."""

    def record(self, run: Run, cwd: Path | None = None) -> Run:
        """Write nothing."""
        return run


def plan(
    target: Target,
    options: ProfileOptions,
    *,
    output: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> list[Planned]:
    """Return every command of a run in order; only the tools are started, to ask what they can do."""
    env = os.environ if environ is None else environ
    child = child_environment(env, keep=options.env, clean=options.clean_env)
    driver = cuda.driver(child.variables)
    folder = output or Path("reports") / f"{run_name(target, driver, env)}-TIME"
    run = Run("", "", identity.target_data(target), options.as_dict())
    session = Session(_Nowhere(Folder(folder, -1)), target, options, run, child, env, driver)
    session.marks = {"nvtx": "assumed", "profiler": "assumed"} if target.marked else {}
    found = []
    if target.kind == "cuda":
        found.append(_compile(session))
    if not options.skip_time:
        command = measure.timing_command(session.target, options, folder / "timing.json")
        what = "checks the result and times it without a profiler" if target.marked else "runs it once"
        found.append(Planned("timing", command, what))
    if not options.skip_nsys:
        found.append(_timeline(session))
    if not options.skip_ncu:
        found.append(_counters(session))
    return found


def _compile(session: Session) -> Planned:
    program = session.file(measure.PROGRAM)
    assert session.target.source is not None
    wanted = nvcc.NvccOptions((session.target.source,), program, session.options.arch)
    session.target = session.target.built(program)
    try:
        return Planned("compile", nvcc.argv(wanted, session.probe("nvcc")))
    except ToolError as error:
        return Planned("compile", (), tool_failure(error).message)


def _timeline(session: Session) -> Planned:
    try:
        tool = session.probe("nsys")
    except ToolError as error:
        cause = tool_failure(error)
        other = "; the profiler of torch would stand in" if session.target.marked else ""
        return Planned("timeline", (), f"{cause.message}{other}")
    wanted = tracing.nsys_options(session, session.file(TRACE), session.file("nsys-child.json"))
    note = "with --warmup N from the clean timing" if session.target.marked else ""
    return Planned("timeline", nsys.argv(wanted, tool), note)


def _counters(session: Session) -> Planned:
    try:
        tool = session.probe("ncu")
        what = capture.collected_for(session, tool)
        picked = capture.select(None, session.target.pattern, marked=session.target.marked)
        command = tracing.region_command(session, session.file("ncu-child.json"))
        wanted = capture.ncu_options(session, what, picked, command, session.file(PROFILE))
        line = ncu.argv(wanted, tool)
    except ToolError as error:
        return Planned("counters", (), tool_failure(error).message)
    note = f"about {what.passes} passes"
    if not session.options.skip_nsys:
        note += "; --kernel-name and --launch-skip of the one launch that the timeline chooses"
    return Planned("counters", line, note)
