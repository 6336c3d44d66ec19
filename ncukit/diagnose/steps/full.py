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

READY = 0.5
"""Share of the resident warps that is enough where fewer than `ELIGIBLE` could be ready."""

BESIDE = 50.0
"""[%] A unit below this is not busy, however close it is to the first."""

LEADS = 10.0
"""[points] A pipe this far ahead of the next is what the instructions are for."""

BEHIND = 10.0
"""[points] A pipe this close to the issue slots may be what fills them."""

QUEUE, QUEUE_OF_LSU = 10.0, 15.0
"""[%] of warp latency in front of a pipe, or of load/store issue, from which warps queue for it."""

THROTTLES = frozenset({"math_pipe_busy", "global_queue_full", "shared_queue_full", "texture_queue_full"})
"""States of a warp that waits in front of a pipe."""

MIXES = {"fp32": "inst_mix_fp32_pct", "int": "inst_mix_integer_pct", "fp16": "inst_mix_fp16_pct"}
MAINLY = 50.0
"""[%] of the instructions from which a kind of them names the work."""

MOVED_AT_LEAST = 10_000.0
"""[inst] Fewer executed instructions are an empty kernel: MOV and EXIT, whatever the build."""

INSTRUCTIONS = 30.0
"""[inst] Fewer of each warp are start and end of any kernel."""


def debug_build(f: Facts) -> Call | None:
    """A debug build looks pipe-bound or latency-bound; nothing about it holds for the optimised code."""
    return latency("dependency", "debug") if is_debug(f) and not device_full(f) else None


def is_debug(f: Facts) -> bool:
    """Return whether the code was built without optimisation."""
    return f.at_least("inst_mix_mov_pct", MOSTLY_MOVES) and not _empty(f)


def _empty(f: Facts) -> bool:
    """Return whether warps execute so few instructions that MOV and EXIT are most of them."""
    executed, warps, blocks = (f.number(id) for id in ("inst_executed", "warps_per_block", "grid_size"))
    if executed is None:
        return False
    each = executed / (warps * blocks) if warps and blocks else None
    return executed < MOVED_AT_LEAST or (each is not None and each < INSTRUCTIONS)


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


def fed(f: Facts) -> bool | None:
    """Return whether warps wait for their turn to issue, as far as so many can; None when unknown."""
    eligible, resident = f.number("warps_eligible_per_scheduler"), f.number("warps_per_scheduler")
    if eligible is None:
        return None
    return eligible >= (ELIGIBLE if resident is None else min(ELIGIBLE, READY * resident))


def issue_bound(f: Facts) -> Call | None:
    """Issue slots mostly used and warps waiting for their turn: pipe or mix names the work."""
    issue = f.shares.units.get("issue")
    if issue is None or not issue.full:
        return None
    if issue.percent < CERTAIN and (ready := fed(f)) is not True:
        others = [
            s
            for s in f.shares.ranked()
            if independent(s, issue) and s.percent >= max(BESIDE, issue.percent - NEAR)
        ]
        return None if ready is False else balanced(issue, *others) if others else pipe_of_issue(f, issue)
    return pipe_of_issue(f, issue)


def pipe_of_issue(f: Facts, issue: Share) -> Call:
    """Return the compute-bound call of a launch whose issue slots are used.

    A pipe is named where it is nearly as full as the issue slots and warps queue for it, or where it is far
    ahead of the others; else the issue slots are, with what fills them.
    """
    known = (f.shares.units.get(unit) for unit in (*COMPUTE_UNITS, "lsu"))
    pipes = sorted((s for s in known if s is not None and s.resolved), key=lambda s: -s.percent)
    if not pipes:
        return unit_call(issue, cap="medium")
    best = pipes[0]
    close = [s for s in pipes if best.percent - s.percent < LEADS]
    single = next((s for s in close if f.at_least(MIXES.get(s.unit.id, ""), MAINLY)), None)
    if len(close) == 1 or (single is not None and single.unit.id == "fp32"):
        return _of_pipe(single or best, issue)
    queued = [s for s in close if issue.percent - s.percent <= BEHIND and _queues(s, f)]
    if queued:
        return _of_pipe(queued[0], issue)
    if single is not None:
        return Call(str(issue.unit.cls), single.unit.limiter, "compute-bound/issue", issue, (single,))
    return Call(str(issue.unit.cls), None, "compute-bound/issue", issue)


def _of_pipe(pipe: Share, issue: Share) -> Call:
    call = unit_call(pipe)
    return Call(call.cls, call.limiter, call.entry, pipe, (issue,))


def _queues(pipe: Share, f: Facts) -> bool:
    """Return whether warps wait in front of ``pipe``."""
    if f.waits is None:
        return False
    states = [state for state in pipe.unit.waits if state in THROTTLES]
    return f.waits.of(*states) >= (QUEUE_OF_LSU if pipe.unit.id == "lsu" else QUEUE)
