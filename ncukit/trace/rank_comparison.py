"""Ranks beside each other: which collectives belong together, who came late, and why."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from statistics import median
from typing import TYPE_CHECKING, Protocol

from ncukit.model.ops import (
    Arrival,
    Cause,
    Clock,
    Collective,
    CollectiveKind,
    LateRank,
    NcclLog,
    Ranks,
    RankTime,
    Setting,
    TorchTrace,
)
from ncukit.model.trace import UNKNOWN, Columns, Trace
from ncukit.record import dataclass
from ncukit.trace.files import setting
from ncukit.trace.intervals import Times, kernel_kind, nothing, span, union
from ncukit.trace.operators import nest, owners

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# ---- Collectives of several ranks: which kernels belong together, and by how much clocks differ

KINDS = (
    ("all-reduce", re.compile(r"all_?reduce", re.IGNORECASE)),
    ("reduce-scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all-gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all-to-all", re.compile(r"all_?to_?all(?!.*sendrecv)", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
    ("send-receive", re.compile(r"send|recv", re.IGNORECASE)),
    ("barrier", re.compile(r"barrier", re.IGNORECASE)),
)
"""Names of collectives in kernels and in torch, the first that matches wins."""
TOGETHER = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "barrier")
"""Collectives that no rank can leave before every rank has come: they end together."""
AGREE = 90
"""[%] of the ends that agree within the spread of a clock."""

Key = tuple[str, str]
Instance = tuple[str, str, int]


@dataclass(frozen=True)
class Piece:
    """One kernel of a collective on one rank [ns, on its own clock]."""

    start: int
    end: int
    bytes: int | None


def collective_kind(name: str) -> str:
    """Return what a collective is called here.

    >>> collective_kind("ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"), collective_kind("_allgather_base")
    ('all-reduce', 'all-gather')
    """
    return next((kind for kind, pattern in KINDS if pattern.search(name)), "other")


def is_collective(trace: Trace) -> NDArray[np.bool_]:
    """Return which kernels communicate."""
    import numpy as np

    rows = trace.kernels
    unique, inverse = np.unique(rows["name"], return_inverse=True)
    of_name = [kernel_kind(trace.names[int(i)]) == "collective" for i in unique]
    found = np.array(of_name, bool)[inverse.reshape(-1)] if len(unique) else np.zeros(0, bool)
    return found | (rows["collective"] != UNKNOWN) if "collective" in rows else found


def pieces(trace: TorchTrace) -> dict[Instance, Piece]:
    """Return the collectives of a rank: kind, group, and which of them, by torch's number or by order.

    Torch's sequence number is used where every kernel of a group has one of its own.  NCCL sends and receives
    also for all-to-all: then the operator that launched the kernel tells what it was.
    """
    mask = is_collective(trace.trace)
    rows = trace.trace.kernels.take(mask)
    keys = [_key(trace.trace, rows, row) for row in range(len(rows))]
    if any(kind == "send-receive" for kind, _ in keys):
        asked = _operators(trace, mask)
        keys = [
            (said, group) if kind == "send-receive" and said else (kind, group)
            for (kind, group), said in zip(keys, asked, strict=True)
        ]
    by_key: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        by_key.setdefault(key, []).append(row)
    found: dict[Instance, Piece] = {}
    for (kind, group), of in by_key.items():
        said = [int(rows["sequence"][row]) for row in of] if "sequence" in rows else []
        numbers = said if said and UNKNOWN not in said and len(set(said)) == len(said) else range(len(of))
        for number, row in zip(numbers, of, strict=True):
            size = int(rows["bytes"][row]) if "bytes" in rows else UNKNOWN
            found[kind, group, number] = Piece(
                int(rows["start"][row]), int(rows["end"][row]), None if size == UNKNOWN else size
            )
    return found


def _operators(trace: TorchTrace, mask: NDArray[np.bool_]) -> list[str]:
    """Return what torch's operators call the collectives of these kernels, "" where none says so."""
    names = trace.trace.names
    made = nest(trace.operators, trace.operators["name"])
    found = []
    for row in owners(trace, made).of["kernels"][mask].tolist():
        said = ""
        while row != UNKNOWN and not said:
            name = names[int(made.key[row])]
            kind = collective_kind(name) if name.startswith(("c10d::", "nccl:")) else "other"
            said = "" if kind == "other" else kind
            row = int(made.parent[row])
        found.append(said)
    return found


def _key(trace: Trace, rows: Columns, row: int) -> Key:
    said = int(rows["collective"][row]) if "collective" in rows else UNKNOWN
    name = trace.names[said] if said != UNKNOWN else trace.names[int(rows["name"][row])]
    group = int(rows["group"][row]) if "group" in rows else UNKNOWN
    return collective_kind(name), trace.names[group] if group != UNKNOWN else ""


def clocks(found: Mapping[int, Mapping[Instance, Piece]], ranks: Sequence[int]) -> tuple[Clock, ...]:
    """Return how the clock of each rank is set to that of the first, by ends of what ends together.

    A rank that shares no collective with one whose clock is set stays without.
    """
    if not ranks:
        return ()
    known: dict[int, Clock] = {ranks[0]: Clock(ranks[0], 0, 0, 0)}
    waiting = list(ranks[1:])
    while waiting:
        linked = [(r, c) for r in waiting if (c := _linked(found, known, r)) is not None]
        if not linked:
            break
        known.update(linked)
        waiting = [rank for rank in waiting if rank not in known]
    return tuple(known.get(rank, Clock(rank, None, 0, 0)) for rank in ranks)


def _linked(
    found: Mapping[int, Mapping[Instance, Piece]], known: Mapping[int, Clock], rank: int
) -> Clock | None:
    best: Clock | None = None
    for other, clock in known.items():
        differences = [
            found[other][one].end - piece.end
            for one, piece in found[rank].items()
            if one[0] in TOGETHER and one in found[other]
        ]
        if differences and (best is None or len(differences) > best.n):
            shift = round(median(differences))
            off = sorted(abs(d - shift) for d in differences)
            spread = off[min(len(off) - 1, len(off) * AGREE // 100)]
            best = Clock(rank, (clock.offset or 0) + shift, clock.spread + spread, len(differences))
    return best


# ---- Ranks beside each other: where each one's time went, who came late to a collective, and why

CAUSES: tuple[Cause, ...] = ("compute", "copy", "host")
SURE = 2
"""A rank counts as late where it came later than so many times the spread of the clocks."""


class Traced(Protocol):
    """The trace of one rank."""

    @property
    def rank(self) -> int:
        """Which rank."""

    @property
    def trace(self) -> TorchTrace:
        """Its trace."""


@dataclass(frozen=True, eq=False)
class _Rank:
    """The work of one rank, on its own clock."""

    compute: Times
    communication: Times
    copies: Times
    window: Times

    def between(self, start: int, end: int) -> dict[Cause, int]:
        """Return how the time from ``start`` to ``end`` was spent: computing, copying, or neither."""
        import numpy as np

        at = np.array([start], np.int64), np.array([max(start, end)], np.int64)
        compute = int(self.compute.within(*at)[0])
        copy = int((self.copies - self.compute).within(*at)[0])
        return {"compute": compute, "copy": copy, "host": max(0, end - start) - compute - copy}


def analyse_ranks(traced: Sequence[Traced], log: NcclLog | None = None, folder: str = "") -> Ranks:
    """Return what the traces say together; ``log`` is what NCCL printed."""
    ranks = [one.rank for one in traced]
    found = {one.rank: pieces(one.trace) for one in traced}
    work = {one.rank: _work(one.trace) for one in traced}
    set_clocks = clocks(found, ranks)
    known = {clock.rank: clock for clock in set_clocks if clock.offset is not None}
    collectives = _collectives(found, work, known)
    waiting: dict[int, int] = defaultdict(int)
    for one in collectives:
        for arrival in one.arrivals:
            waiting[arrival.rank] += min(arrival.wait, arrival.end - arrival.start)
    times = tuple(_rank_time(one, work[one.rank], waiting.get(one.rank)) for one in traced)
    size, settings = _said(traced, log)
    return Ranks(
        folder=folder or (str(PurePath(traced[0].trace.trace.file.path).parent) if traced else ""),
        reference=ranks[0] if ranks else 0,
        world_size=size,
        ranks=times,
        clocks=set_clocks,
        kinds=_kinds(found, collectives),
        collectives=collectives,
        late=_late(collectives),
        settings=settings,
        transports={} if log is None else log.transports,
        notes=(*_notes(set_clocks, size, len(ranks), log), *_counts(found)),
        missing=tuple(_missing(found, set_clocks)),
    )


def _work(trace: TorchTrace) -> _Rank:
    rows = trace.trace.kernels
    mask = is_collective(trace.trace)
    compute = union(rows["start"][~mask], rows["end"][~mask])
    communication = union(rows["start"][mask], rows["end"][mask])
    copies = nothing()
    for moved in (trace.trace.copies, trace.trace.memsets):
        copies = copies | union(moved["start"], moved["end"])
    return _Rank(compute, communication, copies, span(compute, communication, copies))


def _rank_time(one: Traced, work: _Rank, waiting: int | None) -> RankTime:
    gpus = one.trace.trace.gpus
    devices = set(one.trace.trace.kernels["device"].tolist())
    name = next((gpus[d].name for d in sorted(devices) if d in gpus), None)
    exposed = (work.communication - work.compute).length
    busy = work.compute | work.communication
    return RankTime(
        rank=one.rank,
        file=one.trace.trace.file.path,
        gpu=name,
        span=work.window.length,
        compute=work.compute.length,
        communication=work.communication.length,
        hidden=work.communication.length - exposed,
        exposed=exposed,
        copy=(work.copies - busy).length,
        empty=(work.window - (busy | work.copies)).length,
        waiting=waiting,
    )


def _collectives(
    found: Mapping[int, Mapping[Instance, Piece]], work: Mapping[int, _Rank], known: Mapping[int, Clock]
) -> tuple[Collective, ...]:
    """Return the collectives that at least two ranks with a clock took part in, in order of their start."""
    by_instance: dict[Instance, dict[int, Piece]] = defaultdict(dict)
    previous = {rank: _previous(found[rank], work[rank]) for rank in known}
    for rank in known:
        for one, piece in found[rank].items():
            by_instance[one][rank] = piece
    made = [_collective(one, of, work, known, previous) for one, of in by_instance.items() if len(of) > 1]
    return tuple(sorted(made, key=lambda c: min(a.start for a in c.arrivals)))


def _previous(found: Mapping[Instance, Piece], work: _Rank) -> dict[Instance, int]:
    """Return for each collective of a rank when the one before it ended, or the rank's work began."""
    ordered = sorted(found.items(), key=lambda item: item[1].start)
    last = int(work.window.start[0]) if len(work.window) else 0
    ends = {}
    for one, piece in ordered:
        ends[one] = min(last, piece.start)
        last = max(last, piece.end)
    return ends


def _collective(
    one: Instance,
    of: Mapping[int, Piece],
    work: Mapping[int, _Rank],
    known: Mapping[int, Clock],
    previous: Mapping[int, Mapping[Instance, int]],
) -> Collective:
    shift = {rank: known[rank].offset or 0 for rank in of}
    starts = {rank: piece.start + shift[rank] for rank, piece in of.items()}
    last = max(starts, key=lambda rank: starts[rank])
    before = {rank: work[rank].between(previous[rank][one], piece.start) for rank, piece in of.items()}
    late = round(starts[last] - median(start for rank, start in starts.items() if rank != last))
    excess = {
        cause: round(before[last][cause] - median(b[cause] for rank, b in before.items() if rank != last))
        for cause in CAUSES
    }
    spread = max(known[rank].spread for rank in of)
    worst = max(CAUSES, key=lambda cause: excess[cause])
    shown = late > SURE * spread and excess[worst] > 0
    sizes = [piece.bytes for rank, piece in sorted(of.items()) if piece.bytes is not None]
    return Collective(
        name=one[0],
        group=one[1],
        number=one[2],
        bytes=sizes[0] if sizes else None,
        arrivals=tuple(
            Arrival(rank, starts[rank], of[rank].end + shift[rank], starts[last] - starts[rank], before[rank])
            for rank in sorted(of)
        ),
        last=last,
        late=late,
        transfer=max(piece.end + shift[rank] for rank, piece in of.items()) - starts[last],
        why=worst if shown else None,
        excess=excess,
    )


def _late(collectives: Sequence[Collective]) -> tuple[LateRank, ...]:
    """Return the ranks that came last to some collective, the one that cost the others most first."""
    by_rank: dict[int, list[Collective]] = defaultdict(list)
    for one in collectives:
        if one.why is not None:
            by_rank[one.last].append(one)
    found = []
    for rank, of in by_rank.items():
        excess = {cause: sum(one.excess[cause] for one in of) for cause in CAUSES}
        worst = max(CAUSES, key=lambda cause: excess[cause])
        n = sum(any(a.rank == rank for a in one.arrivals) for one in collectives)
        late, caused = sum(one.late for one in of), sum(one.waited for one in of)
        found.append(LateRank(rank, len(of), n, late, caused, worst, excess))
    return tuple(sorted(found, key=lambda one: (-one.caused, one.rank)))


def _kinds(
    found: Mapping[int, Mapping[Instance, Piece]], collectives: Sequence[Collective]
) -> tuple[CollectiveKind, ...]:
    lengths: dict[tuple[str, str], list[int]] = defaultdict(list)
    ranks: dict[tuple[str, str], set[int]] = defaultdict(set)
    for rank, of in found.items():
        for (name, group, _), piece in of.items():
            lengths[name, group].append(piece.end - piece.start)
            ranks[name, group].add(rank)
    made = []
    for (name, group), of_kind in lengths.items():
        matched = [one for one in collectives if (one.name, one.group) == (name, group)]
        made.append(
            CollectiveKind(
                name=name,
                group=group,
                ranks=len(ranks[name, group]),
                n=len(of_kind),
                matched=len(matched),
                median=median(of_kind),
                transfer=median(one.transfer for one in matched) if matched else None,
                waited=sum(one.waited for one in matched) if matched else None,
            )
        )
    return tuple(sorted(made, key=lambda kind: -kind.median * kind.n))


def _said(traced: Sequence[Traced], log: NcclLog | None) -> tuple[int | None, tuple[Setting, ...]]:
    """Return the number of ranks of the program and the settings, as traces and log say them."""
    size: int | None = None
    settings: list[Setting] = []
    for one in traced:
        set_by = one.trace.head.get("nccl_environment")
        if isinstance(set_by, dict):
            settings += [setting(str(name), str(value), "environment") for name, value in set_by.items()]
        said = one.trace.head.get("distributedInfo")
        if not isinstance(said, dict):
            continue
        if isinstance(said.get("world_size"), int):
            size = max(size or 0, said["world_size"])
        for key in ("backend", "nccl_version"):
            if isinstance(said.get(key), str):
                settings.append(Setting(key, said[key], "trace"))
    if log is not None:
        settings += [Setting("NCCL version", log.version, "log")] if log.version else []
        settings += log.settings
        size = size or log.ranks
    return size, tuple(dict.fromkeys(settings))


def _notes(set_clocks: Sequence[Clock], size: int | None, ranks: int, log: NcclLog | None) -> list[str]:
    linked = [clock for clock in set_clocks if clock.n]
    found = []
    if linked:
        spread = max(clock.spread for clock in linked)
        n = min(clock.n for clock in linked)
        found.append(
            "clocks of different machines differ: they were set so that collectives which all ranks leave "
            f"together end together ({n:,} or more a rank; nine of ten ends then agree within "
            f"{spread / 1e3:,.1f} µs), and nobody is called late by less than {SURE} times that"
        )
    if size is not None and size > ranks:
        found.append(f"{ranks:,} of {size:,} ranks are here: a rank that is not here may have been the last")
    if log is not None:
        found += [f"NCCL warned: {text}" for text in log.warnings]
    return found


def _counts(found: Mapping[int, Mapping[Instance, Piece]]) -> list[str]:
    """Return for which collectives ranks disagree about how many there were: those may be matched wrongly."""
    counts: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for rank, of in found.items():
        for name, group, _ in of:
            counts[name, group][rank] = counts[name, group].get(rank, 0) + 1
    return [
        f"ranks do not agree on the number of {f'{name} {group}'.strip()} ({min(of.values()):,} to "
        f"{max(of.values()):,}): if they began to record at different steps, they are matched wrongly"
        for (name, group), of in counts.items()
        if len(set(of.values())) > 1
    ]


def _missing(found: Mapping[int, Mapping[Instance, Piece]], set_clocks: Sequence[Clock]) -> list[str]:
    if not any(found.values()):
        return [
            "no kernel of a collective is in these traces (a CPU backend, or a step without one was "
            "recorded): nothing can be said about who was late"
        ]
    if len(found) < 2:
        return ["one rank alone shows how long its collectives took, not for whom it waited"]
    return [
        f"rank {clock.rank} shares no collective that ends together with the others: its clock is not set, "
        "and it is left out of who was late"
        for clock in set_clocks
        if clock.offset is None
    ]
