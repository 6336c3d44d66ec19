"""An experiment as one plain view: what the page and the terminal print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from ncukit import quantity
from ncukit.media import cleaned
from ncukit.model.experiment import SIDES, Effect, ExperimentRecord, Goal, Observed
from ncukit.model.kernel import HUGE, percent, rounded, sayable
from ncukit.render.line import Line, bold, code, line
from ncukit.render.view.provenance import base_names, this_page
from ncukit.render.words import plural, shorten

CODES = {
    "supported": ("✓ supported", "ok"),
    "partly-supported": ("! supported in part", "warn"),
    "mechanism-only": ("✗ not supported", "no"),
    "mechanism-unmoved": ("✗ not supported", "no"),
    "improved": ("✓ a difference is shown", "ok"),
    "not-shown": ("– not shown", "no"),
    "worse": ("✗ worse", "bad"),
    "wrong-result": ("✗ wrong result", "bad"),
}
OUTCOMES = {"better": "better", "worse": "worse", "not-shown": "not shown"}
MOVES = {
    "as-predicted": ("✓ as predicted", "ok"),
    "not-moved": ("✗ did not move", "no"),
    "opposite": ("✗ the other way", "bad"),
    "unknown": ("– unknown", "no"),
}
STATES = {
    "passed": ("✓ passed", "ok"),
    "failed": ("✗ failed", "bad"),
    "not-checked": ("– not checked", "warn"),
}
FOOTER = (
    "Times are of fresh processes without any profiler; the profiled pair is diagnosis, never a benchmark. "
    "Ratios are variant over baseline, a trimmed mean over pairs; intervals are at 95 % each."
)
CONTENTS = (
    ("conclusion", "Conclusion"),
    ("effects", "Repetitions"),
    ("diagnosis", "Diagnosis"),
    ("correctness", "Correctness"),
    ("conditions", "Conditions"),
    ("provenance", "Provenance"),
)


def page_view(record: ExperimentRecord, *, generated: str, command: str = "") -> dict[str, Any]:
    """Return the view of an experiment."""
    control, said = record.control, record.conclusion
    assert said is not None
    word, status = CODES[said.code]
    heading = f"{PurePath(control.baseline).name} → {PurePath(control.variant).name}"
    if control.kind == "parameter":
        heading = f"{control.name}: {control.baseline} → {control.variant}"
    view: dict[str, Any] = {
        "kind": "experiment",
        "title": f"{heading}, ncukit experiment",
        "brand": "experiment",
        "heading": shorten(heading, 120),
        "facts": _facts(record),
        "contents": [{"to": to, "text": text} for to, text in CONTENTS if to != "effects" or record.effects],
        "conclusion": {
            "word": word,
            "status": status,
            "claim": line(said.claim),
            "text": line(said.text),
            "cautions": [line(caution) for caution in said.cautions],
        },
        "hypothesis": record.hypothesis or "none was stated",
        "predicted": [f"{one.metric}: {one.direction}" for one in record.predictions],
        "effects": [_effect(record, goal) for goal in record.goals if record.effect(goal.metric)],
        "repetitions": _repetitions(record),
        "observed": [_observed(one) for one in record.observed],
        "profiled": line(_profiled(record)),
        "summary": line(record.profiled.summary),
        "runs": list(record.profiled.runs),
        "correctness": [_correctness(one) for one in record.correctness],
        "conditions": _conditions(record),
        "apart": _apart(record),
        "synthetic": [],
        "warnings": [],
        "provenance": [
            {"name": "Experiment", "text": line(f"{record.created}, ncukit {record.version}.")},
            this_page(command, generated),
        ],
        "footer": FOOTER,
        "figures": {},
        "tips": {},
    }
    result: dict[str, Any] = cleaned(view)
    return result


def change(ratio: float) -> str:
    """Return a ratio as a change.

    >>> change(0.8), change(float("inf"))
    ('\u221220.0\u202f%', 'without bound')
    """
    if not math.isfinite(ratio):
        return "without bound"
    if not 1 / HUGE <= ratio <= HUGE:
        return f"over {HUGE} times" if ratio > 1 else f"under 1/{HUGE}"
    text = f"{100 * (ratio - 1):+.1f}{quantity.NARROW}%".replace("+0.0", "0.0").replace("-0.0", "0.0")
    return text.replace("-", quantity.MINUS)


def _facts(record: ExperimentRecord) -> list[dict[str, Any]]:
    observed = record.conditions.get("observed") or {}
    gpu = observed.get("device") or (record.conditions.get("gpu") or {}).get("name") or "none used"
    facts = [{"name": "GPU", "text": line(str(gpu))}]
    if record.effects:
        first = record.effects[0]
        ends = f"{_short(first, first.baseline.median)} → {_short(first, first.variant.median)}"
        facts.append({"name": first.metric, "text": line(f"{ends} ({change(first.ratio)})")})
        facts.append({"name": "Repetitions", "text": line(f"{first.baseline.n} of each side")})
    facts.append({"name": "Hypothesis", "text": line(shorten(record.hypothesis or "none was stated", 200))})
    return facts


def _effect(record: ExperimentRecord, goal: Goal) -> dict[str, Any]:
    found = record.effect(goal.metric)
    assert found is not None
    values = {s: [one.values[goal.metric] for one in record.side(s)] for s in SIDES}
    low, high = min(map(min, values.values())), max(map(max, values.values()))
    known = found.outcome != "not-shown"
    return {
        "metric": found.metric,
        "better": f"{found.better} is better",
        "outcome": OUTCOMES[found.outcome],
        "status": {"better": "ok", "worse": "bad", "not-shown": "no"}[found.outcome],
        "change": change(found.ratio),
        "interval": f"{change(found.low)} to {change(found.high)}"
        if math.isfinite(found.high)
        else "unknown",
        "confidence": f"{100 * found.confidence:.0f}{quantity.NARROW}%",
        "needed": "" if known else _needed(found),
        "detectable": "" if (least := sayable(found)) is None else f"{rounded(least)}{quantity.NARROW}%",
        "words": percent(found) if known else "no difference is shown",
        "sides": [_side(found, side, values[side], low, high) for side in SIDES],
        "ends": [_short(found, low), _short(found, high)],
    }


def _side(found: Effect, side: str, values: Sequence[float], low: float, high: float) -> dict[str, Any]:
    spread = found.baseline if side == "baseline" else found.variant
    return {
        "side": side,
        "median": _short(found, spread.median),
        "range": quantity.span(spread.min, spread.max, found.unit),
        "iqr": _short(found, spread.iqr),
        "relative": f"{100 * spread.iqr / spread.median:.1f}{quantity.NARROW}%",
        "n": spread.n,
        "dots": [_place(value, low, high) for value in values],
        "middle": _place(spread.median, low, high),
    }


def _place(value: float, low: float, high: float) -> float:
    """Return where a value stands between the ends [%]."""
    return round(100 * (value - low) / (high - low), 2) if high > low else 50.0


def _needed(found: Effect) -> str:
    if found.detectable is None:
        return f"at least {found.needed} repetitions of each side"
    if found.needed is None:
        return "no number of repetitions within reason"
    return f"about {found.needed:,} repetitions of each side"


def _short(found: Effect, value: float) -> str:
    return quantity.short(value, found.unit) if found.unit else f"{value:.4g}"


def _repetitions(record: ExperimentRecord) -> dict[str, Any]:
    metrics = [goal.metric for goal in record.goals]
    rows = [
        {
            "order": one.order,
            "pair": one.pair,
            "side": one.side,
            "cells": [_value(record, name, one.values.get(name)) for name in metrics],
            "apart": ", ".join(f"{name} {quantity.short(value, 's')}" for name, value in one.apart.items()),
        }
        for one in record.repetitions
    ]
    return {"metrics": metrics, "rows": rows}


def _value(record: ExperimentRecord, name: str, value: float | None) -> str:
    found = record.effect(name)
    return quantity.MISSING if value is None or found is None else _short(found, value)


def _profiled(record: ExperimentRecord) -> str:
    done = record.profiled
    prefix = {"not-done": "Not profiled: ", "partial": "Profiled in part: ", "done": ""}[done.state]
    words = f"{prefix}{done.detail}"
    return f"{words[:1].upper()}{words[1:]}."


def _observed(one: Observed) -> dict[str, Any]:
    word, status = MOVES[one.moved]
    points = one.unit == "%"
    moved = "unknown"
    if one.change is not None:
        unit = " pt" if points else f"{quantity.NARROW}%"
        moved = f"{one.change:+.1f}{unit}".replace("-", quantity.MINUS)
    return {
        "metric": one.metric,
        "predicted": one.direction,
        "baseline": quantity.short(one.baseline, one.unit),
        "variant": quantity.short(one.variant, one.unit),
        "change": moved,
        "word": word,
        "status": status,
        "source": line(one.source),
    }


def _correctness(one: Any) -> dict[str, Any]:
    word, status = STATES[one.state]
    tolerance = ""
    if one.tolerance is not None:
        tolerance = "must be equal" if not one.tolerance else f"tolerance {one.tolerance:g}"
    return {
        "side": one.side,
        "word": word,
        "status": status,
        "against": one.against,
        "detail": line(shorten(one.detail, 300)),
        "tolerance": tolerance,
        "error": "" if one.error is None else f"largest error {one.error:.3g} of the tolerance",
    }


def _conditions(record: ExperimentRecord) -> list[dict[str, Any]]:
    control, held = record.control, record.conditions
    observed = dict(held.get("observed") or {})
    rows: list[tuple[str, Line]] = [
        ("Control", line(f"{control.name}: ", code(control.baseline), " against ", code(control.variant))),
        ("Order", line(f"{held.get('order')}.")),
    ]
    if source := held.get("source"):
        rows.append(("Script", line(code(PurePath(source).name), ", sha256 ", code(str(held.get("sha256"))))))
    if template := held.get("command"):
        rows.append(("Command", line(code(base_names(str(template))))))
    if params := held.get("params"):
        rows.append(("Parameters", line(", ".join(f"{name} = {value}" for name, value in params.items()))))
    if git := held.get("git"):
        rows.append(("Revision", line(code(git["revision"]), ", modified" if git.get("modified") else "")))
    gpu, driver = held.get("gpu") or {}, held.get("driver") or {}
    rows.append(("GPU", line(f"{gpu.get('name') or 'none'}; driver {driver.get('kernel') or 'unknown'}")))
    for name, value in observed.items():
        text = value if isinstance(value, str) else ", ".join(f"{k} {v}" for k, v in _items(value)) or "none"
        rows.append((name.replace("_", " ").capitalize(), line(shorten(str(text), 300))))
    rows += [("Differs besides", line(bold(text))) for text in record.differences]
    return [{"name": name, "text": text} for name, text in rows]


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else [] if value is None else [("", value)]


def _apart(record: ExperimentRecord) -> list[dict[str, Any]]:
    """Return what the processes spent before they were timed: medians of each side."""
    import statistics

    names = dict.fromkeys(name for one in record.repetitions for name in one.apart)
    found = []
    for name in names:
        cells = []
        for side in SIDES:
            values = [one.apart[name] for one in record.side(side) if name in one.apart]
            cells.append(quantity.short(statistics.median(values), "s") if values else quantity.MISSING)
        found.append({"name": name, "cells": cells})
    return found


def sentence(record: ExperimentRecord) -> str:
    """Return how often and in which order the sides ran, for a heading."""
    count = plural(len(record.side("baseline")), "repetition")
    return f"{count} of each side, alternating, each in a fresh process without any profiler."
