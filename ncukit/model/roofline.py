"""Where a launch lies on the roofline."""

from __future__ import annotations

from ncukit.model.shown import Shown
from ncukit.model.value import Quality
from ncukit.record import dataclass

TOLERANCE = 1.02
"""A rate may lie this factor above its roof before something must be wrong: rounding of clocks and times."""


@dataclass(frozen=True)
class Point:
    """Work of one precision against the traffic of one memory level.

    ``flop`` [FLOP, OP or inst], ``bytes`` [byte], ``intensity`` [per byte], ``achieved``, ``attainable`` and
    ``peak`` [per second], ``bandwidth`` [byte/s].  What is unknown is None; nothing is clipped.
    """

    precision: str
    level: str
    flop: float
    bytes: float | None
    intensity: float | None
    achieved: float | None
    attainable: float | None
    peak: float | None
    bandwidth: float | None
    quality: Quality
    sources: tuple[str, ...] = ()
    roof_quality: Quality | None = None
    """Quality of peak and bandwidth; ``quality`` is that of work and traffic."""

    @property
    def share(self) -> float | None:
        """Achieved share of the attainable rate [%]."""
        if self.achieved is None or not self.attainable:
            return None
        return 100 * self.achieved / self.attainable


@dataclass(frozen=True)
class Roof:
    """One ceiling: ``kind`` "compute" [per second] or "bandwidth" [byte/s], at the clocks of the run."""

    kind: str
    name: str
    value: float
    quality: Quality
    note: str = ""
    nominal: bool = False
    """Whether it stands at the advertised clock, because that of the run is noise."""


@dataclass(frozen=True)
class Check:
    """One consistency check: ``ok`` None when it could not be made."""

    id: str
    ok: bool | None
    message: str


@dataclass(frozen=True)
class Roofline(Shown):
    """Points, the ceilings they are judged by, and the checks on both."""

    points: tuple[Point, ...] = ()
    roofs: tuple[Roof, ...] = ()
    checks: tuple[Check, ...] = ()
    missing: tuple[str, ...] = ()
    """Sentences that say which points or roofs could not be drawn, and why."""
    measured: tuple[Roof, ...] = ()
    """Ceilings that a copy or a matrix product reached on this GPU; no point is judged by them."""
