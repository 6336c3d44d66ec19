"""How much can be gained at most, and whether a launch is at its ceiling."""

from __future__ import annotations

from ncukit.diagnose.advice.known import Known
from ncukit.model import Diagnosis, Finding
from ncukit.model.advice import Bound
from ncukit.model.shares import Share

CEILING = 95.0
"""[%] of what the best kernels get out of a unit: from here on a launch is at its ceiling."""
WASTED = 5.0
"""[%] Estimated gain of a finding from which a full unit is full of work that could be left out."""


def amdahl(share: float, left: float = 0.0) -> float | None:
    """Return how much faster all is at most when ``share`` [%] of it shrinks to ``left`` [%] of itself.

    None is without bound.

    >>> amdahl(50), round(amdahl(50, 60), 2), amdahl(100)
    (2.0, 1.25, None)
    """
    rest = 1 - share / 100 * (1 - left / 100)
    return 1 / rest if rest > 1e-9 else None


FLOORS = ("dram", "tensor", "fp32", "fp64", "fp16")
"""Limiters whose unit does the work itself; a full cache or load/store pipe is one of several ways to it."""


def limiting(diagnosis: Diagnosis) -> Share | None:
    """Return how full the unit is that limits the launch; None where none does, or others could take over."""
    limiter = diagnosis.verdict.limiter
    if limiter not in FLOORS or diagnosis.verdict.cls not in ("memory-bound", "compute-bound"):
        return None
    some = [s for s in diagnosis.facts.shares.units.values() if s.unit.limiter == limiter]
    return max(some, key=lambda s: s.fullness, default=None)


def at_ceiling(diagnosis: Diagnosis) -> Share | None:
    """Return the unit that limits the launch if it is as full as units get, with work that is needed."""
    full = limiting(diagnosis)
    if full is None or full.fullness < CEILING or wasteful(diagnosis) or exceeds_model(diagnosis):
        return None
    return full


def wasteful(diagnosis: Diagnosis) -> Finding | None:
    """Return the finding that promises most, if it is enough to doubt that a full unit does needed work."""
    some = [f for f in diagnosis.findings if f.severity in ("high", "medium") and (f.gain_pct or 0) >= WASTED]
    return max(some, key=lambda f: f.gain_pct or 0, default=None)


def exceeds_model(diagnosis: Diagnosis) -> bool:
    """Return whether the counters hold clearly more work or bytes than the analytic model."""
    checks = diagnosis.roofline.checks
    return any(check.ok is False and check.id in ("model-bytes", "model-flops") for check in checks)


def of_region(known: Known) -> Bound | None:
    """Return what the region gains at most without the cause that limits it."""
    region = None if known.timeline is None else known.timeline.region
    return (
        None
        if region is None or region.share is None
        else Bound(region.bound, region.share, f"what makes it {region.cls}")
    )


def of_top(known: Known) -> Bound | None:
    """Return what the region gains at most without the kernel that takes most of it."""
    top = known.top
    return None if top is None else Bound(top.bound, top.share, top.short)


def of_kernel(known: Known) -> Bound | None:
    """Return what the region gains at most when this kernel reaches its ceiling.

    Where the ceiling is not known, or the unit is full of work that could be left out: when it vanishes.
    """
    share = known.share
    if share is None or known.diagnosis is None:
        return None
    full = limiting(known.diagnosis)
    left = 0.0 if full is None else min(100.0, full.fullness)
    if full is None or wasteful(known.diagnosis) is not None or exceeds_model(known.diagnosis):
        return Bound(amdahl(share), share, "this kernel")
    gone = share * (1 - left / 100)
    return Bound(amdahl(gone), gone, "what this kernel is away from its ceiling")
