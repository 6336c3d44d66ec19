"""What comes before any unit: was anything measured, is the kernel long enough, are SMs without work?"""

from __future__ import annotations

from ncukit.judge.facts import TINY
from ncukit.judge.remedies.candidate import Candidate
from ncukit.judge.remedies.launch import Launch

SHORT = 10e-6
"""[s] Below, it is where the grid fills less than half of a wave."""
LONGEST_SETUP = 30e-6
"""[s] Up to here, one or two blocks that load a handful of values are set-up, not work."""
FEW_REQUESTS = 1000
SERIAL = 30e-6
"""[s] From here on, work on one SM costs more than a launch."""
FULL_DOUBLE = 0.75


def gate(launch: Launch) -> Candidate | None:
    """Return the answer that makes every other question idle, or None."""
    for ask in (_nothing_ran, _short, _unmeasured, _setup, _serial, _double):
        if (found := ask(launch)) is not None:
            return found
    return None


def _nothing_ran(launch: Launch) -> Candidate | None:
    """G1: counters that are no numbers, or neither a grid nor a counter."""
    empty = not launch.blocks and not launch.measured and not launch.duration
    return Candidate("fix-launch") if launch.facts.kernel.failed or empty else None


def _unmeasured(launch: Launch) -> Candidate | None:
    """G3: nothing says how busy anything was; one block for many SMs is seen without counters."""
    if launch.measured:
        return None
    if launch.blocks and launch.blocks < launch.sms / 2 and not launch.duration:
        return Candidate("more-blocks", 1 - launch.rounds, metric="kernel_duration", to=0.9)
    return Candidate("collect")


def _short(launch: Launch) -> Candidate | None:
    """G4: most of the time is the launch itself."""
    if launch.duration is None:
        return None
    waves = launch.rounds / launch.resident
    if launch.duration < TINY or (launch.duration < SHORT and 0 < waves < 0.5):
        own = launch.own
        removes = None if own is None else 1 - own / launch.duration
        return Candidate("fuse-launches", removes, metric="kernel_duration", to=0.9)
    return None


def _setup(launch: Launch) -> Candidate | None:
    """G5: one or two blocks that load a handful of values."""
    requests = launch.number("global_load_requests")
    few = (launch.blocks or 0) <= 2 and requests is not None and requests < FEW_REQUESTS
    if few and launch.duration is not None and launch.duration < LONGEST_SETUP:
        return Candidate("time-first")
    return None


def _serial(launch: Launch) -> Candidate | None:
    """G6: far fewer SMs work than have blocks."""
    if launch.active is None or not launch.blocks or (launch.duration or 0) < SERIAL:
        return None
    with_blocks = min(launch.blocks, launch.sms)
    working = launch.active * launch.sms
    if with_blocks >= 4 and working < 0.5 * with_blocks:
        alone = launch.value("warps_active_per_scheduler", 2.0) <= 1
        left = working / with_blocks * (max(launch.issue or 0.0, 0.1) if alone else 1.0)
        return Candidate("balance-work", 1 - left, metric="sm_active_pct", to=1.5, rises=True)
    return None


def _double(launch: Launch) -> Candidate | None:
    """G8: a GPU with few FP64 units does little else."""
    units = launch.number("fp64_units_per_sm")
    if units is None or units > 4 or launch.unit("fp64") < FULL_DOUBLE or (launch.issue or 1) >= 0.1:
        return None
    left = max(launch.unit(id) for id in ("issue", "dram", "l2", "l1", "int"))
    return Candidate("remove-fp64", 0.97, max(left, 1 / 30), metric="pipe_fp64_pct", to=0.5)
