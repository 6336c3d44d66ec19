"""The steps of a measured child: check, time, run the marked region, trace it with torch's profiler."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ncukit.errors import UsageError
from ncukit.run.workload import correctness, script, timing
from ncukit.run.workload.annotation import Marks
from ncukit.run.workload.correctness import compare
from ncukit.run.workload.script import WRONG, Case, plain, write
from ncukit.run.workload.timing import Device, Stopwatch, Watch, summarise

# ---- Record a region under torch's profiler, with shapes, allocations and what torch itself adds up

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


# ---- The steps of a measured child: check, time, run the marked region, trace it with torch's profiler

_FRAMEWORKS = ("torch", "triton", "cupy", "numba", "cuda", "jax", "numpy")


def check(options: argparse.Namespace, result: dict[str, Any]) -> int:
    """Check both sides of an experiment; nothing is timed."""
    right = correctness.check(options, result)
    device = Device.current()
    result |= {"device": asdict(device.facts) if device else None, "frameworks": _frameworks()}
    return 0 if right else WRONG


def time(options: argparse.Namespace, result: dict[str, Any]) -> int:
    """Check the result, then time the case without any profiler."""
    case = _case(options, result)
    if not _check(case, options, result):
        return WRONG
    watch, warm = _warm(case, options, result, flush=not options.no_flush)
    uuid = watch.device.facts.uuid if watch.device else None
    before = timing.read(uuid)
    samples, share = watch.samples(warm.last, options.repeat)
    result |= {
        "timer": watch.timer,
        **asdict(summarise(samples)),
        "samples": samples,
        "calls_per_sample": share,
        "l2_flush": watch.flush if watch.device else None,
        "clocks": {"before": before, "after": timing.read(uuid)},
        "marks": Marks.find(gpu=watch.device is not None).as_dict(),
        "model": plain(case.model) if case.model is not None else None,
        "notes": watch.notes,
    }
    if watch.device is not None:
        watch.device.release()
    return 0


def region(options: argparse.Namespace, result: dict[str, Any]) -> int:
    """Run the region once, between marks, for a profiler that watches this process."""
    case = _case(options, result)
    watch, _ = _warm(case, options, result, flush=False)
    marks = Marks.find(gpu=watch.device is not None)
    result |= {"marks": marks.as_dict(), "opened": True, "closed": False, "calls": options.calls}
    write(options.result, result)  # a profiler may end this process
    marks.open()
    try:
        for _ in range(options.calls):
            case.run()
        if watch.device is not None:
            watch.device.synchronise()
    finally:
        marks.close()
    result["closed"] = True
    return 0


def trace(options: argparse.Namespace, result: dict[str, Any]) -> int:
    """Run the region under torch's profiler and write its trace: the stand-in where there is no nsys."""
    case = _case(options, result)
    watch, _ = _warm(case, options, result, flush=False)
    import torch
    from torch import profiler

    kinds = [profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(profiler.ProfilerActivity.CUDA)
    result |= {"opened": True, "closed": False, "calls": options.calls, "torch": str(torch.__version__)}
    with profiler.profile(activities=kinds) as profile:
        for _ in range(options.calls):
            case.run()
        if watch.device is not None:
            watch.device.synchronise()
    profile.export_chrome_trace(str(options.trace))
    result["closed"] = True
    return 0


def operators(options: argparse.Namespace, result: dict[str, Any]) -> int:
    """Record the region's operators, or with ``--cprofile`` count its Python functions."""
    case = _case(options, result)
    watch, warm = _warm(case, options, result, flush=False)
    calls = calls_of(options.calls, warm.last, options.least)
    result |= {"opened": True, "closed": False, "calls": calls}
    wait = watch.device.synchronise if watch.device is not None else _nothing
    if options.cprofile is not None:
        count(case.run, calls, wait, options.cprofile)
    else:
        with Watch(watch.device.facts.uuid if watch.device is not None and options.watch else None) as seen:
            result |= record(case.run, calls, wait, options.trace, totals=not options.watch)
        result["utilisation"] = seen.as_dict()
    result["closed"] = True
    return 0


def _nothing() -> None:
    """Wait for nothing: no GPU is used."""


STEPS: dict[str, Callable[[argparse.Namespace, dict[str, Any]], int]] = {
    "check": check,
    "time": time,
    "region": region,
    "trace": trace,
    "operators": operators,
}


def _case(options: argparse.Namespace, result: dict[str, Any]) -> Case:
    began = clock.perf_counter()
    module = script.load(Path(options.script))
    loaded = clock.perf_counter()
    given = script.parse_parameters(options.param)
    case, values, calls = script.make_case(module, options.call, given)
    apart = {"import": loaded - began, "case": clock.perf_counter() - loaded}
    result |= {"call": options.call, "params": values, "called": calls, "apart": apart}
    return case


def _check(case: Case, options: argparse.Namespace, result: dict[str, Any]) -> bool:
    if case.reference is None or options.no_check:
        why = "not asked for (--skip-check)" if options.no_check else "the case has no reference"
        result["correctness"] = {"state": "not-checked", "detail": why}
        return True
    found = compare(case.run(), case.reference(), case.tolerance)
    result["called"] += 1
    result["correctness"] = {
        "state": "passed" if found.passed else "failed",
        "detail": found.detail,
        "tolerance": found.tolerance,
        "error": found.error,
        "elements": found.elements,
    }
    if not found.passed:
        print(f"wrong result: {found.detail}", file=sys.stderr)
    return found.passed


def _warm(
    case: Case, options: argparse.Namespace, result: dict[str, Any], *, flush: bool
) -> tuple[Stopwatch, Any]:
    """Warm up as often as told; the calls that checking made count, so that all children call alike."""
    already, began = result["called"], clock.perf_counter()
    case_watch = Stopwatch(case.run, None)
    first = case_watch.warm_up(1)  # after one call it is known whether a GPU is used
    watch = Stopwatch(case.run, Device.current(), flush=flush)
    rest = None if options.warmup is None else max(0, options.warmup - 1 - already)
    warm = watch.warm_up(rest)
    total = already + 1 + warm.calls
    result["apart"]["warm-up"] = clock.perf_counter() - began
    result["warmup"] = {"calls": total, "settled": warm.settled}
    result["device"] = asdict(watch.device.facts) if watch.device else None
    result["frameworks"] = _frameworks()
    return watch, warm if warm.calls else first


def _frameworks() -> dict[str, str]:
    """Return the versions of what the script imported."""
    found = {}
    for name in _FRAMEWORKS:
        if (module := sys.modules.get(name)) is not None:
            found[name] = str(getattr(module, "__version__", ""))
    return found
