"""What moved between the units of the memory system, and where the issue slots went."""

from __future__ import annotations

from dataclasses import replace

from ncukit.judge.facts import Facts
from ncukit.judge.shares import COMPUTE_UNITS, WORKING, Waits, states
from ncukit.metrics import load
from ncukit.model import Kernel, Value
from ncukit.model.shares import Box, Ceiling, Link, MemoryLinks, Part, Share, Split
from ncukit.record import dataclass

# ---- What moved between the units of the memory system: `memory_links`, the data of the memory chart
#  A link is drawn where the unit exists on the GPU; one that moved nothing stays.  Shares are those of the
# link itself: what a level could do elsewhere does not count.


@dataclass(frozen=True)
class Drawn:
    """One link: ids of its bytes, of what is counted beside them, and of its share of peak."""

    id: str
    source: Box
    target: Box
    what: str
    bytes: str
    count: str = ""
    share: str = ""


LINKS = (
    Drawn(
        "global-loads", "l1", "kernel", "global loads",
        "global_load_bytes", "global_load_inst", "link_global_load_pct",
    ),
    Drawn(
        "global-stores", "kernel", "l1", "global stores",
        "global_store_bytes", "global_store_inst", "link_global_store_pct",
    ),
    Drawn(
        "local-loads", "l1", "kernel", "local loads",
        "local_load_bytes", "local_load_inst", "link_local_load_pct",
    ),
    Drawn(
        "local-stores", "kernel", "l1", "local stores",
        "local_store_bytes", "local_store_inst", "link_local_store_pct",
    ),
    Drawn(
        "texture", "l1", "kernel", "texture fetches", "texture_bytes", "texture_requests", "link_texture_pct",
    ),
    Drawn(
        "shared-loads", "shared", "kernel", "shared loads",
        "shared_load_bytes", "shared_load_requests", "link_shared_load_pct",
    ),
    Drawn(
        "shared-stores", "kernel", "shared", "shared stores",
        "shared_store_bytes", "shared_store_inst", "link_shared_store_pct",
    ),
    Drawn("copies", "l2", "shared", "cp.async", "async_copy_bypass_bytes", "cp_async_inst"),
    Drawn("tma", "l2", "shared", "TMA", "tma_load_bytes"),
    Drawn("l2-reads", "l2", "l1", "L2 → L1", "l1_to_l2_read_bytes", share="link_l2_to_l1_pct"),
    Drawn("l2-writes", "l1", "l2", "L1 → L2", "l1_to_l2_write_bytes", share="link_l1_to_l2_pct"),
    Drawn("dram-reads", "dram", "l2", "DRAM → L2", "dram_read_bytes", share="link_dram_read_pct"),
    Drawn("dram-writes", "l2", "dram", "L2 → DRAM", "dram_write_bytes", share="link_dram_write_pct"),
    Drawn(
        "sysmem-reads", "sysmem", "l2", "system → L2",
        "l2_sysmem_read_bytes", share="l2_fill_sysmem_pct",
    ),
    Drawn("sysmem-writes", "l2", "sysmem", "L2 → system", "l2_sysmem_write_bytes"),
    Drawn("peer-reads", "peer", "l2", "peers → L2", "l2_peer_read_bytes"),
    Drawn("peer-writes", "l2", "peer", "L2 → peers", "l2_peer_write_bytes"),
)  # fmt: skip

HIT_RATES: dict[Box, str] = {"l1": "l1_hit_rate_pct", "l2": "l2_hit_rate_from_l1_pct"}
BUSY: dict[Box, str] = {
    "l1": "l1_throughput_pct",
    "shared": "shared_stage_pct",
    "l2": "l2_throughput_pct",
    "dram": "dram_throughput_pct",
}


def memory_links(facts: Facts) -> MemoryLinks:
    """Return every link of the memory system of a launch."""
    kernel, shares = facts.kernel, facts.shares
    links = tuple(
        Link(
            drawn.id,
            drawn.source,
            drawn.target,
            drawn.what,
            _value(kernel, drawn.bytes),
            _value(kernel, drawn.count) if drawn.count else None,
            _value(kernel, drawn.share) if drawn.share else None,
        )
        for drawn in LINKS
        if _value(kernel, drawn.bytes).status != "absent"
    )
    busy = {box: found for box, id in BUSY.items() if (found := _value(kernel, id)).known}
    ranked = shares.ranked()
    hot = _box(ranked[0].unit.id) if ranked and ranked[0].full else None
    return MemoryLinks(
        links,
        {box: _value(kernel, id) for box, id in HIT_RATES.items()},
        busy,
        hot,
        tuple(_notes(kernel, links)),
    )


def _box(unit: str) -> Box | None:
    boxes: dict[str, Box] = {"lsu": "l1", "l1": "l1", "shared": "shared", "l2": "l2", "dram": "dram"}
    return "sysmem" if unit == "sysmem" else boxes.get(unit)


def _value(kernel: Kernel, id: str) -> Value:
    found = kernel.metrics.get(id) or kernel.signals.get(id)
    return Value(id, None, "", reason="not in the report") if found is None else found


def _notes(kernel: Kernel, links: tuple[Link, ...]) -> list[str]:
    found = []
    if kernel.number("l2_fabric_sectors"):
        found.append(
            "L2 has two halves here: its own throughput and total hit rate include what crosses between "
            "them; the rate shown is that of requests from L1."
        )
    used = {link.id for link in links if link.used}
    if "copies" in used:
        found.append(
            "Asynchronous copies (cp.async) go past registers: the requests of global loads do not count "
            "them, their bytes may."
        )
    elif "tma" in used:
        found.append("Asynchronous copies (TMA) go past registers and are not among the global loads.")
    cached = kernel.number("l1_hit_rate_pct")
    if cached == 0 and kernel.number("l1_sectors"):
        found.append("L1 served nothing: each sector was used once, or loads bypass L1.")
    return found


# ---- Where the issue slots went, top down: `split`
# Elapsed time of an SM is idle or working; the issue slots of a working SM issue or stay empty; empty ones
# are shared out by what the resident warps waited for (states in which a warp could have issued do not
# count), and each category names the resources behind it with how near they were to their ceiling.

BEHIND: dict[str, tuple[str, ...]] = {
    "memory_dependency": ("dram", "l2", "l1", "shared", "sysmem"),
    "memory_throttle": ("lsu", "l1", "shared", "xu", "fp64"),
    "execution_dependency": (),
    "pipe_busy": COMPUTE_UNITS,
    "tensor_sync": ("tensor", "shared"),
    "synchronization": (),
    "instruction_supply": ("control",),
    "other": ("l2", "dram"),
}
"""Units that a category of stalls points to."""

STALLS = "stall_cycles_global_memory_dependency"


def split(facts: Facts) -> Split:
    """Return the account of the issue slots of one launch."""
    kernel, waits = facts.kernel, facts.waits
    issued = _issued(kernel)
    missing = [] if issued is not None else ["the issue rate"]
    if waits is None:
        return Split(_idle(kernel), issued, None, (), missing=(*missing, "why warps waited"))
    parts = _parts(facts, waits, None if issued is None else issued.number)
    return Split(_idle(kernel), issued, waits.source, parts, waits.disagreement, tuple(missing))


def _idle(kernel: Kernel) -> Value | None:
    active = kernel.metrics.get("sm_active_pct")
    if active is None or active.number is None:
        return None
    return replace(active, id="sm_idle_pct", value=100 - active.number, quality="derived")


def _issued(kernel: Kernel) -> Value | None:
    busy = kernel.signals.get("issue_busy_pct")  # of the cycles in which the SM works, as on the glance
    if busy is not None and busy.number is not None:
        return busy
    rate = kernel.metrics.get("warps_issued_per_scheduler")
    if rate is None or rate.number is None:
        return None
    return replace(rate, id="issued_pct", value=100 * rate.number, unit="%", quality="derived")


def _parts(facts: Facts, waits: Waits, issued: float | None) -> tuple[Part, ...]:
    """Return the categories in which warps waited, largest first; their shares add up to 100 %."""
    waiting = {s: share for s, share in waits.shares.items() if s not in WORKING and share}
    total = sum(waiting.values())
    by_category: dict[str, dict[str, float]] = {}
    for state, share in waiting.items():
        by_category.setdefault(states()[state][0], {})[state] = 100 * share / total
    found = [
        Part(
            category,
            str(load().stalls[category]["plain"]),
            share := sum(shares.values()),
            None if issued is None else share * (100 - min(100.0, issued)) / 100,
            tuple(sorted(((states()[s][1], n) for s, n in shares.items()), key=lambda item: -item[1])),
            _ceilings(facts, category),
            str(load().stalls[category]["points_to"]),
        )
        for category, shares in by_category.items()
    ]
    return tuple(sorted(found, key=lambda part: -part.share))


def _ceilings(facts: Facts, category: str) -> tuple[Ceiling, ...]:
    units = (facts.shares.units.get(unit) for unit in BEHIND.get(category, ()))
    known: list[Share] = sorted((s for s in units if s is not None), key=lambda s: -s.percent)
    return tuple(Ceiling(s.unit.id, s.name, s.percent, s.full, s.metric) for s in known[:3])
