"""Hot lines in short, and the whole source or SASS of a launch as a listing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ncukit import quantity
from ncukit.model import Diagnosis
from ncukit.model.source import Cost, HotLine, SassRow, SourceView, reason, share, unit, weight
from ncukit.render.text.terminal import Terminal, columns
from ncukit.render.view.source import STATUS, hot_caption, hot_table

SHOWN = 5
"""Hot lines that are printed unless everything is asked for."""
BAR = 12
LEAST = 1.0
"""[%] of the executed instructions: with less, a line without samples is not worth naming."""
PLACE, PLACE_BESIDE = 30, 18
"""Columns of a place, at most: on a line of its own, and beside SASS."""
EXTRAS = (
    ("excess_sectors", "excess sectors"),
    ("excess_wavefronts", "excess wavefronts"),
    ("spills", "spills"),
    ("divergent", "divergent branches"),
)
"""What is said of a line beside its samples, where it is not zero."""

Listing = Literal["source", "sass"]


def hot_lines(t: Terminal, diagnosis: Diagnosis, *, count: int = SHOWN) -> list[str]:
    """Return the hottest lines with their first stall reason; nothing where nothing was counted by line."""
    found = list(diagnosis.hot)
    if not found:
        return []
    lines = t.wrap(
        t.text(hot_caption(found)).removeprefix("Hot lines, "), first="HOT LINES  ", indent=" " * 11
    )
    found = [one for one in found if one.unit == "sample" or one.share >= LEAST]
    if not found:
        return [*lines, f"  no line has {LEAST:g} % of them"]
    shown = found[:count]
    rows = t.tree(hot_table(shown, len(shown)))
    heads = [
        [
            t.cut_middle(row["place"], PLACE),
            row["share"],
            t.bar(one.share, BAR),
            row["reason"],
        ]
        for row, one in zip(rows, shown, strict=True)
    ]
    for head, row, one in zip(columns(heads, "<><<"), rows, shown, strict=True):
        lines.append(t.cut(head, t.width))
        if row["text"] and row["text"] != row["place"]:
            lines.append(t.cut(f"      {row['text']}", t.width))
        if notes := "; ".join([*_extras(one), *([row["note"]] if row["note"] else [])]):
            lines += t.wrap(t.text(notes), first="      ", indent="      ")
    if SHOWN <= len(shown) < len(found):
        lines.append(f"  {len(found) - len(shown)} more (--verbose), or all: --source, --sass")
    return lines


def listing(t: Terminal, view: SourceView | None, what: Listing) -> list[str]:
    """Return every counted source line with some around it, or every instruction, with its share."""
    if view is None:
        words = "nothing was counted by instruction: ncu --section SourceCounters collects it"
        return t.wrap(words, first=f"{what.upper()}  ", indent=" " * 8)
    lines = _sass(t, view) if what == "sass" or not view.files else _source(t, view)
    for note in view.notes:
        lines += t.wrap(t.text(note), first="  - ", indent="    ")
    return lines


def _source(t: Terminal, view: SourceView) -> list[str]:
    lines = []
    for file in sorted(view.files, key=lambda f: -weight(view, f.cost)):
        generated = f", written by {file.generated}" if file.generated else ""
        part = quantity.short(share(view, file.cost), "%")
        title = f"{t.text(file.name)}  {part} of {_of(view)}; {STATUS[file.status]}{generated}"
        lines += t.wrap(t.text(title), indent="  ")
        rows = []
        for one in file.lines:
            text = one.text if one.text is not None else _hottest(view, one.rows)
            rows.append([f"{one.number}", *_cells(view, one.cost), _body(t, text)])
        lines += [t.cut(row, t.width) for row in columns(t.tree(rows), "><><", indent=1)]
        lines.append("")
    return lines


def _sass(t: Terminal, view: SourceView) -> list[str]:
    lines = []
    for function in view.functions:
        part = quantity.short(share(view, function.cost), "%")
        count = function.last - function.first + 1
        lines += t.wrap(
            t.text(f"{function.name}  {count:,} instructions, {part} of {_of(view)}"), indent="  "
        )
        inside = view.rows[function.first : function.last + 1]
        places = [t.cut_middle(t.text(_place(view, row)), PLACE_BESIDE) for row in inside]
        rows = [[t.text(text) for text in (f"{row.offset:04x}", *_cells(view, row.cost))] for row in inside]
        taken = sum(max(map(len, column)) + 2 for column in (*zip(*rows, strict=True), places)) + 1
        body = [t.cut(t.text(row.text), max(20, t.width - taken)) for row in inside]
        table = [[*row, text, place] for row, text, place in zip(rows, body, places, strict=True)]
        lines += [t.cut(row, t.width) for row in columns(table, "><><<", indent=1)]
        lines.append("")
    return lines


def _cells(view: SourceView, cost: Cost | None) -> list[str]:
    """Return the first reason and the share of a row; empty where it has none."""
    if cost is None or not weight(view, cost):
        return ["", ""]
    return [reason(cost)[0], quantity.short(share(view, cost), "%")]


def _hottest(view: SourceView, rows: Sequence[int]) -> str:
    return view.rows[max(rows, key=lambda i: weight(view, view.rows[i].cost))].text if rows else ""


def _place(view: SourceView, row: SassRow) -> str:
    """Return where an instruction comes from; of a single file the line number."""
    if row.line is None or len(view.files) > 1:
        return view.place(row) or ""
    return f"{row.line[1]}"


def _of(view: SourceView) -> str:
    return "samples" if unit(view) == "sample" else "executed instructions"


def _body(t: Terminal, text: str) -> str:
    return t.text(text.expandtabs(4))


def _extras(one: HotLine) -> Sequence[str]:
    return [f"{quantity.short(n)} {words}" for name, words in EXTRAS if (n := getattr(one.cost, name))]
