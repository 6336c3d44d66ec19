"""What an experiment allows to be said, and what in its conditions speaks against trusting it.

Pure: numbers in, words and numbers out.  Nothing here runs, reads or prints.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from ncukit.judge.effect import FEWEST
from ncukit.model.experiment import (
    SIDES,
    Code,
    Conclusion,
    Control,
    Correctness,
    Effect,
    ExperimentRecord,
    Observed,
    Outcome,
    Repetition,
)
from ncukit.model.kernel import HUGE, changed, percent, rounded, sayable

# ---- What in the conditions of an experiment speaks against trusting it

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


# ---- What an experiment allows to be said: of the goal, of the mechanism that the hypothesis named, of both
#  | goal | named metrics (profiled pair) | other goals | code | | --- | --- | --- | --- | | better | as
# predicted | none is left | supported | | better | as predicted | one not shown, or worse | partly-
# supported | | not shown | as predicted | | mechanism-only | | better or not shown | one did not move as
# predicted | | mechanism-unmoved | | better | none named, or unknown | | improved | | not shown | none
# named, or unknown | | not-shown | | worse | | | worse |
#
# A conclusion is a conditional: it holds for the conditions that were recorded, and says so.


def conclude(
    control: Control,
    effects: Sequence[Effect],
    observed: Sequence[Observed] = (),
    correctness: Sequence[Correctness] = (),
    cautions: Sequence[str] = (),
) -> Conclusion:
    """Return the conclusion from ``effects`` (the goal first) and from what the profiled pair showed."""
    goal, others = effects[0], effects[1:]
    code = _code(goal.outcome, observed, others)
    claim = _claim(code, goal, observed, others)
    return Conclusion(
        code,
        claim,
        _text(control, goal, observed, others),
        _cautions(control, effects, correctness, cautions),
    )


def wrong(correctness: Sequence[Correctness]) -> Conclusion:
    """Return the conclusion of an experiment that a wrong result ended: nothing was timed."""
    bad = next(one for one in correctness if one.state == "failed")
    return Conclusion(
        "wrong-result",
        f"The {bad.side} is wrong, so its time means nothing.",
        f"Against {bad.against}: {bad.detail}. Nothing was timed.",
    )


def _code(goal: Outcome, observed: Sequence[Observed], others: Sequence[Effect]) -> Code:
    if goal == "worse":
        return "worse"
    moves = {one.moved for one in observed}
    if moves & {"not-moved", "opposite"}:
        return "mechanism-unmoved"
    if not moves or "unknown" in moves:
        return "improved" if goal == "better" else "not-shown"
    if goal == "not-shown":
        return "mechanism-only"
    return "partly-supported" if any(one.outcome != "better" for one in others) else "supported"


def _claim(code: Code, goal: Effect, observed: Sequence[Observed], others: Sequence[Effect]) -> str:
    name, better = goal.metric, f"{goal.metric} is {changed(goal.ratio)}"
    moved = ", ".join(one.metric for one in observed if one.moved == "as-predicted")
    still = [one for one in observed if one.moved in ("not-moved", "opposite")]
    left = [one for one in others if one.outcome != "better"]
    if code == "supported":
        return f"Supported: {better}, and {moved} moved as predicted."
    if code == "partly-supported":
        words = " and ".join(
            f"{one.metric} is {'worse' if one.outcome == 'worse' else 'not shown to change'}" for one in left
        )
        return f"Supported in part: {better} and {moved} moved as predicted, but {words}."
    if code == "mechanism-only":
        return f"Not supported: {moved} moved as predicted, but no difference of {name} is shown."
    if code == "mechanism-unmoved":
        words = " and ".join(
            f"{one.metric} {'moved the other way' if one.moved == 'opposite' else 'did not move'}"
            for one in still
        )
        if goal.outcome == "better":
            return f"Not supported: {better}, but not for the reason named, because {words}."
        return f"Not supported: {words}, and no difference of {name} is shown."
    if code == "improved":
        return f"Shown: {better}; why is not tested."
    if code == "worse":
        return f"Worse: {better}."
    return f"No difference of {name} is shown."


def _text(control: Control, goal: Effect, observed: Sequence[Observed], others: Sequence[Effect]) -> str:
    """Return the conclusion in the conditional."""
    change = f"{control.name} changed from {control.baseline} to {control.variant}"
    if control.kind != "parameter":
        change = f"{control.variant} took the place of {control.baseline}"
    others_words = "".join(
        f"; {one.metric} "
        + ("is not shown to change" if one.outcome == "not-shown" else f"would be {percent(one)}")
        for one in others
    )
    unknown = next((one for one in observed if one.moved == "unknown"), None)
    end = "" if unknown is None else f" Whether {unknown.metric} moved is unknown: {unknown.source}."
    if goal.outcome != "not-shown":
        where = "Under the recorded conditions, and only if they hold,"
        return f"{where} {goal.metric} would be {percent(goal)} if {change}{others_words}.{end}"
    span = f" from {_change(goal.low)} to {_change(goal.high)}" if goal.high < float("inf") else ""
    n = goal.baseline.n
    ran = f"{n} repetitions of each side show" if n > 1 else "one repetition of each side shows"
    return (
        f"If {change}, {goal.metric} might change by anything{span}: {ran} no difference{others_words}. "
        f"{_more(goal)}.{end}"
    )


def _change(ratio: float) -> str:
    if ratio > HUGE:
        return f"more than {HUGE} times"
    return f"less than 1/{HUGE}" if ratio < 1 / HUGE else f"{100 * (ratio - 1):+.1f} %"


def _more(goal: Effect) -> str:
    seen = f"a difference like the observed {rounded(100 * (goal.ratio - 1), '+')} %"
    if goal.detectable is None:
        return f"At least {FEWEST} repetitions of each side are needed to show any difference"
    if goal.needed is None:
        return f"No number of repetitions within reason would show {seen}"
    known = sayable(goal)
    shows = "" if known is None else f"; these show {rounded(known)} % or more in four of five cases"
    return f"About {goal.needed:,} repetitions of each side would be needed to show {seen}{shows}"


def _cautions(
    control: Control,
    effects: Sequence[Effect],
    correctness: Sequence[Correctness],
    cautions: Sequence[str],
) -> tuple[str, ...]:
    found = list(cautions)
    if control.baseline == control.variant:
        found.insert(0, "both sides are the same (A/A): a difference that is shown is a false alarm")
    found += [
        f"the result of the {one.side} was not checked: {one.detail}"
        for one in correctness
        if one.state == "not-checked"
    ]
    if len(effects) > 1:
        found.append("each interval stands alone: of twenty metrics that do not change, one is shown to")
    return tuple(found)
