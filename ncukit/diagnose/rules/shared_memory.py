"""Memory workload inside the SM: bank conflicts, wavefronts, asynchronous copies."""

from __future__ import annotations

from ncukit.diagnose.rule import Found, View, rule
from ncukit.diagnose.steps.grid import QUIET
from ncukit.diagnose.words import short

CONFLICT = 1.5
"""Wavefronts over the ideal from which accesses conflict; arbitration alone stays below."""

PATTERN = 5.0
"""[%] Excess wavefronts below which the address pattern is clean and conflicts are arbitration."""

OVERLOADED = 2.0
"""Data-stage share over request share from which requests need several wavefronts (peaks differ by 2)."""


@rule("bank-conflicts-loads", family="memory", needs=("shared_load_ways", "shared_load_bank_conflicts"))
def bank_conflicts_loads(k: View) -> Found | None:
    """Shared loads need several wavefronts because lanes hit the same bank."""
    return _conflicts(k, "load")


@rule("bank-conflicts-stores", family="memory", needs=("shared_store_ways", "shared_store_bank_conflicts"))
def bank_conflicts_stores(k: View) -> Found | None:
    """Shared stores need several wavefronts because lanes hit the same bank."""
    return _conflicts(k, "store")


def _conflicts(k: View, direction: str) -> Found | None:
    ways = k[f"shared_{direction}_ways"]
    pattern = k.get("shared_excess_share_pct")
    if ways < CONFLICT or (pattern is not None and pattern < PATTERN):
        return None
    conflicts, wavefronts = k[f"shared_{direction}_bank_conflicts"], k.get(f"shared_{direction}_wavefronts")
    lost = 100 * conflicts / wavefronts if wavefronts else 100 * (1 - 1 / ways)
    full = max(k.share("l1"), k.share("shared"))
    return Found(
        f"Shared {direction}s conflict {short(round(ways))} ways: {short(lost, '%')} of their wavefronts "
        "are conflicts",
        k.weight("l1", "shared"),
        detail=f"The data stage they go through is {short(full, '%')} busy."
        + ("" if full >= QUIET else " The conflicts are real and cost little here."),
        advice="Pad the rows of the tile by one element, or swizzle the index, so that lanes fall into "
        "different banks.",
        gain=k.relief(lost, "l1", "shared"),
    )


@rule("shared-pattern", family="memory", needs=("shared_excess_share_pct",))
def shared_pattern(k: View) -> Found | None:
    """Share [%] of shared-memory wavefronts that the address pattern causes beyond the ideal."""
    excess = k["shared_excess_share_pct"]
    if excess < 25:  # a quarter: less is one unlucky instruction among many
        return None
    return Found(
        f"{short(excess, '%')} of the shared-memory wavefronts are beyond what the address pattern needs "
        "at best",
        k.weight("l1", "shared"),
        advice="Pad or swizzle the shared array.",
        gain=k.relief(excess, "l1", "shared"),
    )


@rule("many-wavefronts", family="memory", needs=("lsu_wavefronts_pct", "lsu_requests_pct"))
def many_wavefronts(k: View) -> Found | None:
    """The L1 data stage is far busier [%] than its requests alone would make it."""
    data, requests = k["lsu_wavefronts_pct"], k["lsu_requests_pct"]
    if k.share("l1") < QUIET and k.share("shared") < QUIET:
        return None
    if not requests or data < OVERLOADED * requests:
        return None
    return Found(
        f"The L1 data stage is {short(data, '%')} busy at {short(requests, '%')} of the request rate "
        f"({short(data / requests)} to 1): each request takes many wavefronts",
        k.weight("l1", "shared"),
        advice="Bank conflicts or scattered addresses: collect MemoryWorkloadAnalysis_Tables to tell them "
        "apart.",
    )


@rule("bulk-copies", family="memory", needs=(("tma_load_bytes", "async_copy_bypass_bytes", "cp_async_inst"),))
def bulk_copies(k: View) -> Found | None:
    """Data reaches shared memory by TMA or cp.async, past registers and the usual load counters."""
    tma, bypass, copies = (k.get(id) for id in ("tma_load_bytes", "async_copy_bypass_bytes", "cp_async_inst"))
    if not tma and not bypass and not copies:
        return None
    by = (
        f"{short(tma, 'byte')} by TMA"
        if tma
        else f"{short(bypass, 'byte')} by cp.async"
        if bypass
        else "cp.async"
    )
    return Found(
        f"Global data is copied into shared memory asynchronously ({by})",
        "info",
        advice="These copies are not among the global-load counters; sectors per request above 16 are an "
        "artefact.",
    )
