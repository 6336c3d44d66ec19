"""Bytes and requests: what a better access pattern, a tile or a nearer place would take away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ncukit.judge.grid import hot_address, system_memory
from ncukit.judge.remedies.candidate import Candidate
from ncukit.judge.remedies.launch import Launch, opcode

BUSY = 0.6
"""A unit below this share is not worth relieving."""
SPREAD = 3.0
"""Wavefronts a request from which lanes lie apart: the widest access without excess needs two."""
NARROW = 1.8
"""Wavefronts a request up to which the number of requests limits, not their width."""
REQUESTS = 0.75
"""Share of LSU issue from which requests themselves are the limit."""
USEFUL = 0.6
"""Share of the arithmetic peak that well-tiled kernels reach."""
COMPULSORY = 1.2
"""Bytes moved over bytes needed up to which nothing is moved twice."""
STREAM = 0.85
"""Share of the DRAM peak from which DRAM limits."""
_BASE = re.compile(r"\[([A-Z0-9.]+)")
CEILINGS = ("dram", "tensor", "fp32", "fp16")
"""Units that a kernel can be done with; of others, a full one says that something could be better."""
AT_CEILING = 0.93
"""Share of what the best kernels reach, from which a unit is at its ceiling."""


def ceiling(launch: Launch) -> Candidate | None:
    """Return stop where the limiting unit does what it can, with no byte too many."""
    ranked = launch.facts.shares.ranked()
    if not ranked or ranked[0].unit.id not in CEILINGS or ranked[0].fullness < 100 * AT_CEILING:
        return None
    first = ranked[0]
    if first.unit.id == "dram" and (extra_bytes(launch) or local_heavy(launch)):
        return None
    return Candidate("stop", 1 - min(first.percent / 100, 1.0))


def extra_bytes(launch: Launch) -> bool:
    """Return whether DRAM moves clearly more than the loads that miss L1 and the stores."""
    read, moved = launch.value("read_per_missed", 1.0), launch.value("moved_per_asked", 1.0)
    return min(read, moved) > COMPULSORY and launch.value("uncoalesced_excess_pct") > 30


def local_heavy(launch: Launch) -> bool:
    """Return whether local memory is half of what leaves L1, or of what DRAM moves."""
    return max(launch.value("l2_local_share_pct"), launch.value("l1_local_share_pct") * 0.8) >= 50


def local(launch: Launch) -> Iterator[Candidate]:
    """Yield the end of local traffic: spills where the compiler ran out of registers, arrays elsewhere."""
    share = launch.value("l2_local_share_pct") / 100
    of_inst = launch.value("local_inst_share_pct") / 100
    ports = max(launch.unit("l2"), launch.fullness("dram"), launch.unit("l1"))
    if not (share >= 0.5 and ports >= 0.5) and not (of_inst >= 0.1 and launch.busiest < BUSY):
        return
    registers = launch.value("registers_per_thread")
    most = 65536 / max(launch.value("block_size", 256), 1)
    spilled = (
        launch.value("marked_spill_inst") > 0 or _constant_locals(launch) or registers >= min(most, 255) - 8
    )
    left = max(launch.issue or 0.0, 0.4)
    yield Candidate(
        "fix-spills" if spilled and share >= 0.5 and launch.shared > 0 else "no-local-memory",
        max(share, of_inst * 4) * 0.95, left, 0, "local_memory_bytes", 0.5,
    )  # fmt: skip


def _constant_locals(launch: Launch) -> bool:
    found = [row for row in launch.rows if opcode(row) == "LDL"]
    return bool(found) and sum("[R1" in row.text for row in found) > len(found) / 2


def spread_lanes(launch: Launch) -> Iterator[Candidate]:
    """Yield accesses of neighbouring lanes to neighbouring addresses, in global or in shared memory."""
    ways, stage = launch.ways, launch.data_stage
    if stage < BUSY or ways is None or ways < SPREAD:
        return
    left = max(launch.fullness("lsu"), launch.fullness("dram"), launch.issue or 0.0)
    removes = 1 - NARROW / ways
    if _is_shared(launch) and not _serialised(launch):
        yield Candidate(
            "register-tile", 0.6, max(arithmetic(launch) / USEFUL, left), 2, "shared_load_inst", 0.7
        )
        return
    if _is_shared(launch):
        ideal = launch.number("shared_load_ways")
        wide = any("128" in row.text for row in launch.rows if opcode(row) in ("LDS", "LDSM"))
        yield Candidate(
            "swizzle-shared" if wide and ideal is not None else "pad-shared",
            1 - 1 / ways, max(launch.unit("lsu"), launch.issue or 0.0, launch.unit("dram")), 0,
            "shared_load_wavefronts", 0.6,
        )  # fmt: skip
        return
    if launch.shared == 0 and (_multiplies(launch) or _rereads(launch)):
        yield tile_on_chip(launch)
        return
    if consecutive(launch):
        yield Candidate("vectorize-access", removes, max(left, 0.43), 1, "global_load_requests", 0.5)
    yield Candidate("coalesce", removes, left, 1, "global_load_sectors", 0.6)


def _is_shared(launch: Launch) -> bool:
    """Whether shared memory fills the data stage: hardly anything comes from L2 although it is full."""
    share = launch.number("shared_wavefront_share_pct")
    if share is not None:
        return share > 50
    return launch.shared > 4096 and launch.unit("l2") < 0.1 * launch.data_stage


def _serialised(launch: Launch) -> bool:
    """Whether lanes conflict in shared memory, as far as the report tells."""
    excess, ways = launch.number("shared_excess_share_pct"), launch.number("shared_load_ways")
    if excess is None and ways is None:
        return launch.number("shared_wavefront_share_pct") is None
    return (excess or 0.0) > 30 or (ways or 0.0) >= 2


def _multiplies(launch: Launch) -> bool:
    return (
        launch.value("tensor_inst") > 0 or launch.value("warp_mma_inst") > 0 or launch.unit("tensor") > 0.005
    )


def _rereads(launch: Launch) -> bool:
    """Whether DRAM moves kilobytes for each thread while L1 is full: the same values over and over."""
    moved = launch.number("dram_bytes")
    if moved is None:
        moved = launch.value("dram_bandwidth") * (launch.duration or 0.0)
    threads = (launch.blocks or 0.0) * launch.value("block_size")
    return (
        launch.data_stage >= 0.9 and launch.unit("dram") >= BUSY and bool(threads) and moved / threads > 2000
    )


def tile_on_chip(launch: Launch) -> Candidate:
    """Return a tile in shared memory, bounded by the arithmetic that stays."""
    left = max(arithmetic(launch) / USEFUL, 1 / 15)
    return Candidate("reuse-on-chip", 0.95, left, 2, "l1_to_l2_read_bytes", 0.5)


def arithmetic(launch: Launch) -> float:
    """Return how much of the peak rate of its arithmetic the kernel reached."""
    known = launch.number("roofline_fp32_pct")
    if known:
        return known / 100
    math = launch.executed("FFMA", "FADD", "FMUL", "HFMA2")
    if math and launch.issue:
        return math * launch.issue * (1 if launch.value("compute_capability") >= 80 else 2)
    return max(launch.unit("tensor"), launch.unit("fp32") / 2, 0.05)


def requests(launch: Launch) -> Iterator[Candidate]:
    """Yield more results a thread where loads are as many as operations, wider loads where there are few."""
    lsu, stage = launch.unit("lsu"), launch.data_stage
    ways = launch.ways or 1.0
    shared_full = launch.shared > 1024 and launch.unit("shared") >= REQUESTS and ways < SPREAD
    if not (lsu >= REQUESTS and ways < NARROW) and not shared_full:
        return
    loads = launch.executed("LDG", "LD", "LDS")
    maths = launch.executed("FFMA", "FADD", "FMUL", "HFMA2", "DFMA", "HMMA", "IMAD")
    floats = launch.value("inst_mix_fp32_pct") + launch.value("inst_mix_fp16_pct")
    if launch.rows and maths and maths / max(loads, 1e-9) >= 5:
        yield Candidate(
            "vectorize-shared", 1 - 1 / 2, max(launch.issue or 0, stage / 2), 1, "shared_load_inst", 0.6
        )
        return
    if launch.unit("fp32") > 0 or floats or maths:
        yield Candidate("register-tile", 0.875, arithmetic(launch) / USEFUL, 2, "inst_executed", 0.7)


def narrow_accesses(launch: Launch) -> Iterator[Candidate]:
    """Yield wider accesses where the LSU is the busiest unit with one wavefront a request."""
    lsu, ways = launch.unit("lsu"), launch.ways
    if not 0.5 <= lsu < REQUESTS or ways is None or ways > NARROW or lsu < launch.busiest - 0.02:
        return
    if (launch.issue or 0) < lsu and launch.shared < 16384:
        left = max(launch.issue or 0.0, launch.fullness("dram"), lsu / 2)
        yield Candidate("vectorize-access", 1 - lsu, left, 1, "inst_executed", 0.8)


def stores(launch: Launch) -> Iterator[Candidate]:
    """Yield whole sectors where L2's input is full of parts of them."""
    sectors = launch.value("global_store_sectors_per_request")
    if launch.unit("l2") >= BUSY and sectors >= 16 and launch.unit("l2") > launch.unit("dram"):
        left = max(launch.fullness("dram") * 1.1, 4 / sectors)
        yield Candidate("coalesce", 1 - 4 / sectors, left, 1, "global_store_sectors", 0.5)


def atomics(launch: Launch) -> Iterator[Candidate]:
    """Yield a reduction before the atomic where warps wait behind it, or one address takes all it can."""
    waiting = launch.waits_for("ATOM", "ATOMG", "RED", "REDG", "ATOMS")
    if waiting >= 0.2:
        yield Candidate("privatise-atomics", waiting, launch.issue or 0.0, 1, "l2_sectors_from_l1", 0.7)
    busy = launch.value("l2_atomic_unit_cycles_per_cycle") >= 0.5 and launch.busiest < BUSY
    if busy or hot_address(launch.facts) is not None:
        yield Candidate("privatise-atomics", 0.9, max(launch.busiest, 0.1), 1, "l2_sectors_from_l1", 0.7)


def off_device(launch: Launch) -> Iterator[Candidate]:
    """Yield memory of the device where L2 is filled from the host, however little that is of the link."""
    if system_memory(launch.facts) is not None:
        left = max(launch.issue or 0.0, launch.busiest, 0.1)
        yield Candidate("keep-on-device", 0.95, left, 0, "l2_miss_sysmem_sectors", 0.5)


def full_dram(launch: Launch) -> Iterator[Candidate]:
    """Yield what takes bytes from a full DRAM: locality where it reads the same twice, else narrower data."""
    dram = launch.unit("dram")
    if dram < 0.7:
        return
    if launch.unit("l2") > 0.6 and launch.value("l2_hit_rate_pct", 100) > 30:
        yield Candidate("l2-locality", 1 - launch.unit("l2") * 0.9, launch.issue or 0.0, 2, "dram_bytes", 0.8)
    elif dram >= STREAM and not extra_bytes(launch):
        yield Candidate("reduce-bytes", 0.5, launch.issue or 0.0, 2, "dram_bytes", 0.6)
    elif extra_bytes(launch):
        yield Candidate("coalesce", 0.3, launch.issue or 0.0, 1, "dram_bytes", 0.8)
    elif launch.value("block_size", 1024) <= 128 or launch.value("global_load_sectors_per_request", 9) <= 4:
        yield Candidate(
            "more-in-flight", 1 - launch.fullness("dram"), 0.0, 1, "dram_throughput_pct", 1.1, rises=True
        )


def consecutive(launch: Launch) -> bool:
    """Return whether a thread loads neighbouring bytes one by one: four byte loads at one base."""
    bases: Counter[str] = Counter()
    for row in launch.rows:
        if opcode(row) == "LDG" and row.opcode.endswith((".U8", ".S8")):
            bases.update(_BASE.findall(row.text))
    return max(bases.values(), default=0) >= 4
