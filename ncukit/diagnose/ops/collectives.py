"""Collectives of several ranks: which kernels belong together, and by how much clocks differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from ncukit.diagnose.ops.attribute import owners
from ncukit.diagnose.ops.nesting import nest
from ncukit.diagnose.timeline.names import kernel_kind
from ncukit.model.ops import TorchTrace
from ncukit.model.ranks import Clock
from ncukit.model.trace import UNKNOWN, Columns, Trace
from ncukit.record import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
