"""What in the conditions of an experiment speaks against trusting it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from ncukit.diagnose.experiment.effect import FEWEST
from ncukit.model.experiment import SIDES, ExperimentRecord, Repetition

CLOCKS = 1.0
"""[%] by which the sides' SM clocks may differ: as much as a clock step of many GPUs."""
HOT = 5.0
"""[degree C] by which the sides may differ."""


def cautions(record: ExperimentRecord) -> list[str]:
    """Return what speaks against the experiment, in sentences; nothing: no objection was found."""
    sides = [record.side(name) for name in SIDES]
    found = [*_clocks(*sides), *_throttled(record.repetitions), *_unsettled(record.repetitions)]
    if len(sides[0]) < FEWEST:
        found.append(f"fewer than {FEWEST} repetitions of a side say nothing about their variation")
    elif len(sides[0]) % 2:
        found.append("an odd number of pairs: one side came first once more often than the other")
    if any(one.reported.get("timer") == "host" for one in record.repetitions):
        found.append("timed by the host's clock: this is no GPU time")
    load, cpus = record.conditions.get("load") or [], record.conditions.get("cpus")
    if load and cpus and load[0] > cpus / 2:
        found.append(
            f"other programs were busy at the start (load average {load[0]:.1f} on {cpus} processors)"
        )
    if record.differences:
        found.append(f"besides the control the sides differ in {'; '.join(record.differences)}")
    return found


def _clocks(baseline: Sequence[Repetition], variant: Sequence[Repetition]) -> Iterable[str]:
    read = [_middle(side, "sm_clock") for side in (baseline, variant)]
    if read[0] is None or read[1] is None:
        reason = next(((r.clocks.get("before") or {}).get("reason") for r in baseline if r.clocks), None)
        if reason not in (None, "no GPU is used"):
            yield f"the clocks were not watched: {reason}"
        return
    if abs(read[1] / read[0] - 1) > CLOCKS / 100:
        yield (
            f"the SM clock differed: {read[0] / 1e6:,.0f} MHz for the baseline, "
            f"{read[1] / 1e6:,.0f} MHz for the variant"
        )
    warm = [_middle(side, "temperature") for side in (baseline, variant)]
    if warm[0] is not None and warm[1] is not None and abs(warm[1] - warm[0]) > HOT:
        yield f"the GPU's temperature differed: {warm[0]:.0f} and {warm[1]:.0f} °C"


def _throttled(found: Sequence[Repetition]) -> Iterable[str]:
    for side in SIDES:
        reasons = [
            reason
            for one in found
            if one.side == side
            for when in ("before", "after")
            for reason in (one.clocks.get(when) or {}).get("throttled") or ()
        ]
        if reasons:
            yield f"the GPU was throttled during the {side}: {', '.join(sorted(set(reasons)))}"


def _unsettled(found: Sequence[Repetition]) -> Iterable[str]:
    for side in SIDES:
        count = sum(one.side == side and one.reported.get("settled") is False for one in found)
        if count:
            yield f"warm-up of the {side} had not settled in {count} of its repetitions"


def _middle(side: Sequence[Repetition], name: str) -> float | None:
    values = [
        facts[name]
        for one in side
        for when in ("before", "after")
        if (facts := one.clocks.get(when) or {}).get(name) is not None
    ]
    return statistics.median(values) if values else None
