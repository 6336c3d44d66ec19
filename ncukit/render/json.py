"""The JSON of the command line: schemas ``ncukit.kernel/1`` and errors.

Numbers are base SI (seconds, bytes, hertz, FLOP), percent is 0 to 100.  Text is built a launch at a time, so
that ten thousand launches need the memory of one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ncukit.errors import NcukitError
from ncukit.media import dumps
from ncukit.model import Diagnosis, Evidence, Finding, Kernel, Roof, Roofline, Value, Verdict
from ncukit.model.diagnosis import Trial

if TYPE_CHECKING:
    from ncukit.model.source import Cost, HotLine

SCHEMA = "ncukit.kernel/1"
ERROR_SCHEMA = "ncukit.error/1"

COSTS = (
    "waiting",
    "samples",
    "instructions",
    "threads",
    "sectors",
    "excess_sectors",
    "wavefronts",
    "excess_wavefronts",
    "local_sectors",
    "spills",
    "divergent",
)
"""Numbers of `ncukit.model.source.Cost`."""


def report_text(file: str, launches: Iterable[str], region: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the JSON of one report in pieces: one line in all, from the JSON of its launches.

    ``region`` is what a trace beside it says (`ncukit.render.timeline.json.region_data`).

    >>> "".join(report_text("a.ncu-rep", ["{}", "{}"]))
    '{"schema": "ncukit.kernel/1", "file": "a.ncu-rep", "kernels": [{}, {}]}'
    """
    around = f', "region": {dumps(region)}' if region is not None else ""
    yield f'{{"schema": "{SCHEMA}", "file": {dumps(file)}{around}, "kernels": ['
    separator = ""
    for launch in launches:
        yield separator + launch
        separator = ", "
    yield "]}"


def kernel_text(
    kernel: Kernel,
    ids: Iterable[str] | None = None,
    diagnosis: Diagnosis | None = None,
    more: Mapping[str, Any] | None = None,
) -> str:
    """Return the JSON of one launch; ``ids`` chooses metrics, ``diagnosis`` adds what was concluded.

    ``more`` are further keys.
    """
    head = {
        "index": kernel.index,
        "name": kernel.name,
        "demangled": kernel.demangled,
        "gpu": kernel.gpu,
        "compute_capability": kernel.compute_capability,
        "failed": kernel.failed is not None,
    }
    chosen = kernel.metrics if ids is None else {id: kernel.metrics[id] for id in ids}
    metrics = ", ".join(f'"{id}": {_value_text(value)}' for id, value in chosen.items())
    text = f'{dumps(head)[:-1]}, "metrics": {{{metrics}}}'
    if diagnosis is not None:
        text += ", " + dumps(diagnosis_data(diagnosis))[1:-1]
    if more:
        text += ", " + dumps(more)[1:-1]
    return text + "}"


def diagnosis_data(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return verdict, roofline, findings, skipped rules and charts of one launch as JSON data."""
    from ncukit.render.charts import charts_data

    return {
        "role": diagnosis.kernel.role,
        "verdict": verdict_data(diagnosis.verdict),
        "roofline": roofline_data(diagnosis.roofline),
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "skipped": [
            {"id": skipped.id, "family": skipped.family, "reason": skipped.reason}
            for skipped in diagnosis.skipped
        ],
        "hot_lines": hot_lines_data(diagnosis.hot),
        **charts_data(diagnosis),
    }


def hot_lines_data(lines: Iterable[HotLine]) -> list[dict[str, Any]]:
    """Return the hottest lines as JSON data, with what was counted of each."""
    return [
        {
            "place": found.place,
            "text": found.text,
            "amount": found.amount,
            "unit": found.unit,
            "share": found.share,
            "state": found.state,
            "state_share": found.state_share,
            "note": found.note,
            "costs": dict(cost_data(found.cost)),
        }
        for found in lines
    ]


def _experiment(found: Trial) -> dict[str, Any]:
    data = asdict(found)
    return {**data, "gain_reason": data["gain_reason"] or None}


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON data; its class is under ``class``."""
    return {
        "class": verdict.cls,
        "limiter": verdict.limiter,
        "confidence": verdict.confidence,
        "claim": verdict.claim,
        "evidence": [_evidence(e) for e in verdict.evidence],
        "against": [_evidence(e) for e in verdict.against],
        "experiment": None if verdict.experiment is None else _experiment(verdict.experiment),
        "alternatives": [asdict(other) for other in verdict.alternatives],
        "missing": list(verdict.missing),
    }


def roofline_data(roofline: Roofline) -> dict[str, Any]:
    """Return points, roofs and checks as JSON data."""
    return {
        "points": [_finite(asdict(point)) for point in roofline.points],
        "roofs": [_roof(roof) for roof in roofline.roofs],
        **({"measured": [_roof(roof) for roof in roofline.measured]} if roofline.measured else {}),
        "checks": [asdict(check) for check in roofline.checks],
        "missing": list(roofline.missing),
    }


def cost_data(cost: Cost) -> Mapping[str, int]:
    """Return the numbers of ``cost`` that were counted."""
    return {name: n for name in COSTS if (n := getattr(cost, name)) is not None}


def error_text(error: NcukitError, file: str | None = None) -> str:
    """Return an error as one JSON line; an error about a file is shaped like the file's own object."""
    data: dict[str, Any] = {"schema": ERROR_SCHEMA if file is None else SCHEMA}
    if file is not None:
        data["file"] = file
    return dumps(data | {"error": error.as_dict()})


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "metric": evidence.metric,
        "value": _plain(evidence.value),
        "unit": evidence.unit,
        "text": evidence.text,
    }


def _roof(roof: Roof) -> dict[str, Any]:
    names = ("kind", "name", "value", "quality", "note")
    return {name: getattr(roof, name) for name in names}


def _finding(finding: Finding) -> dict[str, Any]:
    data = {field: value for field, value in vars(finding).items() if field != "metrics"}
    return data | {
        "metrics": {id: value.as_dict() for id, value in finding.metrics.items()},
        "against": [_evidence(evidence) for evidence in finding.against],
        "places": [asdict(place) for place in finding.places],
    }


def _value_text(value: Value) -> str:
    if value.value is None:
        return _unknown_text(value.unit, value.reason or "", value.status)
    number = value.value
    finite = not isinstance(number, float) or math.isfinite(number)
    text = dumps(number) if finite else "null"
    said = _evidence_text(value.unit, value.quality, value.sources, value.reason, value.status)
    return f'{{"value": {text}, {said}}}'


@functools.lru_cache(maxsize=8192)
def _evidence_text(
    unit: str, quality: str | None, sources: tuple[str, ...], reason: str | None, status: str
) -> str:
    evidence: dict[str, Any] = {
        "unit": unit,
        "quality": quality,
        "sources": sources,
        "reason": reason,
        "status": status,
    }
    return dumps(evidence)[1:-1]


@functools.lru_cache(maxsize=8192)
def _unknown_text(unit: str, reason: str, status: str) -> str:
    evidence: dict[str, Any] = {
        "unit": unit,
        "quality": None,
        "sources": [],
        "reason": reason,
        "status": status,
    }
    return dumps({"value": None, **evidence})


def _finite(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in data.items()}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
