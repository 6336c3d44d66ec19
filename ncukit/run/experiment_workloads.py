"""Sides that are workloads in a Python file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ncukit.errors import ReportError, UsageError
from ncukit.model.experiment import SIDES, Control, Correctness, Goal, Repetition, SideName
from ncukit.run.bench import Bench, ExperimentOptions
from ncukit.run.measure import UNUSABLE, WRONG
from ncukit.run.options import ProfileOptions
from ncukit.run.target import Target, resolve, target_data
from ncukit.run.tools import gpus
from ncukit.run.tools.failures import Context, Failure, classify, failure
from ncukit.run.tools.process import Completed
from ncukit.schemas.check import read_json

TIME = "time"
"""The metric of a workload: the median of its timed calls [s]."""


class Workloads:
    """Both sides are workloads, or one workload with two values of a parameter, in a Python file."""

    goals: tuple[Goal, ...] = (Goal(TIME),)

    def __init__(
        self, words: Sequence[str], control: Control, options: ExperimentOptions, workload: str | None = None
    ) -> None:
        """Look both sides up in the script; nothing is run.

        ``workload`` is the one whose parameter is the control (None: the only one of the script).

        Raises:
            UsageError: a side is no workload, or an option does not fit.
            ReportError: the script cannot be read.
        """
        if options.goals or options.same:
            raise UsageError(
                "--metric and --same are for whole commands", "add --end-to-end, or leave them out"
            )
        self.control, self.options, self.workload = control, options, workload
        self.targets = {side: self._target(words, side) for side in SIDES}

    def _target(self, words: Sequence[str], side: SideName) -> Target:
        of_control = {self.control.name: self.control.of(side)} if self.control.kind == "parameter" else {}
        params = {**self.options.params, **of_control}
        found = resolve(words, self.profile_options(side))
        if not found.marked:
            raise UsageError(
                f"{found.name} cannot be called: {found.meaning.partition(':')[0]}",
                "write @ncukit.workload above a function of that name; --end-to-end times whole commands",
            )
        return found.at(params)

    def profile_options(self, side: SideName) -> ProfileOptions:
        """Return the options with which `ncukit profile` would measure ``side``."""
        control, options = self.control, self.options
        params = dict(options.params)
        kernel = self.workload
        if control.kind == "parameter":
            params[control.name] = control.of(side)
        else:
            kernel = control.of(side)
        return ProfileOptions(
            kernel=kernel,
            gpu_kernel=options.gpu_kernel,
            params={name: (value,) for name, value in params.items()},
            repeat=options.samples,
            skip_check=True,
            l2_flush=options.l2_flush,
            timeout=options.timeout,
            env=options.env,
            clean_env=options.clean_env,
            tools=options.tools,
        )

    def words(self, side: SideName) -> list[str]:
        """Return what `ncukit profile` would be given."""
        target = self.targets[side]
        return [str(target.source), *target.args]

    def conditions(self) -> dict[str, Any]:
        """Return what both sides share."""
        data = target_data(self.targets["baseline"])
        return {
            "source": data["source"],
            "sha256": data["sha256"],
            "params": dict(self.options.params),
            "python": data["python"],
            "args": data["args"],
            "l2_flush": self.options.l2_flush,
        }

    def check(self, bench: Bench) -> tuple[Correctness, ...]:
        """Check both sides in one process; it also warms caches of compilers."""
        if self.options.skip_check:
            return tuple(
                Correctness(s, "not-checked", "nothing", "not asked for (--skip-check)") for s in SIDES
            )
        result = bench.scratch / "check.json"
        base = self.targets["baseline"]
        given = [w for pair in base.params.items() for w in ("--baseline-param", "=".join(pair))]
        tolerance = [] if self.options.tolerance is None else ["--tolerance", str(self.options.tolerance)]
        extra = ("--baseline", str(base.call), *given, *tolerance)
        done = bench.execute(self.targets["variant"].child("check", result, *extra))
        data = _result(result)
        if done.returncode not in (0, WRONG) or done.timed_out or "correctness" not in data:
            raise _why(done, data, self.targets["variant"]).error()
        return tuple(Correctness(**row) for row in data["correctness"])

    def repeat(self, bench: Bench, side: SideName, pair: int, order: int) -> Repetition:
        """Time ``side`` in a fresh process."""
        result = bench.scratch / f"{order}.json"
        target = self.targets[side]
        extra = ["--no-check"]
        if not self.options.l2_flush:
            extra.append("--no-flush")
        if self.options.samples is not None:
            extra += ["--repeat", str(self.options.samples)]
        done = bench.execute(target.child("time", result, *extra))
        data = _result(result)
        if done.returncode or done.timed_out or "median" not in data:
            raise _why(done, data, target).error()
        device = data.get("device") or {}
        reported = {
            "timer": data["timer"],
            "device": device.get("name"),
            "uuid": device.get("uuid"),
            "frameworks": data.get("frameworks", {}),
            "settled": (data.get("warmup") or {}).get("settled"),
            "iqr": data["iqr"],
        }
        return Repetition(
            side,
            pair,
            order,
            {TIME: data["median"]},
            data["n"],
            data.get("apart", {}),
            data["clocks"],
            reported,
        )


def _result(file: Path) -> dict[str, Any]:
    try:
        return dict(read_json(file))
    except ReportError:
        return {}


def _why(done: Completed, data: Mapping[str, Any], target: Target) -> Failure:
    """Return why a child failed."""
    error = data.get("error") or {}
    if done.returncode == UNUSABLE and not done.timed_out and error:
        return Failure("app-failed", "app-failed", error["message"], error.get("hint", ""))
    context = Context("python", gpus.place(), facts={"python": target.python})
    return classify(done, context) or failure("app-failed", context, exit=f"exit code {done.returncode}")
