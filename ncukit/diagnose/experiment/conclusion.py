"""What an experiment allows to be said: of the goal, of the mechanism that the hypothesis named, of both.

| goal | named metrics (profiled pair) | other goals | code |
| --- | --- | --- | --- |
| better | as predicted | none is left | supported |
| better | as predicted | one not shown, or worse | partly-supported |
| not shown | as predicted | | mechanism-only |
| better or not shown | one did not move as predicted | | mechanism-unmoved |
| better | none named, or unknown | | improved |
| not shown | none named, or unknown | | not-shown |
| worse | | | worse |

A conclusion is a conditional: it holds for the conditions that were recorded, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncukit.diagnose.experiment.effect import FEWEST
from ncukit.model.effect_words import HUGE, changed, percent, rounded, sayable
from ncukit.model.experiment import (
    Code,
    Conclusion,
    Control,
    Correctness,
    Effect,
    Observed,
    Outcome,
)


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
