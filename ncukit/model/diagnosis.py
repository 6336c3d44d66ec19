"""One launch with everything that was concluded about it, and the file it came from."""

from __future__ import annotations

from dataclasses import dataclass

from ncukit.model.finding import Finding, Skipped, Verdict
from ncukit.model.kernel import Kernel
from ncukit.model.roofline import Roofline


@dataclass(frozen=True)
class ReportFile:
    """A report on disk: ``size`` [byte], ``sha256``, and what was odd about reading it."""

    path: str
    size: int
    sha256: str
    launches: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """A launch, its place on the roofline, what the rules found, and the verdict."""

    kernel: Kernel
    roofline: Roofline
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
