"""A comparison as Markdown, for a pull request: gates first, then what changed, short."""

from __future__ import annotations

import re
from typing import Any

from ncukit.model.comparison import Comparison
from ncukit.render.compare.page import page_view
from ncukit.render.line import Line
from ncukit.render.numbers import NARROW
from ncukit.render.text.parts import number

ROWS = 10
PAIRS = 30
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$])")
"""What would be markup in a table cell; the rest of the punctuation has no meaning there."""


def markdown_text(comparison: Comparison) -> str:
    """Return the comparison as GitHub Markdown."""
    view = page_view(comparison, generated="")
    lines = [f"### ncukit: {_escape(view['heading'])}", "", _escape(view["brand"]), ""]
    if view["gates"]["rows"]:
        lines += _gates(view["gates"])
    if view["single"]:
        lines += _pair(view["blocks"][0])
    else:
        lines += _pairs(view)
    if view["unmatched"]["rows"]:
        lines += _unmatched(view["unmatched"])
    lines += [f"<sub>{_escape(view['footer'])}</sub>", ""]
    return "\n".join(lines).replace(NARROW, " ")


def _gates(gates: dict[str, Any]) -> list[str]:
    lines = [f"**Gates**: {_flat(gates['sentence'])}", ""]
    lines += _table(
        ("Gate", "Result", "Kernel", "Measured"),
        "llll",
        [
            (f"`{row['gate']}`", _escape(row["word"]), _code(row["kernel"]), _flat(row["text"]))
            for row in gates["rows"][:PAIRS]
        ],
    )
    return [*lines, ""]


def _pair(found: dict[str, Any]) -> list[str]:
    summary, changes = found["summary"], found["changes"]
    lines = [
        f"**Comparable?** {_flat(found['comparable']['sentence'])}",
        "",
        f"**{_flat(summary['claim'])}.** {_flat(summary['deck'])}",
        "",
        f"{_escape(summary['confidence']['word'])}: {_escape(summary['confidence']['text'])}.",
        "",
    ]
    if changes["rows"]:
        head = ["Metric", "Base", "Other", "Change"]
        explained, classes = changes["explained"], changes["classes"]
        head += (["Explains"] if explained else []) + ["Reading"] + (["Comparable as"] if classes else [])
        align = "lrrr" + ("r" if explained else "") + "l" + ("l" if classes else "")
        lines += _table(
            head, align, [_row(row, explained=explained, classes=classes) for row in changes["rows"][:ROWS]]
        )
        lines.append("")
    left = len(changes["rows"]) - ROWS + len(changes["more"])
    counts = [
        f"{left} more rows changed" if left > 0 else "",
        f"{len(changes['same'])} did not change beyond the noise",
        f"{len(changes['no'])} are not comparable" if changes["no"] else "",
        f"{sum(len(u['ids']) for u in changes['unknown'])} are unknown on a side"
        if changes["unknown"]
        else "",
    ]
    lines += [f"{'; '.join(text for text in counts if text)}.", ""]
    if changes["no"]:
        lines += ["<details><summary>Not comparable, and why</summary>", ""]
        lines += [f"- `{row['id']}`: {_flat(row['why'])}" for row in changes["no"]]
        lines += ["", "</details>", ""]
    lines += ["<details><summary>Can they be compared?</summary>", ""]
    lines += [
        f"- {fact['word']} {_escape(fact['name'])}: {_flat(fact['text'])}"
        for fact in found["comparable"]["facts"]
    ]
    return [*lines, "", "</details>", ""]


def _row(row: dict[str, Any], *, explained: bool, classes: bool) -> list[str]:
    cells = [
        _escape(row["label"]) if row["label"] else f"`{row['id']}`",
        _escape(number(row["base"])),
        _escape(number(row["other"])),
        row["change"],
    ]
    cells += [row["explains"]] if explained else []
    cells.append(row["word"])
    return cells + ([row["class"]] if classes else [])


def _pairs(view: dict[str, Any]) -> list[str]:
    lines = [_flat(view["pairs_words"]), ""]
    rows = view["pairs"][:PAIRS]
    if not rows:
        return ["Nothing to compare: no launch of one side matches one of the other.", ""]
    lines += _table(
        ("Kernel", "Base", "Other", "Change", "Reading", "What it says", "Differs"),
        "lrrrlll",
        [
            (
                _code(row["name"]),
                row["base"],
                row["other"],
                row["change"],
                row["word"],
                _flat(row["claim"]),
                _escape(row["flags"]),
            )
            for row in rows
        ],
    )
    if len(view["pairs"]) > len(rows):
        lines.append(f"\nand {len(view['pairs']) - len(rows)} more")
    return [*lines, "", *_totals(view)]


def _totals(view: dict[str, Any]) -> list[str]:
    rows = view["totals"]["rows"]
    if not rows:
        return []
    names = ["label", "base", "other", "change", "pairs"] + (["other_file"] if view["several"] else [])
    head = ["Together", "Base", "Other", "Change", "Counted"] + (["Against"] if view["several"] else [])
    cells = [[_escape(row[name]) for name in names] for row in rows]
    return [_flat(view["totals"]["sentence"]), "", *_table(head, "lrrrll"[: len(head)], cells), ""]


def _unmatched(unmatched: dict[str, Any]) -> list[str]:
    lines = [f"<details><summary>{_flat(unmatched['sentence'])}</summary>", ""]
    for row in unmatched["rows"][:PAIRS]:
        lines.append(f"- {_code(row['name'])} in {_escape(row['file'])}: {_flat(row['reason'])}")
    return [*lines, "", "</details>", ""]


def _table(head: Any, align: str, rows: Any) -> list[str]:
    rule = {"l": ":--", "r": "--:"}
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(rule[a] for a in align)} |"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def _flat(line: Line) -> str:
    """Return a line of the view as Markdown: code stays code, the rest cannot become markup."""
    return "".join(
        _code(part["code"])
        if "code" in part
        else _escape(number(part["cell"]))
        if "cell" in part
        else _escape(str(next(iter(part.values()))))
        for part in line
    )


def _code(text: str) -> str:
    return f"`{text.replace('`', ' ').replace('|', '¦')}`" if text else ""


def _escape(text: str) -> str:
    """Return text that GitHub shows as it is, on one line.

    >>> _escape("a|b <c>")
    'a\\\\|b \\\\<c\\\\>'
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split(" "))).replace("\n", " ").replace("@", "&#64;")
