"""Before any profiler: compile, check the result, time cleanly, look for the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.collect.directory import TIMING, read_timing
from ncukit.collect.options import ProfileOptions
from ncukit.collect.session import Session, Stop, tool_failure
from ncukit.collect.target import Target
from ncukit.errors import ReportError, ToolError
from ncukit.media import dumps
from ncukit.model.run import Timing
from ncukit.schemas.documents import read_json
from ncukit.tools import cuda, host, nvcc
from ncukit.tools.failures import Context, Failure, classify, failure
from ncukit.tools.run import Completed

PROGRAM = "program"
WRONG, UNUSABLE = 87, 88
"""Exit codes of `ncukit.workload.child`."""


def compile_source(session: Session) -> None:
    """Compile a .cu file into the run directory; the target then is the program.

    Raises:
        Stop: there is no nvcc, or it refuses the source.
    """
    if session.target.kind != "cuda":
        return
    program = session.file(PROGRAM).absolute()
    if not session.finished("compile", PROGRAM):
        try:
            tool = session.probe("nvcc")
        except ToolError as error:
            raise Stop(session.failed(session.begin("compile"), tool_failure(error))) from error
        assert session.target.source is not None
        beside = session.directory.scratch / PROGRAM
        options = nvcc.NvccOptions((session.target.source,), beside, session.options.arch)
        record = session.begin("compile", nvcc.argv(replace(options, output=program), tool))
        done, outcome = nvcc.compile_program(
            options,
            tool,
            env=session.child.variables,
            timeout=session.options.timeout,
            on_text=session.listener.text,
        )
        if outcome.path is None:
            for line in nvcc.errors(done)[:20]:
                session.listener.note(line)
            cause = outcome.failure or failure("compile-failed", Context("nvcc"))
            raise Stop(session.failed(record, cause, done))
        session.end(record, done, state="done", files=(session.directory.adopt(beside, PROGRAM),))
    session.target = session.target.built(program)


def time_cleanly(session: Session) -> None:
    """Check and time without any profiler; a program that cannot be marked just runs once.

    Raises:
        Stop: the program fails without a profiler, or its result is wrong.
    """
    if session.options.skip_time:
        session.skip("timing", "--skip-time")
        return
    if session.finished("timing", TIMING):
        session.timing = read_timing(session.directory.path)
    else:
        session.timing = _timed(session)
    session.marks = session.timing.marks


def timing_command(target: Target, options: ProfileOptions, result: Path) -> tuple[str, ...]:
    """Return the command of the clean timing: the harness, or the program as it is."""
    if not target.marked:
        return target.argv
    extra: list[str] = []
    if not options.l2_flush:
        extra.append("--no-flush")
    if options.skip_check:
        extra.append("--no-check")
    if options.repeat is not None:
        extra += ["--repeat", str(options.repeat)]
    return target.child("time", result, *extra)


def _timed(session: Session) -> Timing:
    result = session.directory.scratch / "timing-child.json"
    command = timing_command(session.target, session.options, result)
    record = session.begin("timing", command)
    done = session.execute(command, log="timing")
    data: dict[str, Any] = {}
    if session.target.marked:
        try:
            data = dict(read_json(result))
        except ReportError:
            data = {}
    if done.returncode or done.timed_out or (session.target.marked and "median" not in data):
        raise Stop(session.failed(record, why(session.target.python, done, data), done))
    if session.target.marked:
        timing = Timing.from_dict({**data, **_warmup(data), "schema": Timing.schema})
    else:
        once = done.duration
        note = "the whole program once, by the host's clock: it cannot be marked, so no GPU time is known"
        timing = Timing("process", 1, once, 0.0, once, once, (once,), notes=(note,))
    text = dumps(timing.as_dict(), indent=1) + "\n"
    session.end(
        record, done, state="done", files=(session.directory.write(TIMING, text),), notes=timing.notes
    )
    return timing


def _warmup(data: dict[str, Any]) -> dict[str, Any]:
    warm = data.get("warmup") or {}
    return {"warmup": warm.get("calls"), "settled": warm.get("settled")}


def why(python: str, done: Completed, data: Mapping[str, Any]) -> Failure:
    """Return why the program failed without any profiler."""
    context = Context("python", host.place(), facts={"python": python})
    if done.returncode == WRONG and not done.timed_out:
        said = (data.get("correctness") or {}).get("detail", "")
        return failure("wrong-result", context, **({"said": said} if said else {}))
    error = data.get("error") or {}
    if done.returncode == UNUSABLE and not done.timed_out and error:
        return Failure("app-failed", "app-failed", error["message"], error.get("hint", ""))
    found = classify(done, context) or failure("app-failed", context, exit=f"exit code {done.returncode}")
    return (
        found
        if found.hint
        else replace(found, hint="run the script alone first: it must end without an error")
    )


def check_driver(session: Session) -> None:
    """Look for the driver and a GPU before a profiler starts.

    Raises:
        Stop: there is none.
    """
    if (cause := no_driver(session.driver)) is not None:
        record = session.begin("driver")
        raise Stop(session.failed(record, cause))


def no_driver(driver: cuda.Driver) -> Failure | None:
    """Return why nothing can be profiled with this driver, None where it has a GPU."""
    if driver.code == 0 and driver.gpus:
        return None
    context = Context("ncu", host.place())
    said = driver.problem or f"cuInit: {driver.name}"
    if driver.code in (803, 804):
        return failure("driver-mismatch.app", context, said)
    found = failure("no-driver", context, said)
    if driver.code in (0, 100):
        return replace(found, message="the NVIDIA driver shows no GPU here, so nothing can be profiled")
    return found
