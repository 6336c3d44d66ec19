"""What a trace says about a region: where the time went, what limits it, which launch deserves ncu.

`analyse` does all of it from a `Trace`; the modules hold one question each.  Durations are whole nanoseconds.
"""

from __future__ import annotations

from ncukit.diagnose.timeline.calls import calls, launches, working_time
from ncukit.diagnose.timeline.causes import causes
from ncukit.diagnose.timeline.choice import Request, choose_launch
from ncukit.diagnose.timeline.copies import copies
from ncukit.diagnose.timeline.devices import devices, main_device
from ncukit.diagnose.timeline.kernels import collectives, ranking
from ncukit.diagnose.timeline.ranges import ranges
from ncukit.diagnose.timeline.region import Facts, classify
from ncukit.diagnose.timeline.scope import Scope, in_range, whole
from ncukit.diagnose.timeline.statistics import spread, spreads_by
from ncukit.errors import UsageError
from ncukit.model.timeline import GraphTime, Timeline
from ncukit.model.trace import Trace

__all__ = ["Request", "Scope", "analyse", "choose_launch", "describe", "in_range", "whole"]


def analyse(trace: Trace, range: str | None = None) -> Timeline:
    """Return what ``trace`` says: of all of it, or of what was launched inside the NVTX range ``range``.

    Raises:
        UsageError: there is no such range, or nothing was launched in it.
    """
    scope = whole(trace) if range is None else in_range(trace, range)
    return describe(scope)


def describe(scope: Scope) -> Timeline:
    """Return what the trace says about ``scope``."""
    trace = scope.trace
    found = devices(scope)
    main = main_device(found)
    if main is None:
        raise UsageError("nothing ran on a GPU in this trace", "Trace a program that launches kernels.")
    device = next(d for d in found if d.id == main)
    kernel_times = {d.id: scope.kernel_time(d.id, all_work=True) for d in found}
    ranked = ranking(scope, main)
    copied = copies(scope, kernel_times)
    called = calls(scope, working_time(scope))
    launched = launches(scope)
    graphs = scope.rows("graphs")
    memsets = scope.rows("memsets")
    facts = Facts(causes(scope, main), device, ranked, copied, called, launched, len(graphs))
    window = scope.windows[main]
    marked, left_out = ranges(trace, scope.call_of["kernels"])
    return Timeline(
        file=trace.file,
        range=scope.range,
        windows=tuple(zip(window.start.tolist(), window.end.tolist(), strict=True)),
        main_device=main,
        devices=found,
        kernels=ranked,
        copies=copied,
        calls=called,
        launches=launched,
        ranges=marked,
        graphs=tuple(
            GraphTime(graph, runs) for graph, runs in spreads_by(graphs["graph"], graphs.duration).items()
        ),
        region=classify(facts),
        collectives=collectives(ranked),
        memsets=spread(memsets.duration) if len(memsets) else None,
        counters=trace.counters,
        notes=(*trace.notes, *scope.notes, *_notes(scope, left_out)),
    )


def _notes(scope: Scope, ranges_left_out: int) -> tuple[str, ...]:
    found = []
    if ranges_left_out:
        found.append(f"{ranges_left_out:,} names of NVTX ranges with less time are left out")
    if len(scope.rows("graphs")) and not len(scope.rows("kernels")):
        found.append(
            "all kernels ran inside CUDA graphs, which were traced as a whole: trace again with "
            "--cuda-graph-trace=node to see them"
        )
    elif not len(scope.rows("kernels")):
        found.append("no kernel ran, only copies and memory sets")
    if len(scope.windows) > 1:
        found.append("several GPUs: shares and class are those of the main device")
    return tuple(found)
