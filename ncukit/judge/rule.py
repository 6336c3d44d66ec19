"""What a rule is, and what belongs to one beside its condition."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ncukit.judge.facts import Call, Facts
from ncukit.judge.ledger import counter_evidence
from ncukit.judge.wording import Worded, Wording
from ncukit.media import sentence
from ncukit.metrics.expression import OPCODES_FULL
from ncukit.model import Evidence, Finding, Place, Skipped, Value
from ncukit.model.diagnosis import Severity
from ncukit.model.shares import Share
from ncukit.model.source import ENOUGH_SAMPLES
from ncukit.quantity import brief
from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.model.source import SourceView


# ---- What belongs to a rule beside its condition, worded by ``data/rules.toml``
# For each rule: what was looked for that could speak against the finding, the metric that must move and by
# how much, and the outcome that would disprove it.

DATA = Path(__file__).resolve().parent / "data" / "rules.toml"

NO_CALL = Call("", None, "")
"""Rules word their rows without a verdict."""


STANDARD = "the change is made and the clean time improves by less than 5 % or less than its spread."
"""What disproves a finding whose own words this launch cannot fill."""


@dataclass(frozen=True)
class Trial:
    """How a finding can be tried, and what was looked for against it."""

    against: tuple[Evidence, ...] = ()
    watch: str = ""
    disproved_if: str = ""


@functools.cache
def entries() -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of ``data/rules.toml`` by rule id."""
    return Worded.of(DATA)


def trial(id: str, facts: Facts, gain: float | None) -> Trial:
    """Return how the finding of rule ``id`` can be tested on this launch; empty for what needs no test."""
    entry = entries().get(id)
    if entry is None:
        return Trial()
    wording = Wording(facts, NO_CALL, gain)
    against = {row.metric: row for row, _ in counter_evidence(entry.get("against", ()), wording)}
    return Trial(
        tuple(against.values()),
        wording.sentences(entry.get("watch", ""), entry.get("watch_otherwise", "The clean time.")),
        wording.sentences(entry.get("disproved_if", ""), STANDARD),
    )


# ---- What a rule is: a function that says what it needs, registered under an id and a family
#  A rule whose needed metric is unknown or unreliable is skipped with the reason, never passed.  Every
# number that a rule reads becomes the evidence of its finding.

Need = str | tuple[str, ...]
"""A metric or signal, or one of ``SPECIAL``; a tuple needs any one of its members."""

SPECIAL: dict[str, tuple[Callable[[Facts], bool], str]] = {
    "@breakdown": (
        lambda f: any(f.kernel.breakdowns.values()),
        "the report does not say what its throughputs are made of (section SpeedOfLight)",
    ),
    "@code": (
        lambda f: f.source is not None and any(row.text for row in f.source.rows),
        "no counters by instruction, or no SASS: section SourceCounters",
    ),
    "@samples": (
        lambda f: f.source is not None and f.source.amount(f.source.total) >= ENOUGH_SAMPLES,
        f"fewer than {ENOUGH_SAMPLES} stall samples by instruction: section SourceCounters",
    ),
    "@opcodes": (
        lambda f: bool(f.kernel.raw.instances.get(OPCODES_FULL)),
        "not collected: section InstructionStats (opcodes with their modifiers)",
    ),
}
"""Needs that are no metric: how to tell that they are there, and why they are not."""

FAMILIES = ("speed_of_light", "memory", "scheduler", "launch", "source", "tensor")
_SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")


class Gain(NamedTuple):
    """An estimated gain [%] of the time ("global") or of one section's work ("local"), and its formula."""

    percent: float
    kind: Literal["global", "local"]
    formula: str


@dataclass(frozen=True)
class Found:
    """What a rule found: a sentence, how much it matters, and what to do; and where, most important first.

    ``gain`` is None where no formula is justified.  Counter-evidence, the metric to watch and what would
    disprove the finding come from ``data/rules.toml``.
    """

    title: str
    severity: Severity
    advice: str = ""
    detail: str = ""
    gain: Gain | None = None
    places: tuple[Place, ...] = ()


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

    @property
    def source(self) -> SourceView | None:
        """What every instruction and line cost; None where nothing was counted by instruction."""
        return self.facts.source

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

    def relief(self, removable: float, *units: str) -> Gain:
        """Return what removing ``removable`` [%] of the work of the fullest of ``units`` can save.

        Of the time ("global") where that unit is full and the fullest of all: then time falls with its work
        until the runner-up limits.  Elsewhere only of that unit's work ("local").
        """
        ranked = self.facts.shares.ranked()
        if not ranked or not ranked[0].full or ranked[0].unit.id not in units:
            return Gain(removable, "local", "of this unit's own work; the unit is not what limits the launch")
        first, runner = ranked[0], _runner(ranked)
        if runner is None:
            return Gain(removable, "global", f"the share of the work of {first.name} that goes away")
        room = headroom(ranked)
        return Gain(
            min(removable, room),
            "global",
            f"the smaller of {brief(removable, '%')}, the work of {first.name} that goes away, and "
            f"{brief(room, '%')}, after which {runner.name} is as full",
        )


def _runner(ranked: list[Share]) -> Share | None:
    return next((s for s in ranked[1:] if s.unit.id != "issue"), None)


def headroom(ranked: list[Share]) -> float:
    """Return by how much [%] the time can fall before the runner-up is as full as the first unit is now."""
    runner = _runner(ranked)
    return max(0.0, 100 * (1 - (0.0 if runner is None else runner.fullness) / ranked[0].fullness))


Function = Callable[[View], Found | None]


@dataclass(frozen=True)
class Rule:
    """A registered rule."""

    id: str
    family: str
    needs: tuple[Need, ...]
    function: Function

    def missing(self, facts: Facts) -> Skipped | None:
        """Return why the rule cannot be applied, or None."""
        for need in self.needs:
            ids = (need,) if isinstance(need, str) else need
            if ids[0] in SPECIAL:
                there, reason = SPECIAL[ids[0]]
                if not there(facts):
                    return _skipped(self.id, self.family, (ids[0][1:],), reason)
            elif facts.usable.isdisjoint(ids):
                return _skipped(self.id, self.family, ids, _why(facts, ids[0]))
        return None

    def apply(self, facts: Facts) -> Finding | Skipped | None:
        """Return the finding, or why the rule was skipped, or None where there is nothing to find."""
        if (skipped := self.missing(facts)) is not None:
            return skipped
        view = View(facts)
        found = self.function(view)
        if found is None:
            return None
        gain, metrics = found.gain, view.read
        test = trial(self.id, facts, None if gain is None else gain.percent)
        return Finding(
            self.id,
            self.family,
            sentence(found.title),
            found.severity,
            found.detail,
            found.advice,
            metrics,
            next((place.source for place in found.places if place.source), None),
            None if gain is None else gain.percent,
            None if gain is None else gain.kind,
            "" if gain is None else gain.formula,
            tuple(row for row in test.against if row.metric not in metrics),
            test.watch,
            test.disproved_if,
            found.places,
        )


RULES: dict[str, Rule] = {}
"""Every rule by id; filled when ``ncukit.judge.rules`` is imported."""


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


@lru_cache(maxsize=4096)
def _skipped(rule: str, family: str, needs: tuple[str, ...], why: str) -> Skipped:
    """Return that a rule was skipped: one object for all launches of which it is true."""
    return Skipped(rule, family, f"needs {' or '.join(needs)}: {why}", why)


def _why(facts: Facts, id: str) -> str:
    value = facts.kernel.metrics.get(id) or facts.kernel.signals.get(id)
    return (value.reason if value is not None else None) or "unknown"
