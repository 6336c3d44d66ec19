"""Where the region's time went on each GPU: kernels, copies, nothing; and on each stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.timeline.intervals import Times, lengths_by
from ncukit.diagnose.timeline.scope import Scope
from ncukit.model.timeline import DeviceTime, StreamTime
from ncukit.model.trace import Gpu

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def devices(scope: Scope) -> tuple[DeviceTime, ...]:
    """Return the time of the region on each device that worked in it, by id."""
    return tuple(_device(scope, device) for device in sorted(scope.windows))


def main_device(found: tuple[DeviceTime, ...]) -> int | None:
    """Return the device that shares refer to: the one with the most kernel time, then copy time."""
    best = max(found, key=lambda d: (d.busy, d.copy_busy, -d.id), default=None)
    return None if best is None else best.id


def empty_time(scope: Scope, device: int) -> Times:
    """Return when ``device`` had nothing to do within the region."""
    kernels = scope.kernel_time(device, all_work=True)
    return scope.windows[device] - (kernels | scope.copy_time(device, all_work=True))


def _device(scope: Scope, device: int) -> DeviceTime:
    import numpy as np

    window = scope.windows[device]
    kernels, copies = scope.kernel_time(device), scope.copy_time(device)
    every = scope.kernel_time(device, all_work=True)
    idle = window - every
    empty = idle - scope.copy_time(device, all_work=True)
    lengths = empty.end - empty.start
    longest = int(np.argmax(lengths)) if len(empty) else None
    rows = scope.rows("kernels", device)
    gpu = scope.trace.gpus.get(device, Gpu(device))
    return DeviceTime(
        id=device,
        name=gpu.name,
        compute_capability=gpu.compute_capability,
        start=int(window.start[0]) if len(window) else 0,
        span=window.length,
        busy=kernels.length,
        sum=int(rows.duration.sum()),
        copy=idle.length - empty.length,
        empty=empty.length,
        foreign=(every - kernels).length,
        launches=len(rows),
        copies=len(scope.rows("copies", device)) + len(scope.rows("memsets", device)),
        copy_busy=copies.length,
        longest_gap=(0, 0) if longest is None else (int(empty.start[longest]), int(lengths[longest])),
        streams=_streams(scope, device),
    )


def _streams(scope: Scope, device: int) -> tuple[StreamTime, ...]:
    """Return the kernels of each stream; the number of a stream means nothing without device and context."""
    import numpy as np

    rows = scope.rows("kernels", device)
    if not len(rows):
        return ()
    of_stream, first = numbered(rows["process"], rows["context"], rows["stream"])
    n = np.bincount(of_stream)
    _, busy = lengths_by(of_stream, rows["start"], rows["end"])
    return tuple(
        StreamTime(device, int(rows["context"][row]), int(rows["stream"][row]), int(n[i]), int(busy[i]))
        for i, row in enumerate(first)
    )


def numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """Return for each row the number of its combination of values, and a row that shows each combination.

    >>> import numpy as np
    >>> of, first = numbered(np.array([7, 7, 8]), np.array([1, 1, 1]))
    >>> of.tolist(), first.tolist()
    ([0, 0, 1], [0, 2])
    """
    import numpy as np

    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, position = np.unique(column, return_inverse=True)
        _, code = np.unique(code * len(values) + position, return_inverse=True)
    _, first = np.unique(code, return_index=True)
    return code, first
