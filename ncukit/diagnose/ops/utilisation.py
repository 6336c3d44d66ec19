"""How busy a GPU was: what the trace proves, and what a tool that samples could have shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.timeline.intervals import Times
from ncukit.diagnose.timeline.scope import Scope
from ncukit.model.ops import Utilisation
from ncukit.model.trace import UNKNOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW = 1_000_000_000 // 6
"""[ns] ``nvidia-smi`` averages over between 1/6 s and 1 s, depending on the GPU (NVML, nvmlUtilization_t)."""
LAUNCH_GAP = 1_000
"""[ns] Shorter stretches without work come between any two kernels."""


def utilisation(scope: Scope) -> tuple[Utilisation, ...]:
    """Return how busy each GPU was, from its first work to its last."""
    found = []
    for device, window in sorted(scope.windows.items()):
        if not window.length:
            continue
        kernels, empty = scope.kernel_time(device), gaps(scope, device)
        long = empty.end - empty.start >= LAUNCH_GAP
        lengths = (empty.end - empty.start)[long]
        low, high = sampled(kernels, int(window.start[0]), int(window.end[-1]))
        found.append(
            Utilisation(
                device=device,
                span=window.length,
                busy=100 * (kernels & window).length / window.length,
                gaps=len(lengths),
                gap_time=empty.length,
                longest_gap=int(lengths.max()) if len(lengths) else 0,
                window=WINDOW,
                low=low,
                high=high,
                occupancy=_occupancy(scope, device),
            )
        )
    return tuple(found)


def gaps(scope: Scope, device: int) -> Times:
    """Return when nothing ran on ``device``: neither kernel, copy nor memory set."""
    return scope.windows[device] - (scope.kernel_time(device) | scope.copy_time(device))


def sampled(busy: Times, start: int, end: int, window: int = WINDOW) -> tuple[float | None, float | None]:
    """Return the least and the most busy ``window`` [ns] between ``start`` and ``end`` [%].

    Windows begin at ``start``; the rest that fills none is left out.  (None, None) where none fits.

    >>> from ncukit.diagnose.timeline.intervals import union
    >>> sampled(union([0, 30], [10, 50]), 0, 45, window=20)
    (50.0, 50.0)
    """
    import numpy as np

    count = (end - start) // window
    if count < 1:
        return None, None
    # Between two windows in which something begins or ends all are alike: their neighbours stand for them.
    edges = (np.concatenate((busy.start, busy.end, [start])) - start) // window
    numbers = np.unique(np.clip(np.concatenate((edges - 1, edges, edges + 1)), 0, count - 1))
    begin = start + numbers * window
    shares = 100 * busy.within(begin, begin + window) / window
    return float(shares.min()), float(shares.max())


def _occupancy(scope: Scope, device: int) -> float | None:
    """Return the profiler's estimate of achieved occupancy [%], weighted by time; None where it says none."""
    rows = scope.rows("kernels", device)
    if "occupancy" not in rows or not len(rows):
        return None
    known: NDArray[np.bool_] = rows["occupancy"] != UNKNOWN
    time = rows.duration[known]
    return float((rows["occupancy"][known] * time).sum() / time.sum()) if time.sum() else None
