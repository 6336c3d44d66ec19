"""One pair of a comparison: what changed, what limits each, whether they can be compared, and the tables."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ncukit import quantity
from ncukit.model import Verdict
from ncukit.model.comparison import Against, Comparison, Fact, LinePair, Pair, Sample
from ncukit.render.cells import Cells, Tips
from ncukit.render.compare import bars, changes, roofs
from ncukit.render.compare.changes import Two
from ncukit.render.line import line
from ncukit.render.plot import Figure
from ncukit.render.view.quality import SIGNS
from ncukit.render.view.verdict import PIPS, experiment, glance
from ncukit.render.words import limited_by, shorten

NAME = 60
MET = {True: ("ok", "met"), False: ("bad", "not met"), None: ("no", "open")}


def block(
    comparison: Comparison, against: Against, pair: Pair, tips: Tips, n: int
) -> tuple[dict[str, Any], dict[str, Figure]]:
    """Return everything about one pair, and its figures; ``n`` numbers the pair from 1."""
    two = Two(_cells(pair.base, tips, 2 * n - 1), _cells(pair.other, tips, 2 * n))
    clean = against.clean if len(against.pairs) == 1 else None
    drawn, figures = roofs.section(two, pair, f"roof-{n}")
    return {
        "n": n,
        "title": title(pair),
        "cls": _class(pair),
        "summary": summary(pair),
        "predictions": [_prediction(p.text, p.met) for p in pair.predictions],
        "predicted": _predicted(pair),
        "next": _next(against, pair),
        "sides": [
            _side(two.base, pair.base, "base", comparison.base.label),
            _side(two.other, pair.other, "other", against.other.label),
        ],
        "comparable": comparable(pair.facts),
        "changes": changes.section(two, pair, clean),
        "roofline": drawn,
        "stalls": bars.stalls(two, pair),
        "occupancy": bars.occupancy(two, pair),
        "mix": bars.mix(two, pair),
        "lines": lines(pair),
    }, figures


def title(pair: Pair, length: int = NAME) -> str:
    """Return the kernel's name, or both names where they differ."""
    base, other = (shorten(s.kernel.name or "kernel without a name", length) for s in (pair.base, pair.other))
    return base if base == other else f"{base} → {other}"


def summary(pair: Pair) -> dict[str, Any]:
    """Return claim, deck and confidence."""
    found = pair.summary
    return {
        "claim": line(found.claim),
        "deck": line(found.deck),
        "trend": found.trend,
        "confidence": {
            "pips": PIPS[found.confidence] if found.trend != "unknown" else 0,
            "word": f"{found.confidence.capitalize()} confidence"
            if found.trend != "unknown"
            else "No confidence",
            "text": found.grounds,
        },
        "flags": flags(pair.facts),
    }


def flags(facts: tuple[Fact, ...]) -> list[dict[str, str]]:
    """Return what differs between the sides, for the line above all numbers."""
    return [
        {"status": fact.status, "text": f"{SIGNS[fact.status]} {fact.name.lower()} {fact.word}"}
        for fact in facts
        if fact.status in ("warn", "bad")
    ]


def comparable(facts: tuple[Fact, ...]) -> dict[str, Any]:
    """Return the facts about comparability, and the sentence that sums them up."""
    from ncukit.comparison.facts import verdict_on

    return {
        "sentence": line(verdict_on(facts)),
        "facts": [
            {
                "name": fact.name,
                "status": fact.status,
                "word": f"{SIGNS[fact.status]} {fact.word}",
                "sign": SIGNS[fact.status],
                "said": fact.word,
                "text": line(fact.text),
            }
            for fact in facts
        ],
    }


def lines(pair: Pair) -> dict[str, Any]:
    """Return the source lines that changed, or why there are none."""
    if pair.no_lines:
        return {"rows": [], "sentence": line(f"No source lines: {pair.no_lines}.")}
    if not pair.lines:
        return {"rows": [], "sentence": line("No line is new, gone, or moved by 3 points of the samples.")}
    return {
        "rows": [_line(found) for found in pair.lines],
        "sentence": line("Lines matched by their text; shares of each side’s own stall samples."),
    }


def _line(found: LinePair) -> dict[str, Any]:
    where = "moved" if found.base_line and found.other_line else "gone" if found.base_line else "new"
    change = (
        f"{(found.other_share or 0) - (found.base_share or 0):+.1f}{quantity.NARROW}pt".replace("-", "−")
        if where == "moved"
        else where
    )
    return {
        "where": where,
        "text": shorten(found.text, 160),
        "base_line": "" if found.base_line is None else str(found.base_line),
        "other_line": "" if found.other_line is None else str(found.other_line),
        "base": "" if found.base_share is None else quantity.short(found.base_share, "%"),
        "other": "" if found.other_share is None else quantity.short(found.other_share, "%"),
        "change": change,
    }


def numbered(*samples: Sample) -> str:
    """Return the launch numbers of samples, not too many of them; three and more in a row as a range."""
    launches = sorted({n for sample in samples for n in sample.launches})
    parts: list[str] = []
    for _, group in groupby(enumerate(launches), key=lambda item: item[1] - item[0]):
        run = [n for _, n in group]
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(n) for n in run]
    return ", ".join(parts[:6]) + (" …" if len(parts) > 6 else "")


def _cells(sample: Sample, tips: Tips, number: int) -> Cells:
    cells = Cells(sample.kernel, tips)
    cells.launch = number
    return cells


def _class(pair: Pair) -> str:
    base, other = pair.base.diagnosis.verdict, pair.other.diagnosis.verdict
    if (base.cls, base.limiter) == (other.cls, other.limiter):
        return f"{limited_by(base.cls, base.limiter)}, both"
    return f"{limited_by(base.cls, base.limiter)} → {limited_by(other.cls, other.limiter)}"


def _side(cells: Cells, sample: Sample, side: str, label: str) -> dict[str, Any]:
    verdict: Verdict = sample.diagnosis.verdict
    kernel = sample.kernel
    repeats = f", the median of {sample.repeats} repeats" if sample.repeats > 1 else ""
    return {
        "side": side,
        "sign": "○ base" if side == "base" else "● other",
        "file": label,
        "launches": f"launch{'' if len(sample.launches) == 1 else 'es'} {numbered(sample)}{repeats}",
        "name": shorten(kernel.name or "kernel without a name", 120),
        "gpu": f"{kernel.gpu or 'unknown GPU'}"
        + (f", CC {kernel.compute_capability}" if kernel.compute_capability else ""),
        "cls": limited_by(verdict.cls, verdict.limiter),
        "claim": line(verdict.claim),
        "glance": glance(cells, sample.diagnosis)[:3],
        "duration": cells["kernel_duration"],
    }


def _prediction(text: str, met: bool | None) -> dict[str, Any]:
    status, said = MET[met]
    return {"word": f"{SIGNS[status]} {said}", "said": said, "status": status, "text": line(text)}


def _predicted(pair: Pair) -> list[Any]:
    found = pair.base.diagnosis.verdict.experiment
    if found is None or not pair.predictions:
        return []
    return line("proposed by the base’s verdict: ", f"“{found.title}”, if that is what changed")


def _next(against: Against, pair: Pair) -> dict[str, Any] | None:
    """Return the next step: the clean time of both; once that is known, the other side's experiment."""
    if pair.summary.trend == "unknown":
        return None
    clean = against.clean
    if clean is not None and clean.change is not None:
        return experiment(pair.other.diagnosis.verdict.experiment)
    return {
        "title": line("Measure the clean time of both"),
        "diff": [],
        "rows": [
            {
                "name": "Why",
                "text": line("Counters say why; only a run without the profiler says by how much."),
            },
            {
                "name": "Watch",
                "text": line(
                    "Median and spread of 20 calls and more, results checked against the reference."
                ),
            },
        ],
        "disproved": line("the medians differ by less than their quartiles are apart."),
        "cost": [],
        "run": "ncukit time your_script.py --kernel NAME   # once for each version",
    }
