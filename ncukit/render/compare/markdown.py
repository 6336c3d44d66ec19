"""A comparison as Markdown, for a pull request: gates first, then what changed, short."""

from __future__ import annotations

from typing import Any

from ncukit.model.comparison import Comparison
from ncukit.quantity import NARROW
from ncukit.render.compare.page import page_view
from ncukit.render.gfm import code, escape, flat, fold, table
from ncukit.render.text.parts import number

ROWS = 10
PAIRS = 30


def markdown_text(comparison: Comparison) -> str:
    """Return the comparison as GitHub Markdown."""
    view = page_view(comparison, generated="")
    lines = [f"### ncukit: {escape(view['heading'])}", "", escape(view["brand"]), ""]
    if view["gates"]["rows"]:
        lines += _gates(view["gates"])
    if view["single"]:
        lines += _pair(view["blocks"][0])
    else:
        lines += _pairs(view)
    if view["unmatched"]["rows"]:
        lines += _unmatched(view["unmatched"])
    lines += [f"<sub>{escape(view['footer'])}</sub>", ""]
    return "\n".join(lines).replace(NARROW, " ")


def _gates(gates: dict[str, Any]) -> list[str]:
    lines = [f"**Gates**: {flat(gates['sentence'])}", ""]
    lines += table(
        ("Gate", "Result", "Kernel", "Measured"),
        "llll",
        [
            (code(row["gate"]), escape(row["word"]), code(row["kernel"]), flat(row["text"]))
            for row in gates["rows"][:PAIRS]
        ],
    )
    return [*lines, ""]


def _pair(found: dict[str, Any]) -> list[str]:
    summary, changes = found["summary"], found["changes"]
    lines = [
        f"**Comparable?** {flat(found['comparable']['sentence'])}",
        "",
        f"**{flat(summary['claim'])}.** {flat(summary['deck'])}",
        "",
        f"{escape(summary['confidence']['word'])}: {escape(summary['confidence']['text'])}.",
        "",
    ]
    if changes["rows"]:
        head = ["Metric", "Base", "Other", "Change"]
        explained, classes = changes["explained"], changes["classes"]
        head += (["Explains"] if explained else []) + ["Reading"] + (["Comparable as"] if classes else [])
        align = "lrrr" + ("r" if explained else "") + "l" + ("l" if classes else "")
        lines += table(
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
    if changes["per"]:
        cells = [
            [escape(row[name]) for name in ("label", "base", "other", "change")] for row in changes["per"]
        ]
        lines += fold("Per unit of work", table(("Quantity", "Base", "Other", "Change"), "lrrr", cells))
    if changes["no"]:
        lines += fold(
            "Not comparable, and why", [f"- {code(row['id'])}: {flat(row['why'])}" for row in changes["no"]]
        )
    facts = [
        f"- **{escape(fact['name'])}** {escape(fact['word'])}: {flat(fact['text'])}"
        for fact in found["comparable"]["facts"]
    ]
    return lines + fold("Can they be compared?", facts)


def _row(row: dict[str, Any], *, explained: bool, classes: bool) -> list[str]:
    cells = [
        escape(row["label"]) if row["label"] else code(row["id"]),
        escape(number(row["base"])),
        escape(number(row["other"])),
        escape(row["change"]),
    ]
    cells += [escape(row["explains"])] if explained else []
    cells.append(escape(row["word"]))
    return cells + ([escape(row["class"])] if classes else [])


def _pairs(view: dict[str, Any]) -> list[str]:
    lines = [flat(view["pairs_words"]), ""]
    rows = view["pairs"][:PAIRS]
    if not rows:
        return ["Nothing to compare: no launch of one side matches one of the other.", ""]
    several = view["several"]
    lines += table(
        (
            "Kernel",
            *(("Against",) if several else ()),
            "Base",
            "Other",
            "Change",
            "Reading",
            "What it says",
            "Differs",
        ),
        "l" * (1 + several) + "rrrlll",
        [
            (
                code(row["name"]),
                *((escape(row["other_file"]),) if several else ()),
                *(escape(row[name]) for name in ("base", "other", "change", "word")),
                flat(row["claim"]),
                escape(row["flags"]),
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
    cells = [[escape(row[name]) for name in names] for row in rows]
    return [flat(view["totals"]["sentence"]), "", *table(head, "lrrrll"[: len(head)], cells), ""]


def _unmatched(unmatched: dict[str, Any]) -> list[str]:
    lines = []
    for row in unmatched["rows"][:PAIRS]:
        where = f"{code(row['name'])} in {escape(row['file'])}, {row['noun']} {escape(row['launches'])}"
        lines.append(f"- {where}: {flat(row['reason'])}")
    return fold(unmatched["sentence"], lines)
