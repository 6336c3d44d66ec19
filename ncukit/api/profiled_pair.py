"""The profiled pair of an experiment: one run of each side, for diagnosis only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ncukit.errors import ReportError, UsageError
from ncukit.model.experiment import SIDES, Observed, Prediction, Profiled

if TYPE_CHECKING:
    from ncukit.collect.experiment.bench import Sides
    from ncukit.collect.experiment.options import ExperimentOptions
    from ncukit.collect.session import Listener


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
        carried = profile(
            sides.words(side), options=sides.profile_options(side), output=folder / side, listener=listener
        )
        if carried.failure is not None:
            failures.append(f"{side}: {carried.failure.message}")
    summary, observed = _observed(folder, options.predictions)
    detail = "; ".join(failures) or "one run of each side was profiled"
    return Profiled("partial" if failures else "done", detail, SIDES, summary), observed


def _observed(folder: Path, predictions: Sequence[Prediction]) -> tuple[str, tuple[Observed, ...]]:
    from ncukit.compare.watched import watched as counted
    from ncukit.diagnose.experiment.traced import UNITS, watched

    traces, found, comparison = _traces(folder), [], None
    try:
        from ncukit.api.comparisons import compare

        comparison = compare(folder / SIDES[0], folder / SIDES[1], match=["order"])
    except (ReportError, UsageError) as error:
        why = error.message
    for one in predictions:
        if one.metric in UNITS:
            source = "one trace of each side, for each call of the region"
            found.append(watched(one, traces["baseline"], traces["variant"], source))
        elif comparison is None:
            found.append(Observed(one.metric, one.direction, "unknown", source=why))
        else:
            found.append(counted(one, comparison))
    pairs = () if comparison is None else comparison.pairs
    return (pairs[0].summary.claim if len(pairs) == 1 else ""), tuple(found)


def _traces(folder: Path) -> dict[str, Mapping[str, float]]:
    from ncukit.diagnose.experiment.traced import traced
    from ncukit.render.run.load import load

    found: dict[str, Mapping[str, float]] = {}
    for side in SIDES:
        found[side] = {}
        try:
            page = load(folder / side)
        except ReportError:
            continue
        step = page.run.step("timeline")
        if page.timeline is not None and step is not None:
            words = step.command
            calls = int(words[words.index("--calls") + 1]) if "--calls" in words else 1
            found[side] = traced(page.timeline, calls)
    return found


def _unknown(predictions: Sequence[Prediction], why: str) -> tuple[Observed, ...]:
    return tuple(Observed(one.metric, one.direction, "unknown", source=why) for one in predictions)
