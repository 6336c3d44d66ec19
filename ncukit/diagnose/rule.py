"""What a rule is: a function that says what it needs, registered under an id and a family.

A rule whose needed metric is unknown or unreliable is skipped with the reason, never passed.  Every
number that a rule reads becomes the evidence of its finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ncukit.diagnose.facts import Facts
from ncukit.diagnose.shares import Share
from ncukit.diagnose.words import sentence
from ncukit.model import Finding, Skipped, Value
from ncukit.model.finding import Severity

Need = str | tuple[str, ...]
"""A metric or signal; a tuple needs any one of its members."""

FAMILIES = ("speed_of_light", "memory", "scheduler", "launch", "source", "tensor")
_SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")


@dataclass(frozen=True)
class Found:
    """What a rule found: a sentence, how much it matters, and what to do.

    ``gain`` [%] of the time ("global") or of one unit's work ("local"); None where no formula is justified.
    """

    title: str
    severity: Severity
    advice: str = ""
    detail: str = ""
    gain: tuple[float, Literal["global", "local"]] | None = None


class View:
    """The numbers of one launch as a rule reads them; what was read is kept as evidence."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.read: dict[str, Value] = {}

    def __getitem__(self, id: str) -> float:
        number = self.get(id)
        if number is None:
            raise KeyError(f"{id} is not among the rule's needs")
        return number

    def get(self, id: str) -> float | None:
        """Return ``id`` as a number that may be used, or None."""
        value = self.facts.kernel.metrics.get(id) or self.facts.kernel.signals.get(id)
        if value is None or value.number is None:
            return None
        self.read[id] = value
        return value.number

    def text(self, id: str) -> str:
        """Return the text of metric ``id``; empty when unknown."""
        value = self.facts.kernel.metrics.get(id)
        if value is None or not isinstance(value.value, str):
            return ""
        self.read[id] = value
        return value.value

    def share(self, unit: str) -> float:
        """Return how full ``unit`` was [% of peak]; 0 when the report does not say."""
        share = self.facts.shares.units.get(unit)
        if share is None:
            return 0.0
        self.get(share.metric)
        return share.percent

    def weight(self, *units: str) -> Severity:
        """Return how much trouble in ``units`` matters: by how full the fullest of them is."""
        percent = max(self.share(unit) for unit in units)
        return "high" if percent >= 75 else "medium" if percent >= 60 else "low"

    def relief(self, removable: float, *units: str) -> tuple[float, Literal["global", "local"]]:
        """Return what removing ``removable`` [%] of the work of the fullest of ``units`` can save.

        Of the time ("global") where that unit is full and the fullest of all: then time falls with its work
        until the runner-up limits.  Elsewhere only of that unit's work ("local").
        """
        ranked = self.facts.shares.ranked()
        if ranked and ranked[0].full and ranked[0].unit.id in units:
            return min(removable, headroom(ranked)), "global"
        return removable, "local"


def headroom(ranked: list[Share]) -> float:
    """Return by how much [%] the time can fall before the runner-up is as full as the first unit is now."""
    runner = next((s.fullness for s in ranked[1:] if s.unit.id != "issue"), 0.0)
    return max(0.0, 100 * (1 - runner / ranked[0].fullness))


Function = Callable[[View], Found | None]


@dataclass(frozen=True)
class Rule:
    """A registered rule."""

    id: str
    family: str
    needs: tuple[Need, ...]
    function: Function

    def missing(self, facts: Facts) -> str | None:
        """Return why the rule cannot be applied, or None."""
        for need in self.needs:
            ids = (need,) if isinstance(need, str) else need
            if all(facts.number(id) is None and not _has_text(facts, id) for id in ids):
                return f"needs {' or '.join(ids)}: {_why(facts, ids[0])}"
        return None

    def apply(self, facts: Facts) -> Finding | Skipped | None:
        """Return the finding, or why the rule was skipped, or None where there is nothing to find."""
        if reason := self.missing(facts):
            return Skipped(self.id, self.family, reason)
        view = View(facts)
        found = self.function(view)
        if found is None:
            return None
        gain, kind = found.gain or (None, None)
        metrics: Mapping[str, Value] = view.read
        return Finding(
            self.id, self.family, sentence(found.title), found.severity, found.detail, found.advice, metrics,
            gain_pct=gain, gain_kind=kind,
        )  # fmt: skip


RULES: dict[str, Rule] = {}
"""Every rule by id; filled when ``ncukit.diagnose.rules`` is imported."""


def rule(id: str, *, family: str, needs: tuple[Need, ...]) -> Callable[[Function], Function]:
    """Register the decorated function as rule ``id``; it runs only where all of ``needs`` are known.

    Raises:
        ValueError: the id is taken or the family unknown.
    """
    if id in RULES or family not in FAMILIES:
        raise ValueError(f"rule {id!r}: id taken, or no family {family!r}")

    def register(function: Function) -> Function:
        RULES[id] = Rule(id, family, needs, function)
        return function

    return register


def apply_rules(facts: Facts) -> tuple[tuple[Finding, ...], tuple[Skipped, ...]]:
    """Return the findings, largest global gain first, then by severity, and the rules that were skipped."""
    if facts.kernel.failed:
        return (), tuple(
            Skipped(r.id, r.family, f"failed launch: {facts.kernel.failed}") for r in RULES.values()
        )
    results = [r.apply(facts) for r in RULES.values()]
    findings = [r for r in results if isinstance(r, Finding)]
    findings.sort(key=_order)
    return tuple(findings), tuple(r for r in results if isinstance(r, Skipped))


def _order(finding: Finding) -> tuple[float, int, float]:
    gain = finding.gain_pct or 0.0
    rank = _SEVERITIES.index(finding.severity)
    return (-gain if finding.gain_kind == "global" else 0.0, rank, -gain)


def _has_text(facts: Facts, id: str) -> bool:
    value = facts.kernel.metrics.get(id)
    return value is not None and isinstance(value.value, str)


def _why(facts: Facts, id: str) -> str:
    value = facts.kernel.metrics.get(id) or facts.kernel.signals.get(id)
    return (value.reason if value is not None else None) or "unknown"
