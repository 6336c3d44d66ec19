"""What can be said of all launches of a file together: the common limit, the quality, ncu's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.model import RuleResult
from ncukit.render.cells import plain
from ncukit.render.line import Line, bold, code, line, link
from ncukit.render.view.groups import Group, Launch, share
from ncukit.render.view.opinion import SENTENCE, against, gains, readable
from ncukit.render.view.overall_quality import is_brief, quality
from ncukit.render.view.verdict import PIPS, evidence_cell, experiment, role
from ncukit.render.words import LIMITERS, limited_by, listed, plural, shorten

__all__ = ["opinion", "quality", "verdict"]

LISTED = 6
"""Groups of launches in the ledger."""
QUOTED = 3
"""Lines of evidence of the largest group."""


def verdict(launches: Sequence[Launch], groups: Sequence[Group]) -> dict[str, Any]:
    """Return the verdict for the whole file: the limit that most of the profiled time shares."""
    top = groups[0]
    found = top.first.diagnosis.verdict
    tried = next((x for x in top.launches if x.diagnosis.verdict.experiment is not None), None)
    where = (
        f", in all {len(launches):,} launches"
        if len(groups) == 1
        else f", in {len(top.launches):,} of {len(launches):,} launches"
    )
    return {
        "cls": found.cls,
        "role": f"{role(found.cls, found.limiter)}{where}".removeprefix(", "),
        "claim": line(_claim(top, launches, groups)),
        "deck": _deck(top),
        "confidence": _confidence(top),
        "glance": [],
        "evidence": [_ledger(group, launches) for group in groups[:LISTED]] + _shared(top),
        "against": _against(launches),
        "missing": [],
        "collect": "",
        "experiment": experiment(tried.diagnosis.verdict.experiment) if tried else None,
        "experiment_about": line(
            "for ", link(f"launch {tried.n}", f"kernel-{tried.n}"), ", the longest of them"
        )
        if tried
        else [],
        "ledger_class": "evw",
        "region": line(
            bold("Region: undetermined."),
            " There is no timeline, so gaps between the launches, copies and waits are not known; they may "
            "cost more than the kernels. ",
            link("How to add one", "timeline"),
        ),
    }


def opinion(launches: Sequence[Launch]) -> dict[str, Any]:
    """Return ncu's rules over all launches: how many, and the range of each gain in its own column."""
    rows: dict[tuple[str, str], list[tuple[RuleResult, Launch]]] = {}
    for launch in launches:
        for rule in launch.cells.kernel.raw.rules:
            title = next(
                (
                    readable(title)
                    for kind, title, text in rule.messages
                    if kind != "error" and (title or text)
                ),
                None,
            )
            if title is not None:
                rows.setdefault((rule.name or rule.id, title), []).append((rule, launch))
    table = [_rule_row(name, title, some) for (name, title), some in rows.items()]
    table.sort(key=lambda row: (-row["gain"], -row["count"]))
    return {"rows": table, "sentence": f"{SENTENCE} Over all launches."}


def _claim(top: Group, launches: Sequence[Launch], groups: Sequence[Group]) -> str:
    found = top.first.diagnosis.verdict
    limit = LIMITERS.get(found.limiter or "", "")
    what = {"failed": "hold no valid measurement", "undetermined": "cannot be judged from this report"}.get(
        found.cls, f"are {found.cls}" + (f": {limit}" if limit else "")
    )
    if len(groups) == 1 and found.cls == "undetermined":
        return f"None of the {len(launches):,} launches can be judged from this report"
    if len(groups) == 1:
        return f"{'Both' if len(launches) == 2 else f'All {len(launches):,}'} launches {what}"
    part = share(top.time, sum(launch.weight for launch in launches))
    some = f"{len(top.launches):,} of {len(launches):,} launches"
    if len(top.launches) == 1:
        some, what = f"Launch {top.first.n}", what.replace("are ", "is ", 1).replace("hold", "holds", 1)
    time = f", {quantity.short(part, '%')} of the profiled time," if part else ""
    return f"{some}{time} {what}"


def _deck(top: Group) -> Line:
    first = top.first
    duration: list[Any] = [] if first.duration is None else [", ", first.cells["kernel_duration"]]
    return line(
        "The first of them is " if first.duration is None else "The longest of them is ",
        link(f"launch {first.n}", f"kernel-{first.n}"),
        " ",
        code(shorten(first.cells.kernel.name, 60)),
        *duration,
        f": {first.diagnosis.verdict.claim.rstrip('.')}.",
    )


def _confidence(top: Group) -> dict[str, Any] | None:
    cls = top.first.diagnosis.verdict.cls
    if cls in ("failed", "undetermined"):
        return None
    counts = {word: sum(x.diagnosis.verdict.confidence == word for x in top.launches) for word in PIPS}
    said = [f"{word} in {count:,}" for word, count in counts.items() if count]
    lowest = min((word for word in PIPS if counts[word]), key=lambda word: PIPS[word])
    return {
        "pips": PIPS[lowest],
        "word": f"{lowest.capitalize()} confidence.",
        "text": f"Of these {len(top.launches):,} launches: {listed(said)}.",
    }


def _ledger(group: Group, launches: Sequence[Launch]) -> dict[str, Any]:
    found = group.first.diagnosis.verdict
    part = share(group.time, sum(launch.weight for launch in launches))
    count = plural(len(group.launches), "launch")
    number = plain(quantity.short(part, "%")) if part is not None else plain(f"{len(group.launches):,}")
    words = f"of the profiled time: {count}" if part is not None else count.split(" ", 1)[1]
    return {
        "n": number,
        "text": line(
            f"{words}, ",
            bold(limited_by(found.cls, found.limiter)),
            _lead(group),
            link(f"launch {group.first.n}", f"kernel-{group.first.n}"),
            ", ",
            code(shorten(group.first.cells.kernel.name, 60)),
            ".",
        ),
    }


def _lead(group: Group) -> str:
    """Return the words before the launch that stands for its group."""
    if len(group.launches) == 1:
        return ": "
    return ". The first is " if group.first.duration is None else ". The longest is "


def _shared(group: Group) -> list[dict[str, Any]]:
    """Return the evidence of the longest launch, over all launches of its group that quote the same thing."""
    rows = []
    for e in group.first.diagnosis.verdict.evidence[:QUOTED]:
        same = [
            other.value
            for launch in group.launches
            for other in launch.diagnosis.verdict.evidence
            if (other.metric, other.unit, other.text) == (e.metric, e.unit, e.text)
        ]
        values = [value for value in same if isinstance(value, int | float)]
        if len(same) == len(group.launches) and len(values) == len(same):
            number = plain(quantity.span(min(values), max(values), e.unit))
            rows.append({"n": number, "text": line(e.text)})
        else:
            about = link(f"launch {group.first.n}", f"kernel-{group.first.n}")
            rows.append({"n": evidence_cell(group.first.cells, e), "text": line(f"{e.text} (", about, ")")})
    return rows


def _against(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    failed = sum(launch.cells.kernel.failed is not None for launch in launches)
    undecided = sum(launch.diagnosis.verdict.cls == "undetermined" for launch in launches)
    brief = sum(is_brief(launch) for launch in launches)
    rows = [
        (failed, "launches without a valid measurement; no number of them is used."),
        (
            undecided,
            "launches that this report cannot judge"
            + (": see what is missing in each." if undecided else "."),
        ),
        (brief, "launches under 10 µs: launching one costs about as much, so the gaps may matter more."),
    ]
    return [{"n": plain(f"{n:,}"), "text": line(_singular(words) if n == 1 else words)} for n, words in rows]


def _singular(words: str) -> str:
    for many, one in (("launches", "launch"), ("of them", "of it"), ("in each", "in it")):
        words = words.replace(many, one)
    return words


def _rule_row(name: str, title: str, some: Sequence[tuple[RuleResult, Launch]]) -> dict[str, Any]:
    found = [gains(rule) for rule, _ in some]
    whole = [g for g, _ in found if g is not None]
    part = [p for _, p in found if p is not None]
    words = {against(rule.id, x.diagnosis.verdict.cls, x.diagnosis.verdict.limiter) for rule, x in some} - {
        ""
    }
    return {
        "name": f"{name}: {title}" if title else name,
        "count": len(some),
        "launches": f"{len(some):,}",
        "gain": max(whole, default=0.0),
        "global": quantity.span(min(whole), max(whole), "%") if whole else None,
        "local": quantity.span(min(part), max(part), "%") if part else None,
        "against": words.pop() if len(words) == 1 else "Differs between launches." if words else "",
    }
