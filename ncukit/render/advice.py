"""Advice as JSON (schema ``ncukit.advice/1``), and what is known where it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ncukit.judge.advice import advise
from ncukit.judge.layers import Known
from ncukit.model import Diagnosis
from ncukit.model.diagnosis import ADVICE_SCHEMA, Advice
from ncukit.render.commands import typed

if TYPE_CHECKING:
    from ncukit.model.trace import LaunchChoice, Timeline
    from ncukit.render.run.load import RunPage
    from ncukit.render.timeline.beside import Beside


def advice_data(advice: Advice) -> dict[str, Any]:
    """Return ``advice`` as JSON data: percent 0 to 100, a factor of null is without bound."""
    data = asdict(advice)
    data.pop("bound_said")
    data["evidence"] = [
        {key: e[key] for key in ("metric", "value", "unit", "text")} for e in data["evidence"]
    ]
    return {"schema": ADVICE_SCHEMA, **data}


def of_launches(
    report: str, diagnoses: Sequence[Diagnosis], beside: Beside | None = None, trace: str = ""
) -> Advice:
    """Return the advice for a report: about the launch that costs most of the region, else of the report.

    ``report`` and ``trace`` are what commands call the files (default of the trace: its base name).
    """
    known = Known(report=report, launches=len(diagnoses))
    if beside is not None:
        known = replace(known, timeline=beside.timeline, trace=trace or beside.path.name)
    if not diagnoses:
        return advise(known)
    n = costliest(diagnoses, beside)
    match = None if beside is None else beside.find([diagnoses[n].kernel])[0]
    found = advise(replace(known, diagnosis=diagnoses[n], match=match))
    return _about(found, diagnoses[n]) if len(diagnoses) > 1 else found


def costliest(diagnoses: Sequence[Diagnosis], beside: Beside | None = None) -> int:
    """Return the position of the launch to look at first: of the kernel that costs most, the longest."""
    totals: dict[str, float] = {}
    for d in diagnoses:
        totals[d.kernel.name] = totals.get(d.kernel.name, 0.0) + _duration(d)
    matches = beside.find([d.kernel for d in diagnoses]) if beside is not None else [None] * len(diagnoses)
    return max(
        range(len(diagnoses)),
        key=lambda i: (
            match.kernel.share if (match := matches[i]) is not None else 0.0,
            totals[diagnoses[i].kernel.name],
            _duration(diagnoses[i]),
        ),
    )


def of_trace(timeline: Timeline, choice: LaunchChoice | None, trace: str = "") -> Advice:
    """Return the advice for a trace alone; ``trace`` is what commands call it (default: its base name)."""
    named = trace or PurePath(timeline.file.path).name
    return advise(Known(timeline=timeline, choice=choice, trace=named))


def of_run(page: RunPage, directory: str = "") -> Advice:
    """Return the advice for a run directory; ``directory`` is what commands call it (default: its base name).

    With it, commands also say where the run's program lies; without, they hold no folder of this machine.
    """
    from ncukit.run.directory import PROFILE, TORCH_TRACE, TRACE, own
    from ncukit.trace.launch_choice import Matcher

    match = None
    if page.timeline is not None and page.diagnosis is not None:
        match = Matcher(page.timeline).find(page.diagnosis.kernel)
    folder, source = directory or page.path.name, str(page.run.target.get("source") or "")
    return advise(
        Known(
            diagnosis=page.diagnosis,
            timeline=page.timeline,
            match=match,
            choice=page.choice,
            run=page.run,
            report=f"{folder}/{PROFILE}",
            trace=f"{folder}/{TORCH_TRACE if page.tracer == 'torch' else TRACE}",
            directory=folder,
            source=typed(source) if directory and source else PurePath(source).name,
            own=own(page.run),
        )
    )


def _duration(diagnosis: Diagnosis) -> float:
    return diagnosis.kernel.number("kernel_duration") or 0.0


def _about(advice: Advice, diagnosis: Diagnosis) -> Advice:
    """Return ``advice`` as it reads where there are other launches."""
    name, number = diagnosis.kernel.name, diagnosis.kernel.index + 1
    return replace(advice, title=f"{advice.title} ({name}, launch {number:,})")
