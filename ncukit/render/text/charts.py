"""Memory, issue slots, occupancy and counters over time in columns: what the page draws, as tables."""

from __future__ import annotations

from typing import Any

from ncukit.model import Diagnosis
from ncukit.render.cells import Cells
from ncukit.render.text.parts import flat, number
from ncukit.render.text.terminal import Terminal, columns
from ncukit.render.view.memory import memory as memory_view
from ncukit.render.view.occupancy import section as occupancy_view
from ncukit.render.view.series import section as series_view
from ncukit.render.view.split import section as split_view
from ncukit.render.words import listed

BAR = 16
SHOWN = 3
"""Causes of empty slots, and what would lift occupancy, that are printed unless everything is asked for."""
HIT = 3
"""Column of the hit rate in a row of levels."""


def memory(t: Terminal, cells: Cells, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return what moved on each link that was used, with the share of its own peak, and the hit rates."""
    found = t.tree(memory_view(cells, diagnosis))
    hits = [f"{row['name']} {number(row['cells'][HIT])}" for row in found["rows"] if row["cells"][HIT]]
    words = [f"the limit is {row['name']}" for row in found["rows"] if row["hot"]]
    words += [f"hit rates: {', '.join(hits)}"] if hits else []
    used = [row for row in found["links"] if verbose or row["used"]]
    words += [] if used else ["bytes between the units were not collected"]
    lines = t.wrap("; ".join(words) or "what moved on each link", first="MEMORY  ", indent=" " * 8)
    if not used:
        return lines
    rows = [["", "bytes", "requests", "of peak", ""]]
    rows += [
        [
            row["what"],
            _known(row["bytes"]) or "unknown",
            _known(row["count"]),
            _known(row["share"]),
            _bar(t, row["share"]),
        ]
        for row in used
    ]
    lines += [t.cut(line, t.width) for line in columns(rows, "<>>><")]
    if not verbose and (idle := [row["what"] for row in found["links"] if row["used"] is False]):
        lines += t.wrap(f"nothing moved: {', '.join(idle)}", first="  ", indent="    ")
    for note in found["notes"]:
        lines += t.wrap(flat(note), first="  - ", indent="    ")
    return lines


def _known(cell: dict[str, Any] | None) -> str:
    """Return a number, or nothing where there is none."""
    return "" if cell is None or cell["state"] in ("missing", "absent") else number(cell)


def _bar(t: Terminal, cell: dict[str, Any] | None) -> str:
    """Return the bar of a share of peak; nothing where the share is not a number."""
    text = "" if cell is None else cell["text"].split("%")[0].strip().lstrip("<").strip()
    try:
        return t.bar(float(text), BAR)
    except ValueError:
        return ""


def split(t: Terminal, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return where the issue slots went: used and empty, the empty ones by cause and resource."""
    found = split_view(diagnosis)
    if found is None:
        return []
    found = t.tree(found)
    lines = t.wrap(flat(found["sentence"]), first="ISSUE SLOTS  ", indent=" " * 13)
    for bar in found["bars"][: -1 if found["rows"] else None]:
        lines += t.wrap(f"{bar['name']}: {bar['text']}", first="  ", indent="    ")
    rows = found["rows"] if verbose else found["rows"][:SHOWN]
    if rows:
        table = [["cause", "waiting", "all slots", "fullest unit behind it"]]
        table += [
            [r["name"], r["share"], r["slots"] or "-", flat(r["resources"]).split("; ")[0]] for r in rows
        ]
        lines += [t.cut(line, t.width) for line in columns(table, "<>><")]
    if verbose or found["apart"]:
        lines += t.wrap(flat(found["foot"]), first="  ! " if found["apart"] else "  - ", indent="    ")
    return lines


def occupancy(t: Terminal, cells: Cells, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return theoretical and achieved occupancy, the blocks each resource allows, and what would lift it."""
    found = t.tree(occupancy_view(cells, diagnosis, curves=verbose)[0])
    lines = t.wrap(flat(found["sentence"]), first="OCCUPANCY  ", indent=" " * 11)
    rows = [row for row in found["limits"] if verbose or row["binds"]]
    if rows:
        table = [["limit", "blocks", "a block takes", "one more at"]]
        table += [[r["name"].lower(), r["blocks"], r["takes"] or "-", r["next"] or "-"] for r in rows]
        lines += columns(table, "<>>>")
    for words in found["lift"] if verbose else found["lift"][:SHOWN]:
        lines += t.wrap(flat(words), first="  - ", indent="    ")
    if verbose and found["curves"]:
        table = [["a block's", "now", "more", "fewer"]]
        table += [[c["axis"].lower(), c["here"], c["better"], c["worse"]] for c in found["curves"]]
        lines += [
            "",
            f"  warps an SM, of {found['max_warps']}, all else as launched",
            *columns(table, "<>>>"),
        ]
    return lines


def series(t: Terminal, cells: Cells, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return mean and peak of what was sampled over time; if not ``verbose`` only which counters."""
    found = series_view(cells, diagnosis)
    if found is None:
        return []
    found = t.tree(found)
    names = listed([chart["label"] for chart in found["charts"]])
    words = flat(found["sentence"]) if verbose else f"sampled: {names} (--verbose: values)"
    lines = t.wrap(words, first="OVER TIME  ", indent=" " * 11)
    if verbose:
        table = [["", "mean", "highest", "samples"]]
        table += [[c["label"], c["mean"], c["peak"], c["samples"]] for c in found["charts"]]
        lines += [t.cut(line, t.width) for line in columns(table, "<>>>")]
    return lines
