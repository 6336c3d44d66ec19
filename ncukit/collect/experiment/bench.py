"""Where the processes of an experiment run, and in which order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ncukit.collect.experiment.options import ExperimentOptions
from ncukit.collect.options import ProfileOptions
from ncukit.collect.session import Listener, Silent
from ncukit.errors import NcukitError
from ncukit.model.experiment import SIDES, Control, Correctness, Goal, Repetition, SideName
from ncukit.tools.environment import child_environment
from ncukit.tools.run import Completed, run


@dataclass
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
