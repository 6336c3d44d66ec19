"""Idle time: blocks that never start, rounds that are not whole, blocks that live too briefly."""

from __future__ import annotations

from collections.abc import Iterator

from ncukit.judge.grid import turnover
from ncukit.judge.occupancy import AGREE
from ncukit.judge.remedies.candidate import Candidate
from ncukit.judge.remedies.launch import Launch

IDLE = 0.05
"""Idle share from which it is worth a change."""
BRIEF = 500.0
"""[cycle] A block that lives shorter is mostly start and end."""
FINER = 1.3
"""What finer tiles bring on an SM that has work, at least: more warps, shorter chains."""
FILLED = 0.75
"""Busiest unit from which more warps an SM bring nothing."""
MORE_WARPS = 1.3
"""Factor of resident warps from which another block size is worth a trial."""


def more_blocks(launch: Launch) -> Iterator[Candidate]:
    """Yield finer tiles where SMs have no block."""
    if launch.rounds == 0 or launch.rounds >= 1:
        return
    few = launch.rounds < 0.25  # a handful of blocks: their own chains limit as much as the SMs
    finer = 1.0 if launch.pipelined or few or launch.busiest > FILLED else FINER
    yield Candidate("more-blocks", 1 - launch.rounds / finer, launch.floor, 0, "kernel_duration", 0.9)


def whole_waves(launch: Launch) -> Iterator[Candidate]:
    """Yield a grid of whole rounds where the last one explains the idle time."""
    if launch.active is None or launch.rounds <= 1:
        return
    idle = 1 - launch.active
    if idle >= IDLE and abs(launch.predicted - launch.active) <= AGREE / 100:
        yield Candidate("whole-waves", idle, 0.0, 2, "sm_active_pct", 1.03, rises=True)


def balance_work(launch: Launch) -> Iterator[Candidate]:
    """Yield equal blocks where SMs idle for longer than grid and ramp explain."""
    if launch.active is None or launch.rounds < 1:
        return
    unexplained = launch.predicted - launch.active - launch.ramp
    brief = launch.number("block_lifetime")
    if unexplained >= IDLE and not (brief is not None and brief < BRIEF):
        yield Candidate("balance-work", 1 - launch.active, 0.0, 1, "sm_active_pct", 1.05, rises=True)


def brief_blocks(launch: Launch) -> Iterator[Candidate]:
    """Yield longer or smaller blocks where blocks live for some hundred cycles."""
    lifetime = launch.number("block_lifetime")
    if lifetime is None or lifetime >= BRIEF or 0 < launch.rounds < 4 or launch.busiest > 0.75:
        return
    if launch.number("resident_block_limit") == 1:
        removes = 1 - (launch.active or 0.7)
        yield Candidate("smaller-blocks", removes, 0.0, 0, "sm_active_pct", 1.1, rises=True)
        return
    if turnover(launch.facts):
        achieved = launch.value("achieved_occupancy_pct") / launch.value("theoretical_occupancy_pct", 100)
        left = max(launch.issue or 0, *(launch.fullness(id) for id in ("dram", "l2", "l1")))
        left = launch.floor + (1 - launch.floor) * left
        yield Candidate(
            "more-work-per-block", 1 - achieved, left, 0, "achieved_occupancy_pct", 1.2, rises=True
        )


def smaller_blocks(launch: Launch) -> Iterator[Candidate]:
    """Yield smaller blocks where one block of many warps is all that fits an SM."""
    warps, most = launch.number("warps_per_block"), launch.number("max_warps_per_sm")
    registers = launch.number("registers_per_thread")
    if not warps or not most or not registers or launch.resident > 1 or warps < 24 or launch.busiest >= 0.6:
        return
    fit = min(most, (launch.value("max_registers_per_sm", 65536) // (registers * 32 * 8)) * 8)
    if fit >= MORE_WARPS * warps * launch.resident and (launch.eligible or 0) < 1 and launch.rounds > 1:
        hidden = 1 - warps * launch.resident / fit
        yield Candidate(
            "smaller-blocks", hidden * 0.6, launch.issue or 0.3, 0, "achieved_occupancy_pct", 1.2, rises=True
        )
