"""The steps before ncu: compile, check, time cleanly; or record a region under torch's profiler."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from ncukit.errors import ReportError, ToolError, UsageError
from ncukit.files import beside
from ncukit.media import dumps
from ncukit.model.ops import Counted, Stay
from ncukit.model.run import Timing
from ncukit.record import dataclass
from ncukit.run.directory import TIMING, read_timing
from ncukit.run.options import ProfileOptions
from ncukit.run.session import Listener, Session, Silent, Stop, tool_failure
from ncukit.run.target import Target, profilers_in
from ncukit.run.tools import cuda, gpus, nsys, nvcc
from ncukit.run.tools.failures import Context, Failure, classify, failure
from ncukit.run.tools.locate import child_environment, install_command
from ncukit.run.tools.process import Completed, run
from ncukit.schemas.check import read_json
from ncukit.trace.files import read_counts, read_pyspy

# ---- Before any profiler: compile, check the result, time cleanly, look for the driver

PROGRAM = "program"
WRONG, UNUSABLE = 87, 88
"""Exit codes of `ncukit.run.workload.child`."""


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
    context = Context("python", gpus.place(), facts={"python": python})
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
    context = Context("ncu", gpus.place())
    said = driver.problem or f"cuInit: {driver.name}"
    if driver.code in (803, 804):
        return failure("driver-mismatch.app", context, said)
    found = failure("no-driver", context, said)
    if driver.code in (0, 100):
        return replace(found, message="the NVIDIA driver shows no GPU here, so nothing can be profiled")
    return found


# ---- Run a workload under torch's profiler in a child, and keep the trace; with samples of the host if
# asked

OPERATOR_CALLS = 10
"""The region runs so often unless the user says otherwise."""
SAMPLED = 0.5
"""[s] The region lasts at least so long when the host is sampled and nobody says how often it runs."""


@dataclass(frozen=True)
class Recorded:
    """A trace that was made at ``trace``; what the child says about it; what was seen of the host."""

    trace: Path
    result: Mapping[str, Any]
    settings: Mapping[str, str] = field(default_factory=dict)
    """Variables of NCCL that the program was given."""
    stays: tuple[Stay, ...] = ()
    counts: tuple[Counted, ...] = ()
    notes: tuple[str, ...] = ()


def record(
    target: Target,
    options: ProfileOptions,
    trace: Path,
    *,
    calls: int | None = None,
    host: bool = False,
    environ: Mapping[str, str] | None = None,
    listener: Listener | None = None,
) -> Recorded:
    """Run the workload of ``target`` under torch's profiler and move the trace to ``trace`` (.json.gz).

    Raises:
        UsageError: the target is no workload or function, or the trace cannot be put there.
        ToolError: the program fails.
    """
    if not target.marked:
        found = target.meaning.partition(":")[0]
        raise UsageError(
            f"{found}: torch's profiler can only be put around a workload or a function",
            "give --kernel NAME of one, or record a trace in the script and give its file",
        )
    env = os.environ if environ is None else environ
    child = child_environment(env, keep=options.env, clean=options.clean_env)
    heard = listener or Silent()
    heard.note(target.meaning)
    notes = [
        f"the script mentions {name}: only one profiler at a time sees the GPU"
        for name in profilers_in(target.source)
    ]
    with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
        work = Path(folder)
        least = ("--least", str(SAMPLED)) if host and calls is None else ()
        extra = ("--calls", str(calls or OPERATOR_CALLS), *least, *(("--watch",) if host else ()))
        written, result = work / "trace.json.gz", work / "child.json"
        command = target.child("operators", result, *extra, "--trace", str(written))
        samples, spied = work / "samples.json", nsys.find_pyspy(child.variables) if host else None
        stays: tuple[Stay, ...] = ()
        refused = f"py-spy is not installed ({install_command('host')})" if host and spied is None else ""
        if spied is not None:
            done = _run(heard, nsys.pyspy_argv(spied, samples, command), child.variables, options)
            if not (refused := nsys.refused(done, samples)):
                try:
                    stays = tuple(read_pyspy(samples))
                except ReportError as error:
                    refused = error.message.replace(str(samples), "py-spy's file")
        if spied is None or not result.is_file():
            done = _run(heard, command, child.variables, options)
        data = _checked(target, done, result, written)
        counts: tuple[Counted, ...] = ()
        if refused:
            notes.append(f"{refused}: cProfile counted the functions instead, in a run of its own")
            counted, again = work / "counts.json", work / "again.json"
            command = target.child("operators", again, *extra, "--cprofile", str(counted))
            done = _run(heard, command, child.variables, options)
            _checked(target, done, again, counted)
            counts = tuple(read_counts(counted))
        settings = {k: v for k, v in sorted(child.variables.items()) if k.startswith("NCCL_")}
        _keep(written, trace)
        return Recorded(trace, data, settings, stays, counts, tuple(notes))


def _run(
    heard: Listener, command: tuple[str, ...], variables: Mapping[str, str], options: ProfileOptions
) -> Completed:
    heard.started("operators", command)
    return run(command, env=variables, timeout=options.timeout, on_text=heard.text)


def _checked(target: Target, done: Completed, result: Path, written: Path) -> dict[str, Any]:
    """Return what the child says.

    Raises:
        ToolError: it failed.
    """
    try:
        data = dict(read_json(result))
    except ReportError:
        data = {}
    if done.returncode or done.timed_out or not data.get("closed") or not written.is_file():
        raise why(target.python, done, data).error()
    return data


def _keep(written: Path, trace: Path) -> None:
    with beside(trace) as name:
        shutil.copyfile(written, name)
