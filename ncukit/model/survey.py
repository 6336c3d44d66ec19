"""What lies in a folder of runs and reports: kernels as each report measured them, and what is unusable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from ncukit.model.kernel import Kernel
from ncukit.record import dataclass


@dataclass(frozen=True)
class Origin:
    """A report: its ``path``, its ``name`` inside the folder, and what a run directory around it records.

    ``time`` is that of the run where ``recorded``, else that in the report, and of the file where it
    is ``of_file``.  ``page`` is the HTML page beside it;
    ``revision`` the git revision of the script, ``modified`` whether the script differed from it;
    ``clean`` [s] is the median without a profiler; ``copies`` names the other files with the same bytes.
    """

    path: str
    name: str
    time: datetime
    recorded: bool = False
    page: str | None = None
    revision: str | None = None
    modified: bool = False
    params: Mapping[str, object] = field(default_factory=dict)
    clean: float | None = None
    copies: tuple[str, ...] = ()
    of_file: bool = False


@dataclass(frozen=True)
class Measured:
    """All launches of one kernel in one report: ``kernel`` and verdict are those of the longest.

    ``durations`` [s] are of the launches where it is known; ``limits`` is (class, limiter) -> their time [s].
    """

    origin: Origin
    kernel: Kernel
    gpu: str | None
    cls: str
    limiter: str | None
    confidence: str
    grid: str | None
    block: str | None
    launches: int
    durations: tuple[float, ...]
    limits: Mapping[tuple[str, str | None], float]
    synthetic: bool = False

    @property
    def total(self) -> float:
        """Profiled time of all launches together [s]; an unknown one counts as none."""
        return sum(self.durations)


@dataclass(frozen=True)
class Unusable:
    """A file or run that adds no launch, and why; ``page`` is the HTML page beside it."""

    name: str
    reason: str
    page: str | None = None


@dataclass(frozen=True)
class Survey:
    """Everything found below ``folder``; ``datasets`` are the names of datasets that rows were taken from."""

    folder: str
    measured: tuple[Measured, ...]
    unusable: tuple[Unusable, ...] = ()
    reports: int = 0
    runs: int = 0
    datasets: tuple[str, ...] = ()
