"""Steps by unit, in their order, and the walk through all steps: the first that answers decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ncukit.judge import grid
from ncukit.judge.facts import STEADY, Call, Facts, latency, unit_call
from ncukit.judge.grid import FEW_WARPS, QUIET, SHORT_LIVED, device_full, turnover
from ncukit.judge.shares import COMPUTE_UNITS, SAME, Waits, states
from ncukit.media import listed
from ncukit.model.shares import Leaders, Share, Shares

# ---- Is a unit full?

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


# ---- No unit is full, but some are between 60 and 80 %: one alone, or several together?

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


# ---- No unit is busy and the GPU is full: what do the warps wait for?

ALLOWS_MORE = 1.25
"""Warps the configuration allows over those resident: above this it is not the configuration."""

BARRIERS = 0.5
"""[%] of instructions: fewer block barriers cannot explain barrier stalls beside warp-group MMA."""

DEPENDENCY = 40.0
"""[%] of warp latency waiting for results: the chain of instructions limits."""

EMPTY_SLOTS = 40.0
"""[%] of the issue slots from which waiting is worth a look although a unit is busy."""

SCATTERED = 16.0
"""[sector/request] Half of the lanes or more go elsewhere: each access takes many passes."""

DEPENDENCIES = (
    "global_memory_dependency",
    "shared_memory_dependency",
    "fixed_latency_dependency",
    "constant_cache_miss",
)

RESOURCES = {
    "registers": "registers",
    "shared_mem": "shared memory",
    "warps": "the block size",
    "blocks": "the number of blocks an SM holds",
    "barriers": "barriers",
}


def nothing_full(f: Facts) -> bool:
    """Return whether waiting can be the limit: every unit has room, or schedulers often issue nothing."""
    issue = f.shares.get("issue")
    return f.shares.top < QUIET or (issue is not None and issue <= 100 - EMPTY_SLOTS)


def synchronisation(f: Facts) -> Call | None:
    """Barriers and fences hold most of the latency; waiting for warp-group MMA only looks like it."""
    if f.waits is None or not f.waits.matter or f.waits.of(*SYNC_STATES) <= SYNC or not nothing_full(f):
        return None
    if f.at_least("warpgroup_mma_inst", 1) and not f.at_least("inst_mix_barrier_pct", BARRIERS):
        return None
    return latency("synchronisation")


def block_turnover(f: Facts) -> Call | None:
    """Blocks end so soon that the SM is refilled too slowly."""
    if f.warp_specialised or not f.at_least("allowed_warps_per_scheduler", FEW_WARPS):
        return None
    return (
        latency("occupancy", "turnover") if turnover(f) and f.below("block_lifetime", SHORT_LIVED) else None
    )


def few_warps(f: Facts) -> Call | None:
    """Too few warps per scheduler to hide latency: by configuration, grid, or warps that leave early."""
    warps = f.number("warps_per_scheduler")
    if warps is None or warps > FEW_WARPS or f.warp_specialised or not nothing_full(f):
        return None
    allowed, launched = f.number("allowed_warps_per_scheduler"), f.number("launched_warps_per_scheduler")
    if launched is not None and allowed is not None and launched < allowed and launched <= FEW_WARPS:
        return latency("small-grid", "warps")
    if allowed is None or allowed <= max(FEW_WARPS, ALLOWS_MORE * warps):
        return latency("occupancy", resource=limiting_resources(f))
    if turnover(f):
        return latency("imbalance", "warps", cap="medium")
    return latency("occupancy", resource=limiting_resources(f), cap="medium")


def limiting_resources(f: Facts) -> str:
    """Return in words what limits the resident blocks, ties included."""
    limiter = f.kernel.metrics.get("occupancy_limiter")
    names = limiter.value.split("+") if limiter is not None and isinstance(limiter.value, str) else []
    return listed([RESOURCES.get(name, name) for name in names]) if names else "the launch configuration"


def dependency(f: Facts) -> Call | None:
    """Warps wait for results they need: loads, shared memory, arithmetic."""
    if f.waits is None or not f.waits.matter or not nothing_full(f):
        return None
    if f.waits.of(*DEPENDENCIES) < DEPENDENCY:
        return _one_state(f, f.waits)
    shares = {state: f.waits.of(state) for state in DEPENDENCIES}
    top = max(shares, key=lambda s: shares[s])
    variant = {"global_memory_dependency": "", "fixed_latency_dependency": "fixed"}.get(top, "")
    return latency("dependency", variant, state=states()[top][1])


def _one_state(f: Facts, found: Waits) -> Call | None:
    """Name the state that holds most of the latency, a queue as well; barriers were judged before."""
    state, share = found.top()
    if share < DEPENDENCY or state in (*SYNC_STATES, "misc"):
        return None
    if state == "global_queue_full":
        for kind in ("load", "store"):
            if f.at_least(f"global_{kind}_sectors_per_request", SCATTERED):
                return Call(
                    "memory-bound",
                    "l1",
                    f"memory-bound/l1/queue-{kind}s",
                    f.shares.units.get("l1"),
                    cap="medium",
                )
    return latency("dependency", "state", state=states()[state][1])


def unknown(f: Facts) -> Call:
    """Latency-bound without a cause: stalls were not collected, or none stands out."""
    if not nothing_full(f):
        return latency(None, "busy", cap="low")
    return latency(None, "" if f.waits is None else "mixed", cap="low" if f.waits is None else "medium")


# ---- The steps of the elimination, in order: the first that answers decides
# Each step is a function from `Facts` to a `Call`, or None to pass the question on.

Step = Callable[[Facts], Call | None]

STEPS: tuple[Step, ...] = (
    grid.failed,
    grid.serial,
    grid.small,
    grid.over_at_once,
    grid.empty_sms,
    debug_build,
    full_unit,
    issue_bound,
    several_or_one,
    grid.undetermined,
    grid.hot_address,
    grid.system_memory,
    synchronisation,
    block_turnover,
    few_warps,
    dependency,
    unknown,
)


def decide(facts: Facts) -> Call:
    """Return the answer of the first step that has one; the last always has."""
    for step in STEPS:
        if (call := step(facts)) is not None:
            return call
    raise AssertionError("the last step always answers")


# ---- Which unit comes first in a launch, and which comes next for a reason of its own


def leaders(facts: Facts) -> Leaders | None:
    """Return the first units of a launch as its verdict sees them; None where no unit was measured.

    >>> from ncukit.model import Kernel, RawKernel, Value
    >>> dram = Value("dram_throughput_pct", 91.5, "%")
    >>> leaders(Facts.of(Kernel("", RawKernel(0, "f", "f", "f"), {dram.id: dram}))).first.unit.id
    'dram'
    """
    return of_call(facts.shares, decide(facts))


def of_call(shares: Shares, call: Call) -> Leaders | None:
    """Return the first units as ``call`` sees them: what limits, alone or together, or the busiest."""
    ranked = by_percent(shares)
    if call.cls == "balanced":
        return Leaders(call.others[0], call.others[1], (), True)
    if call.share is None:
        if not ranked:
            return None
        return Leaders(ranked[0], ranked[1] if len(ranked) > 1 else None, (), False)
    second = next((s for s in ranked if independent(s, call.share)), None)
    others = (s for s in ranked if s.unit.id != call.share.unit.id)
    more = tuple(s for s in others if second is not None and s is not second and s.percent > second.percent)
    return Leaders(call.share, second, more, True)


def by_percent(shares: Shares) -> Sequence[Share]:
    """Return the units that can limit a kernel, largest share of peak first."""
    return sorted(shares.ranked(), key=lambda s: -s.percent)
