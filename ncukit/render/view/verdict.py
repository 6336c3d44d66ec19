"""The first screen: what limits the launch, how sure that is, and the one change that would test it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncukit import quantity
from ncukit.model import Diagnosis, Evidence, Experiment
from ncukit.model.diagnosis import Alternative, Trial
from ncukit.model.shares import Share
from ncukit.render import commands
from ncukit.render.cells import Cell, Cells, plain
from ncukit.render.line import Line, bold, line, link
from ncukit.render.view.families import half_read
from ncukit.render.view.rows import GLANCE, GLANCE_PIPES, SM
from ncukit.render.words import LIMITERS, ROLE, listed, plural

PIPS = {"high": 3, "medium": 2, "low": 1}
"""Squares filled: independent measurements that agree (VISUAL: three, two, one)."""


def verdict(cells: Cells, diagnosis: Diagnosis, timeline: str = "timeline") -> dict[str, Any]:
    """Return the verdict of one launch; what is missing takes the place of the evidence when undetermined.

    ``timeline`` is the id of the section that says how to add one.
    """
    found = diagnosis.verdict
    bars = glance(cells, diagnosis)
    return {
        "cls": found.cls,
        "role": role(found.cls, found.limiter),
        "claim": line(found.claim),
        "deck": _deck(cells, bars, diagnosis),
        "basis": basis(cells, bars),
        "confidence": _confidence(diagnosis),
        "glance": bars,
        "evidence": [ledger(cells, e) for e in found.evidence],
        "against": [ledger(cells, e) for e in found.against],
        "missing": [line(text) for text in found.missing],
        "collect": commands.collect(cells.kernel) if found.missing else "",
        "experiment": experiment(found.experiment, found.alternatives),
        "region": region(timeline),
    }


def role(cls: str, limiter: str | None) -> str:
    """Return class and limiter in words: "level: DRAM", "cause: grid too small"."""
    return ": ".join(role_and_name(cls, limiter)) if limiter else ""


def role_and_name(cls: str, limiter: str) -> tuple[str, str]:
    """Return the role of a limiter and its name, each in words: ("level", "DRAM")."""
    return ROLE.get(cls, "limit"), LIMITERS.get(limiter, limiter)


def ledger(cells: Cells, evidence: Evidence) -> dict[str, Any]:
    """Return one line of evidence: the number, with the counters behind it, and the words."""
    return {"n": evidence_cell(cells, evidence), "text": line(evidence.text)}


def evidence_cell(cells: Cells, evidence: Evidence) -> Cell:
    """Return the number of ``evidence``; it opens its metric where that is what was quoted."""
    value = cells.value(evidence.metric)
    if value.known and (evidence.value is None or evidence.value == value.value):
        return cells.of(value)
    if evidence.value is None:
        return cells.of(value) if evidence.metric in cells.kernel.metrics else plain(quantity.MISSING)
    short = quantity.short(evidence.value, evidence.unit)
    raw = cells.kernel.raw.metrics.get(evidence.metric)
    if isinstance(evidence.value, str) or not (value.known or raw is not None):
        return plain(short)
    return cells.computed(
        f"{evidence.metric} [{evidence.unit}]",
        evidence.value,
        evidence.unit,
        meaning="One counter of the report" if raw is not None else f"Computed from {evidence.metric}",
        formula="",
        sources=[] if raw is not None else [evidence.metric],
        quality="exact" if raw is not None else "derived",
        raw=[evidence.metric] if raw is not None else [],
    )


def experiment(found: Experiment | None, others: Sequence[Alternative] = ()) -> dict[str, Any] | None:
    """Return the next experiment, and ``others`` after it; a change that reads like a diff is one."""
    if found is None:
        return None
    lines = found.change.splitlines()
    diff = any(text.startswith(("+", "-")) for text in lines)
    words = {"Where": _where(found), "Why": found.why, "Expect": found.expect, "Watch": found.watch}
    return {
        "title": line(found.title),
        "diff": [{"text": text, "kind": {"+": "add", "-": "del"}.get(text[:1], "f")} for text in lines]
        if diff
        else [],
        "rows": [
            {"name": name, "text": line(text)}
            for name, text in ({} if diff else {"Change": found.change}).items()
        ]
        + [{"name": name, "text": line(text)} for name, text in words.items() if text]
        + [{"name": "Or", "text": line(_other(other))} for other in others],
        "disproved": line(found.disproved_if),
        "cost": line(found.cost),
        "run": "\n".join(found.run),
    }


def _where(found: Experiment) -> str:
    places = found.places if isinstance(found, Trial) else ()
    return ", ".join(f"{p.file}:{p.line}" if p.file else f"+0x{p.offset:x}" for p in places)


def _other(found: Alternative) -> str:
    return f"{found.title}: at most {found.gain_at_most:.2f} times as fast."


def region(timeline: str) -> Line:
    """Return what is known about the run around the launch: nothing, without a timeline."""
    return line(
        bold("Region: undetermined."),
        " There is no timeline, so whether this kernel matters to the run is not known. ",
        link("How to add one", timeline),
    )


def glance(cells: Cells, diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Return the units by share of peak [%], busiest first; the limiter is hot.

    The verdict's own number stands for the limiter where it quotes one: it knows which pipe, port
    or stage of the unit is full, and which counter tells.  DRAM, L2 and issue slots are shown by the counter
    that judges them: where L2 has two halves, its own throughput counts what crosses between them.
    """
    limiter, evidence = diagnosis.verdict.limiter, diagnosis.verdict.evidence
    units = {
        id: _bar(cells[id], n, label, limiter in means, working=id in WHILE_WORKING)
        for id, label, means in GLANCE
        if (n := cells.number(id)) is not None
    }
    shares = diagnosis.facts.shares.units
    for unit, id in JUDGED.items():
        share = shares.get(unit)
        if share is not None and share.metric != id:
            cell = evidence_cell(cells, Evidence(share.metric, share.percent, "%", ""))
            hot = units.pop(id, {"hot": limiter == unit})["hot"]
            working = share.unit.scope == "sm"
            units[share.metric] = _bar(cell, share.percent, _capital(share.name), hot, working=working)
    quoted = next((e for e in evidence if e.role == "limit"), None)
    if limiter and quoted and isinstance(quoted.value, int | float):
        for bar in units.values():
            bar["hot"] = False
        label = units[quoted.metric]["label"] if quoted.metric in units else _capital(quoted.name)
        cell, working = evidence_cell(cells, quoted), quoted.basis == "active"
        units[quoted.metric] = _bar(cell, quoted.value, label, True, working=working)
    elif limiter in GLANCE_PIPES:
        id, label = GLANCE_PIPES[limiter]
        if (n := cells.number(id)) is not None:
            units[id] = _bar(cells[id], n, label, True, working=True)
    if half_read(cells) is not None and "sm_throughput_pct" in units:
        units["sm_throughput_pct"]["label"] = HALF
    return sorted(units.values(), key=lambda bar: (-bar["bar"], not bar["hot"]))


def basis(cells: Cells, bars: Sequence[Mapping[str, Any]]) -> Line:
    """Return which bars count the time in which SMs work alone; nothing where that is nearly all of it."""
    active = cells.number("sm_active_pct")
    named = [_inside(bar["label"]) for bar in bars if bar["working"]]
    if active is None or active >= MOSTLY_WORKING or not named or len(named) == len(bars):
        return []
    words = f"{_capital(listed(named))}: of the time in which an SM works, "
    return line(words, cells["sm_active_pct"], "; the others: of the whole time.")


JUDGED = {"dram": "dram_throughput_pct", "l2": "l2_throughput_pct", "issue": "issue_slot_utilization_pct"}
WHILE_WORKING = ("l1_throughput_pct", JUDGED["issue"])
"""Metrics of the glance that count the time in which an SM has work."""
MOSTLY_WORKING = 90.0
"""[%] Time with work from which shares of it and of the whole time need no telling apart."""
HALF = "SM, by a pipe counter that reads half"
"""What the maximum over an SM's pipes is where the tensor pipe leads it and reads half."""


def _bar(cell: Cell, value: float, label: str, hot: bool, *, working: bool) -> dict[str, Any]:
    """Return one bar; ``working`` says that it counts only the time in which an SM has work."""
    width = round(min(100.0, max(0.0, value)), 1)
    return {"label": label, "cell": cell, "bar": width, "hot": hot, "working": working}


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _deck(cells: Cells, bars: list[dict[str, Any]], diagnosis: Diagnosis) -> Line:
    """Return two sentences with the first two units, as the verdict ranks them; nothing without two."""
    cls = diagnosis.verdict.cls
    found = None if cls in ("failed", "undetermined") else diagnosis.facts.leaders
    if found is None or found.next is None:
        return []
    start = "No unit is at its limit. " if cls == "latency-bound" else ""
    most = max(found.first.percent, found.next.percent, *(s.percent for s in found.alongside))
    first = "The busiest unit" if found.first.percent == most else "The limit"
    comma = "," if found.alongside else ""
    return line(
        f"{start}{first} is ",
        *_named(cells, bars, found.first),
        f" of peak. {_capital(found.which)}{comma} is ",
        *_named(cells, bars, found.next),
        ".",
    )


def _named(cells: Cells, bars: Sequence[Mapping[str, Any]], share: Share) -> tuple[str, Cell]:
    """Return a unit and its number, as they stand on its bar where it has one."""
    cell = evidence_cell(cells, Evidence(share.metric, share.value, "%", ""))
    label = next((bar["label"] for bar in bars if bar["cell"] == cell), share.name)
    return f"{_inside(label)}, at ", cell


def _inside(label: str) -> str:
    """Return a label as it stands inside a sentence: "Issue slots" becomes "issue slots", "DRAM" stays."""
    if label == SM:
        return "the busiest pipe or stage of the SMs"
    return label[:1].lower() + label[1:] if label[1:2].islower() else label


def _confidence(diagnosis: Diagnosis) -> dict[str, Any] | None:
    found = diagnosis.verdict
    if found.cls == "failed":
        return None
    if found.cls == "undetermined":
        return {
            "pips": 0,
            "word": "No confidence.",
            "text": "What is missing takes the place of the evidence.",
        }
    looked = (
        plural(len(found.against), "point") + " looked for against it"
        if found.against
        else "nothing looked for against it"
    )
    return {
        "pips": PIPS[found.confidence],
        "word": f"{found.confidence.capitalize()} confidence.",
        "text": f"{plural(len(found.evidence), 'measurement')} for it, {looked}.",
    }
