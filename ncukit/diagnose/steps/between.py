"""No unit is full, but some are between 60 and 80 %: one alone, or several together?"""

from __future__ import annotations

from ncukit.diagnose.call import Call, unit_call
from ncukit.diagnose.facts import Facts
from ncukit.diagnose.steps.full import BESIDE, NEAR, balanced, fed, independent, pipe_of_issue
from ncukit.diagnose.steps.grid import QUIET
from ncukit.model.shares import Share

LOOSE = 20.0
"""[points] Where the stalls speak against the first unit alone, units this close share the blame."""

AGREE = 30.0
"""[%] of warp latency in the states that a unit's queue causes: the stalls agree with the unit."""

MAIN_UNITS = frozenset({"dram", "l2", "l1", "issue"})
"""Units of which each has to be known before the busiest of those known is the busiest."""

SYNC = 40.0
"""[%] of warp latency in barriers and fences: then synchronisation is the cause, not the unit."""

SYNC_STATES = ("block_barrier", "memory_fence", "sleeping")


def several_or_one(f: Facts) -> Call | None:
    """Two or more units close together are balanced; one alone limits if the stalls agree."""
    ranked = sorted(f.shares.ranked(), key=lambda s: -s.percent)
    if ranked and ranked[0].unit.id == "issue" and fed(f) is False:
        ranked = ranked[1:]  # slots that are used while no warp waits for its turn limit nothing
    if not ranked or ranked[0].percent < QUIET:
        return None
    first = ranked[0]
    if near := _near(ranked, first, NEAR):
        return balanced(first, *near)
    if first.unit.id == "issue":
        return pipe_of_issue(f, first)
    agrees = _agrees(first, f)
    if agrees or agrees is None:
        sure = agrees or (not _near(ranked, first, LOOSE) and _all_known(f))
        return unit_call(first, cap="medium" if sure else "low")
    if f.waits is not None and f.waits.of(*SYNC_STATES) > SYNC:
        return None
    beside = _near(ranked, first, LOOSE)
    return balanced(first, *beside) if beside else None


def _near(ranked: list[Share], first: Share, distance: float) -> list[Share]:
    return [
        s for s in ranked[1:] if independent(s, first) and s.percent >= max(BESIDE, first.percent - distance)
    ]


def _all_known(f: Facts) -> bool:
    """Return whether every unit that could be as close as the first was measured."""
    return f.shares.units.keys() >= MAIN_UNITS


def _agrees(share: Share, f: Facts) -> bool | None:
    """Return whether the stalls agree that ``share`` limits; None when none were collected."""
    if share.unit.id == "dram" and f.warp_specialised:
        return False
    if f.waits is None:
        return None
    return not f.waits.matter or f.waits.of(*share.unit.waits) >= AGREE
