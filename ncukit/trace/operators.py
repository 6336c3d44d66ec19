"""Operators of torch: which runs inside which, what each launched, calls of one kind as one row."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ncukit.errors import UsageError
from ncukit.model.ops import Attribution, KernelUse, Operator, TorchTrace
from ncukit.model.trace import UNKNOWN, Columns
from ncukit.record import dataclass
from ncukit.trace.activity import Named
from ncukit.trace.intervals import union
from ncukit.trace.scope import launching_calls, matching

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


# ---- Which operator runs inside which, and which one a thread was in at a given time


@dataclass(frozen=True, eq=False)
class Nest:
    """Spans ordered by thread, then start, the longer first; ``parent`` is a row of it, or -1.

    ``own`` [ns] is the time of a span without those inside it; ``outermost`` says whether no span around it
    has the same key.
    """

    thread: Ints
    start: Ints
    end: Ints
    key: Ints
    parent: Ints
    own: Ints
    outermost: Mask
    order: Ints
    """For each row, its row in what the nest was made of."""

    def __len__(self) -> int:
        return len(self.start)

    def innermost(self, thread: Ints, time: Ints) -> Ints:
        """Return for each ``time`` the innermost span that its ``thread`` was in, -1 where it was in none."""
        import numpy as np

        found = np.full(len(time), UNKNOWN, np.int64)
        if not len(self):
            return found
        for one in np.unique(thread):
            low, high = (int(i) for i in np.searchsorted(self.thread, (one, one + 1)))
            mask = thread == one
            at = time[mask]
            row = low - 1 + np.searchsorted(self.start[low:high], at, side="right")
            row = np.where(row < low, UNKNOWN, row)
            while (past := (row != UNKNOWN) & (self.end[row] < at)).any():
                row = np.where(past, self.parent[row], row)
            found[mask] = row
        return found

    def with_inner(self, amount: Ints) -> Ints:
        """Return for each span the ``amount`` of it and of all spans inside it.

        >>> import numpy as np
        >>> spans = {"thread": [1, 1], "start": [0, 2], "end": [9, 5]}
        >>> made = nest(Columns({k: np.array(v) for k, v in spans.items()}), np.array([0, 1]))
        >>> made.with_inner(np.array([1, 10])).tolist(), made.own.tolist()
        ([11, 10], [6, 3])
        """
        import numpy as np

        total = amount.tolist()
        parents = self.parent.tolist()
        for row in range(len(total) - 1, -1, -1):  # what is inside comes later
            if parents[row] != UNKNOWN:
                total[parents[row]] += total[row]
        return np.array(total, np.int64)


def nest(rows: Columns, key: Ints) -> Nest:
    """Return how ``rows`` (thread, start, end) nest; ``key`` tells which of them are the same.

    A span that outlasts the one it began in, which rounding does, counts in it as far as that one reaches.
    Of two that begin and end together, the one with the larger External id began later: it is inside.
    """
    import numpy as np

    began = rows["external"] if "external" in rows else np.arange(len(rows))
    order = np.lexsort((began, -rows["end"], rows["start"], rows["thread"]))
    thread, start, end, keys = (a[order] for a in (rows["thread"], rows["start"], rows["end"], key))
    parent: list[int] = [UNKNOWN] * len(order)
    inner = [0] * len(order)
    outermost = [True] * len(order)
    stack: list[int] = []
    open_keys: dict[int, int] = {}
    last = None
    starts, ends, same = start.tolist(), end.tolist(), keys.tolist()
    for row, of in enumerate(thread.tolist()):
        if of != last:
            stack, open_keys, last = [], {}, of
        while stack and ends[stack[-1]] <= starts[row]:
            open_keys[same[stack.pop()]] -= 1
        if stack:
            parent[row] = top = stack[-1]
            inner[top] += min(ends[row], ends[top]) - starts[row]
        outermost[row] = not open_keys.get(same[row])
        open_keys[same[row]] = open_keys.get(same[row], 0) + 1
        stack.append(row)
    own = end - start - np.array(inner, np.int64)
    return Nest(thread, start, end, keys, np.array(parent, np.int64), own, np.array(outermost, bool), order)


# ---- Which operator launched which work of the GPU, and made which CUDA call

WORK = ("kernels", "copies", "memsets")


@dataclass(frozen=True, eq=False)
class Owners:
    """The operator of each piece of work and of each call, as a row of the nest, or -1."""

    of: dict[str, Ints]
    of_calls: Ints
    attribution: Attribution


def owners(trace: TorchTrace, nest: Nest) -> Owners:
    """Return what belongs to which operator.

    The call that launched the work (same correlation) ran inside the operator, on its thread.  Where the
    trace lacks that call, or no operator was open then, torch's External id tells, if it is an operator's.
    """
    import numpy as np

    rows = trace.trace
    ids = _operators_by_id(trace, nest)
    calls = rows.calls
    inside = nest.innermost(calls["thread"], calls["start"])
    of_calls = np.where(inside == UNKNOWN, _by_id(calls, ids), inside)
    of: dict[str, Ints] = {}
    sums = dict.fromkeys(("work", "by_call", "by_id", "outside", "n", "n_outside", "without_call"), 0)
    for kind in WORK:
        work: Columns = getattr(rows, kind)
        call = launching_calls(calls, work)
        by_call = np.where(call == UNKNOWN, UNKNOWN, inside[call] if len(calls) else UNKNOWN)
        named = _by_id(work, ids)
        of[kind] = np.where(by_call == UNKNOWN, named, by_call)
        length, lost = work.duration, of[kind] == UNKNOWN
        sums["work"] += int(length.sum())
        sums["by_call"] += int(length[by_call != UNKNOWN].sum())
        sums["by_id"] += int(length[(by_call == UNKNOWN) & ~lost].sum())
        sums["outside"] += int(length[lost].sum())
        sums["n"] += len(work)
        sums["n_outside"] += int(lost.sum())
        sums["without_call"] += int((call == UNKNOWN).sum())
    return Owners(of, of_calls, Attribution(**sums))


def _operators_by_id(trace: TorchTrace, nest: Nest) -> tuple[Ints, Ints]:
    """Return the External ids of operators, sorted, and the operator of each; none where they mean nothing.

    Old versions write the correlation into the External id of GPU work: then it names no operator.
    """
    import numpy as np

    none = np.empty(0, np.int64)
    seen = [rows for kind in WORK if len(rows := getattr(trace.trace, kind))]
    if all(((r["external"] == r["correlation"]) | (r["external"] == UNKNOWN)).all() for r in seen):
        return none, none
    external = trace.operators["external"][nest.order]
    known = np.flatnonzero(external != UNKNOWN)
    order = known[np.argsort(external[known], kind="stable")]
    return external[order], order


def _by_id(rows: Columns, ids: tuple[Ints, Ints]) -> Ints:
    import numpy as np

    known, operators = ids
    if not len(known) or not len(rows):
        return np.full(len(rows), UNKNOWN, np.int64)
    place = np.minimum(np.searchsorted(known, rows["external"]), len(known) - 1)
    return np.where(known[place] == rows["external"], operators[place], UNKNOWN)


# ---- Calls of the same operator with the same inputs as one row, with all that they launched

IDENTITY = ("name", "shapes", "types")


def keys(operators: Columns) -> tuple[Ints, Ints]:
    """Return the distinct operators (name, shapes, types), and for each call which of them it is."""
    import numpy as np

    if not len(operators):
        return np.empty((0, 3), np.int64), np.empty(0, np.int64)
    rows = np.stack([operators[field] for field in IDENTITY], axis=1)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    return distinct, which.reshape(-1)


def operators(trace: TorchTrace, nest: Nest, distinct: Ints, owned: Owners) -> tuple[Operator, ...]:
    """Return the operators in no order; ``distinct`` is from `keys`."""
    import numpy as np

    n, rows, names = len(distinct), trace.trace, trace.trace.names
    if not len(nest):
        return ()
    device = np.zeros(len(nest), np.int64)
    for kind, of in owned.of.items():
        work: Columns = getattr(rows, kind)
        np.add.at(device, of[of != UNKNOWN], work.duration[of != UNKNOWN])
    top = nest.outermost

    def summed(values: Ints, where: NDArray[np.bool_] | None = None) -> list[int]:
        key = nest.key if where is None else nest.key[where]
        total = np.zeros(n, np.int64)
        np.add.at(total, key, values)
        found: list[int] = total.tolist()
        return found

    cpu_total = summed((nest.end - nest.start)[top], top)
    device_total = summed(nest.with_inner(device)[top], top)
    calls, cpu_self, device_self = summed(np.ones_like(nest.own)), summed(nest.own), summed(device)
    used = _kernels(trace, nest, owned)
    counts = {kind: _of(n, nest, owned.of[kind], np.ones(len(owned.of[kind]), np.int64)) for kind in owned.of}
    copies = rows.copies
    copy_bytes = _of(n, nest, owned.of["copies"], np.maximum(copies["bytes"], 0))
    copy_time = _of(n, nest, owned.of["copies"], copies.duration)
    waiting = Named(rows, rows.calls).is_kind("wait") if len(rows.calls) else np.empty(0, bool)
    waited = owned.of_calls[waiting]
    waits = _of(n, nest, waited, rows.calls.duration[waiting])
    wait_calls = _of(n, nest, waited, np.ones(len(waited), np.int64))
    allocated, freed = _allocations(trace, nest, n)
    return tuple(
        Operator(
            name=names[name],
            shapes=names[shapes] if shapes != UNKNOWN else "",
            types=names[types] if types != UNKNOWN else "",
            calls=calls[k],
            cpu_total=cpu_total[k],
            cpu_self=cpu_self[k],
            device_total=device_total[k],
            device_self=device_self[k],
            kernels=used.get(k, ()),
            kernel_launches=counts["kernels"][k],
            copies=counts["copies"][k],
            copy_bytes=copy_bytes[k],
            copy_time=copy_time[k],
            memsets=counts["memsets"][k],
            waits=waits[k],
            wait_calls=wait_calls[k],
            allocated=allocated[k],
            freed=freed[k],
        )
        for k, (name, shapes, types) in enumerate(distinct.tolist())
    )


def _of(n: int, nest: Nest, owner: Ints, values: Ints) -> list[int]:
    """Return the sum of ``values`` for each of ``n`` keys, by the operator that owns each value."""
    import numpy as np

    known = owner != UNKNOWN
    total = np.zeros(n, np.int64)
    np.add.at(total, nest.key[owner[known]], values[known])
    found: list[int] = total.tolist()
    return found


def _kernels(trace: TorchTrace, nest: Nest, owned: Owners) -> dict[int, tuple[KernelUse, ...]]:
    """Return the kernels that each operator launched itself, the longest total first."""
    rows, names = trace.trace.kernels, trace.trace.names
    owner = owned.of["kernels"]
    known = owner != UNKNOWN
    sums: dict[int, dict[int, list[int]]] = defaultdict(dict)
    columns = (nest.key[owner[known]], rows["name"][known], rows["short"][known], rows.duration[known])
    for key, name, short, length in zip(*(column.tolist() for column in columns), strict=True):
        found = sums[key].setdefault(name, [short, 0, 0])
        found[1] += 1
        found[2] += length
    return {
        key: tuple(
            sorted(
                (KernelUse(names[name], names[short], n, total) for name, (short, n, total) in of.items()),
                key=lambda use: (-use.total, use.name),
            )
        )
        for key, of in sums.items()
    }


def _allocations(trace: TorchTrace, nest: Nest, n: int) -> tuple[list[int], list[int]]:
    """Return the bytes that each operator allocated itself, and those that it freed."""
    import numpy as np

    rows = trace.memory
    owner = nest.innermost(rows["thread"], rows["start"])
    grown = _of(n, nest, owner, np.maximum(rows["bytes"], 0))
    return grown, _of(n, nest, owner, np.maximum(-rows["bytes"], 0))


# ---- Only a part of a torch trace: what began inside the instances of one annotation


def within(trace: TorchTrace, name: str) -> TorchTrace:
    """Return operators, calls and allocations that began inside ``name``, and the work launched there.

    Other threads count, backward runs in one of its own.  Work without a launch call counts by its start.

    Raises:
        UsageError: there is no such annotation (the hint names the nearest), or nothing began inside.
    """
    import numpy as np

    rows = trace.trace
    found = rows.ranges.take(matching(rows, name))
    times = union(found["start"], found["end"])

    def began(columns: Columns) -> Columns:
        return columns.take(times.covers(columns["start"]))

    parts: dict[str, Any] = {}
    for kind in WORK:
        work: Columns = getattr(rows, kind)
        call = launching_calls(rows.calls, work)
        launched = work["start"]
        if len(rows.calls):
            launched = np.where(call == UNKNOWN, work["start"], rows.calls["start"][call])
        inside: NDArray[np.bool_] = times.covers(launched)
        parts[kind] = work.take(inside)
    kept = replace(rows, **parts, calls=began(rows.calls), syncs=began(rows.syncs), ranges=began(rows.ranges))
    part = replace(
        trace,
        trace=kept,
        operators=began(trace.operators),
        memory=began(trace.memory),
        frames=began(trace.frames),
    )
    if not len(part.operators) and not kept.gpu_work:
        raise UsageError(f"no operator began inside {name!r}", "choose another --range")
    return part
