"""What the rules found, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ncukit.model.value import Value
from ncukit.record import dataclass

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
    experiment: Experiment | None = None
    missing: tuple[str, ...] = ()
    """What would have to be collected to decide (more)."""
