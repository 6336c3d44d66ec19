"""What DRAM, the way into L2, the host and other GPUs carry; atomics."""

from __future__ import annotations

import re

from ncukit.judge.elimination import CERTAIN
from ncukit.judge.facts import STEADY
from ncukit.judge.grid import FROM_HOST, HOT_SLICE, IDLE, ONE_ADDRESS, QUIET, SOME_FILLS, UNEVEN
from ncukit.judge.places import first_place, places
from ncukit.judge.rule import Found, View, rule
from ncukit.judge.rules.global_memory import EXCESS
from ncukit.judge.rules.on_chip import VISIBLE
from ncukit.media import listed as in_words
from ncukit.quantity import brief

ONE_WAY = 90.0
"""[%] of the DRAM bytes in one direction."""

MORE = 1.3
"""DRAM bytes over asked bytes from which a visible part was not asked for."""

REUSED = 1 / MORE
"""DRAM bytes over asked bytes below which caches serve a visible part."""

REMOTE = 1.0
"""[%] of the misses on another GPU or the host: each is many times slower than a local one."""

AHEAD = 1.3
"""Busiest L2 slice over the mean from which a full one keeps others waiting; evenly spread: below 1.1."""

ATOMICS = 10.0
"""[%] of the requests at L2 from which atomics are a visible part of its work."""

ATOMIC = re.compile(r"^(ATOMG?|REDG?)\b")


@rule("useful-bytes", family="memory", needs=("moved_per_asked", "asked_bytes", "dram_bytes"))
def useful_bytes(k: View) -> Found | None:
    """DRAM moves more, or far less, than threads ask for."""
    ratio = k["moved_per_asked"]
    if k.share("dram") < IDLE or (k.get("cp_async_inst") or 0) > 0 or (k.get("tma_load_bytes") or 0) > 0:
        return None  # copies are not among what threads ask for
    asked, moved = brief(k["asked_bytes"], "byte"), brief(k["dram_bytes"], "byte")
    if ratio >= MORE:
        return Found(
            f"Threads asked for {asked} and DRAM moved {moved}: {brief(ratio)} times as much",
            k.weight("dram"),
            advice="Look for partial sectors, local memory and data fetched twice: the rest is waste.",
            gain=k.relief(100 * (1 - 1 / ratio), "dram"),
        )
    if ratio <= REUSED:
        return Found(
            f"Threads asked for {asked} and DRAM moved {moved}: caches serve "
            f"{brief(100 * (1 - ratio), '%')} of it",
            "info",
            advice="The traffic left in DRAM is the first touch of each byte, or what did not fit.",
        )
    return None


@rule("which-bytes", family="memory", needs=("dram_write_share_pct", "dram_bytes"))
def which_bytes(k: View) -> Found | None:
    """DRAM is busy: which of its bytes could be avoided."""
    if k.share("dram") < QUIET:
        return None
    avoidable = {
        "local memory": (k.get("l2_local_share_pct"), VISIBLE),
        "excess sectors": (k.get("uncoalesced_excess_pct"), EXCESS),
        "widened misses": (k.get("l2_promoted_miss_pct"), EXCESS),
        "other GPUs and the host": (k.get("l2_remote_miss_pct"), REMOTE),
    }
    named = {name: n for name, (n, least) in avoidable.items() if n is not None and n >= least}
    writes = k["dram_write_share_pct"]
    if not named and not 100 - ONE_WAY < writes < ONE_WAY:
        return None  # one direction and nothing to avoid: dram-direction says it
    mix = f"{brief(100 - writes, '%')} reads, {brief(writes, '%')} writes"
    worst = max(named, key=lambda name: named[name], default="")
    rest = f"; {worst} is {brief(named[worst], '%')} of the traffic above it" if worst else ""
    return Found(
        f"The {brief(k['dram_bytes'], 'byte')} in DRAM are {mix}{rest}",
        "medium" if worst else "info",
        advice=f"Remove {in_words(list(named))} first."
        if worst
        else "Nothing avoidable stands out: fewer or narrower data are the lever.",
        detail=""
        if worst
        else "Reads and writes share the bus and its turnarounds: a perfect copy reads 83 to 96 % of peak.",
    )


@rule("dram-direction", family="memory", needs=(("dram_write_share_pct", "global_load_opcode_inst"),))
def dram_direction(k: View) -> Found | None:
    """DRAM traffic goes one way."""
    writes = k.get("dram_write_share_pct")
    if k.share("dram") < QUIET:
        return None
    if writes is None:
        return _by_opcode(k)
    if 100 - ONE_WAY < writes < ONE_WAY:
        return None
    which = f"{brief(writes, '%')} writes" if writes >= ONE_WAY else f"{brief(100 - writes, '%')} reads"
    return Found(
        f"The DRAM traffic is {which}, {brief(k.get('dram_bytes'), 'byte')} in all",
        "info",
        advice="Fewer bytes are the only lever: a narrower type, or fusing with the kernel on the other "
        "side.",
    )


def _by_opcode(k: View) -> Found | None:
    """Return that all global accesses go one way, where the bytes of each way were not collected."""
    loads, both = k["global_load_opcode_inst"], k.get("global_opcode_inst")
    if not both or 0 < loads < both:
        return None
    which, way = ("loads", "reads") if loads else ("stores", "writes")
    return Found(
        f"All {brief(both)} global accesses are {which}: what DRAM is busy with is {way}",
        "info",
        advice="Fewer bytes are the only lever: a narrower type, or fusing with the kernel on the other "
        "side.",
    )


@rule("l2-input-port", family="memory", needs=("l2_input_pct",))
def l2_input_port(k: View) -> Found | None:
    """The crossbar into L2 is full [%] although DRAM is not."""
    if k["l2_input_pct"] < CERTAIN or k.share("dram") >= QUIET:
        return None
    stores = places(
        k.source,
        lambda c: c.instructions,
        "inst",
        lambda row: bool(re.match(r"^(STG|ST|STL|REDG?|ATOMG?)\b", row.opcode)),
    )
    return Found(
        f"The input port of L2 is {brief(k['l2_input_pct'], '%')} full while DRAM is at "
        f"{brief(k.share('dram'), '%')}",
        "high",
        advice="It fills with partial sectors: make stores coalesced, take stack arrays out of local memory, "
        "reduce before atomics.",
        detail=f"Of the stores {first_place(stores)}." if stores else "",
        places=stores,
    )


@rule("system-memory", family="memory", needs=("l2_fill_sysmem_pct", "l2_fill_device_pct"))
def system_memory(k: View) -> Found | None:
    """L2 fills come from the host's memory instead of the device's."""
    host, device = k["l2_fill_sysmem_pct"], k["l2_fill_device_pct"]
    if host < SOME_FILLS or host < FROM_HOST * device:
        return None
    rate = k.get("sysmem_read_bandwidth")
    seen = f" ({brief(rate, 'byte/s')} over the bus)" if rate else ""
    return Found(
        f"L2 is filled from system memory: {brief(host, '%')} of its fill peak against "
        f"{brief(device, '%')} from device memory{seen}",
        "high" if k.facts.shares.top < IDLE else "low",
        advice="Copy or prefetch the data to the device before the launch.",
    )


@rule(
    "miss-destinations",
    family="memory",
    needs=("l2_remote_miss_pct", "l2_miss_peer_sectors", "l2_miss_sysmem_sectors", "l2_miss_sectors"),
)
def miss_destinations(k: View) -> Found | None:
    """Part of the L2 misses goes to another GPU or to the host."""
    remote = k["l2_remote_miss_pct"]
    if remote < REMOTE or k["l2_miss_sectors"] < 1000:  # parameters and flags are read from the host as well
        return None
    peer, host = (100 * k[f"l2_miss_{a}_sectors"] / k["l2_miss_sectors"] for a in ("peer", "sysmem"))
    return Found(
        f"Of the L2 misses {brief(100 - remote, '%')} go to device memory, {brief(peer, '%')} to other GPUs, "
        f"{brief(host, '%')} to the host",
        "medium" if remote >= 10 else "low",
        advice="Place the data where most of its readers run, or copy it there once in bulk.",
    )


@rule("peer-memory", family="memory", needs=("l2_miss_peer_sectors", "l2_miss_sectors"))
def peer_memory(k: View) -> Found | None:
    """L2 misses go to another GPU."""
    share = 100 * k["l2_miss_peer_sectors"] / k["l2_miss_sectors"] if k["l2_miss_sectors"] else 0.0
    if share < 10:  # below a tenth the local DRAM decides
        return None
    return Found(
        f"{brief(share, '%')} of the L2 misses are served by a peer GPU",
        "medium",
        advice="Place the data on the GPU that reads it most, or copy it once in bulk.",
    )


@rule("contended-atomics", family="memory", needs=("l2_atomics_per_cycle",))
def contended_atomics(k: View) -> Found | None:
    """Atomics per L2 cycle [1/cycle] are at what a single address can take."""
    rate = k["l2_atomics_per_cycle"]
    if not ONE_ADDRESS[0] <= rate <= ONE_ADDRESS[1] or k.facts.shares.top >= QUIET:
        return None
    where = places(k.source, lambda c: c.instructions, "inst", lambda row: bool(ATOMIC.match(row.opcode)))
    return Found(
        f"L2 performs {brief(rate)} atomics a cycle in all; one address alone takes 0.3 to 0.8",
        "high" if k.facts.shares.top < IDLE else "medium",
        advice="Reduce within the warp and the block first, then one atomic a block; or spread over "
        "several counters.",
        detail=f"Of the atomics {first_place(where)}." if where else "",
        places=where,
    )


@rule("atomic-traffic", family="memory", needs=("l2_atomic_share_pct", "l2_atomics"))
def atomic_traffic(k: View) -> Found | None:
    """A visible part of the requests at L2 are atomics."""
    share = k["l2_atomic_share_pct"]
    if share < ATOMICS:
        return None
    where = places(k.source, lambda c: c.instructions, "inst", lambda row: bool(ATOMIC.match(row.opcode)))
    return Found(
        f"{brief(share, '%')} of the requests at L2 are atomics and reductions ({brief(k['l2_atomics'])})",
        k.weight("l2"),
        advice="Combine within the warp (shuffles, __reduce_add_sync) and the block before the atomic.",
        detail=f"Of the atomics {first_place(where)}." if where else "",
        places=where,
    )


@rule("possible-atomics", family="memory", needs=("l2_atomic_unit_cycles_per_cycle",))
def possible_atomics(k: View) -> Found | None:
    """The atomic unit of about one L2 slice is busy all the time, as far as the mean shows."""
    busy = k["l2_atomic_unit_cycles_per_cycle"]
    if k.get("l2_atomics_per_cycle") is not None or k.facts.shares.top >= IDLE:
        return None
    if not ONE_ADDRESS[0] <= busy <= 1.5 or (k.get("kernel_duration") or 0.0) < STEADY:
        return None
    return Found(
        f"Atomic units of L2 take input in {brief(busy)} slices at a time: one contended address would "
        "look like this",
        "low",
        advice="Collect MemoryWorkloadAnalysis_Tables to count the atomics.",
    )


@rule("uneven-slices", family="memory", needs=("l2_busiest_slice_pct", "l2_throughput_pct"))
def uneven_slices(k: View) -> Found | None:
    """The busiest L2 slice is far above the mean [%]."""
    hottest, mean = k["l2_busiest_slice_pct"], k["l2_throughput_pct"]
    alone = hottest >= HOT_SLICE and hottest >= UNEVEN * mean
    ahead = hottest >= CERTAIN and hottest >= AHEAD * mean
    if not (alone or ahead) or (k.get("kernel_duration") or 0.0) < STEADY:
        return None
    return Found(
        f"One L2 slice is {brief(hottest, '%')} busy while the mean over all is {brief(mean, '%')}",
        "high" if alone else "medium",
        advice="Many accesses share one address or one stride: spread the counter, change the padding.",
    )
