"""Sets of time: unions, intersections and differences of intervals, without a loop over them.

Intervals are half-open, [start, end), in whole nanoseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.record import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


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
