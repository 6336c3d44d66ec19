"""The steps of a measured child: check, time, run the marked region, trace it with torch's profiler."""

from __future__ import annotations

import argparse
import sys
import time as clock
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ncukit.workload import clocks, script, sides
from ncukit.workload import operators as recorder
from ncukit.workload.correct import compare
from ncukit.workload.declare import Case
from ncukit.workload.device import Device
from ncukit.workload.marks import Marks
from ncukit.workload.result import WRONG, plain, write
from ncukit.workload.timing import Stopwatch, summarise
from ncukit.workload.utilisation import Watch

_FRAMEWORKS = ("torch", "triton", "cupy", "numba", "cuda", "jax", "numpy")


def check(options: argparse.Namespace, result: dict[str, Any]) -> int:
    """Check both sides of an experiment; nothing is timed."""
    right = sides.check(options, result)
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
    before = clocks.read(uuid)
    samples, share = watch.samples(warm.last, options.repeat)
    result |= {
        "timer": watch.timer,
        **asdict(summarise(samples)),
        "samples": samples,
        "calls_per_sample": share,
        "l2_flush": watch.flush if watch.device else None,
        "clocks": {"before": before, "after": clocks.read(uuid)},
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
    calls = recorder.calls_of(options.calls, warm.last, options.least)
    result |= {"opened": True, "closed": False, "calls": calls}
    wait = watch.device.synchronise if watch.device is not None else _nothing
    if options.cprofile is not None:
        recorder.count(case.run, calls, wait, options.cprofile)
    else:
        with Watch(watch.device.facts.uuid if watch.device is not None and options.watch else None) as seen:
            result |= recorder.record(case.run, calls, wait, options.trace, totals=not options.watch)
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
