"""Why warps wait: counters and sampling apart, by category and by raw state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ncukit import quantity
from ncukit.metrics import load
from ncukit.model.shares import ISSUE_GUARD
from ncukit.model.source import ENOUGH_SAMPLES
from ncukit.render.cells import Cells
from ncukit.render.line import Line, code, line
from ncukit.render.words import plural

NAMES = {
    "memory_dependency": "Memory dependency",
    "memory_throttle": "Memory queue full",
    "execution_dependency": "Execution dependency",
    "pipe_busy": "Math pipe busy",
    "tensor_sync": "Tensor group wait",
    "synchronization": "Synchronisation",
    "instruction_supply": "Instruction supply",
    "not_selected": "Not selected",
    "issuing": "Issuing",
    "other": "Other",
}
STATES_OF_THE_REPORT = "group:smsp__pcsamp_warp_stall_reasons"
"""Raw string metric that lists the sampling states of that very report."""
LABELLED = 10.0
"""[%] Width from which a part of the stack carries its label."""
CHARACTER = 0.9
"""[%] Width of one character of a label, on paper too; narrower pages show the widest labels alone."""
LISTED = 0.5
"""[%] Share from which a raw state has its own row."""
_PREFIX = "smsp__pcsamp_warps_issue_stalled_"


@dataclass
class _Category:
    id: str
    states: list[tuple[str, str, float]] = field(default_factory=list)
    """(neutral id of the value or "", raw state, amount)."""

    @property
    def amount(self) -> float:
        return sum(amount for _, _, amount in self.states)


def stalls(cells: Cells, cited: frozenset[str]) -> dict[str, Any]:
    """Return both measurements, the sentence that compares them, and whether they are worth reading."""
    counted = _categories(cells, "stall_cycles_")
    sampled = _categories(cells, "stall_samples_")
    issued = cells.number("warps_issued_per_scheduler")
    panels = []
    if counted:
        panels.append(_panel(cells, "counters", counted, cited, _counter_caption(cells, counted)))
    if sampled:
        total = quantity.short(sum(c.amount for c in sampled))
        panels.append(
            _panel(
                cells,
                f"sampling: {total} samples",
                sampled,
                cited,
                line("All samples of the sampling passes."),
                sampled=True,
            )
        )
    return {
        "panels": panels,
        "sentence": line(_sentence(counted, sampled, issued)),
        "folded": issued is not None and issued >= ISSUE_GUARD,
        "collect": "" if panels else f"--section {' --section '.join(('WarpStateStats', 'SourceCounters'))}",
    }


def _categories(cells: Cells, prefix: str) -> list[_Category]:
    """Return the categories by size, states nobody knows under Other by name; nothing if not collected."""
    found: list[_Category] = []
    for id, entry in load().stalls.items():
        category = _Category(id)
        for state, raw in entry["states"].items():
            value = cells.value(prefix + state)
            if value.number is not None:
                category.states.append((value.id, _spelled(value.sources, raw), value.number))
        if prefix == "stall_samples_" and id == "other":
            category.states += _unknown_states(cells)
        if category.states:
            category.states.sort(key=lambda s: -s[2])
            found.append(category)
    found.sort(key=lambda c: -c.amount)
    return found if sum(c.amount for c in found) > 0 else []


def _spelled(sources: tuple[str, ...], raw: str) -> str:
    """Return the state as this measurement spells it: sampling says ``no_instructions``, counters do not."""
    name = sources[0] if sources else raw
    for start, end in ((_PREFIX, ""), ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio")):
        if name.startswith(start) and name.endswith(end):
            return name[len(start) : len(name) - len(end)].removesuffix(".sum")
    return raw


def _unknown_states(cells: Cells) -> list[tuple[str, str, float]]:
    raw = cells.kernel.raw.metrics
    names = raw.get(STATES_OF_THE_REPORT)
    if not isinstance(names, str):
        return []
    known = {
        source
        for id, value in cells.kernel.metrics.items()
        if id.startswith("stall_samples_")
        for source in value.sources
    }
    states = []
    for name in (part.strip() for part in names.split(",")):
        amount = raw.get(name)
        if name not in known and isinstance(amount, int | float) and amount > 0:
            states.append(("", name.removeprefix(_PREFIX), float(amount)))
    return states


def _panel(
    cells: Cells,
    title: str,
    categories: list[_Category],
    cited: frozenset[str],
    caption: Line,
    *,
    sampled: bool = False,
) -> dict[str, Any]:
    total = sum(category.amount for category in categories)
    largest = categories[0].amount
    return {
        "title": title,
        "caption": caption,
        "sampled": sampled,
        "unit": "Samples" if sampled else "Cycles",
        "stack": [
            _slice(category, 100 * category.amount / total) for category in categories if category.amount
        ],
        "rows": [
            row
            for category in categories
            if category.amount
            for row in _rows(cells, category, total, largest, cited)
        ],
    }


def _slice(category: _Category, share: float) -> dict[str, Any]:
    label = fitting(f"{NAMES[category.id]} {share:.0f}{quantity.NARROW}%", share)
    return {"category": category.id, "width": round(share, 2), "label": label, "wide": share >= 40}


def fitting(label: str, width: float) -> str:
    """Return ``label`` where a part of ``width`` [%] of the stack holds it as a whole, else nothing."""
    return label if width >= max(LABELLED, CHARACTER * len(label)) else ""


def _rows(
    cells: Cells, category: _Category, total: float, largest: float, cited: frozenset[str]
) -> list[dict[str, Any]]:
    plain = load().stalls[category.id]
    hot = bool(cited & {f"stall_share_{category.id}_pct", *(id for id, _, _ in category.states)})
    head = {
        "category": category.id,
        "name": NAMES[category.id],
        "amount": quantity.short(category.amount),
        "share": quantity.short(100 * category.amount / total, "%"),
        "bar": round(100 * category.amount / largest, 1),
        "hot": hot,
        "why": f"{plain['plain']}. {plain['points_to']}.",
    }
    states = [
        {
            "state": code(raw),
            "cell": cells[id] if id else None,
            "amount": quantity.short(amount),
            "share": quantity.short(100 * amount / total, "%"),
            "bar": round(100 * amount / largest, 1),
        }
        for id, raw, amount in category.states
        if 100 * amount / total >= LISTED
    ]
    if len(states) == 1 and len(category.states) == 1:
        head["state"] = states[0]["state"]
        head["cell"] = states[0]["cell"]
        states = []
    return [head, *states]


def _counter_caption(cells: Cells, categories: list[_Category]) -> Line:
    total = quantity.short(sum(c.amount for c in categories))
    if cells.number("warp_cycles_per_issued_instruction") is None:
        return line(f"Warp cycles between two issued instructions, {total} as the sum of the reasons.")
    counter = cells["warp_cycles_per_issued_instruction"]
    return line(
        "Warp cycles between two issued instructions: ",
        counter,
        f" in the counter, {total} as the sum of the reasons, of which the shares are.",
    )


def _sentence(counted: list[_Category], sampled: list[_Category], issued: float | None) -> str:
    if not counted and not sampled:
        return "Not collected."
    if issued is not None and issued >= ISSUE_GUARD:
        busy = f"Schedulers issue {quantity.short(issued)} instructions a cycle, of 1 possible"
        return f"{busy}: they are busy, so waiting warps cost little."
    words = ""
    total = sum(c.amount for c in sampled)
    few = f"{plural(int(total), 'stall sample')}: too few to say why warps wait"
    if sampled and total < ENOUGH_SAMPLES:
        words = f"From counters. {few}." if counted else f"{few}."
    elif counted and sampled:
        off = 100 * _distance(_shares(counted), _shares(sampled))
        same = _top(counted) == _top(sampled)
        words = (
            f"Counters and sampling are two measurements; they differ by {quantity.short(off, '%')} and "
            + (
                "agree on the first reason."
                if same
                else "do not agree on the first reason: passes ran differently."
            )
        )
    elif counted:
        words = "From counters; stall samples were not collected."
    else:
        words = "From samples; the counters were not collected."
    return words + (
        "" if issued is not None else " The issue rate is unknown, so whether stalls cost time is not known."
    )


def _shares(categories: list[_Category]) -> Mapping[str, float]:
    total = sum(c.amount for c in categories)
    return {c.id: c.amount / total for c in categories}


def _distance(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return the total variation distance of two distributions, from 0 to 1."""
    return sum(abs(a.get(id, 0) - b.get(id, 0)) for id in {*a, *b}) / 2


def _top(categories: list[_Category]) -> str:
    return next((c.id for c in categories if c.id not in ("issuing", "not_selected")), "")
