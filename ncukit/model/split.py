"""Where the issue slots of a launch went, top down: used or empty, empty by cause, cause by resource.

`ncukit.diagnose.split.split` makes it.  Shares [%] of one level add up; a level that was not measured is
empty and ``missing`` says why.
"""

from __future__ import annotations

from typing import Literal

from ncukit.model.value import Value
from ncukit.record import dataclass

ISSUE_GUARD = 0.8
"""[warp/cycle] Issue rate from which stalls cost nothing: a warp is nearly always ready (ncu's rule)."""

DISAGREE = 25.0
"""[%] Total variation from which counters and samples saw different executions (median: 2.3)."""


@dataclass(frozen=True)
class Ceiling:
    """A resource that a stall category points to, and how near it was to its ceiling [% of peak]."""

    unit: str
    label: str
    percent: float
    full: bool
    metric: str


@dataclass(frozen=True)
class Part:
    """One category of stalls: ``share`` [%] of the warp latency, by state, with the resources behind it."""

    category: str
    plain: str
    share: float
    slots: float | None
    """The same, scaled to the empty issue slots [% of all slots]."""
    states: tuple[tuple[str, float], ...]
    ceilings: tuple[Ceiling, ...]
    points_to: str


@dataclass(frozen=True)
class Split:
    """The top-down account of one launch."""

    idle: Value | None
    """Share [%] of the elapsed time in which a mean SM had no work."""
    issued: Value | None
    """Share [%] of the issue slots of working SMs that issued."""
    source: Literal["counters", "samples"] | None
    parts: tuple[Part, ...]
    agreement: float | None = None
    """How far counters and samples differ [%, total variation], where both were collected."""
    missing: tuple[str, ...] = ()
