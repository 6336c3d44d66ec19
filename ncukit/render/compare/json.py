"""A comparison as JSON: schema ``ncukit.comparison/1``, in base units; percent is 0 to 100."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from ncukit.media import dumps
from ncukit.model.comparison import (
    Against,
    Comparison,
    Outcome,
    Pair,
    Row,
    Sample,
    Side,
    Total,
    Unmatched,
)
from ncukit.render.json import roofline_data

SCHEMA = "ncukit.comparison/1"


def comparison_text(comparison: Comparison, *, indent: int | None = None) -> str:
    """Return the JSON of a comparison, on one line unless ``indent`` is given."""
    data = comparison_data(comparison)
    return dumps(data, indent=indent)


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON data."""
    return {
        "schema": SCHEMA,
        "base": _side(comparison.base),
        "others": [_against(against) for against in comparison.others],
        "gates": [_outcome(outcome) for outcome in comparison.gates],
        "failed": comparison.failed,
    }


def row_data(row: Row) -> dict[str, Any]:
    """Return one row as JSON data; a change from 0 is null, and the base says so."""
    return {
        "base": row.base.as_dict(),
        "other": row.other.as_dict(),
        "change": row.finite,
        "change_unit": row.change_unit,
        "ratio": row.ratio,
        "reading": row.reading,
        "reason": row.reason,
        "comparable": row.comparable,
        "why": row.why,
        "base_share": row.shares[0],
        "other_share": row.shares[1],
        "noise": row.noise if math.isfinite(row.noise) else None,
        "noise_from": row.noise_from,
        "explains": row.explains,
        "account": row.account,
    }


def _side(side: Side) -> dict[str, Any]:
    timing = side.timing
    return {
        "label": side.label,
        "kind": side.kind,
        "files": [{"name": PurePath(f.path).name, "size": f.size, "sha256": f.sha256} for f in side.files],
        "launches": side.launches,
        "recorded": {name: value for name, value in asdict(side.recorded).items() if name != "command"},
        "timing": None
        if timing is None
        else {name: getattr(timing, name) for name in ("timer", "n", "median", "iqr", "min", "max")},
        "warnings": list(side.warnings),
    }


def _against(against: Against) -> dict[str, Any]:
    return {
        "side": _side(against.other),
        "clean": None if against.clean is None else row_data(against.clean),
        "pairs": [_pair(pair) for pair in against.pairs],
        "totals": [_total(total) for total in against.totals],
        "unmatched": {
            "base": [_unmatched(one) for one in against.only_base],
            "other": [_unmatched(one) for one in against.only_other],
        },
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "matched": pair.matched,
        "same_gpu": pair.same_gpu,
        "base": _sample(pair.base),
        "other": _sample(pair.other),
        "summary": asdict(pair.summary),
        "facts": [asdict(fact) for fact in pair.facts],
        "predictions": [asdict(prediction) for prediction in pair.predictions],
        "rows": {row.id: row_data(row) for row in pair.rows},
        "per": [asdict(per) for per in pair.per],
        "lines": [asdict(line) for line in pair.lines],
    }


def _sample(sample: Sample) -> dict[str, Any]:
    kernel, verdict = sample.kernel, sample.diagnosis.verdict
    return {
        "name": kernel.name,
        "demangled": kernel.demangled,
        "gpu": kernel.gpu,
        "compute_capability": kernel.compute_capability,
        "launches": list(sample.launches),
        "repeats": sample.repeats,
        "same_work": sample.same_work,
        "failed": kernel.failed is not None,
        "verdict": {
            "class": verdict.cls,
            "limiter": verdict.limiter,
            "confidence": verdict.confidence,
            "claim": verdict.claim,
        },
        "roofline": roofline_data(sample.diagnosis.roofline),
    }


def _total(total: Total) -> dict[str, Any]:
    finite = total.change is not None and math.isfinite(total.change)
    return {**asdict(total), "change": total.change if finite else None}


def _unmatched(unmatched: Unmatched) -> dict[str, Any]:
    kernel = unmatched.sample.kernel
    return {
        "name": kernel.name,
        "demangled": kernel.demangled,
        "launches": list(unmatched.sample.launches),
        "reason": unmatched.reason,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {**asdict(outcome), "failed": outcome.failed}
