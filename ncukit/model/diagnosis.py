"""What was concluded about one launch: findings, verdict, experiment, facts, advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from ncukit.model.kernel import Kernel, Recorded, Value
from ncukit.model.shares import Leaders, MemoryLinks, Roofline, Shares, Split
from ncukit.model.source import HotLine
from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.model.kernel import Series
    from ncukit.model.shares import Occupancy, OccupancyCurve
    from ncukit.model.source import SourceView


# ---- What the rules found, and the verdict

Confidence = Literal["high", "medium", "low"]
Severity = Literal["high", "medium", "low", "info"]
Basis = Literal["active", "elapsed"]
"""Which time a share of peak is a share of: that in which an SM has work, or the whole of the launch."""


@dataclass(frozen=True)
class Evidence:
    """One line of the ledger: the metric, its value and the words beside it.

    ``role`` is "limit" where the value is the share of peak [%] of what limits the launch; ``name`` is then
    that unit, and ``basis`` the time that the share counts, where the two differ.
    """

    metric: str
    value: float | int | str | None
    unit: str
    text: str
    role: Literal["", "limit"] = ""
    name: str = ""
    basis: Basis | None = None


@dataclass(frozen=True)
class Experiment:
    """One change that tests the verdict."""

    title: str
    change: str
    why: str
    expect: str
    watch: str
    disproved_if: str
    cost: str = ""
    run: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expected:
    """What must hold of the changed kernel: ``metric`` ``op`` ``value``.

    ``of`` says of what ``value`` is a factor: "base" is this launch; None means base SI units.
    ``clean_time`` among the metrics is decided by timing without a profiler alone.
    """

    metric: str
    op: Literal["<", "<=", ">", ">="]
    value: float
    of: Literal["base"] | None = None


@dataclass(frozen=True)
class CodePlace:
    """An instruction that a change is about; ``offset`` [byte] in its function, the rest where known."""

    file: str | None
    line: int | None
    offset: int


@dataclass(frozen=True)
class Trial(Experiment):
    """The experiment to try first on a launch: ``remedy`` is a word of the remedies.

    ``gain_at_most`` is the factor of the kernel's time that it can bring (1.0 or more), None for the reason
    in ``gain_reason``; ``checks`` would show that it works; ``places`` are the instructions that it is about.
    """

    remedy: str = ""
    gain_at_most: float | None = None
    gain_reason: str = ""
    checks: tuple[Expected, ...] = ()
    places: tuple[CodePlace, ...] = ()


@dataclass(frozen=True)
class Alternative:
    """A change worth a trial after the first: its bound, and why it is not the first."""

    remedy: str
    gain_at_most: float
    title: str
    why_not_first: str


@dataclass(frozen=True)
class Place:
    """A line or an instruction that a finding points at.

    ``source`` is "file:line", None without line information; ``offset`` [byte] is that of the instruction in
    its function, ``text`` the source line where it is known, else the SASS.  ``amount`` [``unit``] happened
    there, ``share`` [%] of all of it in the launch.  ``note`` says who waits for whom, where that matters.
    """

    source: str | None
    offset: int
    text: str
    amount: float
    unit: str
    share: float
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """What one rule found; ``metrics`` are the values behind it; ``source`` is "file:line" where known.

    ``advice`` is the one change to try, ``watch`` the metric that must move and by how much,
    ``disproved_if`` the outcome that would refute it.  ``against`` is what was looked for that could speak
    against it, also when it came out clean; ``formula`` says in words how the gain was estimated.
    """

    id: str
    family: str
    title: str
    severity: Severity
    detail: str = ""
    advice: str = ""
    metrics: Mapping[str, Value] = field(default_factory=dict)
    source: str | None = None
    gain_pct: float | None = None
    """Estimated gain of the whole kernel [%]; None where no formula is justified."""
    gain_kind: Literal["global", "local"] | None = None
    formula: str = ""
    against: tuple[Evidence, ...] = ()
    watch: str = ""
    disproved_if: str = ""
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Skipped:
    """A rule that could not be applied, and the reason; ``why`` leaves out the names of what it needs."""

    id: str
    family: str
    reason: str
    why: str = ""


@dataclass(frozen=True)
class Verdict:
    """What limits one launch: class and limiter in the words of the design, with evidence."""

    cls: str
    limiter: str | None
    confidence: Confidence
    claim: str
    evidence: tuple[Evidence, ...] = ()
    against: tuple[Evidence, ...] = ()
    experiment: Trial | None = None
    missing: tuple[str, ...] = ()
    """What would have to be collected to decide (more)."""
    alternatives: tuple[Alternative, ...] = ()
    """Changes worth a trial after the experiment, at most two."""


# ---- What a diagnosis knows about its launch beside findings and verdict


class LaunchFacts:
    """Units, memory, occupancy, issue slots, counters over time and source of one launch.

    This class knows nothing: every part is empty.  `ncukit.judge.diagnose` gives a diagnosis facts that
    are judged when they are first asked for, and kept.
    """

    @property
    def shares(self) -> Shares:
        """How full every unit was."""
        return Shares({}, False, False)

    @property
    def leaders(self) -> Leaders | None:
        """The units that come first, as the verdict sees them; None where no unit was measured."""
        return None

    @property
    def links(self) -> MemoryLinks:
        """What moved between the units of the memory system."""
        return MemoryLinks(())

    @property
    def occupancy(self) -> Occupancy | None:
        """What limits the resident blocks, without curves; None when unknown."""
        return None

    @property
    def occupancy_curves(self) -> tuple[OccupancyCurve, ...]:
        """What other configurations would give."""
        return ()

    @property
    def occupancy_lacks(self) -> tuple[str, ...]:
        """What the report lacks to tell the occupancy, in words."""
        return ()

    @property
    def split(self) -> Split:
        """Where the issue slots went."""
        return Split(None, None, None, ())

    @property
    def series(self) -> tuple[Series, ...]:
        """Counters over the time of the launch."""
        return ()

    @property
    def source(self) -> SourceView | None:
        """What every instruction and line cost; None where nothing was counted by instruction."""
        return None


# ---- Which layer to look at next, the command for it, and when to stop
#  The layers, from above: framework operation, CPU/GPU timeline, one kernel, source line.

ADVICE_SCHEMA = "ncukit.advice/1"

Layer = Literal["operations", "timeline", "kernel", "source"]


@dataclass(frozen=True)
class Bound:
    """How much faster the region could be at most (Amdahl's law): ``factor``, None without bound.

    ``share`` [%] of the region is what could vanish; ``of`` says what that is.
    """

    factor: float | None
    share: float
    of: str


@dataclass(frozen=True)
class Advice:
    """What to do next: look at ``layer``, or ``stop`` (then ``layer`` is where to go on, if anywhere).

    ``id`` names the branch; ``title`` and ``because`` are for people; ``commands`` are shell commands in
    order, in which words in capitals stand for what is not known; ``missing`` would make the advice surer.
    """

    id: str
    stop: bool
    layer: Layer | None
    title: str
    because: str
    commands: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    bound: Bound | None = None
    until: str = ""
    """When to stop there."""
    missing: tuple[str, ...] = field(default=())
    bound_said: bool = False
    """Whether ``because`` tells already how much faster the region would be."""


# ---- One launch with everything that was concluded about it, and the file it came from


@dataclass(frozen=True)
class ReportFile:
    """A report on disk: ``size`` [byte], ``sha256``, what was odd about reading it, and how it was made."""

    path: str
    size: int
    sha256: str
    launches: int = 0
    warnings: tuple[str, ...] = ()
    made: Recorded = field(default_factory=Recorded)


@dataclass(frozen=True)
class Diagnosis:
    """A launch, its place on the roofline, what the rules found, the verdict, and the hottest lines.

    ``facts`` hold what else is shown of the launch: units, memory, occupancy, issue slots, source.
    """

    kernel: Kernel
    roofline: Roofline
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    hot: tuple[HotLine, ...] = ()
    facts: LaunchFacts = field(default_factory=LaunchFacts, repr=False, compare=False)

    def __repr__(self) -> str:
        limit = ", ".join(filter(None, (self.verdict.cls, self.verdict.limiter)))
        return f"<Diagnosis {self.kernel.name}: {limit}, {len(self.findings)} findings>"
