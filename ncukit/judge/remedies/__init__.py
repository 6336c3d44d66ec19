"""Which change an expert would try first: gates, then candidates by the share of the time that they remove.

In reading order: `launch` (what is asked of a launch), `candidate` (what a change would bring), `gates` (what
comes before any unit), the changes by kind: `grid`, `memory`, `work`, `latency`; `proposal` words the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncukit.judge.facts import Facts
from ncukit.judge.remedies import grid, latency, memory, work
from ncukit.judge.remedies.candidate import NEGLIGIBLE, Candidate, Rule
from ncukit.judge.remedies.gates import gate
from ncukit.judge.remedies.launch import Launch
from ncukit.model import Finding

RULES: tuple[Rule, ...] = (
    *(grid.more_blocks, grid.whole_waves, grid.balance_work, grid.brief_blocks, grid.smaller_blocks),
    *(memory.local, memory.off_device, memory.atomics, memory.spread_lanes, memory.requests),
    *(memory.narrow_accesses, memory.stores, memory.full_dram),
    *(work.instructions, work.full_pipe, work.divergence),
    *(latency.pipelines, latency.loads, latency.barriers, latency.chains, latency.occupancy),
)
"""Every kind of change: each yields what it would bring to a launch, or nothing where a condition fails."""
DEBUG = "debug-build"
"""The rule that sees moves instead of work."""
MOST_ALTERNATIVES = 2


def candidates(facts: Facts, findings: Sequence[Finding] = ()) -> tuple[Candidate, ...]:
    """Return the changes worth a trial, the first first; never empty.

    ``findings`` are those of the rules: of code that was built for debugging nothing else is worth a thought.
    """
    launch = Launch(facts)
    if (only := gate(launch)) is not None:
        return (only,)
    if any(finding.id == DEBUG for finding in findings):
        return (Candidate("rebuild", metric="inst_executed", to=0.5),)
    if (at_ceiling := memory.ceiling(launch)) is not None:
        return (at_ceiling,)
    found = [candidate for rule in RULES for candidate in rule(launch) if (candidate.gain or 0) >= NEGLIGIBLE]
    if not found:
        found = [candidate for candidate in work.full_unit(launch) if (candidate.gain or 0) >= NEGLIGIBLE]
    found.sort(key=lambda candidate: (-round(candidate.score, 2), candidate.rank))
    best: dict[str, Candidate] = {}
    for candidate in found:
        best.setdefault(candidate.remedy, candidate)
    return tuple(best.values())[: 1 + MOST_ALTERNATIVES] or (Candidate("collect"),)
