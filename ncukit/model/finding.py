"""What the rules found, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ncukit.model.value import Value

Confidence = Literal["high", "medium", "low"]
Severity = Literal["high", "medium", "low", "info"]


@dataclass(frozen=True)
class Evidence:
    """One line of the ledger: the metric, its value and the words beside it."""

    metric: str
    value: float | int | str | None
    unit: str
    text: str


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
class Finding:
    """What one rule found; ``metrics`` are the values behind it; ``source`` is "file:line" where known."""

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


@dataclass(frozen=True)
class Skipped:
    """A rule that could not be applied, and the reason."""

    id: str
    family: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """What limits one launch: class and limiter in the words of the design, with evidence."""

    cls: str
    limiter: str | None
    confidence: Confidence
    claim: str
    evidence: tuple[Evidence, ...] = ()
    against: tuple[Evidence, ...] = ()
    experiment: Experiment | None = None
    missing: tuple[str, ...] = ()
    """What would have to be collected to decide (more)."""
