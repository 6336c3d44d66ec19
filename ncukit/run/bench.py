"""Both sides of an experiment: options, processes and their order, correctness first.

No profiler is near.  What belongs to a process but not to the measured region (import, making the case,
warming up) is timed apart.  ``workloads`` are sides in a Python file, ``commands`` whole programs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, Protocol

from ncukit.errors import NcukitError, UsageError
from ncukit.model.experiment import (
    SIDES,
    Control,
    Correctness,
    Direction,
    Goal,
    Prediction,
    Repetition,
    SideName,
)
from ncukit.record import dataclass
from ncukit.run.options import TIMEOUT, ProfileOptions, sweep
from ncukit.run.session import Listener, Silent
from ncukit.run.tools import gpus
from ncukit.run.tools.failures import Context, classify, failure
from ncukit.run.tools.locate import child_environment, redact
from ncukit.run.tools.process import Completed, run
from ncukit.run.workload.correctness import compare, tolerance_of

# ---- What a user can ask of an experiment

REPEATS = 10
"""Pairs of fresh processes, unless the user says otherwise."""
WALL = "wall_time"
"""The metric of a whole command that names none: its duration by the host's clock [s]."""
_DIRECTIONS: Mapping[str, Direction] = {
    **{"lower": "lower", "down": "lower", "higher": "higher", "up": "higher"}
}


@dataclass(frozen=True)
class ExperimentOptions:
    """Everything about an experiment besides what runs and the names of its two sides.

    ``params`` are the same on both sides; ``control`` is NAME=A,B, the parameter (or the placeholder of a
    command) that differs.  ``predictions`` belong to ``hypothesis``.  ``repeats`` are pairs of processes,
    ``samples`` the timed calls in each.  Of a ``command``: ``goals`` are numbers of its JSON output, ``same``
    are values of it that must agree on both sides.  ``tolerance`` (relative) is for results whose case
    declares none.  ``range`` is the NVTX range that metrics of a trace are of.

    Raises:
        UsageError: a value that does not exist.
    """

    params: Mapping[str, str] = field(default_factory=dict)
    command: bool = False
    control: str | None = None
    hypothesis: str = ""
    predictions: tuple[Prediction, ...] = ()
    repeats: int = REPEATS
    samples: int | None = None
    goals: tuple[Goal, ...] = ()
    same: tuple[str, ...] = ()
    tolerance: float | None = None
    skip_check: bool = False
    profile: bool = True
    gpu_kernel: str | None = None
    range: str | None = None
    l2_flush: bool = True
    timeout: float = TIMEOUT
    env: tuple[str, ...] = ()
    clean_env: bool = False
    tools: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise UsageError(f"{self.repeats} repeats compare nothing", "give --repeats 5 or more")
        if self.samples is not None and self.samples < 1:
            raise UsageError(f"{self.samples} samples time nothing", "give --samples 1 or more")
        if not self.timeout > 0:
            raise UsageError(f"a time-out of {self.timeout:g} s ends everything", "give --timeout above 0")
        if self.tolerance is not None and not 0 <= self.tolerance < float("inf"):
            raise UsageError(f"{self.tolerance:g} is no tolerance", "give --tolerance 0 or more")

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON data."""
        return asdict(self)


def control_of(baseline: str | None, variant: str | None, options: ExperimentOptions) -> Control:
    """Return the one thing that differs.

    Raises:
        UsageError: nothing differs, or more than one thing does.
    """
    if options.control is not None:
        if baseline != variant and variant is not None:
            raise UsageError(
                "two things would differ: --control, and --baseline against --variant",
                "change one thing at a time",
            )
        ((name, values),) = sweep([options.control]).items()
        if len(values) != 2:
            raise UsageError(
                f"--control {options.control} has {len(values)} values", f"write --control {name}=A,B"
            )
        if name in options.params:
            raise UsageError(f"--param {name} is the control", f"leave --param {name} out")
        return Control("parameter", name, *values)
    if baseline is None or variant is None:
        raise UsageError(
            "there is nothing to compare", "give --baseline and --variant, or --control NAME=A,B"
        )
    return Control(
        "command" if options.command else "kernel",
        "command" if options.command else "kernel",
        baseline,
        variant,
    )


def prediction(text: str) -> Prediction:
    """Return ``METRIC:lower`` or ``METRIC:higher`` as a prediction.

    Raises:
        UsageError: it is neither.

    >>> prediction("dram_bytes:lower")
    Prediction(metric='dram_bytes', direction='lower')
    """
    name, colon, direction = text.rpartition(":")
    if not colon or not name or direction not in _DIRECTIONS:
        raise UsageError(
            f"--watch {text} does not say which way", "write --watch METRIC:lower or METRIC:higher"
        )
    return Prediction(name, _DIRECTIONS[direction])


def goal(text: str) -> Goal:
    """Return ``NAME`` or ``NAME:higher`` as a goal; lower is better unless it says otherwise.

    Names that say a time are in seconds.

    >>> goal("p95_latency")
    Goal(metric='p95_latency', better='lower', unit='s')
    >>> goal("tokens_per_second:higher")
    Goal(metric='tokens_per_second', better='higher', unit='')
    """
    name, colon, direction = text.rpartition(":")
    if not colon:
        name, direction = text, "lower"
    if not name or direction not in _DIRECTIONS:
        raise UsageError(f"--metric {text} does not say which way", "write --metric NAME or NAME:higher")
    return Goal(name, _DIRECTIONS[direction], _unit(name))


def _unit(name: str) -> str:
    words = set(name.replace(".", "_").split("_"))
    timed = words & {"time", "latency", "duration", "seconds"} and not words & {"ms", "us", "ns"}
    return "s" if timed else ""


# ---- Where the processes of an experiment run, and in which order


@dataclasses.dataclass
class Bench:
    """Where processes run: their environment, a folder for their results, who hears of it."""

    options: ExperimentOptions
    scratch: Path
    listener: Listener = field(default_factory=Silent)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def __post_init__(self) -> None:
        self.child = child_environment(self.environ, keep=self.options.env, clean=self.options.clean_env)

    def execute(self, command: Sequence[str]) -> Completed:
        """Run ``command`` within the time-out."""
        return run(
            command, env=self.child.variables, timeout=self.options.timeout, on_text=self.listener.text
        )


class Sides(Protocol):
    """Both sides: what they share, whether they are right, one repetition of each, how to profile them."""

    control: Control
    goals: tuple[Goal, ...]

    def conditions(self) -> dict[str, Any]:
        """Return what both sides share."""

    def check(self, bench: Bench) -> tuple[Correctness, ...]:
        """Return whether the sides compute what they should."""

    def repeat(self, bench: Bench, side: SideName, pair: int, order: int) -> Repetition:
        """Run ``side`` in a fresh process."""

    def words(self, side: SideName) -> list[str]:
        """Return what `ncukit profile` would be given."""

    def profile_options(self, side: SideName) -> ProfileOptions:
        """Return the options with which `ncukit profile` would measure ``side``."""


def repetitions(sides: Sides, bench: Bench, note: Callable[[str], None]) -> tuple[Repetition, ...]:
    """Run all pairs; the first of a pair alternates, so that order and slow drift cancel.

    Raises:
        ToolError: a process fails.
        NcukitError: the script changed meanwhile, or the sides ran on different devices.
    """
    found: list[Repetition] = []
    before = sides.conditions()
    for pair, order in enumerate(orders(bench.options.repeats), 1):
        for side in order:
            found.append(sides.repeat(bench, side, pair, len(found) + 1))
        if sides.conditions() != before:
            raise NcukitError(
                "the script changed during the experiment", "start again", code="not-comparable"
            )
        words = ", ".join(f"{one.side} {_shown(one, sides.goals[0])}" for one in found[-2:])
        note(f"pair {pair} of {bench.options.repeats}: {words}")
    _same_device(found)
    return tuple(found)


def orders(pairs: int) -> list[tuple[SideName, SideName]]:
    """Return which side comes first in each pair.

    >>> orders(3)
    [('baseline', 'variant'), ('variant', 'baseline'), ('baseline', 'variant')]
    """
    first, second = SIDES
    return [(first, second) if pair % 2 == 0 else (second, first) for pair in range(pairs)]


def _same_device(found: Sequence[Repetition]) -> None:
    for name in ("timer", "uuid"):
        seen = {one.side: str(one.reported.get(name)) for one in found}
        every = {str(one.reported.get(name)) for one in found}
        if len(every) > 1:
            raise NcukitError(
                f"the repetitions differ in their {'GPU' if name == 'uuid' else 'clock'}: "
                f"{', '.join(sorted(every))}",
                f"both sides must run on one device (baseline {seen['baseline']}, variant {seen['variant']})",
                code="not-comparable",
            )


def _shown(one: Repetition, goal: Goal) -> str:
    return f"{one.values[goal.metric]:.4g}{f' {goal.unit}' if goal.unit else ''}"


# ---- Sides that are whole commands, which differ in one place

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
            context = Context("python", gpus.place(), facts={})
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
