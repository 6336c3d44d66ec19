"""What text, JSON and page say alike of an estimate: the call, the launch beside it, the words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ncukit import quantity
from ncukit.model import Kernel, Roof, Value
from ncukit.model.work import Estimate
from ncukit.record import dataclass
from ncukit.render.words import PRECISIONS
from ncukit.roofline.models.estimate import GIVEN, MODELS

NAMES = {
    "flops": "FLOPs",
    "dram_bytes": "DRAM bytes",
    "dram_read_bytes": "DRAM bytes read",
    "dram_write_bytes": "DRAM bytes written",
}
_BACKTICKS = re.compile(r"``?")


@dataclass(frozen=True)
class Shown:
    """An estimate, how it was asked for, and the launch that it stands beside, if any."""

    model: str
    parameters: Mapping[str, Any]
    estimate: Estimate
    kernel: Kernel | None = None
    timed: str = ""
    """Where the measured time comes from: "given", or "profiled launch"."""
    measured: tuple[Roof, ...] = ()
    """Ceilings that were measured on a GPU, of the levels and precisions of the model."""


def explained(model: str) -> list[str]:
    """Return the paragraphs of a model's documentation: what it models, then the formula and its source.

    >>> explained("transpose")[0]
    'an out-of-place transpose of m x n elements.'
    """
    text = (MODELS[model].__doc__ or "").split("Raises:")[0]
    paragraphs = [" ".join(part.split()) for part in _BACKTICKS.sub("", text).split("\n\n") if part.strip()]
    return [paragraphs[0].removeprefix("Return the model of "), *paragraphs[1:]]


def precision(name: str) -> str:
    """Return a precision in words: "FP16 tensor"."""
    return PRECISIONS.get(name, (name, ""))[0]


def peaks(estimate: Estimate) -> list[tuple[str, Value]]:
    """Return each peak once, with the precisions that it holds for."""
    found: dict[str, tuple[list[str], Value]] = {}
    for name, value in estimate.peaks.items():
        found.setdefault(value.id, ([], value))[0].append(precision(name))
    return [(" and ".join(names), value) for names, value in found.values()]


def origin(value: Value) -> str:
    """Return where a peak comes from: "given", "estimate: H100 SXM5, dense, ...", "of the report"."""
    if not value.known:
        return value.reason or "unknown"
    if value.sources == (GIVEN,):
        return GIVEN
    if data_sheet(value):
        return f"estimate: {value.reason}"
    return f"of the report{', an estimate' if value.quality == 'estimate' else ''}"


def data_sheet(value: Value) -> str:
    """Return the data sheet that a peak comes from, empty for any other."""
    return value.sources[0] if value.quality == "estimate" and value.reason and value.sources else ""


def data_sheets(estimate: Estimate) -> list[str]:
    """Return the data sheets that peaks and bandwidth come from."""
    values = (*estimate.peaks.values(), estimate.bandwidth)
    return list(dict.fromkeys(filter(None, map(data_sheet, values))))


def ratio_rows(estimate: Estimate) -> list[dict[str, str]]:
    """Return measured against modelled: texts, and what more than 1 means, or why it is unknown."""
    return [
        {
            "id": ratio.measured.id,
            "name": NAMES.get(ratio.measured.id, ratio.measured.id),
            "measured": quantity.short(ratio.measured.number, ratio.measured.unit),
            "modelled": quantity.short(ratio.modelled, ratio.measured.unit),
            "ratio": quantity.MISSING if ratio.ratio is None else quantity.significant(ratio.ratio),
            "text": ratio.above if ratio.measured.number is not None else ratio.measured.reason or "unknown",
        }
        for ratio in estimate.ratios
    ]


def side(estimate: Estimate) -> str:
    """Return which side of the ridge the model is on, and by how much, in words."""
    floor = estimate.floor
    if floor is None:
        return ""
    times = sorted((floor.compute_seconds, floor.memory_seconds))
    what = "traffic" if floor.side == "memory-bound" else "arithmetic"
    if not times[0] or floor.side == "balanced":
        return floor.side
    return f"{floor.side}: the {what} takes {quantity.significant(times[1] / times[0])} times as long"
