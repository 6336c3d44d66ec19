"""Operators in the terminal: the same words and numbers as on the page, in columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncukit.model.ops import Ops
from ncukit.render.ops.view import TOP, page_view
from ncukit.render.text.parts import flat, number, shell
from ncukit.render.text.terminal import Terminal, columns, hot

SPIKES = 3
"""Rises of each allocator that are shown."""


def ops_text(
    ops: Ops,
    *,
    sort: str = "",
    top: int | None = TOP,
    kept: str = "",
    color: bool = False,
    encoding: str = "utf-8",
    width: int = 80,
) -> str:
    """Return what a terminal of ``width`` columns shows of ``ops``.  No newline at the end."""
    t = Terminal(width, encoding, color)
    view = t.tree(page_view(ops, sort=sort, top=top))
    lines = [*_head(t, view), "", *_next(t, view), "", *_operators(t, view, sort)]
    for part in (_busy, _host, _waits, _memory):
        if found := part(t, view):
            lines += ["", *found]
    notes = [flat(line) for line in view["notes"]]
    said = [line for note in notes for line in t.wrap(note, first="! ", indent="  ")]
    lines += ["", *said] if said else []
    if kept:
        lines += ["", *t.wrap(f"trace for ui.perfetto.dev: {t.text(kept)}", indent="  ", whole=True)]
    return t.page(lines)


def _head(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    named = {f["id"]: flat(f["text"]) for f in view["facts"]}
    lines = t.beside(t.cut_middle(view["heading"]["name"], t.width - 40), "operators and their kernels")
    lines += t.row(named["gpu"], f"GPU work: {named['work']}")
    return lines + t.row(
        f"operators: {named['operators']}",
        f"first to last, on the CPU: {named['traced']} (profiled, not a benchmark)",
    )


def _next(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    found = view["deserving"]
    if not found["command"]:
        return t.wrap(flat(found["why_not"]), first="PROFILE NEXT  none: ", indent=" " * 14)
    named = {row["id"]: flat(row["text"]) for row in found["rows"]}
    by = f", launched by {named['operator']}" if "operator" in named else ""
    text = f"{named['kernel']}{by}: {named['share']}"
    lines = [hot(line) for line in t.wrap(text, first="PROFILE NEXT  ", indent=" " * 14)]
    return [*lines, *shell(t, found["command"], "  ")]


def _operators(t: Terminal, view: Mapping[str, Any], sort: str) -> list[str]:
    gpu, cpu = view["on_gpu"], "cpu" if sort == "cpu" else "cpu_self"
    head = ["", "device", "own", "share", "CPU" if cpu == "cpu" else "CPU own", "calls", "kernels"]
    if not gpu:
        head = ["", "CPU own", "share", "CPU", "calls"]
    room = max(16, t.width - (54 if gpu else 40))
    rows: list[list[str]] = [head]
    below: list[list[str]] = [[]]
    for r in view["rows"]:
        keys = ("device", "device_self", "share", cpu) if gpu else ("cpu_self", "share", "cpu")
        cells = [number(r[key]) for key in keys]
        rows.append([t.cut_middle(r["name"], room), *cells, r["n"], *([r["launched"]] if gpu else [])])
        below.append(_below(t, r))
    lines = [f"OPERATORS  {flat(view['sorted'])[0].lower()}{flat(view['sorted'])[1:]}"]
    for line, more in zip(columns(rows, "<" + ">" * (len(head) - 1)), below, strict=True):
        lines += [t.cut(line, t.width), *more]
    if view["more"]:
        lines.append(f"  {view['more']:,} more: --top N, or --json")
    for said in (view["attribution"], *view["checks"]):
        lines += t.wrap(flat(said), first="  ", indent="  ")
    return lines


def _below(t: Terminal, row: Mapping[str, Any]) -> list[str]:
    """Return the lines below an operator: its inputs, the kernel that takes the longest, its copies."""
    lines = []
    if row["inputs"]:
        lines.append(t.cut(f"      {row['inputs']}  {row['types']}", t.width))
    if row["kernels"]:
        first = row["kernels"][0]
        more = len(row["kernels"]) - 1 + row["more_kernels"]
        said = t.text(f"{first['n']} ×, {number(first['total'])}") + (f"; {more} more" if more else "")
        name = t.cut_middle(first["name"], t.width - 12 - len(said))
        lines.append(f"      -> {name}: {said}")
    if row["copies"]:
        lines.append(t.cut(f"      -> {flat(row['copies'])}", t.width))
    return lines


def _busy(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    lines = []
    for u in view["busy"]:
        gaps = f"{u['gaps']}, {number(u['gap_time'])} empty, longest {number(u['longest'])}"
        lines += t.beside(f"BUSY  {u['device']}, first to last work {number(u['span'])}", gaps)
        for row in u["rows"]:
            first = f"  {number(row['cell']):>14}  {row['name']}: "
            lines += t.wrap(f"{row['says']}. Not: {row['not']}", first=first, indent=" " * 18)
    return lines


def _host(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    found = view["host"]
    if not found:
        return []
    lines = t.wrap(flat(found["said"]), first="HOST  ", indent="      ")
    rows = [["", "itself", "share", "with calls", "in gaps"]]
    for r in found["rows"]:
        cells = [number(r[key]) for key in ("own", "share", "total", "gap")]
        rows.append([t.cut_middle(r["name"], max(16, t.width - 46)), *cells])
    if len(rows) > 1:
        lines += [t.cut(line, t.width) for line in columns(rows, "<>>>>")]
    for note in found["notes"]:
        lines += t.wrap(flat(note), first="  ! ", indent="    ")
    return lines


def _waits(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    rows = [[t.cut_middle(w["name"], 40), number(w["total"]), w["n"], w["inputs"]] for w in view["waits"]]
    if not rows:
        return []
    table = columns([["", "time", "calls", ""], *rows], "<>><")
    return ["WAITS  operators in which the CPU waited for the GPU", *(t.cut(line, t.width) for line in table)]


def _memory(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    lines = []
    for m in view["memory"]:
        reserved = "" if m["device"] == "CPU" else f", {number(m['reserved'])} reserved at most"
        text = f"{m['events']}: peak {number(m['peak'])} in use, in {m['operator']}{reserved}"
        lines += t.wrap(text, first=f"MEMORY  {m['device']}  ", indent="        ")
        rows = []
        for s in m["spikes"][:SPIKES]:
            grew = f"allocator grew by {number(s['grew'])}" if s["grew"] else ""
            name, at = t.cut_middle(s["operator"], 36), f"at {number(s['at'])}"
            rows.append([f"+{number(s['bytes'])}", name, at, grew])
        lines += [t.cut(line, t.width) for line in columns(rows, "><<<")] if rows else []
        lines += t.wrap(m["change"], first="  ", indent="  ")
    return lines
