"""Only a part of a torch trace: what began inside the instances of one annotation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ncukit.diagnose.ops.attribute import WORK
from ncukit.diagnose.timeline.intervals import union
from ncukit.diagnose.timeline.scope import launching_calls, matching
from ncukit.errors import UsageError
from ncukit.model.ops import TorchTrace
from ncukit.model.trace import UNKNOWN, Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
