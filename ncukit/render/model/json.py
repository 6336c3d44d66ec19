"""The JSON of an estimate: schema ``ncukit.roofline/1``, base SI units."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ncukit.media import dumps
from ncukit.model import Kernel
from ncukit.model.work import Estimate, Ratio
from ncukit.render.model.shown import Shown, explained
from ncukit.roofline.models.estimate import MODELS, parameters

SCHEMA = "ncukit.roofline/1"


def estimate_text(shown: Shown) -> str:
    """Return the JSON of an estimate, in one line."""
    return dumps(estimate_data(shown))


def estimate_data(shown: Shown) -> dict[str, Any]:
    """Return an estimate as JSON data; what is unknown is null, and ``missing`` says why."""
    return {
        "schema": SCHEMA,
        "model": shown.model,
        "parameters": dict(shown.parameters),
        **bound_data(shown.estimate),
        "timed": shown.timed or None,
        "launch": None if shown.kernel is None else _launch(shown.estimate, shown.kernel),
    }


def bound_data(estimate: Estimate) -> dict[str, Any]:
    """Return work, peaks, bound and time of an estimate as JSON data."""
    model, floor = estimate.model, estimate.floor
    return {
        "name": model.name,
        "dtype": model.dtype,
        "flops": model.total_flop,
        "flops_by_precision": dict(model.flop),
        "bytes": model.bytes,
        "bytes_read": model.read,
        "bytes_written": model.written,
        "memory": model.memory,
        "intensity": model.intensity,
        "conventions": list(model.notes),
        "leaves_out": list(model.assumptions),
        "peak": estimate.peak,
        "bandwidth": estimate.bandwidth.number,
        "peaks": {p: value.as_dict() for p, value in estimate.peaks.items()}
        | {model.memory: estimate.bandwidth.as_dict()},
        "ridge": estimate.ridge,
        "bound": estimate.bound,
        "side": None if floor is None else floor.side,
        "time_floor": None if floor is None else floor.seconds,
        "compute_seconds": estimate.compute_seconds,
        "memory_seconds": estimate.memory_seconds,
        "seconds": estimate.seconds,
        "achieved": estimate.achieved,
        "achieved_bandwidth": estimate.achieved_bandwidth,
        "consistent": estimate.consistent,
        "suspects": list(estimate.suspects),
        "missing": list(estimate.missing),
    }


def ratios_data(estimate: Estimate) -> list[dict[str, Any]]:
    """Return measured over modelled as JSON data."""
    return [_ratio(ratio) for ratio in estimate.ratios]


def models_text() -> str:
    """Return the JSON of all models: what each is, and its parameters."""
    rows = [
        {
            "model": name,
            "text": explained(name)[0],
            "parameters": [asdict(p) | {"type": p.type.__name__} for p in parameters(name)],
        }
        for name in MODELS
    ]
    return dumps(rows)


def _launch(estimate: Estimate, kernel: Kernel) -> dict[str, Any]:
    return {
        "file": kernel.file,
        "index": kernel.index,
        "name": kernel.name,
        "gpu": kernel.gpu,
        "ratios": ratios_data(estimate),
        "checks": [asdict(check) for check in estimate.checks],
    }


def _ratio(ratio: Ratio) -> dict[str, Any]:
    value = ratio.measured
    return {
        "metric": value.id,
        "measured": value.number,
        "modelled": ratio.modelled,
        "ratio": ratio.ratio,
        **{key: part for key, part in value.as_dict().items() if key != "value"},
        "above": ratio.above,
    }
