"""Memory workload outside the SM: access patterns, hit rates, what moves where."""

from __future__ import annotations

from ncukit.diagnose.facts import STEADY
from ncukit.diagnose.rule import Found, View, rule
from ncukit.diagnose.steps.full import CERTAIN
from ncukit.diagnose.steps.grid import QUIET
from ncukit.diagnose.steps.hidden import FROM_HOST, HOT_SLICE, IDLE, ONE_ADDRESS, SOME_FILLS, UNEVEN
from ncukit.diagnose.words import short

SCATTERED = 16.0
"""Sectors a request that even 16-byte elements need: above, the pattern is scattered."""

IDEAL = 4.0
"""Sectors a request of 32 four-byte elements."""

HALF_USED = 16.0
"""[byte/sector] Below this more than half of each 32-byte sector is moved for nothing."""

EXCESS = 15.0
"""[%] Excess sectors worth naming: a misaligned start costs 20 %, one odd sector among many less."""

POOR_HITS = 50.0
"""[%] L2 hit rate below which L2 filters less than half of what L1 asks for."""

GOOD_HITS = 80.0
"""[%] L1 hit rate from which the data is close and only getting it out of L1 can cost."""

ONE_WAY = 90.0
"""[%] of the DRAM bytes in one direction."""

CROSSES = 20.0
"""[%] of L2 sectors on the fabric: enough to bend the L2 hit rate."""

REQUEST_PATH = ("l1", "shared", "l2", "dram", "lsu")


@rule("uncoalesced-loads", family="memory", needs=("global_load_sectors_per_request",))
def uncoalesced_loads(k: View) -> Found | None:
    """Global loads touch more sectors a request than their bytes need."""
    return _uncoalesced(k, "load")


@rule("uncoalesced-stores", family="memory", needs=("global_store_sectors_per_request",))
def uncoalesced_stores(k: View) -> Found | None:
    """Global stores touch more sectors a request than their bytes need."""
    return _uncoalesced(k, "store")


def _uncoalesced(k: View, direction: str) -> Found | None:
    sectors = k[f"global_{direction}_sectors_per_request"]
    if sectors <= IDEAL * 1.05:
        return None
    used = k.get(f"global_{direction}_bytes_per_sector")
    copies = direction == "load" and (k.get("cp_async_inst") or 0) > 0
    if used is not None and not copies:  # copies count sectors here, and no bytes
        if used >= HALF_USED:
            return None
        return Found(
            f"Global {direction}s touch {short(sectors)} sectors a request and use {short(used)} of 32 "
            "bytes in each",
            k.weight("l1", "l2", "dram"),
            advice=_COALESCE,
            gain=k.relief(100 * (1 - used / 32), "l1", "l2", "dram"),
        )
    excess = k.get("uncoalesced_excess_pct")
    if excess is not None and excess < EXCESS:
        return None
    if sectors > SCATTERED and not copies:
        return Found(
            f"Global {direction}s touch {short(sectors)} sectors a request; even 16-byte elements need "
            "only 16",
            k.weight("l1", "l2", "dram"),
            advice=_COALESCE,
            gain=k.relief(100 * (1 - SCATTERED / sectors), "l1", "l2", "dram"),
        )
    if copies and sectors > SCATTERED and excess is None:
        return None  # LDGSTS counts its sectors on few requests: above 16 this says nothing
    if sectors > 2 * IDEAL * 0.95 or excess is not None:
        return Found(
            f"Global {direction}s touch {short(sectors)} sectors a request: ideal only for elements of "
            f"{short(sectors)} bytes, 4 would do for 4-byte ones",
            "low" if excess is None else k.weight("l1", "l2", "dram"),
            advice=_COALESCE,
        )
    return None


_COALESCE = (
    "Let neighbouring threads touch neighbouring addresses: swap the index that runs fastest, use a "
    "structure of "
    "arrays, or go through shared memory."
)


@rule("excess-sectors", family="memory", needs=("uncoalesced_excess_pct",))
def excess_sectors(k: View) -> Found | None:
    """Share [%] of the global sectors beyond what the addresses of the instructions need."""
    excess = k["uncoalesced_excess_pct"]
    if excess < EXCESS:
        return None
    return Found(
        f"{short(excess, '%')} of the global-memory sectors are excess over a coalesced pattern",
        k.weight("l1", "l2", "dram"),
        advice=_COALESCE,
        gain=k.relief(excess, "l1", "l2", "dram"),
    )


@rule("l2-misses", family="memory", needs=("l2_hit_rate_from_l1_pct", "dram_throughput_pct"))
def l2_misses(k: View) -> Found | None:
    """L2 serves less than half of what L1 asks for, and DRAM is busy."""
    hits = k["l2_hit_rate_from_l1_pct"]
    if hits >= POOR_HITS or k.share("dram") < IDLE:
        return None
    return Found(
        f"Only {short(hits, '%')} of the sectors L1 asks for hit in L2, the rest comes from DRAM "
        f"({short(k['dram_throughput_pct'], '%')} of peak)",
        k.weight("dram"),
        advice="Work on a tile that fits into L2 before moving on, or keep the data narrower.",
    )


@rule("close-data", family="memory", needs=("l1_hit_rate_pct", "dram_throughput_pct"))
def close_data(k: View) -> Found | None:
    """L1 serves nearly all loads: the number of accesses costs, not the distance of the data."""
    if k["l1_hit_rate_pct"] < GOOD_HITS or max(k.share("l1"), k.share("lsu")) < QUIET:
        return None
    return Found(
        f"L1 serves {short(k['l1_hit_rate_pct'], '%')} of its sectors and DRAM is at "
        f"{short(k['dram_throughput_pct'], '%')}: the accesses themselves are the cost",
        "medium",
        advice="Keep values in registers and load wider; better locality would change nothing.",
    )


@rule("l2-fabric", family="memory", needs=("l2_fabric_sectors", "l2_sectors"))
def l2_fabric(k: View) -> Found | None:
    """Sectors between the halves of L2 are counted twice and hit by construction."""
    share = 100 * k["l2_fabric_sectors"] / k["l2_sectors"] if k["l2_sectors"] else 0.0
    own, shown = k.get("l2_hit_rate_from_l1_pct"), k.get("l2_hit_rate_pct")
    if share < CROSSES or own is None or shown is None:
        return None
    return Found(
        f"{short(share, '%')} of the L2 sectors cross its fabric: the hit rate of the kernel's own "
        "requests is "
        f"{short(own, '%')}, not {short(shown, '%')}",
        "info",
        advice="Use the hit rate of requests from L1; L2 throughput includes the fabric as well.",
    )


@rule("dram-direction", family="memory", needs=("dram_write_share_pct",))
def dram_direction(k: View) -> Found | None:
    """DRAM traffic goes one way."""
    writes = k["dram_write_share_pct"]
    if k.share("dram") < QUIET or 100 - ONE_WAY < writes < ONE_WAY:
        return None
    which = f"{short(writes, '%')} writes" if writes >= ONE_WAY else f"{short(100 - writes, '%')} reads"
    return Found(
        f"The DRAM traffic is {which}, {short(k.get('dram_bytes'), 'byte')} in all",
        "info",
        advice="Fewer bytes are the only lever: a narrower type, or fusing with the kernel on the other "
        "side.",
    )


@rule("l2-input-port", family="memory", needs=("l2_input_pct",))
def l2_input_port(k: View) -> Found | None:
    """The crossbar into L2 is full [%] although DRAM is not."""
    if k["l2_input_pct"] < CERTAIN or k.share("dram") >= QUIET:
        return None
    return Found(
        f"The input port of L2 is {short(k['l2_input_pct'], '%')} full while DRAM is at "
        f"{short(k.share('dram'), '%')}",
        "high",
        advice="It fills with partial sectors: scattered stores, stack arrays in local memory, atomics.",
    )


@rule("system-memory", family="memory", needs=("l2_fill_sysmem_pct", "l2_fill_device_pct"))
def system_memory(k: View) -> Found | None:
    """L2 fills come from the host's memory instead of the device's."""
    host, device = k["l2_fill_sysmem_pct"], k["l2_fill_device_pct"]
    if host < SOME_FILLS or host < FROM_HOST * device:
        return None
    rate = k.get("sysmem_read_bandwidth")
    seen = f" ({short(rate, 'byte/s')} over the bus)" if rate else ""
    return Found(
        f"L2 is filled from system memory: {short(host, '%')} of its fill peak against "
        f"{short(device, '%')} from "
        f"device memory{seen}",
        "high" if k.facts.shares.top < IDLE else "low",
        advice="Copy or prefetch the data to the device before the launch.",
    )


@rule("peer-memory", family="memory", needs=("l2_miss_peer_sectors", "l2_miss_sectors"))
def peer_memory(k: View) -> Found | None:
    """L2 misses go to another GPU."""
    share = 100 * k["l2_miss_peer_sectors"] / k["l2_miss_sectors"] if k["l2_miss_sectors"] else 0.0
    if share < 10:  # below a tenth the local DRAM decides
        return None
    return Found(
        f"{short(share, '%')} of the L2 misses are served by a peer GPU",
        "medium",
        advice="Place the data on the GPU that reads it most, or copy it once in bulk.",
    )


@rule("contended-atomics", family="memory", needs=("l2_atomics_per_cycle",))
def contended_atomics(k: View) -> Found | None:
    """Atomics per L2 cycle [1/cycle] are at what a single address can take."""
    rate = k["l2_atomics_per_cycle"]
    if not ONE_ADDRESS[0] <= rate <= ONE_ADDRESS[1] or k.facts.shares.top >= QUIET:
        return None
    return Found(
        f"L2 performs {short(rate)} atomics a cycle in all; one address alone takes 0.3 to 0.8",
        "high" if k.facts.shares.top < IDLE else "medium",
        advice="Reduce within the warp and the block first, then one atomic a block; or spread over "
        "several counters.",
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
        f"Atomic units of L2 take input in {short(busy)} slices at a time: one contended address would "
        "look like this",
        "low",
        advice="Collect MemoryWorkloadAnalysis_Tables to count the atomics.",
    )


@rule("uneven-slices", family="memory", needs=("l2_busiest_slice_pct", "l2_throughput_pct"))
def uneven_slices(k: View) -> Found | None:
    """The busiest L2 slice is far above the mean [%]."""
    hottest, mean = k["l2_busiest_slice_pct"], k["l2_throughput_pct"]
    if hottest < HOT_SLICE or hottest < UNEVEN * mean or (k.get("kernel_duration") or 0.0) < STEADY:
        return None
    return Found(
        f"One L2 slice is {short(hottest, '%')} busy while the mean over all is {short(mean, '%')}",
        "high",
        advice="Many accesses share one address or one stride: spread the counter, change the padding.",
    )


@rule("sector-promotion", family="memory", needs=("l2_promoted_miss_pct",))
def sector_promotion(k: View) -> Found | None:
    """L2 fetches 64 bytes or more for a 32-byte miss."""
    promoted = k["l2_promoted_miss_pct"]
    if promoted < EXCESS or k.share("dram") < IDLE:
        return None
    return Found(
        f"{short(promoted, '%')} of the L2 misses were widened to 64 bytes or more",
        k.weight("dram"),
        advice="For scattered 32-byte reads ask for less with a cache hint or "
        "cudaLimitMaxL2FetchGranularity.",
    )
