"""Ranks beside each other in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncukit.model.ops import Ranks
from ncukit.render.ops.ranks_view import page_view
from ncukit.render.text.parts import flat, number
from ncukit.render.text.terminal import Terminal, columns, hot

WORST = 8
"""Collectives that are shown."""


def ranks_text(ranks: Ranks, *, color: bool = False, encoding: str = "utf-8", width: int = 80) -> str:
    """Return what a terminal of ``width`` columns shows of ``ranks``.  No newline at the end."""
    t = Terminal(width, encoding, color)
    view = t.tree(page_view(ranks))
    named = {f["id"]: flat(f["text"]) for f in view["facts"]}
    lines = t.beside(t.cut_middle(view["heading"]["name"], width - 24), f"ranks: {named['ranks']}")
    lines += t.row(named["gpu"], f"collectives: {named['collectives']}", f"clocks: {named['clocks']}")
    for part in (_late, _times, _kinds, _worst, _settings):
        if found := part(t, view):
            lines += ["", *found]
    said = [
        row
        for note in (*view["missing"], *view["notes"])
        for row in t.wrap(flat(note), first="! ", indent="  ")
    ]
    return t.page([*lines, "", *said] if said else lines)


def _late(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    lines = []
    for one in view["late"]:
        first, *rest = t.wrap(flat(one["said"]), first="LATE  ", indent="      ")
        lines += [hot(first), *rest]
        parts = ", ".join(f"{e['name']} {number(e['cell'])}" for e in one["excess"])
        lines += t.wrap(f"more than the others before these: {parts}", first="      ", indent="      ")
    if not lines and view["nobody"]:
        return t.wrap(flat(view["nobody"]), first="LATE  ", indent="      ")
    return lines


def _times(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    keys = ("span", "compute", "communication", "hidden", "exposed", "empty", "waiting", "offset")
    rows = [["rank", "span", "compute", "comm.", "hidden", "exposed", "empty", "waiting", "clock"]]
    rows += [[one["rank"], *(number(one[key]) for key in keys)] for one in view["ranks"]]
    table = [t.cut(line, t.width) for line in columns(rows, ">" * 9, gap=1, indent=1)]
    said = (
        "comm.: collectives, waiting included; hidden: of these, beside compute; exposed: nothing computed; "
        "waiting: the last rank had not come; clock: added to its times"
    )
    return ["WHERE THE TIME WENT", *table, *t.wrap(said, first="  ", indent="  ")]


def _kinds(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    if not view["kinds"]:
        return []
    rows = [["", "n", "matched", "median", "transfer", "waited"]]
    for kind in view["kinds"]:
        name = f"{kind['name']} {kind['group']}".strip()
        cells = [number(kind[key]) for key in ("median", "transfer", "waited")]
        rows.append([t.cut_middle(name, 30), kind["n"], kind["matched"], *cells])
    said = "transfer: from the last start to the last end, nobody waiting any more"
    return ["COLLECTIVES", *columns(rows, "<>>>>>"), *t.wrap(said, first="  ", indent="  ")]


def _worst(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    if not view["worst"]:
        return []
    rows = [["", "last", "late", "all waited", "why"]]
    for one in view["worst"][:WORST]:
        cells = [number(one[key]) for key in ("late", "waited")]
        rows.append([t.cut_middle(one["name"], 24), one["last"], *cells, one["why"]])
    return ["LONGEST WAITS", *(t.cut(line, t.width) for line in columns(rows, "<>>><"))]


def _settings(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    if not view["settings"] and not view["transports"]:
        return ["NCCL  neither the traces nor a log say how it was set (--nccl-log FILE)"]
    lines = ["NCCL"]
    for one in view["settings"]:
        note = f": {one['note']}" if one["note"] else ""
        lines += t.wrap(f"{one['name']} = {one['value']} ({one['source']}){note}", first="  ", indent="    ")
    if view["transports"]:
        lines += t.wrap(f"connections via {view['transports']}", first="  ", indent="    ")
    return lines
