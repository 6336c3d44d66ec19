"""Rules on global memory: access patterns, and what the caches could serve."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncukit.judge.grid import IDLE, QUIET
from ncukit.judge.places import first_place, places
from ncukit.judge.rule import Found, Gain, View, rule
from ncukit.media import listed as in_words
from ncukit.model import Place
from ncukit.quantity import brief

if TYPE_CHECKING:
    from ncukit.model.source import Cost, SassRow


# ---- Access patterns of global memory: sectors a request, bytes used of each, width of an access

SCATTERED = 16.0
"""Sectors a request that even 16-byte elements need: above, the pattern is scattered."""

IDEAL = 4.0
"""Sectors a request of 32 four-byte elements."""

HALF_USED = 16.0
"""[byte/sector] Below this more than half of each 32-byte sector is moved for nothing."""

EXCESS = 15.0
"""[%] Excess sectors worth naming: a misaligned start costs 20 %, one odd sector among many less."""

PARTIAL = 24.0
"""[byte/sector] Stores that fill less than three quarters of a sector."""

MORE_THAN_STORED = 1.3
"""DRAM writes over stored bytes: below, L2 merged the partial sectors before it wrote them back."""

SMALL_STORES = 10.0
"""[%] of the global sectors: fewer stores cannot matter."""

NARROW = 2.0
"""[byte] a thread and access: a warp then fills at most two of the four sectors of a line."""

WIDE = 16.0
"""[byte] The widest access of a thread."""

CLEAN = 1.0
"""[%] Excess sectors below which the pattern is as good as it can be."""

DIRECTIONS = ("load", "store")

LOADS = re.compile(r"^(LDG|LD|LDGSTS|ATOMG?)\b")
STORES = re.compile(r"^(STG|ST|REDG?|ATOMG?)\b")
ACCESSES = re.compile(r"^(LDG|STG|LDGSTS)\b")
_BYTES = {"U8": 1, "S8": 1, "8": 1, "U16": 2, "S16": 2, "16": 2, "64": 8, "128": 16}

COALESCE = (
    "Let neighbouring threads touch neighbouring addresses: swap the index that runs fastest, use a "
    "structure of arrays, or go through shared memory."
)


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
    where = _where(k, LOADS if direction == "load" else STORES)
    detail = f"Of the excess sectors {first_place(where)}." if where else ""
    if used is not None and not copies:  # copies count sectors here, and no bytes
        if used >= HALF_USED:
            return None
        return Found(
            f"Global {direction}s touch {brief(sectors)} sectors a request and use {brief(used)} of 32 "
            "bytes in each",
            k.weight("l1", "l2", "dram"),
            advice=COALESCE,
            detail=detail,
            gain=_relief(k, 100 * (1 - used / 32)),
            places=where,
        )
    excess = k.get("uncoalesced_excess_pct")
    if excess is not None and excess < EXCESS:
        return None
    if sectors > SCATTERED and not copies:
        return Found(
            f"Global {direction}s touch {brief(sectors)} sectors a request; even 16-byte elements need "
            "only 16",
            k.weight("l1", "l2", "dram"),
            advice=COALESCE,
            detail=detail,
            gain=_relief(k, 100 * (1 - SCATTERED / sectors)),
            places=where,
        )
    if copies and sectors > SCATTERED and excess is None:
        return None  # LDGSTS counts its sectors on few requests: above 16 this says nothing
    if sectors > 2 * IDEAL * 0.95 or excess is not None:
        return Found(
            f"Global {direction}s touch {brief(sectors)} sectors a request: ideal only for elements of "
            f"{brief(sectors)} bytes, 4 would do for 4-byte ones",
            "low" if excess is None else k.weight("l1", "l2", "dram"),
            advice=COALESCE,
            detail=detail,
            places=where,
        )
    return None


@rule("excess-sectors", family="memory", needs=("uncoalesced_excess_pct",))
def excess_sectors(k: View) -> Found | None:
    """Share [%] of the global sectors beyond what the addresses of the instructions need."""
    excess = k["uncoalesced_excess_pct"]
    if excess < EXCESS:
        return None
    where = _where(k, re.compile(""))
    return Found(
        f"{brief(excess, '%')} of the global-memory sectors are excess over a coalesced pattern",
        k.weight("l1", "l2", "dram"),
        advice=COALESCE,
        detail=f"Of the excess sectors {first_place(where)}." if where else "",
        gain=_relief(k, excess),
        places=where,
    )


@rule("coalesced", family="memory", needs=("uncoalesced_excess_pct", "uncoalesced_excess_sectors"))
def coalesced(k: View) -> Found | None:
    """Global accesses move no sector that their addresses do not need."""
    excess, moved = (
        k["uncoalesced_excess_pct"],
        [k.get(f"global_{d}_sectors_per_request") for d in DIRECTIONS],
    )
    if excess >= CLEAN or not any(moved):
        return None
    each = [f"{brief(n)} for {d}s" for d, n in zip(DIRECTIONS, moved, strict=True) if n]
    return Found(
        f"Global accesses are coalesced: {brief(excess, '%')} of their sectors are excess; "
        f"sectors a request: {in_words(each)}",
        "info",
        advice="Another access pattern would not help; fewer or wider accesses might.",
    )


@rule(
    "partial-writes",
    family="memory",
    needs=("global_store_bytes_per_sector", "written_per_stored", "global_store_sectors"),
)
def partial_writes(k: View) -> Found | None:
    """Stores fill part of each sector, and L2 writes back whole ones."""
    filled, ratio = k["global_store_bytes_per_sector"], k["written_per_stored"]
    stores, loads = k["global_store_sectors"], k.get("global_load_sectors") or 0.0
    if not 0 < filled < PARTIAL or ratio < MORE_THAN_STORED:
        return None
    if 100 * stores < SMALL_STORES * (stores + loads):
        return None
    where = places(k.source, lambda c: c.excess_sectors, "sector", lambda row: bool(STORES.match(row.opcode)))
    return Found(
        f"Stores fill {brief(filled)} of the 32 bytes of a sector, and DRAM is written {brief(ratio)} times "
        "what threads stored",
        k.weight("dram", "l2"),
        advice="Let a warp write whole sectors: 32 contiguous, aligned bytes at once.",
        detail="A partial sector that leaves L2 before its other bytes arrive is written back whole.",
        gain=_writes(k, ratio),
        places=where,
    )


def _writes(k: View, ratio: float) -> Gain | None:
    share = k.get("dram_write_share_pct")
    return None if share is None else k.relief(share * (1 - 1 / ratio), "dram")


@rule("narrow-accesses", family="memory", needs=("@code",))
def narrow_accesses(k: View) -> Found | None:
    """Threads access global memory a few bytes at a time."""
    assert k.source is not None
    rows = [row for row in k.source.rows if ACCESSES.match(row.opcode) and row.cost.instructions]
    count = sum(row.cost.instructions or 0 for row in rows)
    if not count:
        return None
    width = sum(access_width(row.opcode) * (row.cost.instructions or 0) for row in rows) / count
    crowded = max(k.share("lsu"), k.share("issue")) >= 60  # then the number of accesses is what costs
    if width > NARROW and not (crowded and width < WIDE / 2):
        return None
    k.get("global_load_inst")
    k.get("global_store_inst")

    def narrow(row: SassRow) -> bool:
        return bool(ACCESSES.match(row.opcode)) and access_width(row.opcode) < WIDE

    where = places(k.source, _instructions, "inst", narrow)
    return Found(
        f"A thread moves {brief(width)} bytes with each global access, where 16 are possible",
        "medium" if crowded else "low",
        advice="Let each thread process several neighbouring elements with one vector access (float4, "
        "uint4, __half2).",
        detail=f"Of the narrow accesses {first_place(where)}." if where else "",
        gain=Gain(
            100 * (1 - width / WIDE),
            "local",
            "of the access instructions, if every access were 16 bytes wide",
        ),
        places=where,
    )


def _instructions(cost: Cost) -> int | None:
    return cost.instructions


def access_width(opcode: str) -> int:
    """Return how many bytes [byte] a thread moves with this access.

    >>> access_width("LDG.E.128.CONSTANT"), access_width("STG.E.U8"), access_width("LDG.E")
    (16, 1, 4)
    """
    return next((_BYTES[part] for part in opcode.split(".")[1:] if part in _BYTES), 4)


def _where(k: View, opcodes: re.Pattern[str]) -> tuple[Place, ...]:
    return places(k.source, lambda c: c.excess_sectors, "sector", lambda row: bool(opcodes.match(row.opcode)))


def _relief(k: View, removable: float) -> Gain:
    """Return what ``removable`` [%] fewer sectors save: in DRAM only what was not asked for."""
    ranked = k.facts.shares.ranked()
    if ranked and ranked[0].full and ranked[0].unit.id == "dram":
        moved = k.get("moved_per_asked")
        removable = (
            0.0 if moved is None else min(removable, max(0.0, 100 * (1 - 1 / moved)) if moved else 0.0)
        )
    return k.relief(removable, "l1", "l2", "dram")


# ---- What the caches served, what they could not, and why

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
