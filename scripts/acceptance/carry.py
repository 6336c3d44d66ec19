"""Run the steps one after another within a budget, and go on after a failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from scripts.acceptance.outcome import Outcome, Row
from scripts.acceptance.plan import Step

LEAST = 5.0
"""A step is not begun with less time [s] left than this."""
CHECKOUT = Path(__file__).resolve().parents[2]


def carry(steps: Iterable[Step], folder: Path, budget: float, told: Callable[[Row], None]) -> Iterator[Row]:
    """Yield the row of each step; what the ``budget`` [s] does not hold is "not run"."""
    end = time.monotonic() + budget
    for number, step in enumerate(steps, 1):
        left = end - time.monotonic()
        if left < LEAST:
            row = Row(step.name, "not run", note="the budget was spent")
        else:
            row = _row(step, _run(step, folder, number, min(step.limit, left)))
        told(row)
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
    paths = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
    began = time.monotonic()
    with (logs / f"{number:02}.out").open("w+") as out, (logs / f"{number:02}.err").open("w+") as err:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
            cwd=folder,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        seconds = time.monotonic() - began
        for file in (out, err):
            file.seek(0)
        return Outcome(tuple(command), code, seconds, out.read(), err.read(), run if run.exists() else None)
