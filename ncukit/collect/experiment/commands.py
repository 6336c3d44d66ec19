"""Sides that are whole commands, which differ in one place."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.collect.experiment.bench import Bench
from ncukit.collect.experiment.options import WALL, ExperimentOptions
from ncukit.collect.options import ProfileOptions
from ncukit.errors import NcukitError, UsageError
from ncukit.model.experiment import SIDES, Control, Correctness, Goal, Repetition, SideName
from ncukit.tools import host
from ncukit.tools.environment import redact
from ncukit.tools.failures import Context, classify, failure
from ncukit.tools.run import Completed
from ncukit.workload.correct import compare, tolerance_of

APART = ("import_time", "setup_time", "compile_time", "capture_time", "warmup_time")
"""Numbers of a command's JSON [s] that are no part of what it measures."""


class Commands:
    """Both sides are whole commands that differ in one word; numbers come from the JSON they print."""

    def __init__(self, template: str, control: Control, options: ExperimentOptions) -> None:
        """Put the control into ``template``: at ``{}``, or at ``{NAME}`` of --control NAME=A,B.

        Raises:
            UsageError: there is no such place, or no command is left.
        """
        self.control, self.options, self.template = control, options, template
        self.goals = options.goals or (Goal(WALL),)
        hole = f"{{{control.name}}}" if control.kind == "parameter" else "{}"
        if hole not in template:
            raise UsageError(
                f"the command has no place for the control: {hole} is not in {template!r}",
                f"write {hole} where the sides differ",
            )
        self.commands = {side: tuple(self._words(side, hole)) for side in SIDES}
        self._primed: dict[SideName, tuple[Completed, Mapping[str, Any]]] = {}

    def _words(self, side: SideName, hole: str) -> list[str]:
        text = self.template.replace(hole, self.control.of(side))
        for name, value in self.options.params.items():
            text = text.replace(f"{{{name}}}", value)
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"{text} is not a command: {error}", "check its quotes") from error
        if not words:
            raise UsageError("the command is empty", "write --end-to-end 'PROGRAM ARGUMENT {}'")
        return words

    def profile_options(self, side: SideName) -> ProfileOptions:
        """Return the options with which `ncukit profile` would trace ``side``."""
        options = self.options
        return ProfileOptions(
            gpu_kernel=options.gpu_kernel,
            skip_time=True,
            skip_ncu=options.gpu_kernel is None,
            timeout=options.timeout,
            env=options.env,
            clean_env=options.clean_env,
            tools=options.tools,
        )

    def words(self, side: SideName) -> list[str]:
        """Return what `ncukit profile` would be given."""
        return list(self.commands[side])

    def conditions(self) -> dict[str, Any]:
        """Return what both sides share."""
        return {
            "command": redact(self.template),
            "params": dict(self.options.params),
            "working_directory": Path.cwd().name,
        }

    def check(self, bench: Bench) -> tuple[Correctness, ...]:
        """Run each side once, which also warms caches up, and compare what they say."""
        for side in SIDES:
            self._primed[side] = self._run(bench, side)
        if not self.options.same:
            why = "no value of its output must agree (--same NAME)"
            return tuple(Correctness(side, "not-checked", "nothing", why) for side in SIDES)
        return tuple(self._agree(name) for name in self.options.same)

    def _agree(self, name: str) -> Correctness:
        values = {side: _at(self._primed[side][1], name) for side in SIDES}
        if missing := [side for side in SIDES if values[side] is None]:
            raise NcukitError(
                f"the {missing[0]} prints no {name!r}",
                _hint(self._primed[missing[0]][1]),
                code="metric-missing",
            )
        declared = self._primed["baseline"][1].get("dtype")
        tolerance = self.options.tolerance
        if tolerance is None and isinstance(declared, str):
            tolerance = tolerance_of(declared)
        found = compare(_array(values["variant"]), _array(values["baseline"]), tolerance)
        return Correctness(
            "variant",
            "passed" if found.passed else "failed",
            f"the baseline's {name}",
            found.detail,
            found.tolerance,
            found.error,
            found.elements,
        )

    def repeat(self, bench: Bench, side: SideName, pair: int, order: int) -> Repetition:
        """Run ``side`` once more."""
        done, data = self._run(bench, side)
        values = {WALL: done.duration}
        for goal in self.goals:
            if goal.metric != WALL:
                values[goal.metric] = _number(data, goal.metric, side)
        apart = {
            name.removesuffix("_time"): float(data[name])
            for name in APART
            if name not in values and isinstance(data.get(name), int | float)
        }
        reported = {
            name: value
            for name, value in data.items()
            if name not in (*values, *APART) and isinstance(value, str | int | float | bool)
        }
        return Repetition(side, pair, order, values, apart=apart, reported=reported)

    def _run(self, bench: Bench, side: SideName) -> tuple[Completed, Mapping[str, Any]]:
        done = bench.execute(self.commands[side])
        if done.returncode or done.timed_out:
            context = Context("python", host.place(), facts={})
            cause = classify(done, context) or failure(
                "app-failed", context, exit=f"exit code {done.returncode}"
            )
            raise replace(cause, message=f"the {side} failed: {cause.message}").error()
        data = _json(done.stdout)
        if data is None and (self.options.same or any(goal.metric != WALL for goal in self.goals)):
            raise NcukitError(
                f"the {side} prints no JSON object",
                "let it print its numbers as one JSON object on the last line of its output",
                code="metric-missing",
            )
        return done, data or {}


def _json(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a program printed: all of its output, or its last line that is one."""
    for part in (text, *reversed(text.splitlines())):
        if part.lstrip().startswith("{"):
            try:
                data = json.loads(part)
            except (ValueError, RecursionError):
                continue
            if isinstance(data, dict):
                return data
    return None


def _at(data: Mapping[str, Any], name: str) -> Any:
    """Return the value at a name, whose dots lead into objects."""
    if name in data:
        return data[name]
    found: Any = data
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _number(data: Mapping[str, Any], name: str, side: SideName) -> float:
    value = _at(data, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        said = "prints no" if value is None else f"says {value!r:.40} for"
        raise NcukitError(f"the {side} {said} {name!r}", _hint(data), code="metric-missing")
    return float(value)


def _hint(data: Mapping[str, Any]) -> str:
    return f"its JSON holds: {', '.join(sorted(data)) or 'nothing'}; a metric is a number above 0"


def _floating(value: Any) -> bool:
    if isinstance(value, list):
        return any(_floating(part) for part in value)
    return isinstance(value, float)


def _array(value: Any) -> Any:
    """Return a list of floating-point numbers as an array: those near 0 are judged by the others' size."""
    if not (isinstance(value, list) and _floating(value)):
        return value
    import numpy

    try:
        return numpy.asarray(value, dtype=float)
    except (TypeError, ValueError):  # not numbers alone, or of uneven lengths
        return value
