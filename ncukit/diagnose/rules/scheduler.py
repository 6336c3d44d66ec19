"""Scheduler and warp state: issue rate, eligible warps, how full a warp is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.places import listed, places
from ncukit.diagnose.rule import Found, Gain, View, rule
from ncukit.diagnose.shares import COMPUTE_UNITS
from ncukit.diagnose.steps.full import fed
from ncukit.diagnose.waits import states
from ncukit.model.finding import Severity
from ncukit.model.split import DISAGREE
from ncukit.quantity import brief

if TYPE_CHECKING:
    from ncukit.model.source import Cost

LOW_ISSUE = 0.6
"""[warp/cycle] Issue rate below which a scheduler wastes a visible part of its slots (ncu's own rule)."""

HALF_EMPTY = 24.0
"""[thread] Active threads per warp below which a quarter of the lanes is lost."""

PREDICATED = 6.0
"""[thread] Active threads per instruction that are predicated off."""


@rule("low-issue", family="scheduler", needs=("warps_issued_per_scheduler",))
def low_issue(k: View) -> Found | None:
    """A scheduler issues far less than one instruction a cycle."""
    issued = k["warps_issued_per_scheduler"]
    if issued >= LOW_ISSUE:
        return None
    rate = f"{brief(issued)} instructions a cycle" if issued else "nothing"
    eligible = k.get("warps_eligible_per_scheduler")
    warps = k.get("warps_active_per_scheduler")
    known = eligible is not None and warps is not None
    seen = f": of {brief(warps)} warps {brief(eligible)} are eligible" if known else ""
    return Found(
        f"Each scheduler issues {rate}{seen}",
        "low" if any(share.full for share in k.facts.shares.units.values()) else "medium",
        advice="More warps, or more independent instructions within each.",
        gain=Gain(100 * (1 - issued), "local", "of the issue slots, if every cycle issued an instruction"),
    )


@rule("well-fed", family="scheduler", needs=("warps_eligible_per_scheduler", "warps_issued_per_scheduler"))
def well_fed(k: View) -> Found | None:
    """More warps are ready than can issue: occupancy and latency are not the limit."""
    if fed(k.facts) is not True or k["warps_issued_per_scheduler"] < LOW_ISSUE:
        return None
    k.get("warps_per_scheduler")
    return Found(
        f"{brief(k['warps_eligible_per_scheduler'])} warps are ready for each issue slot and "
        f"{brief(100 * k['warps_issued_per_scheduler'], '%')} of the slots are used: there are enough warps",
        "info",
        advice="Fewer instructions for the same work are the lever; more occupancy is not.",
    )


@rule("stalls-disagree", family="scheduler", needs=("stall_cycles_selected", "stall_samples_selected"))
def stalls_disagree(k: View) -> Found | None:
    """Counters and samples saw different executions."""
    apart = k.facts.waits.disagreement if k.facts.waits is not None else None
    if apart is None or apart < DISAGREE:
        return None
    for state in states():
        k.get(f"stall_cycles_{state}")
        k.get(f"stall_samples_{state}")
    return Found(
        f"Stall counters and stall samples differ by {brief(apart, '%')}: the kernel did not do the same "
        "in every pass",
        "low",
        advice="Look for work that depends on timing or on what an earlier pass left behind; trust neither "
        "alone.",
    )


@rule("divergence", family="scheduler", needs=("active_threads_per_warp",))
def divergence(k: View) -> Found | None:
    """Only part of each warp's 32 threads is active."""
    threads = k["active_threads_per_warp"]
    if threads >= HALF_EMPTY:
        return None
    lost = 100 * (1 - threads / 32)
    severity: Severity = "high" if threads < 8 else "medium"
    where = places(k.source, _lost, "lane")
    return Found(
        f"{brief(threads)} of 32 threads are active in a mean warp instruction: {brief(lost, '%')} of the "
        "lanes are lost",
        severity,
        advice="Let the threads of a warp take the same branch and the same number of iterations; sort or "
        "bin the work.",
        detail=f"Of the idle lanes {listed(where)}." if where else "",
        gain=k.relief(lost, "issue", *COMPUTE_UNITS),
        places=where,
    )


def _lost(cost: Cost) -> int | None:
    """Return how many lanes had nothing to do, summed over the executed instructions."""
    if cost.instructions is None or cost.threads is None:
        return None
    return max(0, 32 * cost.instructions - cost.threads)


@rule("predication", family="scheduler", needs=("active_threads_per_warp", "predicated_on_threads_per_warp"))
def predication(k: View) -> Found | None:
    """Active threads execute instructions that are predicated off for them."""
    off = k["active_threads_per_warp"] - k["predicated_on_threads_per_warp"]
    if off < PREDICATED:
        return None
    return Found(
        f"{brief(off)} of {brief(k['active_threads_per_warp'])} active threads are predicated off in a "
        "mean instruction",
        "low",
        advice="Short branches became predicates: skip whole warps instead where the condition is uniform.",
        gain=Gain(
            100 * off / k["active_threads_per_warp"],
            "local",
            "of the lanes that are active and predicated off",
        ),
    )
