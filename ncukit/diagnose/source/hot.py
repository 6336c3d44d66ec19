"""The lines that cost most, or the instructions where there is no line information."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ncukit.model.source import Cost, HotLine, SourceView

COUNT = 10
"""Lines kept with a diagnosis."""


def hot(view: SourceView | None, count: int = COUNT) -> tuple[HotLine, ...]:
    """Return the lines with the most samples (executed instructions, where none were taken), most first.

    A line is the sum of its instructions, inlined code included.

    >>> hot(None)
    ()
    """
    if view is None:
        return ()
    groups = [(line.cost, line.rows) for file in view.files for line in file.lines if line.cost is not None]
    if not groups:
        groups = [(row.cost, (i,)) for i, row in enumerate(view.rows)]
    groups = [(cost, rows) for cost, rows in groups if weight(view, cost)]
    groups.sort(key=lambda group: -weight(view, group[0]))
    return tuple(_line(view, cost, rows) for cost, rows in groups[:count])


def weight(view: SourceView, cost: Cost) -> int:
    """Return what lines are ranked by: samples or, where none were taken, executed instructions."""
    return view.amount(cost) if unit(view) == "sample" else cost.instructions or 0


def unit(view: SourceView) -> Literal["sample", "inst"]:
    """Return what `weight` counts."""
    return "sample" if view.amount(view.total) else "inst"


def share(view: SourceView, cost: Cost) -> float:
    """Return the share [%] of ``cost`` in the weight of the launch; 0 where nothing was counted."""
    total = weight(view, view.total)
    return 100 * weight(view, cost) / total if total else 0.0


def reason(cost: Cost) -> tuple[str, float]:
    """Return the state (raw name) with the most samples, and its share [%] of those of ``cost``."""
    if not cost.states:
        return "", 0.0
    state = max(cost.states, key=lambda s: cost.states[s])
    return state, 100 * cost.states[state] / sum(cost.states.values())


def waits_for(view: SourceView, rows: Iterable[int]) -> str:
    """Return what the hottest of these instructions waits for; empty where it is no victim of another."""
    hottest = max(rows, key=lambda i: view.amount(view.rows[i].cost))
    row = view.rows[hottest]
    if row.producer is None:
        return ""
    cause = view.rows[row.producer]
    where = view.place(cause)
    at = f" of {where}" if where and where != view.place(row) else "" if where else f" at +0x{cause.offset:x}"
    return f"{row.opcode} waits for {cause.opcode}{at}"


def _line(view: SourceView, cost: Cost, rows: tuple[int, ...]) -> HotLine:
    hottest = view.rows[max(rows, key=lambda i: weight(view, view.rows[i].cost))]
    place, text = view.place(hottest) or f"+0x{hottest.offset:x}", hottest.text
    if hottest.line is not None:
        file, number = hottest.line
        text = next((line.text for line in view.files[file].lines if line.number == number), None) or text
    return HotLine(
        place, text.strip(), weight(view, cost), unit(view), share(view, cost), cost, *reason(cost),
        waits_for(view, rows),
    )  # fmt: skip
