"""Launches without a counterpart on another side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.model.comparison import Comparison, Sample
from ncukit.render.compare.block import numbered
from ncukit.render.line import line
from ncukit.render.words import plural, shorten


def unmatched_view(comparison: Comparison, most: int) -> dict[str, Any]:
    """Return what has no counterpart: launches of one name and reason in one row, at ``most`` so many."""
    groups: dict[tuple[str, str, str], list[Sample]] = {}
    for against in comparison.others:
        for some, label in (
            (against.only_base, comparison.base.label),
            (against.only_other, against.other.label),
        ):
            for one in some:
                reason = one.reason
                if len(comparison.others) > 1:
                    reason = reason.replace("the other side", against.other.label)
                groups.setdefault((one.sample.kernel.name, label, reason), []).append(one.sample)
    samples = {id(sample): sample for group in groups.values() for sample in group}
    count = sum(sample.repeats for sample in samples.values())
    words = f"{plural(count, 'launch')} without a counterpart: not compared, and not a change."
    rows = [_unmatched_row(*key, group) for key, group in groups.items()]
    return {"sentence": line(words), "rows": rows[:most]}


def _unmatched_row(name: str, label: str, reason: str, samples: Sequence[Sample]) -> dict[str, Any]:
    durations = [sample.duration for sample in samples]
    launches = numbered(*samples)
    known = [duration for duration in durations if duration is not None]
    return {
        "name": shorten(name or "kernel without a name", 70),
        "file": label,
        "launches": launches,
        "noun": "launch" if launches.isdecimal() else "launches",
        "duration": quantity.span(min(known), max(known), "s") if known else "unknown",
        "reason": line(reason.replace("--match", "`--match`")),
    }
