"""What a comparison says in words: how much faster, which lines changed, was the experiment right."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from ncukit.comparison.comparable import FEW, Sides, reading_of
from ncukit.comparison.facts import verdict_on
from ncukit.comparison.pairs import Match
from ncukit.comparison.rows import Spilling, other_kind, signed, spilling
from ncukit.judge.source_view import source_view
from ncukit.media import sentence
from ncukit.metrics import load
from ncukit.model import Experiment, Kernel, Value, Verdict
from ncukit.model.comparison import Fact, LinePair, Prediction, Row, Summary, Trend
from ncukit.model.diagnosis import Confidence, Trial
from ncukit.model.source import SourceView
from ncukit.quantity import brief
from ncukit.record import dataclass
from ncukit.render.words import LIMITERS, ROLE

# ---- Source lines of two versions, matched by their text, with the share of the stall samples at each

MOVED = 3.0
"""[points] A line whose share of the samples moved by this is told, even if its text is the same."""
VISIBLE = 1.0
"""[%] of the samples from which a line that is only on one side is told."""
MOST = 12


@dataclass(frozen=True)
class Lines:
    """Lines that changed, the largest share first, or why there are none."""

    pairs: tuple[LinePair, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class _Line:
    file: str
    number: int
    text: str | None
    share: float


def changed_lines(base: Kernel, other: Kernel) -> Lines:
    """Return the lines that are new, gone, or whose share of the samples moved.

    The kernels must have been read with their code; a baseline holds none.
    """
    views = [source_view(kernel) for kernel in (base, other)]
    for side, view in zip(("base", "other"), views, strict=True):
        if why := _lacks(view):
            return Lines(why=f"the {side} holds {why}")
    left, right = (_lines(view) for view in views if view is not None)
    found = [LinePair(*line) for line in _aligned(left, right) if _told(*line[1:])]
    found.sort(key=lambda line: -max(line.base_share or 0.0, line.other_share or 0.0))
    return Lines(tuple(found[:MOST]))


def _lacks(view: SourceView | None) -> str:
    """Return what a view lacks for its lines to be compared, or ""."""
    if view is None or view.basis == "none":
        return "no stall samples at instructions"
    return "" if view.files else "no line information (build with -lineinfo)"


def _told(a: int | None, b: int | None, before: float | None, after: float | None) -> bool:
    if a is None or b is None:
        return max(before or 0.0, after or 0.0) >= VISIBLE
    return abs((after or 0.0) - (before or 0.0)) >= MOVED


def _lines(view: SourceView) -> list[_Line]:
    """Return the lines that have instructions, in order, with their share of the samples [%]."""
    return [
        _Line(file.name, line.number, line.text and line.text.strip(), view.share(line.cost) or 0.0)
        for file in view.files
        for line in file.lines
        if line.cost is not None and line.rows
    ]


def _aligned(
    left: Sequence[_Line], right: Sequence[_Line]
) -> list[tuple[str, int | None, int | None, float | None, float | None]]:
    keys = [[(line.file, line.text or str(line.number)) for line in lines] for lines in (left, right)]
    found: list[tuple[str, int | None, int | None, float | None, float | None]] = []
    for kind, a, b, c, d in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        if kind == "equal":
            for one, two in zip(left[a:b], right[c:d], strict=True):
                found.append((_shown(one), one.number, two.number, one.share, two.share))
            continue
        found += [(_shown(one), one.number, None, one.share, None) for one in left[a:b]]
        found += [(_shown(two), None, two.number, None, two.share) for two in right[c:d]]
    return found


def _shown(line: _Line) -> str:
    return f"{line.file}: {line.text}" if line.text is not None else line.file


# ---- Was the experiment right that the base's verdict proposed: met, not met, or open

GAIN = 5.0
"""[%] of clean time that the experiments of the verdicts ask for."""
_WORD = re.compile(r"[a-z][a-z0-9_]+")
_TO_ZERO = re.compile(r"to 0\b|stays? 0\b")


def _promises(experiment: Experiment) -> bool:
    """Return whether it is a change that something should come of: collecting more, or stopping, is none."""
    return not isinstance(experiment, Trial) or bool(experiment.checks)


def predictions(
    experiment: Experiment | None, rows: Mapping[str, Row], sides: Sides, clean: Row | None
) -> tuple[Prediction, ...]:
    """Return what the experiment told to watch, each with what came of it; nothing between different GPUs."""
    if experiment is None or not sides.same_gpu or not _promises(experiment):
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


# ---- What the comparison of two samples says in words: faster or slower, by how much, why, how sure

TELLING = 25.0
"""[%] of the change in duration that a row must go with to be named as the cause."""
LARGE = 10.0
"""[%] A change this large shows even in one pass each."""
CLEAR = 2.0
"""Times the noise: a smaller change has no cause worth naming."""
DURATION = "kernel_duration"
PLURAL = ("tensor", "dependency")
"""Limiters whose words are a plural."""
WORK = "work"
"""The cause where other work, or another kernel, ran on another GPU."""
_CAUSES = Path(__file__).resolve().parent / "data" / "causes.json"


def summarise(
    match: Match, sides: Sides, rows: Mapping[str, Row], facts: tuple[Fact, ...], clean: Row | None
) -> Summary:
    """Return the summary; ``clean`` is the row of the clean times, where this pair has one."""
    time = clean if clean is not None and clean.change is not None else rows[DURATION]
    failed = [name for name, k in (("base", sides.base), ("other side", sides.other)) if k.failed is not None]
    if failed:
        what = f"the launch of the {' and the '.join(failed)} has no valid measurement"
        return Summary("unknown", f"Nothing can be compared: {what}", deck=verdict_on(facts))
    if time.change is None:
        claim = f"Whether it is faster is not known: the duration is missing ({time.reason})"
        return Summary("unknown", claim, deck=verdict_on(facts))
    speedup = 1 / time.ratio if time.ratio else None
    trend: Trend = "unchanged" if not time.beyond_noise else "slower" if time.change > 0 else "faster"
    found = spilling(rows, sides) if sides.same_gpu else None
    claim, cause, evidence = _claim(trend, time, sides, rows, match, found)
    confidence, grounds = _confidence(time, clean, match, facts, cause)
    parts = (_amount(time, clean, claim, cause), found.deck if found else "", verdict_on(facts))
    deck = " ".join(part for part in parts if part)
    return Summary(trend, claim, deck, cause, confidence, grounds, speedup, evidence)


def limit(verdict: Verdict) -> str:
    """Return what limits a launch, for the middle of a sentence.

    >>> limit(Verdict("memory-bound", "dram", "high", ""))
    'DRAM (memory-bound)'
    >>> limit(Verdict("compute-bound", None, "low", ""))
    'an unknown pipe (compute-bound)'
    """
    if verdict.limiter is None:
        unknown = f"an unknown {ROLE[verdict.cls]} ({verdict.cls})" if verdict.cls in ROLE else verdict.cls
        return {"balanced": "no single unit", "undetermined": "nothing known"}.get(verdict.cls, unknown)
    return f"{LIMITERS.get(verdict.limiter, verdict.limiter)} ({verdict.cls})"


def limits(verdict: Verdict) -> str:
    """Return what limits a launch with its verb, for a sentence about whom it limits.

    >>> limits(Verdict("compute-bound", "tensor", "high", "")), limits(Verdict("balanced", None, "high", ""))
    ('tensor cores (compute-bound) limit', 'no single unit limits')
    """
    return f"{limit(verdict)} limit{'' if verdict.limiter in PLURAL else 's'}"


def factor(time: Row) -> str:
    """Return a change in time as a factor: "1.42 × as fast", "1.31 × the time"."""
    ratio = time.ratio or 1.0
    return f"{brief(1 / ratio)}\u202f× as fast" if ratio < 1 else f"{brief(ratio)}\u202f× the time"


def _claim(
    trend: Trend,
    time: Row,
    sides: Sides,
    rows: Mapping[str, Row],
    match: Match,
    found: Spilling | None,
) -> tuple[str, str, tuple[str, ...]]:
    """Return the claim, the id of its cause, and the rows behind it."""
    if trend == "unchanged":
        return (
            f"No change shown: {signed(time.change or 0.0)} in time, within {time.noise_from}",
            "",
            (DURATION,),
        )
    if kind := other_kind(rows, sides):
        ends = [brief(value.number, "s") for value in (time.base, time.other)]
        if sides.same_gpu:
            claim = f"{kind}: {ends[0]} for {match.base.kernel.name}, {ends[1]} for {match.other.kernel.name}"
            return f"{claim}; {_limits(match, joined=True)}", WORK, (DURATION, "flops_total")
        where = [kernel.gpu or "the GPU of the " + side for kernel, side in _named(sides)]
        claim = f"{kind} on {sides.elsewhere}: {ends[0]} on {where[0]}, {ends[1]} on {where[1]}"
        return f"{claim}; {_limits(match, joined=True)}", WORK, (DURATION, "flops_total")
    if not sides.same_gpu:
        on = f"on {sides.other.gpu or 'the other GPU'}, against {sides.base.gpu or 'the base'}"
        limits = _limits(match, joined=True)
        return f"{sentence(factor(time))} {on}; {limits}", "gpu", (DURATION,)
    head = "Slower" if trend == "slower" else "Faster"
    if found is not None:
        return f"{head}: {found.claim}", found.cause, found.evidence
    causes = telling(rows) if abs(time.change or 0.0) >= CLEAR * time.noise else []
    words = _cause_words()
    if not causes:
        return f"{head}: {factor(time)}; {_limits(match)}", "", (DURATION,)
    first = rows[causes[0]]
    phrase = words[first.id][0 if (first.change or 0) > 0 else 1]
    return f"{head}: {phrase}; {_limits(match)}", first.id, tuple(causes[:4])


def telling(rows: Mapping[str, Row]) -> list[str]:
    """Return the rows that go with much of the change in duration and can be named, most first."""
    words = _cause_words()
    some = [
        row
        for row in rows.values()
        if row.id in words and row.explains is not None and row.explains >= TELLING and row.beyond_noise
    ]
    some.sort(key=lambda row: -(row.explains or 0))
    return [row.id for row in some]


@functools.cache
def _cause_words() -> Mapping[str, tuple[str, str]]:
    data: Mapping[str, tuple[str, str]] = json.loads(_CAUSES.read_text(encoding="utf-8"))
    return data


def _named(sides: Sides) -> tuple[tuple[Kernel, str], tuple[Kernel, str]]:
    return (sides.base, "base"), (sides.other, "other side")


def _limits(match: Match, *, joined: bool = False) -> str:
    base, other = match.base.diagnosis.verdict, match.other.diagnosis.verdict
    unknown = [side for side, v in (("base", base), ("other", other)) if v.cls == "undetermined"]
    if len(unknown) == 2:
        return "what limits them is not known"
    if unknown:
        known, v = ("other", other) if unknown == ["base"] else ("base", base)
        return f"{limits(v)} the {known}, what limits the {unknown[0]} is not known"
    if (base.cls, base.limiter) == (other.cls, other.limiter):
        return f"{limits(base)} both"
    if joined:
        return f"{limits(base)} the one, {limit(other)} the other"
    return f"the limit moved from {limit(base)} to {limit(other)}"


def _amount(time: Row, clean: Row | None, claim: str, cause: str) -> str:
    base, other = time.base.number, time.other.number
    how = "clean, without a profiler" if time is clean else "profiled, not a benchmark"
    if cause == WORK:
        return f"{sentence(how)}."
    ends = f"{brief(base, 's')} \u2192 {brief(other, 's')} ({how})."
    said = not time.beyond_noise or factor(time).lower() in claim.lower()
    return ends if said else f"{sentence(factor(time))}: {ends}"


def _confidence(
    time: Row, clean: Row | None, match: Match, facts: tuple[Fact, ...], cause: str
) -> tuple[Confidence, str]:
    """Return how sure the change is, and what would make it surer."""
    doubts = [f for f in facts if f.status == "warn" and f.id in ("clocks", "caches", "peers", "work")]
    if cause == WORK:
        return "low", "the times of other work or another kernel do not compare"
    if time is clean:
        return "high", "clean times on both sides, each with its spread"
    least = min(match.base.repeats, match.other.repeats)
    if doubts:
        words = ", ".join(f"{fact.name.lower()} {fact.word}" for fact in doubts)
        return "low", f"{words}; the clean time of both would tell"
    if least >= FEW:
        return "high", f"{least} repeats and more on each side, all of them profiled"
    if abs(time.change or 0) >= LARGE:
        return "medium", "large, but profiled: the amount needs the clean time of both"
    return "low", "small, and measured under the profiler: repeats or the clean time of both would tell"
