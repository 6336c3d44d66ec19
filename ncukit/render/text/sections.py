"""The tables behind the verdict: roofline, stalls, findings, and ncu's own rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ncukit.model import Diagnosis
from ncukit.render.cells import Cell, Cells
from ncukit.render.numbers import NARROW
from ncukit.render.text.parts import flat, number
from ncukit.render.text.terminal import Terminal, columns, hot
from ncukit.render.text.verdict import LIMIT
from ncukit.render.view.findings import findings as finding_view
from ncukit.render.view.opinion import opinion as opinion_view
from ncukit.render.view.roofs import section
from ncukit.render.view.stalls import stalls as stall_view
from ncukit.render.words import plural

BAR = 20
LISTED = 2.0
"""[%] of the largest category from which another one has a row."""
SHOWN = 5
"""Findings and rules that are printed unless everything is asked for."""

SECOND = "a second opinion; gains of the kernel (global) or one unit (local)"


def roofline(t: Terminal, cells: Cells, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return the points with what their roof allows, what could not be drawn, and which check failed."""
    tables = t.tree(section(cells, diagnosis)[0])
    rates = ", ".join(f"{rate['name']} {number(rate['cell'])}" for rate in tables["achieved"])
    words = rates or flat(tables["sentence"])
    if tables["points"] and tables["work"] == "inst":
        no = "no floating point" if cells.number("flops_total") == 0 else "no floating-point work is known"
        words = f"{no}: warp instructions instead"
    lines = t.wrap(words, first="ROOFLINE  ", indent=" " * 10)
    rows = [["", "bytes", f"{tables['work']}/B", "attainable", "achieved", ""]] if tables["points"] else []
    for point in tables["points"]:
        rows.append([
            point["name"], number(point["bytes"]), number(point["intensity"]), _rate(point["attainable"]),
            number(point["share"]), LIMIT if point["hot"] else "",
        ])  # fmt: skip
    for n, line in enumerate(columns(rows, "<>>>><")):
        lines.append(hot(line) if n and tables["points"][n - 1]["hot"] else line)
    if verbose and tables["roofs"]:
        rows = [["roof", "this run", "data sheet clocks", "ridge"]]
        rows += [
            [roof["name"], number(roof["run"]), number(roof["sheet"]), number(roof["ridge"])]
            for roof in tables["roofs"]
        ]
        lines += ["", *columns(rows, "<>>>")]
    for text in tables["missing"]:
        lines += t.wrap(flat(text), first="  - ", indent="    ")
    for check in tables["checks"]:
        if verbose or check["status"] == "warn":
            sign = {"ok": " ", "warn": "!", "no": "-"}[check["status"]]
            lines += t.wrap(flat(check["text"]), first=f"  {sign} ", indent="    ")
    return lines


def _rate(cell: Cell | None) -> str:
    text = number(cell)
    if cell is None or cell["state"] == "missing":
        return text
    return f"{text}/s" if text[-1:].isalpha() else f"{text}{NARROW}/s"


def stalls(t: Terminal, cells: Cells, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return why warps wait, by category; one sentence where the schedulers are busy anyway."""
    cited = frozenset(e.metric for e in diagnosis.verdict.evidence)
    found = t.tree(stall_view(cells, cited))
    lines = t.wrap(flat(found["sentence"]), first="STALLS  ", indent=" " * 8)
    if not found["panels"] or (found["folded"] and not verbose):
        return lines
    for panel in found["panels"] if verbose else found["panels"][:1]:
        title = panel["title"]
        what = title if title.startswith("sampling") else "cycles per issued instruction, from counters"
        lines.append(f"  {what}")
        rows = []
        for category, states in _categories(panel["rows"]):
            if verbose or category["bar"] >= LISTED:
                words = states if verbose or len(states) < 2 else [f"{states[0]} +{len(states) - 1}"]
                bar = t.bar(category["bar"], BAR)
                rows.append([category["name"], category["amount"], category["share"], bar, ", ".join(words)])
        lines += [t.cut(line, t.width) for line in columns(rows, "<>><<")]
    return lines


def _categories(rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], list[str]]]:
    """Return each category with the raw states in it, largest first."""
    found: list[tuple[dict[str, Any], list[str]]] = []
    for row in rows:
        if "category" in row:
            found.append((row, []))
        if "state" in row:
            found[-1][1].append(flat([row["state"]]))
    return found


def findings(t: Terminal, cells: Cells, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return what the rules found beyond the verdict, by gain, and how many could not be applied."""
    said = {e.metric for e in (*diagnosis.verdict.evidence, *diagnosis.verdict.against)}
    known = {f.id for f in diagnosis.findings if f.metrics and said.issuperset(f.metrics)}
    view = t.tree(finding_view(cells, diagnosis))
    rows = [row for row in view["rows"] if verbose or row["id"] not in known]
    skipped = view["skipped"]
    if not rows and not skipped:
        return []
    shown = rows if verbose else rows[:SHOWN]
    heading = f"{len(rows) or 'none'} {'in all' if verbose else 'beside the verdict'}"
    if len(shown) < len(rows):
        heading += f", the first {len(shown)}"
    if skipped:
        heading += f"; {plural(len(skipped), 'rule')} could not be applied" + (
            "" if verbose else " (--verbose: why)"
        )
    lines = t.wrap(heading, first="FINDINGS  ", indent=" " * 10)
    for row in shown:
        gain = row["global"] or row["local"]
        kind = " of the kernel" if row["global"] else " of that unit" if row["local"] else ""
        title = flat(row["title"]) + (f" ({gain}{kind})" if gain else "")
        lines += t.wrap(title, first=f"  {row['sign']:2} ", indent=" " * 5)
        for text in (flat(row["detail"]) if verbose else "", flat(row["advice"]), row["source"]):
            lines += t.wrap(text, first=" " * 7, indent=" " * 7) if text else []
    if verbose:
        for rule in skipped:
            lines += t.wrap(f"{rule['id']}: {flat(rule['reason'])}", first="  -  skipped ", indent=" " * 5)
    return lines


def opinion(t: Terminal, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return ncu's own rules in short: global and local gains in columns of their own."""
    found = diagnosis.verdict
    view = t.tree(opinion_view(diagnosis.kernel.raw.rules, found.cls, found.limiter))
    rows = sorted(view["rows"], key=lambda row: not (row["gain"] or row["local"]))
    rows = rows if verbose else _once(row for row in rows if row["gain"] or row["local"])[:SHOWN]
    if not rows:
        return t.wrap(view["note"], first="NCU'S RULES  ", indent=" " * 13) if view["note"] else []
    lines = t.wrap(SECOND, first="NCU'S RULES  ", indent=" " * 13)
    table = [["global", "local", "", ""]]
    table += [[row["global"] or "", row["local"] or "", row["name"], _stance(row["against"])] for row in rows]
    head, *shown = columns(table, ">><<")
    lines.append(head)
    for line, row in zip(shown, rows, strict=True):
        lines.append(t.cut(line, t.width))
        lines += t.wrap(row["message"], first=" " * 7, indent=" " * 7) if verbose and row["message"] else []
    rest = len(view["rows"]) - len(rows)
    notes = [f"{rest} more (--verbose)."] if rest else []
    notes += [view["note"]] if verbose and view["note"] else []
    return lines + [line for note in notes for line in t.wrap(note, first="  ", indent="  ")]


def _once(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ``rows`` without those that read the same but for their message."""
    return list({(row["name"], row["global"], row["local"]): row for row in rows}.values())


def _stance(against: str) -> str:
    """Return in two words how a rule stands to the verdict."""
    return "" if not against else "agrees" if against.startswith("Agrees") else "not the limit"
