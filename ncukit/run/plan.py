"""The steps of a run in their order: carried out, or shown without executing any."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ncukit import __version__
from ncukit.errors import ToolError, UsageError
from ncukit.folders import Folder
from ncukit.model.run import OutputFile, Run
from ncukit.record import dataclass
from ncukit.run import capture, measure
from ncukit.run import session as tracing
from ncukit.run import target as identity
from ncukit.run.directory import PROFILE, TRACE, RunDirectory, own, read_record, slug
from ncukit.run.options import ProfileOptions
from ncukit.run.session import Choose, Listener, Session, Silent, Stop, interrupted, tool_failure
from ncukit.run.target import Target
from ncukit.run.tools import cuda, ncu, nsys, nvcc
from ncukit.run.tools.failures import Failure
from ncukit.run.tools.locate import child_environment

# ---- Carry a run out: compile, time, look for the driver, trace, choose, measure
#  What one step gains stays, whatever becomes of the next.

Finish = Callable[[RunDirectory, Run], tuple[OutputFile, ...]]
"""Makes what is concluded from a run, and says which files that are."""


CHANGED = "run-changed"
"""Code of the error that a run cannot go on because something is other than it was."""


@dataclass(frozen=True)
class Carried:
    """What a run came to: ``failure`` came first; ``evidence`` says whether the GPU was seen at work."""

    directory: Path
    run: Run
    failure: Failure | None = None
    evidence: bool = False


def carry_out(
    target: Target,
    options: ProfileOptions,
    choose: Choose,
    *,
    output: Path | None = None,
    resume: Path | None = None,
    environ: Mapping[str, str] | None = None,
    listener: Listener | None = None,
    finish: Finish | None = None,
    cwd: Path | None = None,
) -> Carried:
    """Do every step of a run that is not done yet and return what it came to.

    ``output`` is the run directory (None: a new one in ``reports``), ``resume`` one that was broken off.
    ``finish`` makes the page, where the GPU was seen at work; the program runs in ``cwd`` (None: here).

    Raises:
        UsageError: ``output`` is in use, or the run to resume was another.
        ReportError: there is no run to resume, or the script cannot be read.
    """
    heard = listener or Silent()
    session = prepare(target, options, output=output, resume=resume, environ=environ, listener=heard)
    session.cwd = cwd
    try:
        session.update(status="running", error=None)
        _warn(session)
        stopped: Failure | None = None
        try:
            _steps(session, choose)
        except Stop as stop:
            stopped = stop.failure
        cause = stopped or next(iter(session.failures), None)
        evidence = _evidence(session) and not (stopped and stopped.code == "no-gpu-work")
        status = "complete" if cause is None else "incomplete" if evidence else "failed"
        session.update(status=status, error=None if cause is None else cause.as_dict())
        if evidence and finish is not None:
            record = session.begin("report")
            session.end(record, state="done", files=finish(session.directory, session.run))
        return Carried(session.directory.path, session.run, cause, evidence)
    except KeyboardInterrupt as stop:
        interrupted(session, stop, evidence=_evidence(session))
        raise
    finally:
        session.directory.close()


def prepare(
    target: Target,
    options: ProfileOptions,
    *,
    output: Path | None = None,
    resume: Path | None = None,
    environ: Mapping[str, str] | None = None,
    listener: Listener | None = None,
) -> Session:
    """Make or open the run directory, and record what will be run; nothing of the target runs.

    Raises:
        UsageError: see `carry_out`.
        ReportError: see `carry_out`.
    """
    env = os.environ if environ is None else environ
    if options.skip_nsys and not options.skip_ncu and not target.marked and target.pattern is None:
        raise UsageError(
            "without a timeline nothing says which kernel to measure",
            "give --gpu-kernel, or leave out --skip-nsys",
        )
    child = child_environment(env, keep=options.env, clean=options.clean_env)
    if resume is not None:
        check_asked(resume, read_record(resume), target, options)
    driver = cuda.driver(child.variables)
    tools = identity.tools_data(options, target.kind, env, child.variables)
    described, gpu = identity.target_data(target), identity.gpu_data(driver)
    if resume is not None:
        directory, run = RunDirectory.resume(resume)
        try:
            _check_same(resume, run, identity.identity(described, options.as_dict(), tools, gpu))
        except UsageError:
            directory.close()
            raise
        if not own(run):  # a program that lies there is not taken for the one that its source compiles to
            run = replace(run, steps=tuple(step for step in run.steps if step.name != "compile"))
    else:
        run = Run(
            created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            version=__version__,
            target=described,
            options=options.as_dict(),
            tools=tools,
            gpu=gpu,
            driver=identity.driver_data(driver),
            git=identity.git_data(target.source, child.variables),
            environment=identity.environment_data(child),
        )
        directory = RunDirectory.create(output, run_name(target, driver, env))
    heard = listener or Silent()
    return Session(directory, target, options, run, child, env, driver, heard)


def check_asked(path: Path, run: Run, target: Target, options: ProfileOptions) -> None:
    """Check that ``run``, which is to go on, was asked for ``target`` and ``options``; nothing is started.

    Raises:
        UsageError: it was asked for something else.
    """
    asked = identity.identity(identity.target_data(target), options.as_dict(), run.tools, run.gpu)
    _check_same(path, run, asked)


def _check_same(path: Path, run: Run, now: Mapping[str, Any]) -> None:
    before = identity.identity(run.target, run.options, run.tools, run.gpu)
    if changed := identity.differences(before, now):
        raise UsageError(
            f"{path} cannot go on: other than then {'is' if len(changed) == 1 else 'are'} "
            f"{' and '.join(changed)}",
            "start a new run without --resume",
            code=CHANGED,
        )


def run_name(target: Target, driver: cuda.Driver, environ: Mapping[str, str]) -> str:
    """Return the beginning of the run directory's name: kernel, parameters, GPU, rank."""
    gpu = driver.gpus[0].name.removeprefix("NVIDIA ").removeprefix("GeForce ") if driver.gpus else "no-gpu"
    rank = f"-rank{environ['RANK']}" if environ.get("RANK", "").isdigit() else ""
    params = "".join(f"-{name}={value}" for name, value in target.params.items())
    return f"{slug(target.name + params)}-{slug(gpu)}{rank}"


def _steps(session: Session, choose: Choose) -> None:
    measure.compile_source(session)
    measure.time_cleanly(session)
    if session.options.skip_nsys and session.options.skip_ncu:
        return
    measure.check_driver(session)
    tracing.trace(session)
    tracing.choose(session, choose)
    if session.chosen is not None:
        choice = session.chosen.choice
        launch: dict[str, Any] = asdict(choice.launch)
        session.update(
            launch={
                **launch,
                "duration": choice.launch.duration / 1e9,
                "ncu": list(choice.selection),
                "reasons": list(choice.reasons),
                "cautions": list(choice.cautions),
                "first_fits": session.chosen.first_fits,
                "range": session.chosen.range,
            }
        )
    capture.capture(session)


def _evidence(session: Session) -> bool:
    """Return whether the GPU was seen at work: GPU time, a traced kernel, or a captured launch."""
    timed = session.timing is not None and session.timing.is_gpu_time
    traced = session.trace is not None and len(session.trace.kernels) + len(session.trace.graphs) > 0
    return timed or traced or session.file(PROFILE).is_file()


def _warn(session: Session) -> None:
    """Say before the run what will spoil it."""
    if found := identity.profilers_in(session.target.source):
        session.note(
            f"the script mentions {', '.join(found)}: a profiler of its own takes CUPTI from nsys and ncu; "
            "switch it off for this run"
        )
    variables = session.child.variables
    if variables.get("TRITON_DISABLE_LINE_INFO") == "1":
        session.note("TRITON_DISABLE_LINE_INFO is set: Triton kernels will have no source lines")
    if variables.get("TRITON_INTERPRET") == "1":
        session.note("TRITON_INTERPRET is set: Triton kernels run on the CPU and cannot be profiled")
    if session.child.dropped:
        session.note(f"not passed on, for they look like secrets: {', '.join(session.child.dropped)}")
    session.listener.note(session.target.meaning)


def at_point(
    target: Target, options: ProfileOptions, params: Mapping[str, str]
) -> tuple[Target, ProfileOptions]:
    """Return target and options of one point of a sweep."""
    return target.at(params), replace(options, params={name: (value,) for name, value in params.items()})


# ---- What a run would execute, without executing any of it


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
