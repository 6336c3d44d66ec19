"""The lines that cost most, or the instructions where there is no line information."""

from __future__ import annotations

from ncukit.model.source import Cost, HotLine, SourceView, reason, share, unit, waits_for, weight

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
