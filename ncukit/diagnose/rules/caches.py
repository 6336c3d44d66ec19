"""What the caches served, what they could not, and why."""

from __future__ import annotations

from ncukit.diagnose.rule import Found, View, rule
from ncukit.diagnose.rules.coalescing import EXCESS
from ncukit.diagnose.steps.grid import QUIET
from ncukit.diagnose.steps.hidden import IDLE
from ncukit.quantity import brief

POOR_HITS = 50.0
"""[%] L2 hit rate below which L2 filters less than half of what L1 asks for."""

GOOD_HITS = 80.0
"""[%] L1 hit rate from which the data is close and only getting it out of L1 can cost."""

CROSSES = 20.0
"""[%] of L2 sectors on the fabric: enough to bend the L2 hit rate."""

FITS = 0.5
"""DRAM reads over L2 capacity: what is at most half of L2 stays there between launches."""

MOSTLY_WRITES = 70.0
"""[%] of the DRAM bytes: warm caches cannot save what is written."""

ONCE = 1.2
"""Asked bytes over DRAM reads: below, nearly every byte is used once."""

BEYOND = 1.3
"""DRAM reads over own misses from which something else is read as well."""


@rule("l2-misses", family="memory", needs=("l2_hit_rate_from_l1_pct", "dram_throughput_pct"))
def l2_misses(k: View) -> Found | None:
    """L2 serves less than half of what L1 asks for, and DRAM is busy."""
    hits = k["l2_hit_rate_from_l1_pct"]
    if hits >= POOR_HITS or k.share("dram") < IDLE:
        return None
    return Found(
        f"Only {brief(hits, '%')} of the sectors L1 asks for hit in L2, the rest comes from DRAM "
        f"({brief(k['dram_throughput_pct'], '%')} of peak)",
        k.weight("dram"),
        advice="Each byte is asked for about once: no tile helps, fewer or narrower data do."
        if _once(k)
        else "Work on a tile that fits into L2 before moving on, or keep the data narrower.",
    )


def _once(k: View) -> bool:
    """Return whether DRAM delivers about what threads ask for: a stream."""
    asked, read = k.get("global_load_useful_bytes"), k.get("dram_read_bytes")
    return not k.get("cp_async_inst") and asked is not None and bool(read) and asked / (read or 1.0) < ONCE


@rule(
    "working-set",
    family="memory",
    needs=("l2_hit_rate_from_l1_pct", "read_per_l2_size", "dram_read_bytes", "global_load_useful_bytes"),
)
def working_set(k: View) -> Found | None:
    """Accesses are coalesced and yet miss in L2: a stream, a working set too large, or a conflict."""
    if k["l2_hit_rate_from_l1_pct"] >= POOR_HITS or k.share("dram") < IDLE:
        return None
    if (k.get("uncoalesced_excess_pct") or 0.0) >= EXCESS or (k.get("cp_async_inst") or 0) > 0:
        return None  # the pattern comes first; copies do not count what threads ask for
    asked, read = k["global_load_useful_bytes"], k["dram_read_bytes"]
    if not read or not asked:
        return None
    capacity = brief(k.get("l2_cache_size"), "byte")
    reuse = asked / read
    if reuse < ONCE:
        return Found(
            f"Loads ask for {brief(asked, 'byte')} and DRAM is read for {brief(read, 'byte')}: a stream, "
            "which no cache can serve",
            "info",
            advice="Fewer bytes are the lever: a narrower type, or fusing with the producer or consumer.",
        )
    if k["read_per_l2_size"] > 1:
        return Found(
            f"Bytes are asked for {brief(reuse)} times and DRAM is read for {brief(read, 'byte')}, "
            f"{brief(k['read_per_l2_size'])} times the {capacity} of L2: data leaves before it is used again",
            k.weight("dram"),
            advice="Shorten the reuse distance: let blocks that share data run side by side, in tiles whose "
            "data fits L2.",
            gain=k.relief(100 * (1 - 1 / reuse), "dram"),
        )
    return Found(
        f"{brief(read, 'byte')} are read from DRAM, less than the {capacity} of L2, and yet only "
        f"{brief(k['l2_hit_rate_from_l1_pct'], '%')} hit: first touch, or addresses that share few sets",
        "low",
        advice="Change the stride by one line to test for a conflict; profile with --cache-control none to "
        "test for first touch.",
    )


@rule("reads-served", family="memory", needs=("dram_read_bytes", "global_load_bytes"))
def reads_served(k: View) -> Found | None:
    """DRAM is read for less than global loads bring: caches serve the rest."""
    if k.get("moved_per_asked") is not None:
        return None  # useful-bytes says it with what threads asked for
    read, loaded = k["dram_read_bytes"], k["global_load_bytes"]
    if not loaded or read > loaded / ONCE or (k.get("cp_async_inst") or 0) > 0:
        return None
    return Found(
        f"Global loads bring {brief(loaded, 'byte')} and DRAM is read for {brief(read, 'byte')}: caches "
        f"serve {brief(100 * (1 - read / loaded), '%')}",
        "info",
        advice="Data that an earlier launch left in L2, or that is read again: --cache-control all and none "
        "tell them apart.",
    )


@rule("cold-cache", family="memory", needs=("read_per_l2_size", "dram_read_bytes"))
def cold_cache(k: View) -> Found | None:
    """All that DRAM delivers would fit L2: with caches flushed before the pass it is read again."""
    writes = k.get("dram_write_share_pct")
    if not 0 < k["read_per_l2_size"] <= FITS or k.share("dram") < IDLE or (writes or 0.0) > MOSTLY_WRITES:
        return None
    return Found(
        f"The {brief(k['dram_read_bytes'], 'byte')} read from DRAM would fit the "
        f"{brief(k.get('l2_cache_size'), 'byte')} of L2: in the program they may be there already",
        "low",
        advice="ncu empties the caches before each pass unless told not to: profile with --cache-control "
        "none and compare.",
    )


@rule("close-data", family="memory", needs=("l1_hit_rate_pct", "dram_throughput_pct"))
def close_data(k: View) -> Found | None:
    """L1 serves nearly all loads: the number of accesses costs, not the distance of the data."""
    if k["l1_hit_rate_pct"] < GOOD_HITS or max(k.share("l1"), k.share("lsu")) < QUIET:
        return None
    return Found(
        f"L1 serves {brief(k['l1_hit_rate_pct'], '%')} of its sectors and DRAM is at "
        f"{brief(k['dram_throughput_pct'], '%')}: the accesses themselves are the cost",
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
        f"{brief(share, '%')} of the L2 sectors cross its fabric: the hit rate of the kernel's own "
        f"requests is {brief(own, '%')}, not {brief(shown, '%')}",
        "info",
        advice="Use the hit rate of requests from L1; L2 throughput includes the fabric as well.",
    )


@rule("sector-promotion", family="memory", needs=("l2_promoted_miss_pct",))
def sector_promotion(k: View) -> Found | None:
    """L2 fetches 64 bytes or more for a 32-byte miss."""
    promoted = k["l2_promoted_miss_pct"]
    if promoted < EXCESS or k.share("dram") < IDLE:
        return None
    return Found(
        f"{brief(promoted, '%')} of the L2 misses were widened to 64 bytes or more",
        k.weight("dram"),
        advice="For scattered 32-byte reads ask for less with a cache hint or "
        "cudaLimitMaxL2FetchGranularity.",
    )


@rule("reads-beyond-misses", family="memory", needs=("read_per_missed", "l2_miss_device_sectors"))
def reads_beyond_misses(k: View) -> Found | None:
    """DRAM is read for more than the kernel's own requests missed."""
    ratio = k["read_per_missed"]
    if ratio < BEYOND or k.share("dram") < IDLE or k.get("l2_promoted_miss_pct") is not None:
        return None
    return Found(
        f"DRAM is read for {brief(ratio)} times what the kernel's own requests missed in L2",
        k.weight("dram"),
        advice="Read whole 64-byte pieces, or limit the fetch with cudaLimitMaxL2FetchGranularity.",
        detail="L2 fetches 64 bytes or more for a missed 32-byte sector, or partial writes are filled up.",
        gain=k.relief(100 * (1 - 1 / ratio), "dram"),
    )
