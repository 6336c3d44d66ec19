"""Launches of one side against launches of another; and what lies in a folder of reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal

from ncukit.model.diagnosis import Confidence, Diagnosis, ReportFile
from ncukit.model.kernel import Kernel, Recorded, Value
from ncukit.model.notebook import Shown
from ncukit.model.run import Timing
from ncukit.record import dataclass

# ---- What lies in a folder of runs and reports: kernels as each report measured them, and what is unusable


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


# ---- Launches of one side against launches of another: rows, reasons, verdicts, gates
# Changes are percent of the base, or points where the metric is itself a percentage. A missing side is
# unknown with its reason, never a change; what two GPUs count differently is not comparable, with the
# reason.

Comparable = Literal["same", "share", "no"]
"""Same meaning on both sides; comparable as a share of its own peak; not comparable."""
Reading = Literal["better", "worse", "same", "moved", "unknown", "not-comparable"]
"""What a change says: ``same`` is within the noise, ``moved`` has no good or bad."""
Status = Literal["ok", "warn", "no", "bad"]
Trend = Literal["faster", "slower", "unchanged", "unknown"]
State = Literal["passed", "tripped", "undecided", "noise"]


@dataclass(frozen=True)
class Sample:
    """One kernel as one side measured it: the repeat of median duration, and how far all spread.

    ``launches`` are positions from 1; ``spread`` holds the smallest and largest value of each metric, where
    there are repeats; ``same_work`` is None where the work of the repeats is not known.
    """

    diagnosis: Diagnosis
    launches: tuple[int, ...]
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    repeats: int = 1
    same_work: bool | None = None

    @property
    def kernel(self) -> Kernel:
        """The launch whose values stand for all."""
        return self.diagnosis.kernel

    @property
    def duration(self) -> float | None:
        """Profiled duration [s] of one repeat."""
        return self.kernel.number("kernel_duration")


@dataclass(frozen=True)
class Side:
    """What one argument of a comparison holds: a report, a folder of repeats, a run, or a baseline."""

    label: str
    kind: Literal["report", "repeats", "run", "baseline", "kernels"]
    samples: tuple[Sample, ...]
    files: tuple[ReportFile, ...] = ()
    launches: int = 0
    recorded: Recorded = field(default_factory=Recorded)
    timing: Timing | None = None
    warnings: tuple[str, ...] = ()

    @property
    def holds_repeats(self) -> bool:
        """Whether it is a baseline in which one kernel stands for several launches of one report."""
        return self.kind == "baseline" and any(sample.repeats > 1 for sample in self.samples)

    def same_report(self, other: Side) -> bool:
        """Whether both sides are the same bytes, as where two launches of one report are compared."""
        sums = [[file.sha256 for file in side.files] for side in (self, other)]
        return bool(sums[0]) and all(sums[0]) and sums[0] == sums[1]


@dataclass(frozen=True)
class Row:
    """One metric of both sides.

    ``change`` is percent of the base, or points (``change_unit`` "pt"); infinite where the base is 0; None
    where a side is unknown or the two are not comparable, with ``reason``.  ``noise`` is what a change must
    exceed, in the same unit, and ``noise_from`` says where it comes from.  ``explains`` is the share of the
    change in duration [%] that goes with this row, by ``account``; rows overlap and do not add up.
    """

    id: str
    base: Value
    other: Value
    change: float | None = None
    change_unit: Literal["%", "pt", ""] = "%"
    reading: Reading = "unknown"
    reason: str = ""
    comparable: Comparable = "same"
    why: str = ""
    shares: tuple[float | None, float | None] = (None, None)
    """Share of its own peak [%] on each side."""
    noise: float = 0.0
    noise_from: str = ""
    explains: float | None = None
    account: str = ""

    @property
    def ratio(self) -> float | None:
        """Other over base; None where a side is unknown or the base is 0."""
        base, other = self.base.number, self.other.number
        if base is None or other is None or self.comparable == "no":
            return None
        return other / base if base else None

    @property
    def beyond_noise(self) -> bool:
        """Whether the change exceeds the noise."""
        return self.change is not None and abs(self.change) > self.noise

    @property
    def finite(self) -> float | None:
        """The change as a number that can be written; None where the base is 0."""
        return self.change if self.change is not None and math.isfinite(self.change) else None


@dataclass(frozen=True)
class Per:
    """A quantity per unit of work on both sides: ``unit`` is "s/FLOP", "byte/FLOP", ..."""

    metric: str
    per: str
    unit: str
    base: float | None
    other: float | None
    change: float | None
    """[%] of the base."""


@dataclass(frozen=True)
class Fact:
    """One fact about whether two sides can be compared, with its consequence in ``text``."""

    id: str
    name: str
    status: Status
    word: str
    text: str


@dataclass(frozen=True)
class Prediction:
    """One thing that the experiment of the base's verdict foretold; ``met`` None: open."""

    text: str
    met: bool | None
    metric: str = ""


@dataclass(frozen=True)
class LinePair:
    """A source line of both sides, matched by its text; the number is None where the line is not there.

    Shares are percent of the stall samples of that side.
    """

    text: str
    base_line: int | None
    other_line: int | None
    base_share: float | None
    other_share: float | None


@dataclass(frozen=True)
class Summary:
    """What the comparison of two samples says in words.

    ``speedup`` is base time over other time; ``cause`` an id such as "spilling", "" where none is shown.
    """

    trend: Trend
    claim: str
    deck: str = ""
    cause: str = ""
    confidence: Confidence = "low"
    grounds: str = ""
    """Why the confidence is not higher."""
    speedup: float | None = None
    evidence: tuple[str, ...] = ()
    """Ids of the rows behind the claim, the most telling first."""


@dataclass(frozen=True)
class Pair:
    """Two samples that belong together: ``matched`` says by what."""

    base: Sample
    other: Sample
    matched: str
    rows: tuple[Row, ...]
    per: tuple[Per, ...]
    facts: tuple[Fact, ...]
    summary: Summary
    predictions: tuple[Prediction, ...] = ()
    same_gpu: bool = True
    lines: tuple[LinePair, ...] = ()
    no_lines: str = ""
    """Why source lines could not be compared."""

    def __repr__(self) -> str:
        return f"<Pair {self.base.kernel.name}, {self.other.kernel.name}: {self.summary.claim}>"

    def row(self, id: str) -> Row | None:
        """Return the row of metric ``id``."""
        return next((row for row in self.rows if row.id == id), None)


@dataclass(frozen=True)
class Unmatched:
    """A sample without a counterpart, and why."""

    sample: Sample
    reason: str


@dataclass(frozen=True)
class Total:
    """A quantity of all pairs together: a sum, or a ratio of two sums, in ``unit``.

    ``pairs`` of ``of`` have it on both sides and are counted; ``change`` is percent of the base, infinite
    where the base is 0.
    """

    id: str
    unit: str
    base: float | None
    other: float | None
    change: float | None
    pairs: int
    of: int


@dataclass(frozen=True)
class Against:
    """The base against one other side; pairs come in the order of how much time they cost."""

    other: Side
    pairs: tuple[Pair, ...]
    only_base: tuple[Unmatched, ...] = ()
    only_other: tuple[Unmatched, ...] = ()
    clean: Row | None = None
    """The clean times, where both sides have one."""
    totals: tuple[Total, ...] = ()
    """All pairs together, where there are several."""


@dataclass(frozen=True)
class Outcome:
    """What one gate said of one pair: ``undecided`` counts as tripped unless it was allowed."""

    gate: str
    kernel: str
    other: str
    state: State
    message: str
    allowed: bool = False
    metric: str = ""

    @property
    def failed(self) -> bool:
        """Whether this outcome fails the comparison."""
        return self.state in ("tripped", "undecided") and not self.allowed


@dataclass(frozen=True)
class Comparison(Shown):
    """A base against one or more others, and what the gates say."""

    base: Side
    others: tuple[Against, ...]
    gates: tuple[Outcome, ...] = ()

    def __repr__(self) -> str:
        others = ", ".join(against.other.label for against in self.others)
        failed = sum(outcome.failed for outcome in self.gates)
        gates = f", gates failed: {failed} of {len(self.gates)}" if self.gates else ""
        return f"<Comparison of {self.base.label} with {others}; pairs: {len(self.pairs)}{gates}>"

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of all others."""
        return tuple(pair for against in self.others for pair in against.pairs)

    @property
    def unpaired(self) -> tuple[Against, ...]:
        """The others of which nothing was compared: neither a launch nor the clean time."""
        return tuple(against for against in self.others if not against.pairs and against.clean is None)

    @property
    def failed(self) -> bool:
        """Whether a gate failed."""
        return any(outcome.failed for outcome in self.gates)
