"""The totals of torch's own table beside those of the trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ncukit.model.ops import Ops
from ncukit.quantity import time

SLACK = 0.01
"""Share by which sums may differ: torch rounds each event to its microsecond in some versions."""


def against_torch(ops: Ops, result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return how the sums of ``ops`` compare with torch's own; ``result`` is from the measured child.

    Only operators that both know are compared: torch's table also has annotations and kernels.  It counts a
    call that is nothing but a call of the same name once, so only its larger counts mean that some are lost.
    """
    own: Mapping[str, list[float]] = result.get("own") or {}
    calls: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    device: Counter[str] = Counter()
    for operator in ops.operators:
        calls[operator.name] += operator.calls
        cpu[operator.name] += operator.cpu_self
        device[operator.name] += operator.device_self
    known = [name for name in own if name in calls]
    if not known:
        return ()
    found = []
    if different := [name for name in known if int(own[name][0]) > calls[name]]:
        name = different[0]
        found.append(
            f"torch's own table counts {int(own[name][0]):,} calls of {name}, the trace {calls[name]:,}"
            + (f"; so for {len(different):,} operators" if len(different) > 1 else "")
        )
    called = str(result.get("device_time", "device_time_total"))
    sums = [("self_cpu_time_total", 2, cpu)]
    if ops.attribution.n:
        sums.append((f"self_{called}", 4, device))
    for name, place, mine in sums:
        theirs, ours = (
            round(1000 * sum(own[k][place] for k in known)),
            sum(mine[k] for k in known),
        )
        agrees = abs(theirs - ours) <= SLACK * max(theirs, ours, 1)
        verb = "agrees with" if agrees else "differs from"
        found.append(f"torch's own {name}, {time(theirs)}, {verb} the sum of the trace, {time(ours)}")
    return tuple(found)
