"""Where the issue slots went, top down: `split`.

Elapsed time of an SM is idle or working; the issue slots of a working SM issue or stay empty; empty ones are
shared out by what the resident warps waited for (states in which a warp could have issued do not count), and
each category names the resources behind it with how near they were to their ceiling.
"""

from __future__ import annotations

from dataclasses import replace

from ncukit.catalog import load
from ncukit.diagnose.facts import Facts
from ncukit.diagnose.shares import COMPUTE_UNITS
from ncukit.diagnose.waits import WORKING, Waits, states
from ncukit.model import Kernel, Value
from ncukit.model.shares import Share
from ncukit.model.split import Ceiling, Part, Split

BEHIND: dict[str, tuple[str, ...]] = {
    "memory_dependency": ("dram", "l2", "l1", "shared", "sysmem"),
    "memory_throttle": ("lsu", "l1", "shared", "xu", "fp64"),
    "execution_dependency": (),
    "pipe_busy": COMPUTE_UNITS,
    "tensor_sync": ("tensor", "shared"),
    "synchronization": (),
    "instruction_supply": ("control",),
    "other": ("l2", "dram"),
}
"""Units that a category of stalls points to."""

STALLS = "stall_cycles_global_memory_dependency"


def split(facts: Facts) -> Split:
    """Return the account of the issue slots of one launch."""
    kernel, waits = facts.kernel, facts.waits
    issued = _issued(kernel)
    missing = [] if issued is not None else ["the issue rate"]
    if waits is None:
        return Split(_idle(kernel), issued, None, (), missing=(*missing, "why warps waited"))
    parts = _parts(facts, waits, None if issued is None else issued.number)
    return Split(_idle(kernel), issued, waits.source, parts, waits.disagreement, tuple(missing))


def _idle(kernel: Kernel) -> Value | None:
    active = kernel.metrics.get("sm_active_pct")
    if active is None or active.number is None:
        return None
    return replace(active, id="sm_idle_pct", value=100 - active.number, quality="derived")


def _issued(kernel: Kernel) -> Value | None:
    busy = kernel.signals.get("issue_busy_pct")  # of the cycles in which the SM works, as on the glance
    if busy is not None and busy.number is not None:
        return busy
    rate = kernel.metrics.get("warps_issued_per_scheduler")
    if rate is None or rate.number is None:
        return None
    return replace(rate, id="issued_pct", value=100 * rate.number, unit="%", quality="derived")


def _parts(facts: Facts, waits: Waits, issued: float | None) -> tuple[Part, ...]:
    """Return the categories in which warps waited, largest first; their shares add up to 100 %."""
    waiting = {s: share for s, share in waits.shares.items() if s not in WORKING and share}
    total = sum(waiting.values())
    by_category: dict[str, dict[str, float]] = {}
    for state, share in waiting.items():
        by_category.setdefault(states()[state][0], {})[state] = 100 * share / total
    found = [
        Part(
            category,
            str(load().stalls[category]["plain"]),
            share := sum(shares.values()),
            None if issued is None else share * (100 - min(100.0, issued)) / 100,
            tuple(sorted(((states()[s][1], n) for s, n in shares.items()), key=lambda item: -item[1])),
            _ceilings(facts, category),
            str(load().stalls[category]["points_to"]),
        )
        for category, shares in by_category.items()
    ]
    return tuple(sorted(found, key=lambda part: -part.share))


def _ceilings(facts: Facts, category: str) -> tuple[Ceiling, ...]:
    units = (facts.shares.units.get(unit) for unit in BEHIND.get(category, ()))
    known: list[Share] = sorted((s for s in units if s is not None), key=lambda s: -s.percent)
    return tuple(Ceiling(s.unit.id, s.name, s.percent, s.full, s.metric) for s in known[:3])
