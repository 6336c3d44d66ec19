"""The tables behind the verdict: roofline, stalls, findings, and ncu's own rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ncukit.model import Diagnosis, Finding, Verdict
from ncukit.quantity import NARROW
from ncukit.render.cells import Cell, Cells
from ncukit.render.text.parts import flat, number
from ncukit.render.text.terminal import Terminal, columns, hot
from ncukit.render.text.verdict import LIMIT
from ncukit.render.view.findings import findings as finding_view
from ncukit.render.view.opinion import opinion as opinion_view
from ncukit.render.view.roofs import section
from ncukit.render.view.stalls import stalls as stall_view
from ncukit.render.words import plural

BAR = 20
LISTED = 1.0
"""[%] Share from which a category has a row."""
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
    if (verbose or diagnosis.roofline.measured) and tables["roofs"]:
        rows = [["roof", "this run", "data sheet clocks", "ridge"]]
        rows += [
            [roof["name"], number(roof["run"]), number(roof["sheet"]), number(roof["ridge"])]
            for roof in tables["roofs"]
        ]
        lines += ["", *columns(rows, "<>>>")]
    for text in tables["missing"] if verbose or tables["points"] else tables["missing"][:1]:
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
        what = panel["title"] if panel["sampled"] else "cycles per issued instruction, from counters"
        lines.append(f"  {what}")
        lines += [t.cut(row, t.width) for row in columns(_stall_rows(t, panel, verbose=verbose), "<>><<")]
    return lines


def _stall_rows(t: Terminal, panel: dict[str, Any], *, verbose: bool) -> list[list[str]]:
    """Return a row for each category with its first state, and, when verbose, one for each further state."""
    shares = {part["category"]: part["width"] for part in panel["stack"]}
    rows: list[list[str]] = []
    first, more = "", 0
    for row in panel["rows"]:
        state = flat([row["state"]]) if "state" in row else ""
        if "category" in row:
            share = shares[row["category"]]
            listed = verbose or share >= LISTED
            first, more = state, 0
            if listed:
                rows.append([row["name"], row["amount"], row["share"], t.bar(share, BAR), state])
        elif verbose:
            rows.append([f"  {state}", row["amount"], row["share"], "", ""])
        elif listed:
            first, more = (first, more + 1) if first else (state, 0)
            rows[-1][-1] = f"{first} +{more}" if more else first
    return rows


def findings(t: Terminal, cells: Cells, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return what the rules found beyond the verdict, by gain, and which could not be applied."""
    view = finding_view(cells, diagnosis)
    order = {found.id: n for n, found in enumerate(diagnosis.findings)}
    known = {found.id for found in diagnosis.findings if _said(found, diagnosis.verdict)}
    rows = sorted(view["rows"], key=lambda row: order[row["id"]])
    rows = t.tree([row for row in rows if verbose or row["id"] not in known])
    skipped = t.tree(view["skipped"])
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
        reasons: dict[str, list[str]] = {}
        for rule in skipped:
            reasons.setdefault(flat(rule["why"]), []).append(rule["id"])
        for why, ids in reasons.items():
            lines += t.wrap(f"skipped {', '.join(ids)}: {why}", first="  -  ", indent=" " * 5)
    return lines


def _said(found: Finding, verdict: Verdict) -> bool:
    """Return whether the verdict already says what a finding is about: its first metric, or its cause."""
    cited = {e.metric for e in (*verdict.evidence, *verdict.against)}
    return found.id == verdict.limiter or next(iter(found.metrics), "") in cited


def opinion(t: Terminal, diagnosis: Diagnosis, *, verbose: bool) -> list[str]:
    """Return ncu's own rules in short: global and local gains in columns of their own."""
    found = diagnosis.verdict
    view = t.tree(opinion_view(diagnosis.kernel.raw.rules, found.cls, found.limiter))
    rows = sorted(view["rows"], key=lambda row: not (row["gain"] or row["local"]))
    if not verbose:
        estimated = [row for row in rows if row["gain"] or row["local"]]
        rows = _once(estimated or [row for row in rows if row["against"]])[:SHOWN]
    if not rows:
        return t.wrap(view["note"], first="NCU'S RULES  ", indent=" " * 13) if view["note"] else []
    gains = any(row["gain"] or row["local"] for row in rows)
    words = SECOND if gains else "a second opinion; no gain is estimated"
    lines = t.wrap(words, first="NCU'S RULES  ", indent=" " * 13)
    table = [["global", "local", "", ""]] if gains else []
    table += [[row["global"] or "", row["local"] or "", row["name"], _stance(row["agrees"])] for row in rows]
    drawn = [t.cut(line, t.width) for line in columns(table, ">><<")]
    lines += drawn[: len(drawn) - len(rows)]
    for line, row in zip(drawn[-len(rows) :], rows, strict=True):
        lines.append(line)
        lines += t.wrap(row["message"], first=" " * 7, indent=" " * 7) if verbose and row["message"] else []
    rest = len(view["rows"]) - len(rows)
    notes = [f"{rest} more (--verbose)."] if rest else []
    notes += [view["note"]] if verbose and view["note"] else []
    return lines + [line for note in notes for line in t.wrap(note, first="  ", indent="  ")]


def _once(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ``rows`` without those that read the same but for their message."""
    return list({(row["name"], row["global"], row["local"]): row for row in rows}.values())


def _stance(agrees: bool | None) -> str:
    """Return in two words how a rule stands to the verdict."""
    return "" if agrees is None else "agrees" if agrees else "not the limit"
