"""Which operator runs inside which, and which one a thread was in at a given time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.model.trace import UNKNOWN, Columns
from ncukit.record import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


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
