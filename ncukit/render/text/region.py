"""The region around the launches, from a trace beside the report: its class, and what both tools say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncukit.model import Kernel
from ncukit.render.cells import Tips
from ncukit.render.commands import pasteable
from ncukit.render.text.parts import flat, number, shell
from ncukit.render.text.terminal import Terminal, columns, hot, pad
from ncukit.render.timeline.beside import Beside
from ncukit.render.timeline.many import many_section
from ncukit.render.timeline.section import timeline_section
from ncukit.render.view.groups import Launch
from ncukit.render.words import inside

ROWS = 6
"""Kernels of a trace, unless everything is asked for."""


def region_of_launch(t: Terminal, beside: Beside, kernel: Kernel, *, verbose: bool) -> list[str]:
    """Return what the trace says about the region around one launch, and about that launch in it."""
    found = t.tree(timeline_section(beside.timeline, kernel))
    lines = _head(t, found, flat(found["verdict"]["claim"]))
    rows = [[inside(row["name"]), number(row["cell"]), row["tool"]] for row in found["both"]]
    left = columns(rows, "<><")
    indent = " " * (max(map(len, left)) + 2)
    for text, row in zip(left, found["both"], strict=True):
        lines += t.wrap(row["note"], first=pad(text, len(indent)), indent=indent)
    said = found["why"] if verbose else found["why"][:1]
    for text in map(flat, said or [found["both_note"]]):
        lines += t.wrap(text, first="  ", indent="  ")
    return lines + _notes(t, found) + _next(t, beside)


def region_of_launches(
    t: Terminal, beside: Beside, launches: Sequence[Launch], *, verbose: bool
) -> list[str]:
    """Return what the trace says about the region around the launches of a report."""
    found = t.tree(many_section(beside, launches, Tips(), figure=False))
    _, *said = found["region"]
    lines = _head(t, found, f"{flat(said).strip()} {flat(found['verdict']['deck'])}")
    rows = [["", "share", "n", "traced", "profiled", "busiest unit"]]
    own = [row for row in found["rows"] if row["own"]]
    for row in own if verbose else own[:ROWS]:
        cells = [
            number(row["share"]),
            row["n"],
            number(row["traced"]),
            row["profiled"] or "–",
            row["efficiency"] or "–",
        ]
        rows.append([t.cut_middle(row["name"], max(16, t.width - 56)), *cells])
    if len(rows) > 1:
        lines += [t.cut(line, t.width) for line in columns(rows, "<>>>>>")]
    if len(own) > len(rows) - 1:
        lines += t.wrap(f"{len(own) - len(rows) + 1} more kernels (--verbose)", first="  ", indent="  ")
    if found["absent"]:
        lines += t.wrap(flat(found["absent"]), first="  ", indent="  ")
    return lines + _notes(t, found) + _next(t, beside)


def _head(t: Terminal, found: Mapping[str, Any], said: str) -> list[str]:
    verdict = found["verdict"]
    sure = verdict["confidence"]["word"].rstrip(".").lower()
    first, *rest = t.beside(f"REGION  {verdict['cls']}", sure)
    return [first.replace(verdict["cls"], hot(verdict["cls"]), 1), *rest, *t.wrap(said)]


def _notes(t: Terminal, found: Mapping[str, Any]) -> list[str]:
    notes = [flat(note) for note in (*found["cautions"], *found["notes"])]
    return [line for note in notes for line in t.wrap(note, first="  !  ", indent="     ")]


def _next(t: Terminal, beside: Beside) -> list[str]:
    return shell(t, pasteable(beside.command, str(beside.path)), "  ")
