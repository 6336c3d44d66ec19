"""What the allocators of a traced program did: peaks, the largest rises, and when they asked the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.ops.nesting import Nest
from ncukit.model.ops import DeviceMemory, Spike, TorchTrace
from ncukit.model.trace import UNKNOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

SPIKES = 5
"""Rises that are shown for each device."""
NO_OPERATOR = "(no operator)"


def memory(trace: TorchTrace, nest: Nest) -> tuple[DeviceMemory, ...]:
    """Return each device's allocator, GPUs first; () where the profiler did not record allocations."""
    import numpy as np

    rows, names = trace.memory, trace.trace.names
    owner = nest.innermost(rows["thread"], rows["start"])
    named = trace.operators["name"][nest.order] if len(nest) else np.empty(0, np.int64)
    begin = int(rows["start"].min()) if len(rows) else 0

    def operator(row: int) -> str:
        return names[int(named[owner[row]])] if owner[row] != UNKNOWN else NO_OPERATOR

    found = []
    for device in sorted(np.unique(rows["device"]).tolist(), key=lambda d: (d == UNKNOWN, d)):
        mine = np.flatnonzero(rows["device"] == device)
        allocated, reserved = _known(rows["allocated"][mine]), _known(rows["reserved"][mine])
        if device == UNKNOWN:
            reserved = None  # the CPU's allocator keeps nothing back
        grown = np.diff(reserved, prepend=reserved[:1]) if reserved is not None else np.zeros(len(mine), int)
        peak = int(np.argmax(allocated)) if allocated is not None else 0
        bytes = rows["bytes"][mine]
        largest = np.argsort(-np.maximum(bytes, grown), kind="stable")[:SPIKES]
        found.append(
            DeviceMemory(
                device=device,
                events=len(mine),
                peak_allocated=None if allocated is None else int(allocated.max()),
                peak_reserved=None if reserved is None else int(reserved.max()),
                peak_at=int(rows["start"][mine[peak]]) - begin,
                peak_operator=operator(int(mine[peak])) if allocated is not None else "",
                first_allocated=None if allocated is None else int(allocated[0] - bytes[0]),
                last_allocated=None if allocated is None else int(allocated[-1]),
                growths=int((grown > 0).sum()),
                spikes=tuple(
                    Spike(
                        device=device,
                        at=int(rows["start"][mine[i]]) - begin,
                        bytes=int(bytes[i]),
                        allocated=int(rows["allocated"][mine[i]]),
                        reserved=int(rows["reserved"][mine[i]]),
                        operator=operator(int(mine[i])),
                        grew=max(0, int(grown[i])),
                    )
                    for i in largest.tolist()
                    if bytes[i] > 0 or grown[i] > 0
                ),
            )
        )
    return tuple(found)


def _known(values: Ints) -> Ints | None:
    """Return ``values``, None where the trace does not say them all."""
    return values if len(values) and bool((values != UNKNOWN).all()) else None
