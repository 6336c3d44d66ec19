"""Arithmetic of traces: sets of time, statistics of durations, what names of kernels and calls say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncukit.model.trace import KernelKind, Spread
from ncukit.record import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


# ---- Sets of time: unions, intersections and differences of intervals, without a loop over them
#  Intervals are half-open, [start, end), in whole nanoseconds.


@dataclass(frozen=True, eq=False)
class Times:
    """A set of time as disjoint intervals in order; make one with `union`.

    >>> busy = union([0, 160, 50], [100, 200, 150])
    >>> busy.length, (span(busy) - busy).length
    (190, 10)
    """

    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> int:
        """Total length [ns]."""
        return int((self.end - self.start).sum())

    def until(self, time: Ints) -> Ints:
        """Return how much of the set lies before each ``time`` [ns]."""
        import numpy as np

        if not len(self):
            return np.zeros(len(time), np.int64)
        whole = np.concatenate(([0], np.cumsum(self.end - self.start)))
        before = np.searchsorted(self.start, time, side="right")
        last = np.maximum(before - 1, 0)
        beyond = np.where(before > 0, np.maximum(self.end[last] - time, 0), 0)
        return np.asarray(whole[before] - beyond, np.int64)

    def within(self, start: Ints, end: Ints) -> Ints:
        """Return how much of the set lies in each [``start``, ``end``)."""
        return self.until(end) - self.until(start)

    def covers(self, time: Ints) -> NDArray[np.bool_]:
        """Return for each ``time`` whether the set contains it."""
        import numpy as np

        if not len(self):
            return np.zeros(len(time), np.bool_)
        at = np.searchsorted(self.start, time, side="right") - 1
        return np.asarray((at >= 0) & (time < self.end[np.maximum(at, 0)]), np.bool_)

    def __or__(self, other: Times) -> Times:
        import numpy as np

        return union(np.concatenate((self.start, other.start)), np.concatenate((self.end, other.end)))

    def __and__(self, other: Times) -> Times:
        return self._combine(other, inside=True)

    def __sub__(self, other: Times) -> Times:
        return self._combine(other, inside=False)

    def _combine(self, other: Times, *, inside: bool) -> Times:
        import numpy as np

        edges = np.concatenate((self.start, self.end, other.start, other.end))
        edges.sort(kind="stable")  # four ordered runs: faster than a set
        left, right = edges[:-1], edges[1:]
        kept = self.covers(left) & (other.covers(left) == inside)
        return union(left[kept], right[kept])


def nothing() -> Times:
    """Return the empty set."""
    import numpy as np

    return Times(np.empty(0, np.int64), np.empty(0, np.int64))


def union(start: Ints | list[int], end: Ints | list[int]) -> Times:
    """Return the time that is in any of the intervals; touching ones become one, empty ones vanish."""
    import numpy as np

    s, e = np.asarray(start, np.int64), np.asarray(end, np.int64)
    kept = e > s
    if not kept.all():
        s, e = s[kept], e[kept]
    if not len(s):
        return nothing()
    if (s[1:] < s[:-1]).any():
        order = np.argsort(s, kind="stable")
        s, e = s[order], e[order]
    reach = np.maximum.accumulate(e)
    first = np.concatenate(([True], s[1:] > reach[:-1]))
    return Times(s[first], reach[np.concatenate((first[1:], [True]))])


def span(*sets: Times) -> Times:
    """Return the one interval from the earliest start to the latest end of the ``sets``."""
    import numpy as np

    full = [times for times in sets if len(times)]
    if not full:
        return nothing()
    low, high = min(int(t.start[0]) for t in full), max(int(t.end[-1]) for t in full)
    return Times(np.array([low], np.int64), np.array([high], np.int64))


def lengths_by(key: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys, sorted, and the length of the union of each one's intervals [ns].

    >>> import numpy as np
    >>> keys, lengths = lengths_by(np.array([7, 8, 7]), np.array([0, 50, 60]), np.array([100, 150, 120]))
    >>> keys.tolist(), lengths.tolist()
    ([7, 8], [120, 100])
    """
    import numpy as np

    of, s, e = union_by(key, start, end)
    first = np.flatnonzero(np.concatenate(([True], of[1:] != of[:-1]))) if len(of) else of
    return of[first], np.asarray(np.add.reduceat(e - s, first) if len(of) else of, np.int64)


def union_by(key: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the union of each key's intervals: key, start and end of what is disjoint, in that order."""
    import numpy as np

    if not len(key):
        return key, start, end
    keys, group = np.unique(key, return_inverse=True)
    order = np.lexsort((start, group))
    group, s, e = group[order], start[order], end[order]
    low, width, times = int(s.min()), int(e.max()) - int(s.min()) + 1, None
    if len(keys) * width >= 1 << 62:  # too long to give each key a stretch of its own: use ranks of times
        times = np.sort(np.concatenate((s, e)))
        s, e = np.searchsorted(times, s), np.searchsorted(times, e)
        low, width = 0, len(times)
    shift = group * width - low
    reach = np.maximum.accumulate(e + shift)
    first = np.concatenate(([True], (s + shift)[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    s, e = s[first], reach[last] - shift[last]
    return keys[group[first]], *((s, e) if times is None else (times[s], times[e]))


# ---- Statistics of groups of durations, all groups at once


def spread(values: Ints) -> Spread:
    """Return the statistics of ``values`` [ns], which must not be empty.

    >>> import numpy as np
    >>> spread(np.array([11300, 11200, 9100, 8800, 8800, 8790, 8800, 8790])).median
    8800.0
    """
    import numpy as np

    low, middle, high = np.percentile(values, (25, 50, 75))
    return Spread(
        len(values),
        int(values.sum()),
        float(middle),
        int(values.min()),
        int(values.max()),
        float(high - low),
    )


def spreads_by(key: Ints, values: Ints) -> dict[int, Spread]:
    """Return the statistics of ``values`` for each distinct ``key``."""
    import numpy as np

    if not len(key):
        return {}
    order = np.lexsort((values, key))
    ordered, v = key[order], values[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    n = np.diff(np.concatenate((first, [len(v)])))
    total = np.add.reduceat(v, first)
    low, middle, high = (_quantile(v, first, n, q) for q in (0.25, 0.5, 0.75))
    return {
        int(ordered[f]): Spread(
            int(n[i]),
            int(total[i]),
            float(middle[i]),
            int(v[f]),
            int(v[f + n[i] - 1]),
            float(high[i] - low[i]),
        )
        for i, f in enumerate(first)
    }


def _quantile(v: Ints, first: Ints, n: Ints, q: float) -> NDArray[np.float64]:
    """Return the quantile ``q`` of each sorted group, interpolated linearly between neighbours."""
    import numpy as np

    place = q * (n - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, n - 1)
    a, b = v[first + below], v[first + above]
    return np.asarray(a + (b - a) * (place - below), np.float64)


# ---- What a name says: helpers and collectives among kernels, the kinds of CUDA calls; patterns as data

COLLECTIVE = re.compile(
    r"\bnccl|rccl|mscclpp|nvshmem|userbuffers|deep_ep|cross_device_reduce|multimem_(all|red)"
    r"|(?<!block)(?<!block_)(?<!warp)(?<!warp_)all_?reduce|all_?gather|reduce_?scatter|all_?to_?all",
    re.IGNORECASE,
)
HELPER = re.compile(
    r"FillFunctor|fill_kernel|distribution_(elementwise|nullary)|direct_copy_kernel|copy_device_to_device"
    r"|memset|memcpy|curand|(cache|l2)_?flush|flush_?(cache|l2)|InitializeMatrix|\breference_?gemm",
    re.IGNORECASE,
)

CALL_KINDS = (
    ("launch", re.compile(r"(cu(da)?|hip(Ext)?)(Module|Graph)?Launch(?!HostFunc)")),
    (
        "allocator",
        re.compile(
            r"(cuda|hip)(Malloc|Free|Host(Alloc|Register|Unregister))|cuMem(Alloc|Free|Host|Create|Map"
            r"|Unmap|Release|SetAccess|Address|Pool)"
        ),
    ),
    ("submit", re.compile(r"(cu(da)?|hip)(Mem(cpy|set|Prefetch).*Async|Memset|EventRecord|StreamWaitEvent)")),
    ("wait", re.compile(r"(cu(da)?|hip)((Device|Stream|Event|Ctx|Thread)Synchronize|Memcpy)")),
)
"""Kinds of CUDA calls, the first that matches wins; what matches none is set-up (modules, contexts, ...)."""

_SUFFIX = re.compile(r"(_pt(sz|ds))?(_v\d{4,5})?$")


def kernel_kind(name: str) -> KernelKind:
    """Return whether a kernel computes, communicates, or only fills, copies, flushes or makes random numbers.

    >>> kernel_kind("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096>)")
    'collective'
    >>> kernel_kind("block_all_reduce_sum_f32(float*, float*, int)")
    'compute'
    """
    if COLLECTIVE.search(name):
        return "collective"
    return "helper" if HELPER.search(name) else "compute"


def plain_call(name: str) -> str:
    """Return the name of a CUDA call without the suffixes of its version and its default stream.

    >>> plain_call("cudaLaunchKernel_ptsz_v7000"), plain_call("cuCtxSynchronize")
    ('cudaLaunchKernel', 'cuCtxSynchronize')
    """
    return _SUFFIX.sub("", name)


def call_kind(name: str) -> str:
    """Return the kind of a CUDA call: launch, allocator, submit, wait or setup.

    >>> call_kind("cudaMemcpyAsync"), call_kind("cudaMemcpy"), call_kind("cuModuleLoadData")
    ('submit', 'wait', 'setup')
    """
    return next((kind for kind, pattern in CALL_KINDS if pattern.match(name)), "setup")
