"""What the report does not hold, as far as it would decide."""

from __future__ import annotations

from ncukit.diagnose.facts import Facts
from ncukit.diagnose.rule import Found, View, rule
from ncukit.diagnose.words import listed

MEASURED = {
    "kernel_duration": "the duration",
    "waves_per_sm": "the launch configuration",
    "achieved_occupancy_pct": "the achieved occupancy",
    "inst_executed": "instruction counts",
    "dram_bytes": "DRAM bytes",
    "global_load_sectors_per_request": "sectors a request",
}
"""What may be there although nothing says how busy anything was."""

PROFILE = "Profile with --set full, or at least --section SpeedOfLight --section WarpStateStats."


@rule("nothing-measured", family="speed_of_light", needs=())
def nothing_measured(k: View) -> Found | None:
    """Neither throughputs nor stall reasons were collected."""
    if k.facts.shares.units or k.facts.waits is not None:
        return None
    has = [word for id, word in MEASURED.items() if k.get(id) is not None]
    return Found(
        "Neither throughputs, pipes nor stall reasons were collected"
        + (f", only {listed(has)}" if has else ", and no duration either"),
        "info",
        advice=PROFILE,
    )


@rule("partly-measured", family="speed_of_light", needs=())
def partly_measured(k: View) -> Found | None:
    """Part of what decides was not collected, or this GPU does not count it."""
    if not k.facts.shares.units and k.facts.waits is None:
        return None  # nothing-measured says it
    lacking = {what: _is_absent(k.facts, id) for what, id in _lacking(k.facts)}
    if not lacking:
        return None
    for id in MEASURED:
        k.get(id)
    absent = [what for what, is_absent in lacking.items() if is_absent]
    uncollected = [what for what in lacking if what not in absent]
    known = "not translated from the names of ncu before 2020.2" if _old(k.facts) else "not collected"
    said = [f"{known}: {listed(uncollected)}"] if uncollected else []
    said += [f"not counted on this GPU: {listed(absent)}"] if absent else []
    return Found(
        "; ".join(said),
        "info",
        advice=PROFILE if uncollected else "Judge by what this GPU counts: launch, occupancy and issue rate.",
    )


def _lacking(f: Facts) -> list[tuple[str, str]]:
    """Return what would be needed to judge this launch, and a metric that would tell."""
    found = []
    if f.number("kernel_duration") is None:
        found.append(("the duration", "kernel_duration"))
    if not f.shares.sm_side:
        found.append(("compute throughput", "sm_throughput_pct"))
    if not f.shares.memory_side:
        found.append(("memory throughput", "memory_throughput_pct"))
    if "dram" not in f.shares.units:
        found.append(("DRAM throughput", "dram_throughput_pct"))
    if f.waits is None and not any(share.full for share in f.shares.units.values()):
        found.append(("stall reasons", "stall_cycles_global_memory_dependency"))
    return found


def _old(f: Facts) -> bool:
    """Return whether ncu named its counters as before 2020.2: without an operation behind a dot."""
    value = f.kernel.signals.get("issue_busy_pct")
    return value is not None and value.known and not any("." in name for name in value.sources)


def _is_absent(f: Facts, id: str) -> bool:
    value = f.kernel.metrics.get(id)
    return value is not None and value.status == "absent"
