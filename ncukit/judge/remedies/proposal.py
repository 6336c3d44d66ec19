"""A candidate as an experiment: words, place in the code, bound, what would show that it works."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence

from ncukit.judge.facts import Call, Facts
from ncukit.judge.ledger import DATA, EXPECT_NOTHING, entries, run
from ncukit.judge.remedies import candidates
from ncukit.judge.remedies.candidate import Candidate
from ncukit.judge.remedies.launch import opcode
from ncukit.judge.wording import Worded, Wording
from ncukit.model import Finding
from ncukit.model.diagnosis import Alternative, CodePlace, Expected, Trial
from ncukit.model.source import SourceView

WORTH = 0.95
"""Factor of the clean time down to which a change has not shown that it works."""
DISPROVED = "the clean time improves by less than 5 %."
PLACES = 3
NO_GAIN: Mapping[str, str] = {
    "collect": "what is in the report gives no bound",
    "time-first": "the share of the kernel in its program is not known",
    "fix-launch": "nothing was measured",
}
"""Remedies that promise nothing, and why."""
TOUCHED: Mapping[str, tuple[str, ...]] = {
    "coalesce": ("LDG", "LD", "STG", "ST"),
    "vectorize-access": ("LDG", "LD", "STG"),
    "pack-stores": ("STG", "ST"),
    "reuse-on-chip": ("LDG", "LD"),
    "register-tile": ("LDG", "LD", "LDS"),
    "vectorize-shared": ("LDS",),
    "pad-shared": ("LDS", "STS", "LDSM"),
    "swizzle-shared": ("LDS", "STS", "LDSM"),
    "more-in-flight": ("LDG", "LD"),
    "deeper-pipeline": ("SYNCS", "WARPGROUP", "LDGDEPBAR", "DEPBAR"),
    "fewer-barriers": ("BAR",),
    "fewer-integer": ("IMAD", "IADD3", "LEA", "SHF", "LOP3"),
    "privatise-atomics": ("ATOM", "ATOMG", "RED", "REDG", "ATOMS"),
    "no-local-memory": ("LDL", "STL"),
    "fix-spills": ("LDL", "STL"),
    "remove-fp64": ("DADD", "DMUL", "DFMA", "DSETP"),
    "cheaper-math": ("MUFU", "F2F", "I2F", "F2I"),
}
"""The instructions that a remedy changes."""


@functools.cache
def words() -> Mapping[str, Mapping[str, str]]:
    """Return the entries of ``data/remedies.toml`` by remedy."""
    return Worded.of(DATA / "remedies.toml")


def propose(facts: Facts, call: Call, findings: Sequence[Finding]) -> tuple[Trial, tuple[Alternative, ...]]:
    """Return the experiment to try first on a launch, and up to two others."""
    found = candidates(facts, findings)
    first = found[0]
    return _trial(first, facts, call, findings), tuple(_other(other, first) for other in found[1:])


def _trial(candidate: Candidate, facts: Facts, call: Call, findings: Sequence[Finding]) -> Trial:
    told = _told(candidate.remedy, facts, call, findings)
    gain = None if candidate.remedy in NO_GAIN else candidate.gain
    if not told["expect"]:
        told["expect"] = EXPECT_NOTHING if gain is None else f"At most {gain:.2f} times as fast."
    reason = NO_GAIN.get(candidate.remedy, "" if gain is not None else "nothing measured bounds it")
    return Trial(
        **told,
        run=run(facts),
        remedy=candidate.remedy,
        gain_at_most=gain,
        gain_reason=reason,
        checks=_checks(candidate, facts),
        places=_places(candidate.remedy, facts.source),
    )


def _other(candidate: Candidate, first: Candidate) -> Alternative:
    gain = candidate.gain or 1.0
    why = "it removes less of the time" if gain < (first.gain or gain) else "it costs more than the first"
    return Alternative(candidate.remedy, gain, words()[candidate.remedy]["title"], why)


def _told(remedy: str, facts: Facts, call: Call, findings: Sequence[Finding]) -> dict[str, str]:
    """Return the words: those of the verdict where it has some for this remedy, else those of the remedy."""
    tripped = {finding.id: finding for finding in findings}
    for entry in entries()[call.entry].get("experiment", ()):
        finding = tripped.get(entry["finding"]) if "finding" in entry else None
        known = all(facts.number(id) is not None for id in entry.get("needs", ()))
        if remedy in entry["remedies"] and known and not ("finding" in entry and finding is None):
            return _filled(entry, Wording(facts, call, None if finding is None else finding.gain_pct))
    return _filled(words()[remedy], Wording(facts, call))


def _filled(entry: Mapping[str, str], wording: Wording) -> dict[str, str]:
    """Return the words of ``entry`` with their numbers; a sentence whose number is unknown is left out."""

    def filled(text: str, otherwise: str) -> str:
        return wording.sentences(text, otherwise) if "{" in text else text

    change = entry["change"]
    return {
        "title": filled(entry["title"], entry["title"]),
        "change": change if "\n" in change else filled(change, change),
        "why": filled(entry["why"], "See the evidence above."),
        "expect": filled(entry["expect"], EXPECT_NOTHING) if "expect" in entry else "",
        "watch": filled(entry["watch"], "The clean time."),
        "disproved_if": filled(entry.get("disproved_if", DISPROVED), DISPROVED),
        "cost": entry["cost"],
    }


def _checks(candidate: Candidate, facts: Facts) -> tuple[Expected, ...]:
    """Return what must hold of the changed kernel, as factors of what was measured here."""
    if candidate.remedy in NO_GAIN or candidate.remedy == "stop":
        return ()
    found = [Expected("clean_time", "<=", WORTH, "base")]
    if candidate.metric in facts.kernel.metrics and facts.number(candidate.metric):
        found.insert(0, Expected(candidate.metric, ">=" if candidate.rises else "<=", candidate.to, "base"))
    return tuple(found)


def _places(remedy: str, view: SourceView | None) -> tuple[CodePlace, ...]:
    """Return the instructions that the change is about, those that cost most first."""
    if view is None or remedy not in TOUCHED:
        return ()
    weight: Counter[int] = Counter()
    for at, row in enumerate(view.rows):
        if opcode(row) in TOUCHED[remedy]:
            excess = (row.cost.excess_sectors or 0) + (row.cost.excess_wavefronts or 0)
            weight[at] += view.amount(row.cost) + excess + 1
        elif row.producer is not None and opcode(view.rows[row.producer]) in TOUCHED[remedy]:
            weight[row.producer] += view.amount(row.cost)
    found = []
    for at, _ in weight.most_common(PLACES):
        row = view.rows[at]
        file, line = (None, None) if row.line is None else (view.files[row.line[0]].name, row.line[1])
        found.append(CodePlace(file, line, row.offset))
    return tuple(found)
