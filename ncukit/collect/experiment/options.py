"""What a user can ask of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any

from ncukit.collect.options import TIMEOUT, sweep
from ncukit.errors import UsageError
from ncukit.model.experiment import Control, Direction, Goal, Prediction
from ncukit.record import dataclass

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
