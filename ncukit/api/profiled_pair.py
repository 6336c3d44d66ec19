"""The profiled pair of an experiment: one run of each side, for diagnosis only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ncukit.errors import NcukitError, ReportError, UsageError
from ncukit.model.experiment import SIDES, Observed, Prediction, Profiled

if TYPE_CHECKING:
    from ncukit.collect.experiment.bench import Sides
    from ncukit.collect.experiment.options import ExperimentOptions
    from ncukit.collect.session import Listener
    from ncukit.model.comparison import Comparison


def profile_pair(
    sides: Sides, options: ExperimentOptions, folder: Path, listener: Listener
) -> tuple[Profiled, tuple[Observed, ...]]:
    """Profile one run of each side and return what the named metrics did; for diagnosis only."""
    from ncukit.api.runs import profile
    from ncukit.collect.measure import no_driver
    from ncukit.tools import cuda
    from ncukit.tools.environment import child_environment

    why = "not asked for (--no-profile)"
    if options.profile:
        child = child_environment(os.environ, keep=options.env, clean=options.clean_env)
        cause = no_driver(cuda.driver(child.variables))
        why = "" if cause is None else cause.message
    if why:
        return Profiled("not-done", why), _unknown(options.predictions, f"no profiled pair: {why}")
    listener.note("profiling one run of each side, for diagnosis only")
    failures = []
    for side in SIDES:
        wanted = sides.profile_options(side)
        try:
            carried = profile(sides.words(side), options=wanted, output=folder / side, listener=listener)
        except NcukitError as error:  # what the repetitions showed stays
            failures.append(f"{side}: {error.message}")
            continue
        if carried.failure is not None:
            failures.append(f"{side}: {carried.failure.message}")
    summary, observed = _observed(folder, options.predictions, options.range)
    detail = "; ".join(failures) or "one run of each side was profiled"
    return Profiled("partial" if failures else "done", detail, SIDES, summary), observed


def _observed(
    folder: Path, predictions: Sequence[Prediction], range: str | None
) -> tuple[str, tuple[Observed, ...]]:
    from ncukit.api.comparisons import compare
    from ncukit.compare.watched import watched as counted
    from ncukit.diagnose.experiment.traced import UNITS, watched

    traces = {side: _traced(folder / side, range) for side in SIDES}
    lost = "; ".join(f"{side}: {why}" for side, (_, why) in traces.items() if why)
    source = lost or f"one trace of each side, for each call of {'the region' if range is None else range}"
    found, comparison = [], None
    try:
        comparison = compare(folder / SIDES[0], folder / SIDES[1], match=["order"])
    except (ReportError, UsageError) as error:
        why = error.message
    for one in predictions:
        if one.metric in UNITS:
            found.append(watched(one, traces["baseline"][0], traces["variant"][0], source))
        elif comparison is None:
            found.append(Observed(one.metric, one.direction, "unknown", source=why))
        else:
            found.append(counted(one, comparison))
    return _limits(comparison), tuple(found)


def _limits(comparison: Comparison | None) -> str:
    """Return what limits each side; which of them is faster is for the repetitions to say."""
    if comparison is None or len(comparison.pairs) != 1:
        return ""
    verdicts = [side.diagnosis.verdict for side in (comparison.pairs[0].base, comparison.pairs[0].other)]
    words = [f"{v.cls} ({v.limiter})" if v.limiter else v.cls for v in verdicts]
    return f"The baseline is {words[0]}, the variant {words[1]}."


def _traced(folder: Path, range: str | None) -> tuple[Mapping[str, float], str]:
    """Return the metrics of the trace of a run for one call of its region, or why there are none."""
    from ncukit.collect.directory import EXPORT, TORCH_TRACE, TRACE, inside, read_record
    from ncukit.diagnose.experiment.traced import traced
    from ncukit.diagnose.isolate import region
    from ncukit.diagnose.timeline import describe
    from ncukit.diagnose.timeline.scope import in_range
    from ncukit.read.nsys import read_export
    from ncukit.read.torch_trace import read_torch_trace

    try:
        step = read_record(folder).step("timeline")
        if (folder / TORCH_TRACE).is_file():
            trace = read_torch_trace(inside(folder, TORCH_TRACE))
        else:
            trace = read_export(inside(folder, EXPORT), folder / TRACE, "nsys-rep")
        scope = region(trace)[0] if range is None else in_range(trace, range)
        words = step.command if step is not None else ()
        calls = int(words[words.index("--calls") + 1]) if "--calls" in words else 1
        return traced(describe(scope), calls), ""
    except (ReportError, UsageError) as error:
        return {}, error.message


def _unknown(predictions: Sequence[Prediction], why: str) -> tuple[Observed, ...]:
    return tuple(Observed(one.metric, one.direction, "unknown", source=why) for one in predictions)
