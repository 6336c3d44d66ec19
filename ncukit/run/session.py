"""What the steps of one run share, and the step that traces: nsys, or torch's profiler."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from ncukit.errors import ReportError, ToolError, UsageError
from ncukit.model.run import Chosen, Run, StepRecord, Timing
from ncukit.model.trace import Trace
from ncukit.run.directory import (
    EXPORT,
    METRICS,
    PAGE,
    PROFILE,
    TIMING,
    TORCH_TRACE,
    TRACE,
    RunDirectory,
    going_on,
)
from ncukit.run.options import ProfileOptions
from ncukit.run.target import Target
from ncukit.run.tools import cuda, gpus, locate, nsys
from ncukit.run.tools.capabilities import Probe, probe
from ncukit.run.tools.failures import Context, Failure, classify, failure, stamp
from ncukit.run.tools.locate import ChildEnvironment, redact_words
from ncukit.run.tools.nsys import export_sqlite
from ncukit.run.tools.process import Completed, run
from ncukit.schemas.check import read_json
from ncukit.trace.nsys import read_export
from ncukit.trace.torch_events import read_torch_trace

# ---- What the steps of one run share: the directory, the record, the environment, what is known so far

OUTPUTS = {
    "timing": (TIMING,),
    "timeline": (TRACE, EXPORT, TORCH_TRACE),
    "counters": (PROFILE,),
}
"""Files of a step: those of an earlier attempt must never be taken for those of this one."""

Choose = Callable[[Trace, str | None, bool, str | None], Chosen]
"""Chooses the launch of a trace: (trace, pattern of its name, whether collectives are allowed, range)."""


class Listener(Protocol):
    """Hears what happens; all of it may be ignored."""

    def started(self, step: str, command: Sequence[str]) -> None:
        """Hear that a step starts."""

    def text(self, text: str, whole: bool) -> None:
        """Hear a line of the running command, or what there is of it."""

    def note(self, text: str) -> None:
        """Hear a fact worth a line."""

    def ended(self, record: StepRecord) -> None:
        """Hear what a step came to."""


class Silent:
    """A listener that ignores everything."""

    def started(self, step: str, command: Sequence[str]) -> None:
        """Ignore it."""

    def text(self, text: str, whole: bool) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""

    def ended(self, record: StepRecord) -> None:
        """Ignore it."""


class Stop(Exception):
    """Nothing that follows can work: ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass
class Session:
    """One run while it is carried out."""

    directory: RunDirectory
    target: Target
    options: ProfileOptions
    run: Run
    child: ChildEnvironment
    environ: Mapping[str, str]
    driver: cuda.Driver
    listener: Listener = field(default_factory=Silent)
    cwd: Path | None = None
    """Where the program runs; None: where this process does."""
    timing: Timing | None = None
    trace: Trace | None = None
    chosen: Chosen | None = None
    marks: Mapping[str, Any] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    """What went wrong without ending the run, the first first."""
    _probes: dict[str, Probe] = field(default_factory=dict)

    def probe(self, tool: locate.Tool) -> Probe:
        """Return the tool to use.

        Raises:
            ToolError: it is missing or too old.
        """
        if tool not in self._probes:
            path = locate.find(tool, self.options.tools.get(tool), environ=self.environ).path
            self._probes[tool] = probe(tool, path, environ=self.child.variables)
        return self._probes[tool]

    def execute(self, command: Sequence[str], *, log: str, env: Mapping[str, str] | None = None) -> Completed:
        """Run ``command`` within the time-out; its output is kept in ``logs/<log>.log``."""
        variables = {**self.child.variables, **(env or {})}
        done = run(
            command, env=variables, cwd=self.cwd, timeout=self.options.timeout, on_text=self.listener.text
        )
        if done.output:
            self.directory.log(log, done.output + "\n")
        return done

    def begin(self, name: str, command: Sequence[str] = ()) -> StepRecord:
        """Record that a step starts; what an earlier attempt left is removed."""
        before = self.run.step(name)
        for file in (*OUTPUTS.get(name, ()), METRICS, PAGE):
            self.directory.remove(file)
        final, beside = str(self.directory.path), str(self.directory.scratch) if command else ""
        words = [word.replace(beside, final) if beside else word for word in command]
        shown = tuple(redact_words(words, self.environ))
        record = StepRecord(name, "planned", shown, attempts=(before.attempts if before else 0) + 1)
        self.listener.started(name, command)
        return self.put(record)

    def put(self, record: StepRecord) -> StepRecord:
        """Record ``record`` in the place of the step of that name."""
        steps = [step for step in self.run.steps if step.name != record.name]
        self.update(steps=(*steps, record))
        return record

    def end(self, record: StepRecord, done: Completed | None = None, **changes: Any) -> StepRecord:
        """Record what a step came to."""
        if done is not None:
            changes = {"exit_code": done.returncode, "seconds": done.duration, **changes}
        found = self.put(replace(record, **changes))
        self.listener.ended(found)
        return found

    def failed(
        self, record: StepRecord, cause: Failure, done: Completed | None = None, **changes: Any
    ) -> Failure:
        """Record that a step failed, and why."""
        self.end(record, done, **{"state": "failed", "failure": cause.as_dict(), **changes})
        self.failures.append(cause)
        return cause

    def skip(self, name: str, why: str) -> None:
        """Record that a step is left out on purpose."""
        self.listener.ended(self.put(StepRecord(name, "skipped", notes=(why,))))

    def note(self, text: str) -> None:
        """Record a fact worth a line, once."""
        if text not in self.run.notes:
            self.update(notes=(*self.run.notes, text))
            self.listener.note(text)

    def update(self, **changes: Any) -> None:
        """Change the record, and write it."""
        self.run = self.directory.record(replace(self.run, **changes), self.cwd)

    def finished(self, name: str, *files: str) -> bool:
        """Return whether step ``name`` was done before and its ``files`` are still as recorded."""
        record = self.run.step(name)
        if record is None or record.state not in ("done", "partial"):
            return False
        found = {file.name: file for file in record.files}
        return all(name in found and self.directory.holds(found[name]) for name in files)

    def file(self, name: str) -> Path:
        """Return the path of a file of the run."""
        return self.directory.path / name


def interrupted(session: Session, stop: KeyboardInterrupt, *, evidence: bool) -> None:
    """Record that the run was broken off, and in which step; note on ``stop`` how it goes on."""
    how = f"{going_on(session.directory.path, session.run)} goes on"
    cause = Failure("interrupted", "interrupted", "the run was interrupted", how).as_dict()
    steps = tuple(
        replace(step, state="failed", failure=cause) if step.state == "planned" else step
        for step in session.run.steps
    )
    with suppress(OSError):
        session.update(status="incomplete" if evidence else "failed", error=cause, steps=steps)
    stop.add_note(f"what is done is kept: {how}")


def tool_failure(error: ToolError) -> Failure:
    """Return the failure that an error of a tool stands for."""
    known = getattr(error, "failure", None)
    if isinstance(known, Failure):
        return known
    return Failure(error.code, error.code, error.message, error.hint)


# ---- The timeline of a run: nsys, or where there is none torch's profiler; then the choice of the launch

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
        base = failure("no-gpu-work", Context("nsys", gpus.place()))
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
        context = Context("torch", gpus.place(), facts={"python": session.target.python})
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
