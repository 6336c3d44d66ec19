"""What the steps of one run share: the directory, the record, the environment, what is known so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from ncukit.collect.directory import (
    EXPORT,
    METRICS,
    PAGE,
    PROFILE,
    TIMING,
    TORCH_TRACE,
    TRACE,
    RunDirectory,
)
from ncukit.collect.options import ProfileOptions
from ncukit.collect.seal import going_on
from ncukit.collect.target import Target
from ncukit.errors import ToolError
from ncukit.model.run import Chosen, Run, StepRecord, Timing
from ncukit.model.trace import Trace
from ncukit.tools import cuda, locate
from ncukit.tools.environment import ChildEnvironment, redact_words
from ncukit.tools.failures import Failure
from ncukit.tools.probe import Probe, probe
from ncukit.tools.run import Completed, run

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
