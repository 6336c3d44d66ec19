"""Which Python functions ran on the host, and which of them while the GPU had nothing to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ncukit.model.ops import Counted, Host, HostFrame, Stay, TorchTrace
from ncukit.trace.intervals import Times, nothing, union
from ncukit.trace.operator_table import gaps
from ncukit.trace.operators import Nest, nest
from ncukit.trace.scope import Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MARK = "ncukit"
"""The annotation around the region of a run."""
SEEN = 2
"""A gap shorter than so many intervals between samples cannot be told from its neighbours."""
_PROFILER = re.compile(r"torch/(profiler|autograd/profiler)|cProfile")


def from_samples(scope: Scope, stays: Sequence[Stay], interval: int) -> Host:
    """Return the functions that were sampled every ``interval`` [ns] while the region ran.

    The clock of the samples is set by the region: its middle is the same in both.
    """
    start, end = stays[0].start, stays[-1].end
    window = _region(scope)
    notes = ["each sample stops the program for a moment: the run is slower than without"]
    shift = 0
    if window is not None:
        shift = (window[0] + window[1] - start - end) // 2
        off = abs((window[1] - window[0]) - (end - start))
        notes.append(
            f"the clocks were aligned by the middle of the region, whose length differs by {off / 1e6:.3g} ms"
        )
    empty, gap_time = _empty(scope, SEEN * interval), None
    if scope.trace.gpu_work:
        gap_time = empty.length
        notes.append(f"only gaps of at least {SEEN * interval / 1e6:g} ms are set beside samples")
    rows = [(s.start + shift, s.end + shift, s.stack) for s in stays]
    frames, covered = _frames(rows, empty if gap_time is not None else None, interval)
    return Host("py-spy", end - start, interval, frames, gap_time, covered, tuple(notes))


def from_counts(counts: Iterable[Counted]) -> Host:
    """Return the functions that cProfile counted, in a run of their own; nothing says when they ran."""
    found = list(counts)
    frames = [HostFrame(c.name, c.own, c.total, None, c.calls) for c in found]
    notes = (
        "cProfile says how long, not when: functions cannot be set beside single gaps",
        "cProfile slows every Python call: trust the order, not the times",
    )
    span = sum(c.own for c in found)
    return Host("cProfile", span, None, _ordered(frames), None, None, notes)


def from_stacks(trace: TorchTrace, scope: Scope) -> Host | None:
    """Return the functions that torch's profiler recorded itself; None where it recorded no stacks."""
    import numpy as np

    rows, names = trace.frames, trace.trace.names
    if not len(rows):
        return None
    threads, calls = np.unique(rows["thread"], return_counts=True)
    rows = rows.take(rows["thread"] == threads[int(np.argmax(calls))])
    texts, which = np.unique(rows["name"], return_inverse=True)
    made = nest(rows, which.reshape(-1))
    length, n = made.end - made.start, len(texts)
    own, total, gap = (np.zeros(n, np.int64) for _ in range(3))
    np.add.at(own, made.key, made.own)
    np.add.at(total, made.key[made.outermost], length[made.outermost])
    times, empty = union(made.start, made.end), None
    if scope.trace.gpu_work:
        empty = _empty(scope, 0)
        low, high, owner = _alone(made)
        np.add.at(gap, made.key[owner], empty.within(low, high))
    counted = zip(own.tolist(), total.tolist(), gap.tolist(), np.bincount(made.key, minlength=n), strict=True)
    frames = [
        HostFrame(names[int(text)], self_time, all_time, None if empty is None else part, int(calls_of))
        for text, (self_time, all_time, part, calls_of) in zip(texts, counted, strict=True)
        if not _PROFILER.search(names[int(text)])
    ]
    return Host(
        "torch",
        times.length,
        None,
        _ordered(frames),
        None if empty is None else empty.length,
        None if empty is None else (times & empty).length,
        ("from the stacks that torch's profiler recorded: it slows every Python call",),
    )


def _alone(made: Nest) -> tuple[Ints, Ints, Ints]:
    """Return the stretches in which a span had none inside it: starts, ends, and the span."""
    import numpy as np

    low, high, owner = [], [], []
    begins, ends = made.start.tolist(), made.end.tolist()
    reach = list(begins)
    for row, up in enumerate(made.parent.tolist()):
        if up >= 0:
            if begins[row] > reach[up]:
                low.append(reach[up])
                high.append(begins[row])
                owner.append(up)
            reach[up] = max(reach[up], min(ends[row], ends[up]))
    for row, until in enumerate(reach):
        if until < ends[row]:
            low.append(until)
            high.append(ends[row])
            owner.append(row)
    return np.array(low, np.int64), np.array(high, np.int64), np.array(owner, np.int64)


def _frames(
    rows: Sequence[tuple[int, int, tuple[str, ...]]], empty: Times | None, interval: int
) -> tuple[tuple[HostFrame, ...], int | None]:
    """Return the functions of sampled stretches, and how much of the gaps they cover."""
    import numpy as np

    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    gap: Counter[str] = Counter()
    samples: Counter[str] = Counter()
    low = np.array([row[0] for row in rows], np.int64)
    high = np.array([row[1] for row in rows], np.int64)
    inside = empty.within(low, high).tolist() if empty is not None else [0] * len(rows)
    for (start, end, stack), part in zip(rows, inside, strict=True):
        if not stack:
            continue
        own[stack[-1]] += end - start
        gap[stack[-1]] += part
        samples[stack[-1]] += max(1, round((end - start) / interval))
        for name in set(stack):
            total[name] += end - start
    frames = [
        HostFrame(name, own[name], total[name], gap[name] if empty is not None else None, samples[name])
        for name in total
    ]
    return _ordered(frames), None if empty is None else int(sum(inside))


def _ordered(frames: Iterable[HostFrame]) -> tuple[HostFrame, ...]:
    """Return functions, those with the most time in gaps first, else with the most time of their own."""
    return tuple(sorted(frames, key=lambda f: (-(f.gap or 0), -f.self_time, -f.total, f.name)))


def _empty(scope: Scope, least: int) -> Times:
    """Return when no GPU worked on anything, for at least ``least`` [ns] at a time."""
    found: Times | None = None
    for device in scope.windows:
        found = gaps(scope, device) if found is None else found & gaps(scope, device)
    if found is None:
        return nothing()
    long = found.end - found.start >= least
    return Times(found.start[long], found.end[long])


def _region(scope: Scope) -> tuple[int, int] | None:
    """Return start and end [ns] of the annotation around the region, None where it is not in the trace."""
    rows, names = scope.trace.ranges, scope.trace.names
    found = [i for i, name in enumerate(rows["name"].tolist()) if name >= 0 and names[name] == MARK]
    if not found:
        return None
    return int(rows["start"][found[0]]), int(rows["end"][found[-1]])
