"""Record a region under torch's profiler, with shapes, allocations and what torch itself adds up."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ncukit.errors import UsageError

LONGEST = 5.0
"""[s] The region is called less often where it would take longer than this."""
MOST = 1000
"""Calls of a region that is to last a given time."""
NCCL = "nccl_environment"
"""Key of a trace under which the program's variables of NCCL stand."""
_OWN = ("cpu_time_total", "self_cpu_time_total")
_DEVICE = (("device_time_total", "self_device_time_total"), ("cuda_time_total", "self_cuda_time_total"))
"""What torch calls the time of a device: since 2.4, and before."""


def calls_of(asked: int, last: float, least: float) -> int:
    """Return how often the region runs: ``asked`` times or for ``least`` [s]; one call takes ``last`` [s].

    >>> calls_of(10, 1e-3, 0.0), calls_of(10, 2.0, 0.0), calls_of(10, 1e-3, 0.5)
    (10, 2, 500)
    """
    if not last > 0:
        return asked
    wanted = max(asked, min(MOST, math.ceil(least / last)))
    return max(1, min(wanted, int(LONGEST / last)))


def record(
    run: Callable[[], Any], calls: int, wait: Callable[[], None], target: Path, *, totals: bool = True
) -> dict[str, Any]:
    """Run the region ``calls`` times under torch's profiler and write its trace.

    Returns torch's version and, with ``totals``, what torch itself adds up: slow for a long trace.

    Raises:
        UsageError: the script does not use torch.
    """
    if "torch" not in sys.modules:
        raise UsageError(
            "the script does not import torch: it has no operators",
            "`ncukit profile` and `ncukit timeline` do without torch",
        )
    import torch
    from torch import profiler

    kinds = [profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(profiler.ProfilerActivity.CUDA)
    with profiler.profile(activities=kinds, record_shapes=True, profile_memory=True) as found:
        found.add_metadata_json(NCCL, json.dumps(nccl_environment(os.environ)))
        ncukit_region(run, calls, wait)
    found.export_chrome_trace(str(target))
    return {"torch": str(torch.__version__), **(_totals(found) if totals else {})}


def nccl_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set NCCL.

    >>> nccl_environment({"NCCL_ALGO": "Ring", "PATH": "/bin"})
    {'NCCL_ALGO': 'Ring'}
    """
    return {name: value for name, value in sorted(environ.items()) if name.startswith("NCCL_")}


def ncukit_region(run: Callable[[], Any], calls: int, wait: Callable[[], None]) -> None:
    """Run the region; samples of the stack are recognised by the name of this function."""
    from torch.profiler import record_function

    with record_function("ncukit"):
        for _ in range(calls):
            run()
        wait()


def count(run: Callable[[], Any], calls: int, wait: Callable[[], None], target: Path) -> None:
    """Run the region under cProfile and write the functions it counted, times in seconds."""
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.enable()
    try:
        for _ in range(calls):
            run()
        wait()
    finally:
        profile.disable()
    stats: Any = pstats.Stats(profile)
    rows = [
        {"file": file, "line": line, "name": name, "calls": n, "self": own, "total": total}
        for (file, line, name), (_, n, own, total, _) in stats.stats.items()
    ]
    target.write_text(json.dumps({"total": stats.total_tt, "functions": rows}), encoding="utf-8")


def _totals(profile: Any) -> dict[str, Any]:
    """Return torch's own sums by operator [us], and what it calls the time of a device."""
    rows = profile.key_averages()
    total, own = next((pair for pair in _DEVICE if rows and hasattr(rows[0], pair[0])), _DEVICE[0])
    names = (*_OWN, total, own)
    sums: dict[str, list[float]] = {}
    for row in rows:  # overloads of one operator have rows of their own
        values = [float(row.count), *(float(getattr(row, name, 0.0)) for name in names)]
        before = sums.get(str(row.key), [0.0] * len(values))
        sums[str(row.key)] = [a + b for a, b in zip(before, values, strict=True)]
    return {"device_time": total, "own": sums}
