"""Statistics of groups of durations, all groups at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.model.timeline import Spread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


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
