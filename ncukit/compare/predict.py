"""Was the experiment right that the base's verdict proposed: met, not met, or open."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ncukit.catalog import load
from ncukit.compare.comparable import Sides, reading_of
from ncukit.model import Experiment, Value
from ncukit.model.comparison import Prediction, Row
from ncukit.quantity import brief

GAIN = 5.0
"""[%] of clean time that the experiments of the verdicts ask for."""
_WORD = re.compile(r"[a-z][a-z0-9_]+")
_TO_ZERO = re.compile(r"to 0\b|stays? 0\b")


def predictions(
    experiment: Experiment | None, rows: Mapping[str, Row], sides: Sides, clean: Row | None
) -> tuple[Prediction, ...]:
    """Return what the experiment told to watch, each with what came of it; nothing between different GPUs."""
    if experiment is None or not sides.same_gpu:
        return ()
    found = [_watched(rows[id], words) for id, words in _watch(experiment.watch) if id in rows]
    if "clean time" in f"{experiment.watch} {experiment.disproved_if}":
        found.append(_clean(clean))
    return tuple(found)


def _watch(text: str) -> list[tuple[str, str]]:
    """Return the metrics that ``text`` names, each with the words up to the next one."""
    known = load().metrics
    places = [(m.start(), m[0]) for m in _WORD.finditer(text) if m[0] in known]
    ends = [*(at for at, _ in places[1:]), len(text)]
    return [(id, text[at:end]) for (at, id), end in zip(places, ends, strict=False)]


def _watched(row: Row, words: str) -> Prediction:
    if row.change is None:
        return Prediction(f"`{row.id}`: {row.reason or 'not comparable'}", None, row.id)
    moved = f"`{row.id}`: {_number(row.base)} \u2192 {_number(row.other)}"
    if _TO_ZERO.search(words):
        if row.other.number == 0:
            return Prediction(moved, True, row.id)
        return Prediction(f"{moved}, not 0", None if row.beyond_noise and row.change < 0 else False, row.id)
    if row.reading in ("better", "worse"):
        return Prediction(moved, row.reading == "better", row.id)
    judged = not reading_of(row.id)[0] and load().metrics[row.id].direction != "neutral"
    if row.reading == "same":
        return Prediction(f"{moved}: no change shown", False if judged else None, row.id)
    return Prediction(f"{moved}: it moved, which alone is neither good nor bad", None, row.id)


def _number(value: Value) -> str:
    return brief(value.number, value.unit)


def _clean(clean: Row | None) -> Prediction:
    words = f"Clean time better by {GAIN:.0f}\u202f% and more"
    if clean is None or clean.change is None:
        return Prediction(f"{words}: not measured on both sides", None)
    moved = f"{_number(clean.base)} \u2192 {_number(clean.other)}"
    return Prediction(f"{words}: {moved}", clean.change <= -GAIN and clean.beyond_noise)
