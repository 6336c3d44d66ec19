"""The page of a comparison as one plain view: gates, pairs, what was not matched, where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.comparison.pairs import told_apart
from ncukit.media import cleaned
from ncukit.model.comparison import Against, Comparison, Outcome, Pair, Row, Side, Total
from ncukit.render.cells import Tips
from ncukit.render.compare.block import NAME, block, flags, title
from ncukit.render.compare.changes import change_text, change_words, reading
from ncukit.render.compare.names import LABELS
from ncukit.render.compare.origin import provenance
from ncukit.render.compare.unmatched import unmatched_view
from ncukit.render.line import Line, line, small
from ncukit.render.plot import Figure
from ncukit.render.view import head
from ncukit.render.view.quality import SIGNS
from ncukit.render.words import limited_by, listed, plural, shorten

DETAILED = 6
"""Pairs that are shown in full where there are several; the table and the JSON hold all."""
LISTED = 500
"""Rows of a table of pairs or of launches without a counterpart; the JSON holds all."""
CONTENTS = (
    ("verdict", "Verdict"),
    ("gates", "Gates"),
    ("sides", "What limits each"),
    ("comparable", "Comparable?"),
    ("changes", "What changed"),
    ("roofline", "Roofline"),
    ("stalls", "Why warps wait"),
    ("occupancy", "Occupancy and mix"),
    ("source", "Source"),
    ("unmatched", "Not matched"),
    ("provenance", "Provenance"),
)
MANY_CONTENTS = (
    ("gates", "Gates"),
    ("pairs", "Pairs"),
    ("together", "Together"),
    ("details", "In detail"),
    ("unmatched", "Not matched"),
    ("provenance", "Provenance"),
)
FOOTER = (
    "Profiled durations are not benchmarks. Changes are percent of the base, or points (pt) of a percentage; "
    "what one side lacks is unknown, never a change. Launch numbers count from 1."
)
STATES = {
    "passed": ("ok", "passed"),
    "tripped": ("bad", "tripped"),
    "undecided": ("bad", "undecided"),
    "noise": ("no", "within the noise"),
}


def page_view(comparison: Comparison, *, generated: str, command: str = "") -> dict[str, Any]:
    """Return the view of a comparison's page: one pair in full, or a table of pairs with a fold each."""
    tips = Tips()
    pairs = sorted(
        ((against, pair) for against in comparison.others for pair in against.pairs),
        key=lambda item: -_cost(item[1]),
    )
    names = pair_names(comparison, [pair for _, pair in pairs])
    blocks: list[dict[str, Any]] = []
    figures: dict[str, Figure] = {}
    for n, (against, pair) in enumerate(pairs[:DETAILED], 1):
        made, drawn = block(comparison, against, pair, tips, n)
        made["title"] = names[n - 1]
        blocks.append(made)
        figures |= drawn
    single = len(pairs) == 1
    unmatched, totals = unmatched_view(comparison, LISTED), _totals(comparison)
    kernels = [s.kernel for _, pair in pairs for s in (pair.base, pair.other)]
    heading = title(pairs[0][1]) if single else _heading(comparison, len(pairs))
    labels = " → ".join([comparison.base.label, ", ".join(a.other.label for a in comparison.others)])
    contents = [
        {"to": to, "text": text}
        for to, text in (CONTENTS if single else MANY_CONTENTS)
        if (to != "gates" or comparison.gates)
        and (to != "unmatched" or unmatched["rows"])
        and (to != "details" or pairs)
        and (to != "together" or totals["rows"])
    ]
    view: dict[str, Any] = {
        "kind": "compare",
        "title": f"{heading}, ncukit comparison",
        "brand": shorten(labels, 160),
        "heading": heading,
        "facts": _facts(comparison, pairs),
        "contents": contents,
        "single": single,
        "blocks": blocks,
        "pairs": [
            _pair_row(n, a, p, name)
            for n, ((a, p), name) in enumerate(zip(pairs[:LISTED], names, strict=False), 1)
        ],
        "pairs_words": _pairs_words(len(pairs)),
        "totals": totals,
        "several": len(comparison.others) > 1,
        "gates": gates_view(comparison),
        "unmatched": unmatched,
        "synthetic": head.synthetic(kernels),
        "warnings": _warnings(comparison),
        "provenance": provenance(comparison, generated=generated, command=command),
        "footer": FOOTER,
        "figures": figures,
    }
    result: dict[str, Any] = cleaned(view | {"tips": tips.as_dict()})
    return result


def gates_view(comparison: Comparison) -> dict[str, Any]:
    """Return the gates, those that failed first."""
    order = {"tripped": 0, "undecided": 1, "noise": 2, "passed": 3}
    found = sorted(comparison.gates, key=lambda o: (not o.failed, order[o.state]))
    failed = sum(outcome.failed for outcome in found)
    passed = len(found) - failed
    words = f"{plural(failed, 'gate')} failed, {passed} passed." if failed else f"All {passed} passed."
    return {
        "failed": failed,
        "sentence": line(words),
        "rows": [gate_row(outcome) for outcome in found[:LISTED]],
    }


def gate_row(outcome: Outcome) -> dict[str, Any]:
    """Return one gate for a table."""
    status, said = ("no", "unknown, allowed") if outcome.allowed else STATES[outcome.state]
    return {
        "gate": outcome.gate,
        "kernel": shorten(outcome.kernel, 60),
        "other": outcome.other,
        "word": f"{SIGNS[status]} {said}",
        "said": said,
        "status": status,
        "text": line(outcome.message),
    }


def pair_words(pair: Pair, id: str = "kernel_duration") -> tuple[str, str, str, str]:
    """Return both durations, the change, and what it says without its sign, for a table of pairs."""
    row = pair.row(id)
    assert row is not None
    ends = [
        quantity.short(v.number, v.unit) if v.number is not None else "unknown" for v in (row.base, row.other)
    ]
    change = change_text(row) or "unknown"
    return ends[0], ends[1], change, reading(row)[1]


def _cost(pair: Pair) -> float:
    base, other = pair.base.duration, pair.other.duration
    return abs(other - base) if base is not None and other is not None else 0.0


def pair_names(comparison: Comparison, pairs: Sequence[Pair]) -> list[str]:
    """Return the name of each pair, with what tells it apart where several against one side share it."""
    names = {
        id(pair): name
        for against in comparison.others
        for pair, name in zip(against.pairs, told_apart([p.other for p in against.pairs]), strict=True)
    }
    return [
        shorten(names[id(pair)] or "kernel without a name", NAME)
        if pair.base.kernel.name == pair.other.kernel.name
        else title(pair)
        for pair in pairs
    ]


def _pair_row(n: int, against: Against, pair: Pair, name: str) -> dict[str, Any]:
    base, other, change, said = pair_words(pair)
    row = pair.row("kernel_duration")
    sign, _, cls = reading(row) if row is not None else ("", "", "")
    ends = [sample.duration for sample in (pair.base, pair.other)]
    verdicts = [
        limited_by(s.diagnosis.verdict.cls, s.diagnosis.verdict.limiter) for s in (pair.base, pair.other)
    ]
    return {
        "n": n,
        "linked": n <= DETAILED,
        "name": name,
        "other_file": against.other.label,
        "base": base,
        "base_sort": "" if ends[0] is None else ends[0],
        "other": other,
        "other_sort": "" if ends[1] is None else ends[1],
        "change": change,
        "sort": row.finite if row is not None and row.finite is not None else "",
        "word": f"{sign} {said}".strip(),
        "cls": cls,
        "claim": line(pair.summary.claim),
        "limits": verdicts[0] if verdicts[0] == verdicts[1] else " → ".join(verdicts),
        "flags": " ".join(flag["text"] for flag in flags(pair.facts)),
        "repeats": f"{pair.base.repeats} and {pair.other.repeats}",
        "matched": pair.matched,
    }


def _pairs_words(count: int) -> Line:
    words = f"{plural(count, 'pair')}, the largest change in duration first."
    if count > LISTED:
        words += f" The first {LISTED}; the JSON holds all."
    return line(words)


def _totals(comparison: Comparison) -> dict[str, Any]:
    """Return what all pairs against each other side come to together."""
    rows = [_total_row(total, against) for against in comparison.others for total in against.totals]
    words = (
        "Sums over the pairs, and ratios of sums (ΣFLOP ÷ Σbyte), never means of ratios. Times are profiled."
    )
    return {"sentence": line(words), "rows": rows}


def _total_row(total: Total, against: Against) -> dict[str, Any]:
    ends = [
        "unknown" if value is None else quantity.short(value, total.unit)
        for value in (total.base, total.other)
    ]
    counted = plural(total.pairs, "pair")
    return {
        "id": total.id,
        "label": LABELS.get(total.id, total.id),
        "other_file": against.other.label,
        "base": ends[0],
        "other": ends[1],
        "change": "unknown" if total.change is None else change_words(total.change),
        "pairs": counted if total.pairs == total.of else f"{total.pairs} of {plural(total.of, 'pair')}",
    }


def _heading(comparison: Comparison, count: int) -> str:
    if not count:
        return "No launch of one side matches one of the other"
    return f"{plural(count, 'pair')} of kernels against {comparison.base.label}"


def _facts(comparison: Comparison, pairs: list[tuple[Against, Pair]]) -> list[dict[str, Any]]:
    gpus = [_gpus(comparison.base), *(_gpus(against.other) for against in comparison.others)]
    same = len(set(gpus)) == 1
    everywhere = "both" if len(gpus) == 2 else "all"
    gpu = line(gpus[0], " ", small(everywhere)) if same else line(" → ".join(gpus))
    facts = [{"name": "GPU", "text": gpu}]
    if len(pairs) == 1:
        base, other, change, _ = pair_words(pairs[0][1])
        words = f"{base} → {other} ({change}) "
        facts.append(
            {
                "name": "Profiled duration",
                "text": line(words, small("under the profiler: not a benchmark")),
            }
        )
    clean = next((against.clean for against in comparison.others if against.clean is not None), None)
    facts.append({"name": "Clean time", "text": _clean(clean)})
    failed = sum(outcome.failed for outcome in comparison.gates)
    words = (
        "none set (`--fail-on`)" if not comparison.gates else f"{failed} of {len(comparison.gates)} failed"
    )
    facts.append({"name": "Gates", "text": line(words)})
    return facts


def _clean(row: Row | None) -> Line:
    if row is None:
        return line({"tip": "", "text": "not measured", "state": "missing"})
    ends = [quantity.short(v.number, "s") if v.known else "not measured" for v in (row.base, row.other)]
    change = "" if row.change is None else f" ({change_text(row)}, noise {quantity.short(row.noise, '%')})"
    return line(f"{ends[0]} → {ends[1]}{change}")


def _gpus(side: Side) -> str:
    return listed(list(dict.fromkeys(sample.kernel.gpu or "unknown GPU" for sample in side.samples)))


def _warnings(comparison: Comparison) -> list[str]:
    sides = [comparison.base, *(against.other for against in comparison.others)]
    return [f"{side.label}: {text}" for side in sides for text in side.warnings]
