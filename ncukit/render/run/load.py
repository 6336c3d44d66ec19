"""Everything that a run directory holds, read and judged again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.errors import UsageError
from ncukit.judge import diagnose
from ncukit.metrics.normalise import normalise, wanted
from ncukit.model import Diagnosis, ReportFile
from ncukit.model.run import Run, Timing
from ncukit.model.trace import LaunchChoice, Timeline
from ncukit.model.work import Estimate, WorkModel
from ncukit.record import dataclass
from ncukit.render.timeline.strip import strip
from ncukit.report.reader import Source
from ncukit.roofline import place
from ncukit.roofline.models import compare, estimate
from ncukit.run.directory import EXPORT, PROFILE, TIMING, TORCH_TRACE, TRACE, inside, read_record, read_timing
from ncukit.trace.intervals import kernel_kind
from ncukit.trace.launch_choice import launch_for_ncu, region
from ncukit.trace.nsys import read_export
from ncukit.trace.region import describe
from ncukit.trace.scope import Scope
from ncukit.trace.torch_events import read_torch_trace


@dataclass(frozen=True)
class RunPage:
    """A run with what it found: any of its parts may be missing."""

    path: Path
    run: Run
    timing: Timing | None = None
    timeline: Timeline | None = None
    strip: Mapping[str, Any] | None = None
    choice: LaunchChoice | None = None
    why_no_choice: str = ""
    file: ReportFile | None = None
    diagnosis: Diagnosis | None = None

    @property
    def tracer(self) -> str:
        """The tool that recorded the timeline."""
        return "torch" if self.timeline is not None and self.timeline.file.format == "torch" else "nsys"

    @property
    def model(self) -> WorkModel | None:
        """The analytic model that the case gave."""
        return model_of(self.timing)

    @property
    def estimate(self) -> Estimate | None:
        """The model at the peaks of the captured launch, timed by the clean time where that is GPU time."""
        if self.model is None or self.diagnosis is None:
            return None
        clean = self.timing.median if self.timing is not None and self.timing.is_gpu_time else None
        kernel, launches = self.diagnosis.kernel, launches_per_call(self)
        return estimate(self.model, kernel=kernel, seconds=clean or None, launches=launches)


def load(path: Path, run: Run | None = None) -> RunPage:
    """Read the run in the directory ``path``; ``run`` is its record, if it is known already.

    Raises:
        ReportError: there is no run, or one of its files is damaged.
    """
    record = read_record(path) if run is None else run
    page = RunPage(path, record)
    if (path / TIMING).is_file():
        page = replace(page, timing=read_timing(path))
    if (scope := _scope(path, record.options.get("range"))) is not None:
        timeline = describe(scope)
        lanes = strip(scope, timeline.main_device) if timeline.main_device is not None else None
        page = replace(page, timeline=timeline, strip=lanes, **_choice(scope, record))
    if (path / PROFILE).is_file():
        file, diagnosis = _diagnosis(inside(path, PROFILE), page)
        page = replace(page, file=file, diagnosis=diagnosis)
    return page


def model_of(timing: Timing | None) -> WorkModel | None:
    """Return the analytic model of a timed case; one that the script made itself in another form is none."""
    if timing is None or not timing.model:
        return None
    try:
        return WorkModel.from_dict(timing.model)
    except (KeyError, TypeError, ValueError):
        return None


def _scope(path: Path, range: str | None) -> Scope | None:
    if (path / TORCH_TRACE).is_file():
        trace = read_torch_trace(inside(path, TORCH_TRACE))
    elif (path / EXPORT).is_file():
        trace = read_export(inside(path, EXPORT), path / TRACE, "nsys-rep")
    else:
        return None
    try:
        return region(trace, range)[0]
    except UsageError:  # the run says that its range is not in the trace; the rest of the trace is still one
        return region(trace)[0]


def _choice(scope: Scope, run: Run) -> dict[str, Any]:
    try:
        chosen = launch_for_ncu(
            scope.trace,
            run.target.get("pattern"),
            bool(run.options.get("allow_collective")),
            run.options.get("range"),
        )
    except UsageError as error:
        return {"why_no_choice": f"{error.message}. {error.hint}"}
    return {"choice": chosen.choice}


def _diagnosis(report: Path, page: RunPage) -> tuple[ReportFile, Diagnosis]:
    source = Source(report)
    index = page.run.isolation.index if page.run.isolation is not None else 0
    raws = list(source.launches(wanted(details=True)))
    kernel = normalise(raws[min(index, len(raws) - 1)], str(report))
    roofline = place(kernel)
    if (model := page.model) is not None:
        checks = compare(model, kernel, launches=launches_per_call(page))
        roofline = replace(roofline, checks=(*roofline.checks, *checks))
    return source.described(len(raws)), diagnose(kernel, roofline)


def launches_per_call(page: RunPage) -> int:
    """Return how many computing kernels one call of the region launches, 1 where that is not known."""
    step = page.run.step("timeline")
    if page.timeline is None or step is None or "--calls" not in step.command:
        return 1
    calls = int(step.command[step.command.index("--calls") + 1])
    launches = sum(k.launches.n for k in page.timeline.kernels if kernel_kind(k.name) == "compute")
    return max(1, round(launches / calls))
