"""Waits that nothing hides: by who produces what is waited for."""

from __future__ import annotations

from collections.abc import Iterator

from ncukit.judge.remedies.candidate import Candidate
from ncukit.judge.remedies.launch import LOADS, Launch

QUIET = 0.6
"""Busiest unit up to which waiting, not work, takes the time."""
IDLE_ISSUE = 0.5
"""Share of issue slots up to which waits cost time."""
MATTERS = 0.25
"""Share of the waiting samples from which a cause is worth a change."""
HIDDEN = 0.85
"""Part of a wait for loads that earlier loads can hide: the first of each chain stays."""
STAGES = 0.5
"""Part of the time that more stages can hide: the data itself must come."""
FEW_WARPS = 0.35
"""Theoretical occupancy up to which more warps are a candidate."""


def pipelines(launch: Launch) -> Iterator[Candidate]:
    """Yield more stages where consumers wait for a barrier of data or for the MMA they have just issued."""
    if not launch.pipelined:
        return
    behind = launch.waits_for("SYNCS", "UTMALDG", "LDGSTS", "UBLKCP", states=("long_scoreboard",))
    groups = sum(
        v for (state, cause), v in launch.waits.items() if state == "barrier" and cause.endswith("GMMA")
    )
    groups += launch.stalled("tensor_group_wait")
    waiting = max(behind, groups, launch.stalled("global_memory_dependency") if launch.sampled else 0.0)
    if waiting >= MATTERS and launch.busiest < 0.8:
        left = max(launch.fullness("tensor"), launch.fullness("dram"), launch.unit("l2"))
        yield Candidate(
            "deeper-pipeline", min(waiting, STAGES), left, 2, "stall_share_memory_dependency_pct", 0.8
        )


def loads(launch: Launch) -> Iterator[Candidate]:
    """Yield more loads in flight where warps wait for global loads, few are eligible and units are quiet."""
    if launch.pipelined or (launch.issue or 0) >= IDLE_ISSUE or launch.busiest > QUIET:
        return
    if launch.eligible is not None and launch.eligible >= 1:
        return
    waiting = launch.waits_for(*LOADS) if launch.sampled else launch.stalled("global_memory_dependency")
    if waiting >= MATTERS and launch.rounds >= 1:
        yield Candidate(
            "more-in-flight",
            waiting * HIDDEN,
            launch.issue or 0.0,
            1,
            "stall_share_memory_dependency_pct",
            0.8,
        )


def barriers(launch: Launch) -> Iterator[Candidate]:
    """Yield longer blocks of work where a barrier waits for one polling warp, else fewer barriers."""
    waiting = launch.stalled("block_barrier")
    if launch.pipelined or waiting < 0.3 or launch.busiest > 0.8:
        return
    left = max(launch.fullness("dram"), launch.unit("lsu"), launch.issue or 0.0)
    polled = any("STRONG" in row.opcode for row in launch.rows if row.opcode.startswith("LD"))
    if polled:
        yield Candidate("more-work-per-block", waiting, left, 1, "stall_share_synchronization_pct", 0.7)
    yield Candidate("fewer-barriers", waiting * 0.9, left, 1, "stall_share_synchronization_pct", 0.7)


def chains(launch: Launch) -> Iterator[Candidate]:
    """Yield independent chains where warps wait for results of fixed latency."""
    waiting = launch.stalled("fixed_latency_dependency")
    if (
        waiting >= 0.35
        and (launch.issue or 1) < IDLE_ISSUE
        and launch.busiest <= QUIET
        and launch.rounds >= 1
    ):
        yield Candidate(
            "more-ilp", waiting * 0.7, launch.issue or 0.0, 2, "warps_issued_per_scheduler", 1.1, rises=True
        )


def occupancy(launch: Launch) -> Iterator[Candidate]:
    """Yield more resident warps where registers or shared memory keep them out and waits are not hidden."""
    theoretical = launch.value("theoretical_occupancy_pct", 100) / 100
    if (
        theoretical > FEW_WARPS
        or launch.busiest >= QUIET
        or (launch.issue or 1) >= IDLE_ISSUE
        or launch.pipelined
    ):
        return
    if launch.eligible is None or launch.eligible >= 1 or launch.rounds < launch.resident + 1:
        return
    waiting = launch.stalled(
        "global_memory_dependency", "fixed_latency_dependency", "shared_memory_dependency"
    )
    limits = {
        "fewer-registers": launch.number("occupancy_limit_registers"),
        "less-shared": launch.number("occupancy_limit_shared_mem"),
    }
    known = {name: limit for name, limit in limits.items() if limit is not None}
    if known and waiting >= MATTERS:
        remedy = min(known, key=lambda name: known[name])
        yield Candidate(
            remedy, waiting * 0.4, launch.issue or 0.0, 0, "achieved_occupancy_pct", 1.2, rises=True
        )
