"""What belongs to a rule beside its condition, worded by ``data/rules.toml``.

For each rule: what was looked for that could speak against the finding, the metric that must move and by how
much, and the outcome that would disprove it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ncukit.diagnose.call import Call
from ncukit.diagnose.facts import Facts
from ncukit.diagnose.ledger import counter_evidence
from ncukit.diagnose.worded import Worded
from ncukit.diagnose.wording import Wording
from ncukit.model import Evidence
from ncukit.record import dataclass

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
