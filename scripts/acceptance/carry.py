"""Run the steps one after another within a budget, and go on after a failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from scripts.acceptance.outcome import Outcome, Row
from scripts.acceptance.plan import Step

PATIENCE = 10.0
"""A step that is interrupted gets so long [s] to stop the tools that it started."""
CHECKOUT = Path(__file__).resolve().parents[2]


def carry(steps: Iterable[Step], folder: Path, budget: float) -> Iterator[Row]:
    """Yield the row of each step; what the ``budget`` [s] does not hold is "not run"."""
    end = time.monotonic() + budget
    for number, step in enumerate(steps, 1):
        left = end - time.monotonic()
        if left < step.least:
            row = Row(step.name, "not run", note="the budget was spent")
        else:
            row = _row(step, _run(step, folder, number, min(step.limit, left)))
        yield row


def _row(step: Step, outcome: Outcome) -> Row:
    try:
        return Row.of(step.name, outcome, step.judge(outcome))
    except Exception as error:  # the run goes on: what a judge cannot read is itself a finding
        note = f"its result cannot be judged: {type(error).__name__}: {error}"
        return Row(
            step.name, "failed", outcome.seconds, (), note, outcome.command, outcome.code, outcome.folder
        )


def _run(step: Step, folder: Path, number: int, limit: float) -> Outcome:
    run = folder / "runs" / f"{number:02}"
    words = [word.replace("{run}", str(run)) for word in step.words]
    command = [sys.executable, *([] if step.program else ["-m", "ncukit"]), *words]
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with (
        (logs / f"{number:02}.out").open("w+", errors="replace") as out,
        (logs / f"{number:02}.err").open("w+", errors="replace") as err,
    ):
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            env=environment(os.environ),
            cwd=folder,
            start_new_session=True,
        )
        code: int | None = None
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            pass
        finally:  # also where this process is told to end
            if code is None:
                _stop(process)
        seconds = time.monotonic() - began
        for file in (out, err):
            file.seek(0)
        return Outcome(tuple(command), code, seconds, out.read(), err.read(), run if run.exists() else None)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a step, which runs elsewhere: this checkout first, no path relative to here."""
    paths = [str(CHECKOUT), *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    tools = {
        name: os.path.abspath(value)
        for name, value in environ.items()
        if name in ("NCUKIT_NCU", "NCUKIT_NSYS", "NCUKIT_NVCC") and os.sep in value
    }
    return {**environ, **tools, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))}


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a step, as Ctrl-C does: ncukit then stops its tools, and keeps what it has."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
