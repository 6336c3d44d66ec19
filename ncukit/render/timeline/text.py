"""A timeline in the terminal: the same words and numbers as on the page, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from ncukit.model.trace import LaunchChoice, Timeline
from ncukit.render.advice import of_trace
from ncukit.render.commands import typed
from ncukit.render.text.advice import advice_lines
from ncukit.render.text.parts import flat, ledger, number, shell
from ncukit.render.text.terminal import Terminal, columns, hot, pad
from ncukit.render.timeline.view import page_view

BAR = 32
"""Columns of a bar beside a cause, in a terminal that has them."""
NAMED = 8
"""Columns that a kernel's name has at least, however wide its numbers are."""
LIMIT = "<- limit"
SHOWN = 10
"""Rows of each table; ``verbose`` shows what the page shows."""


def timeline_text(
    timeline: Timeline,
    choice: LaunchChoice | None = None,
    why_not: str = "",
    *,
    color: bool = False,
    encoding: str = "utf-8",
    verbose: bool = False,
    width: int = 80,
) -> str:
    """Return what a terminal of ``width`` columns shows of ``timeline``.  No newline at the end."""
    t = Terminal(width, encoding, color)
    view = t.tree(page_view(timeline, {}, choice, why_not))
    most = None if verbose else SHOWN
    lines = _head(t, view)
    lines += ["", *_verdict(t, view, verbose), "", *_experiment(t, view, timeline), "", *_devices(t, view)]
    for name, part in _PARTS.items():
        if found := part(t, view, most):
            lines += ["", *_titled(t, name, view, most), *found]
    lines += ["", *advice_lines(t, of_trace(timeline, choice, typed(timeline.file.path)), verbose=verbose)]
    notes = [flat(view["synthetic"]), *map(flat, view["notes"])]
    said = [line for note in notes if note for line in t.wrap(note, first="! ", indent="  ")]
    lines += ["", *said] if said else []
    return t.page(lines)


def _head(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    head = view["heading"]
    lines = t.beside(t.cut_middle(head["name"], t.width - 24), t.cut(head["range"], t.width // 2))
    named = {f["id"]: flat(f["text"]) for f in view["facts"]}
    lines += t.row(named["gpu"], named["work"])
    return lines + t.row(f"region {named['region']} (traced, not a benchmark)", named["recorder"])


def _verdict(t: Terminal, view: Mapping[str, Any], verbose: bool) -> list[str]:
    found = view["verdict"]
    first, *rest = t.beside(f"REGION  {found['cls']}", found["confidence"]["word"].rstrip(".").lower())
    lines = [first.replace(found["cls"], hot(found["cls"]), 1), *rest, *t.wrap(flat(found["claim"])), ""]
    labels = max((len(b["label"]) for b in found["glance"]), default=0)
    digits = max((len(number(b["cell"])) for b in found["glance"]), default=0)
    room = max(8, min(BAR, t.width - labels - digits - len(LIMIT) - 8))
    for bar in found["glance"]:
        text = pad(number(bar["cell"]), digits, ">")
        line = f"  {pad(bar['label'], labels)}  {t.bar(bar['bar'], room)}  {text}"
        lines.append(hot(f"{line}  {LIMIT}") if bar["hot"] else line)
    blocks = [
        (name, [(number(e["n"]), flat(e["text"])) for e in found[key]])
        for name, key in (("for", "evidence"), ("against", "against"))
    ]
    lines += ["", *ledger(t, blocks)]
    for text in found["missing"]:
        lines += t.wrap(flat(text), first="  missing  ", indent=" " * 11)
    said = [flat(text) for text in found["undecidable"]]
    short = [", ".join(found["undecidable_classes"])] if said else []
    for text in said if verbose else short:
        lines += t.wrap(text, first="  one trace cannot decide  ", indent=" " * 27)
    return lines


def _experiment(t: Terminal, view: Mapping[str, Any], timeline: Timeline) -> list[str]:
    found = view["verdict"]["experiment"]
    if found is None:
        return ["NEXT EXPERIMENT  none: see what is missing"]
    lines = t.wrap(flat(found["title"]), first="NEXT EXPERIMENT  ", indent=" " * 17)
    rows = [(row["name"].lower(), flat(row["text"])) for row in found["rows"]]
    rows += [("disproved", f"if {flat(found['disproved'])}"), ("cost", flat(found["cost"]))]
    for name, text in rows:
        lines += t.wrap(text, first=f"  {name:9}  ", indent=" " * 13) if text else []
    run = timeline.region.experiment.run if timeline.region.experiment else ()
    for n, command in enumerate(run):
        lines += shell(t, command, f"  {'run' if n == 0 else '':9}  ")
    return lines


def _devices(t: Terminal, view: Mapping[str, Any]) -> list[str]:
    lines = []
    for d in view["devices"]:
        title = f"DEVICE {d['id']}  {d['name']}"
        lines += t.beside(title, f"{number(d['span'])}, kernels add up to {number(d['sum'])}")
        rows = [[r["name"], number(r["share"]), number(r["time"])] for r in d["rows"]]
        for left, row in zip(columns(rows, "<>>"), d["rows"], strict=True):
            lines += t.wrap(flat(row["note"]), first=f"{left}  ", indent=" " * (cell_len(left) + 2))
        if len(d["streams"]) > 1:
            busy = [[s["name"], s["n"], number(s["busy"]), number(s["share"])] for s in d["streams"]]
            lines += [t.cut(line, t.width) for line in columns(busy[:SHOWN], "<>>>", indent=4)]
    return lines


def _kernels(t: Terminal, view: Mapping[str, Any], most: int | None) -> list[str]:
    rows = [["", "total", "share", "n", "median", "range", "without it", ""]]
    for k in view["kernels"][:most]:
        cells = [number(k["total"]), number(k["share"]), k["n"], number(k["median"]), k["range"], k["bound"]]
        rows.append([k["name"], *cells, k["kind"]])
    if len(rows) == 1:
        return []
    taken = sum(2 + max(map(cell_len, column)) for column in zip(*(row[1:] for row in rows), strict=True))
    rows = [[t.cut_middle(name, max(NAMED, t.width - taken - 2)), *cells] for name, *cells in rows]
    said = "median: of the steady launches; without it: how much faster the region could be at most"
    return _table(t, rows, "<>>>>>><") + t.wrap(said, first="  ", indent="  ")


def _copies(t: Terminal, view: Mapping[str, Any], most: int | None) -> list[str]:
    lines = []
    for c in view["copies"][:most]:
        facts = f"{c['n']} × {number(c['usual'])}, {number(c['bandwidth'])}, {number(c['hidden'])} hidden"
        lines += t.beside(f"  {c['way']}  {c['memory']}  {number(c['total'])}", t.text(facts))
        lines += t.wrap(c["fix"], first="      ", indent="      ")
    return lines + (t.wrap(flat(view["copies_note"]), first="  ", indent="  ") if lines else [])


def _waits(t: Terminal, view: Mapping[str, Any], most: int | None) -> list[str]:
    rows = [["", "calls", "time", "share", "median", "longest", "GPU idle"]]
    for w in view["waits"][:most]:
        cells = (number(w[key]) for key in ("total", "share", "median", "max", "idle"))
        rows.append([t.cut_middle(w["name"], 26), w["n"], *cells])
    return _table(t, rows, "<>>>>>>") if len(rows) > 1 else []


def _ranges(t: Terminal, view: Mapping[str, Any], most: int | None) -> list[str]:
    rows = [["", "n", "CPU time", "kernels", "kernel time", ""]]
    room = max(16, t.width - 46)
    for r in view["ranges"][:most]:
        cells = [r["n"], number(r["total"]), r["kernels"], number(r["kernel_time"])]
        rows.append([t.cut_middle(r["name"], room), *cells, r["note"]])
    return _table(t, rows, "<>>>><") if len(rows) > 1 else []


def _calls(t: Terminal, view: Mapping[str, Any], most: int | None) -> list[str]:
    lines = t.wrap(flat(view["launches"]), first="  ", indent="  ")
    rows = [["", "kind", "calls", "time", "median", "longest"]]
    for c in view["calls"][:most]:
        cells = (number(c[key]) for key in ("total", "median", "max"))
        rows.append([t.cut_middle(c["name"], 30), c["kind"], c["n"], *cells])
    return lines + (_table(t, rows, "<<>>>>") if most is None and len(rows) > 1 else [])


def _choice(t: Terminal, view: Mapping[str, Any], most: int | None) -> list[str]:
    found = view["choice"]
    if not found["command"]:
        return t.wrap(flat(found["why_not"]), first="  ", indent="  ")
    lines = []
    for row in found["rows"]:
        lines += t.wrap(flat(row["text"]), first=f"  {row['name'].lower():12}", indent=" " * 14)
    return lines + shell(t, found["command"], "  run         ")


_PARTS = {
    "KERNELS": _kernels,
    "LAUNCH FOR NCU": _choice,
    "COPIES": _copies,
    "WAITS": _waits,
    "RANGES": _ranges,
    "CUDA CALLS": _calls,
}
_COUNTED = {"KERNELS": ("kernels", "more_kernels"), "RANGES": ("ranges", "more_ranges")}


def _titled(t: Terminal, name: str, view: Mapping[str, Any], most: int | None) -> list[str]:
    rows, more = _COUNTED.get(name, ("", ""))
    count = len(view[rows]) + view[more] if rows else 0
    shown = min(count, most or len(view[rows])) if rows else 0
    note = f"  the first {shown} of {count:,}" if shown < count else ""
    if name == "KERNELS":
        note += f"  all add up to {number(view['kernel_total'])}"
    return [t.cut(name + note, t.width)]


def _table(t: Terminal, rows: Sequence[Sequence[str]], align: str) -> list[str]:
    return [t.cut(line, t.width) for line in columns(rows, align)]
