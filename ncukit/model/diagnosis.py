"""One launch with everything that was concluded about it, and the file it came from."""

from __future__ import annotations

from dataclasses import field

from ncukit.model.facts import LaunchFacts
from ncukit.model.finding import Finding, Skipped, Verdict
from ncukit.model.kernel import Kernel
from ncukit.model.recorded import Recorded
from ncukit.model.roofline import Roofline
from ncukit.model.source import HotLine
from ncukit.record import dataclass


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
