"""The timeline of a run: nsys, or where there is none torch's profiler; then the choice of the launch."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path

from ncukit.collect.directory import EXPORT, TORCH_TRACE, TRACE
from ncukit.collect.session import Choose, Session, Stop, tool_failure
from ncukit.errors import ReportError, ToolError, UsageError
from ncukit.model.trace import Trace
from ncukit.read.nsys import read_export
from ncukit.read.torch_trace import read_torch_trace
from ncukit.schemas.documents import read_json
from ncukit.tools import host, nsys
from ncukit.tools.failures import Context, Failure, classify, failure
from ncukit.tools.nsys_export import export_sqlite
from ncukit.tools.output import stamp

CALLS, CALLS_TIME = 10, 5.0
"""The region calls run so often, or less so that it takes about this long [s]."""
NO_NSYS = ("tool-missing", "tool-too-old")


def region_calls(median: float | None) -> int:
    """Return how often the marked region calls run; ``median`` [s] is one call.

    >>> region_calls(1e-3), region_calls(2.0), region_calls(None)
    (10, 2, 10)
    """
    return CALLS if not median else max(1, min(CALLS, int(CALLS_TIME / median)))


def region_command(session: Session, result: Path) -> tuple[str, ...]:
    """Return the program for a profiler: the harness that marks the region, or the program as it is."""
    if not session.target.marked:
        return session.target.argv
    timing = session.timing
    calls = region_calls(None if timing is None else timing.median)
    warm = [] if timing is None or timing.warmup is None else ["--warmup", str(timing.warmup)]
    return session.target.child("region", result, *warm, "--calls", str(calls))


def nsys_options(session: Session, output: Path, result: Path) -> nsys.NsysOptions:
    """Return what nsys is told: only the marked region, where the profiler's switch can be thrown."""
    return nsys.NsysOptions(
        region_command(session, result),
        output,
        capture="profiler-api" if session.marks.get("profiler") else "all",
    )


def trace(session: Session) -> None:
    """Trace the region, and read the trace.

    Raises:
        Stop: the program used no GPU: nothing that follows can work.
    """
    if session.options.skip_nsys:
        session.skip("timeline", "--skip-nsys")
        return
    if session.finished("timeline", TORCH_TRACE):
        session.trace = read_torch_trace(session.file(TORCH_TRACE))
    elif session.finished("timeline", TRACE, EXPORT):
        session.trace = read_export(session.file(EXPORT), session.file(TRACE), "nsys-rep")
    else:
        try:
            session.trace = _nsys(session)
        except ToolError as error:
            cause = tool_failure(error)
            if cause.code not in NO_NSYS or not _torch_can(session):
                session.failed(session.begin("timeline"), cause)
                return
            session.note(f"{cause.message}: the timeline is from the profiler of torch instead")
            session.trace = _torch(session)
    _marks_from(session)


def _nsys(session: Session) -> Trace | None:
    tool = session.probe("nsys")
    result = session.directory.scratch / "nsys-child.json"
    options = nsys_options(session, session.directory.scratch / "timeline", result)
    command = nsys.argv(options, tool)
    record = session.begin("timeline", command)
    before = stamp(options.report)
    done = session.execute(command, log="nsys", env=options.environment)
    outcome = nsys.judge(done, options, before)
    notes = tuple(note.message for note in outcome.notes)
    if outcome.path is None:
        cause = outcome.failure or failure("stale-output.missing", Context("nsys"), path=TRACE, said="")
        if cause.code in NO_NSYS:  # its importer does not work here: as good as none
            raise cause.error()
        session.failed(record, cause, done, notes=notes)
        if cause.code == "no-gpu-work":
            raise Stop(cause)
        return None
    export = session.directory.scratch / "timeline.sqlite"
    kept = session.directory.adopt(outcome.path, TRACE)
    try:
        export_sqlite(session.file(TRACE), export, nsys=tool.path)
        found = read_export(export, session.file(TRACE), "nsys-rep")
    except (ReportError, ToolError) as error:
        cause = _unreadable(error)
        if outcome.failure is not None and cause.code == "no-gpu-work":
            cause = outcome.failure  # a program that failed before its first kernel
        session.failed(record, cause, done, files=(kept,), notes=notes)
        if cause.code == "no-gpu-work":
            raise Stop(cause) from error
        return None
    files = (kept, session.directory.adopt(export, EXPORT))
    if outcome.failure is not None:
        session.failed(record, outcome.failure, done, state="partial", files=files, notes=notes)
    else:
        session.end(record, done, state="done", files=files, notes=notes)
    return found


def _unreadable(error: ReportError | ToolError) -> Failure:
    if isinstance(error, ToolError):
        return tool_failure(error)
    if error.code == "no-gpu-kernel":
        base = failure("no-gpu-work", Context("nsys", host.place()))
        return replace(base, hint=error.hint or base.hint)
    return Failure("stale-output.unreadable", "stale-output", error.message, error.hint)


def _torch_can(session: Session) -> bool:
    """Return whether the profiler of torch can stand in: the script itself must use torch."""
    return session.target.marked and session.timing is not None and "torch" in session.timing.frameworks


def _torch(session: Session) -> Trace | None:
    result = session.directory.scratch / "torch-child.json"
    written = session.directory.scratch / "torch.json"
    timing = session.timing
    calls = region_calls(None if timing is None else timing.median)
    warm = [] if timing is None or timing.warmup is None else ["--warmup", str(timing.warmup)]
    command = session.target.child("trace", result, *warm, "--calls", str(calls), "--trace", str(written))
    record = session.begin("timeline", command)
    done = session.execute(command, log="torch")
    if done.returncode or done.timed_out or not written.is_file():
        context = Context("torch", host.place(), facts={"python": session.target.python})
        cause = classify(done, context) or failure("stale-output.missing", context, path=TORCH_TRACE, said="")
        session.failed(record, cause, done)
        return None
    packed = session.directory.scratch / TORCH_TRACE
    with written.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    try:
        found = read_torch_trace(packed)
    except ReportError as error:
        cause = _unreadable(error)
        session.failed(record, cause, done)
        if cause.code == "no-gpu-work":
            raise Stop(cause) from error
        return None
    session.end(record, done, state="done", files=(session.directory.adopt(packed, TORCH_TRACE),))
    return found


def _marks_from(session: Session) -> None:
    """Take the marks from the traced child where no clean timing told them."""
    left = session.directory.scratch / "nsys-child.json"
    if not session.marks and session.target.marked and left.is_file():
        session.marks = read_json(left).get("marks") or {}


def choose(session: Session, chooser: Choose) -> None:
    """Choose the launch that ncu is to measure, where there is a trace.

    Without a choice ncu does not run: the failure says why.
    """
    if session.trace is None:
        return
    record = session.begin("choice")
    try:
        options = session.options
        session.chosen = chooser(
            session.trace, session.target.pattern, options.allow_collective, options.range
        )
    except UsageError as error:
        session.failed(record, no_choice(error))
        return
    choice = session.chosen.choice
    for caution in choice.cautions:
        session.note(f"caution: {caution}")
    if session.target.marked and session.marks.get("nvtx") and session.chosen.range is None:
        session.note("the NVTX range is not in the trace: launches are counted without it")
    session.end(record, state="done", notes=choice.reasons)


def no_choice(error: UsageError) -> Failure:
    """Return the failure that stands for ``error`` of the chooser."""
    if error.code == "collective":
        return Failure("collective", "collective", error.message, error.hint)
    why = "graph" if error.code == "inside-graph" else "filter"
    return Failure(f"nothing-profiled.{why}", "nothing-profiled", error.message, error.hint)
