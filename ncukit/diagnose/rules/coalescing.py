"""Access patterns of global memory: sectors a request, bytes used of each, width of an access."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncukit.diagnose.places import listed, places
from ncukit.diagnose.rule import Found, Gain, View, rule
from ncukit.diagnose.words import listed as in_words
from ncukit.model import Place
from ncukit.quantity import brief

if TYPE_CHECKING:
    from ncukit.model.source import Cost, SassRow

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
    detail = f"Of the excess sectors {listed(where)}." if where else ""
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
        detail=f"Of the excess sectors {listed(where)}." if where else "",
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
        detail=f"Of the narrow accesses {listed(where)}." if where else "",
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
