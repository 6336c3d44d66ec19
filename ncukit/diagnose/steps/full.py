"""Is a unit full?"""

from __future__ import annotations

from ncukit.diagnose.call import Call, latency, unit_call
from ncukit.diagnose.facts import STEADY, Facts
from ncukit.diagnose.shares import COMPUTE_UNITS, SAME
from ncukit.diagnose.steps.grid import device_full
from ncukit.model.shares import Share

CERTAIN = 80.0
"""[%] From here on one full unit is enough, whatever the others read."""

NEAR = 12.0
"""[points] Two independent units this close to each other limit together."""

SHARED_LIMIT = 10.0
"""[points] L1 and issue both above `CERTAIN` and this close: builds at 53 and 91 % of L1 ran equally long."""

MOSTLY_MOVES = 40.0
"""[%] MOV instructions above this are unoptimised code (measured: 54 % in a debug build)."""

ELIGIBLE = 2.0
"""[warp] Eligible warps per scheduler from which a high issue rate means that issue itself limits."""


def debug_build(f: Facts) -> Call | None:
    """A debug build looks pipe-bound or latency-bound; nothing about it holds for the optimised code."""
    return latency("dependency", "debug") if is_debug(f) and not device_full(f) else None


def is_debug(f: Facts) -> bool:
    """Return whether the code was built without optimisation."""
    return f.at_least("inst_mix_mov_pct", MOSTLY_MOVES)


def full_unit(f: Facts) -> Call | None:
    """Name the fullest unit; two at once below `CERTAIN` are balanced."""
    candidates = [s for s in f.shares.ranked() if s.unit.id != "issue" and _counts(s, f)]
    if not candidates:
        return None
    best = _named(candidates, f)
    issue = f.shares.units.get("issue")
    if (
        best.unit.id in ("l1", "shared")
        and issue is not None
        and issue.percent >= CERTAIN
        and best.percent - issue.percent <= SHARED_LIMIT
    ):
        return balanced(best, issue)
    if all(s.percent < CERTAIN for s in candidates):
        near = [
            s
            for s in f.shares.ranked()
            if independent(s, best) and s.percent >= max(60.0, best.percent - NEAR)
        ]
        if near:
            return balanced(best, *near)
    return unit_call(best)


def _counts(share: Share, f: Facts) -> bool:
    if not share.full:
        return False
    steady = not f.below("kernel_duration", STEADY)
    return share.unit.id != "dram" or steady or share.percent >= CERTAIN


def _named(candidates: list[Share], f: Facts) -> Share:
    """Return the fullest unit; load/store issue before the L1 data stage when both read the same."""
    best = candidates[0]
    lsu = f.shares.units.get("lsu")
    if (
        best.unit.id in ("l1", "shared")
        and lsu is not None
        and lsu.full
        and lsu.percent >= best.percent - SAME
    ):
        return lsu
    return best


def independent(a: Share, b: Share) -> bool:
    """Return whether ``a`` being busy is more than a consequence of ``b`` being busy."""
    if a.unit.id == b.unit.id:
        return False
    pair = {a.unit.id, b.unit.id}
    if pair == {"dram", "l2"}:  # what DRAM delivers also passes L2
        return (a if a.unit.id == "l2" else b).percent > (b if a.unit.id == "l2" else a).percent
    groups = (
        {"l1", "shared", "lsu", "memory"},
        {"issue", "sm", *COMPUTE_UNITS},
        {"memory", "dram", "l2"},
        {"sm", "lsu"},
    )
    same = any(pair <= group for group in groups)
    return not same or ("issue" not in pair and "sm" not in pair and pair <= set(COMPUTE_UNITS))


def balanced(*shares: Share) -> Call:
    """Return the call for several units that are busy together."""
    ordered = sorted(shares, key=lambda s: -s.percent)
    return Call("balanced", None, "balanced", ordered[0], tuple(ordered), cap="medium")


def issue_bound(f: Facts) -> Call | None:
    """Issue slots mostly used and warps waiting for their turn: the busiest pipe names the work."""
    issue = f.shares.units.get("issue")
    if issue is None or not issue.full:
        return None
    if issue.percent < CERTAIN and f.below("warps_eligible_per_scheduler", ELIGIBLE):
        return None
    return pipe_of_issue(f, issue)


def pipe_of_issue(f: Facts, issue: Share) -> Call:
    """Return the compute-bound call of a launch whose issue slots are used: by its busiest pipe."""
    known = (f.shares.units.get(unit) for unit in (*COMPUTE_UNITS, "lsu"))
    pipes = [s for s in known if s is not None and s.resolved]
    if not pipes:
        return unit_call(issue, cap="medium")
    best = max(pipes, key=lambda s: s.percent)
    call = unit_call(best)
    return Call(call.cls, call.limiter, call.entry, best, (issue,))
