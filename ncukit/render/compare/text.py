"""A comparison in the terminal: the same order and words as the page, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len

from ncukit.model.comparison import Comparison, Pair
from ncukit.render.compare.page import gates_view, page_view, pair_names, pair_words
from ncukit.render.text.parts import flat, number
from ncukit.render.text.terminal import Terminal, columns, pad

ROWS = 12
"""Rows of a table unless everything is asked for."""
PAIRS = 20
NAME, SHORT_NAME = 30, 16
"""Columns of the name of a metric: at most, and where the rest needs the room."""
DETAILED = 3
"""Pairs that follow the table in short."""


def comparison_text(
    comparison: Comparison, *, color: bool, encoding: str, width: int = 80, verbose: bool = False
) -> str:
    """Return what a terminal of ``width`` columns shows of a comparison.

    One pair is shown in full, several as a table with those whose duration changed most in short; ``verbose``
    shows all rows.
    """
    t = Terminal(width, encoding, color)
    view = t.tree(page_view(comparison, generated=""))
    blocks: list[list[str]] = [_head(t, comparison, view)]
    if view["single"]:
        blocks += _pair(t, view["blocks"][0], verbose=verbose)
    else:
        blocks += [_pairs(t, comparison, verbose=verbose), _totals(t, view)]
        for found in view["blocks"][: len(view["blocks"]) if verbose else DETAILED]:
            blocks.append([f"{found['n']}  {found['title']}"])
            blocks += _pair(t, found, verbose=verbose, short=not verbose)
    blocks += [_unmatched(t, view, verbose=verbose), gate_lines(t, comparison)]
    return t.page(
        line for n, lines in enumerate(b for b in blocks if b) for line in (["", *lines] if n else lines)
    )


def gate_lines(t: Terminal, comparison: Comparison) -> list[str]:
    """Return the gates, those that failed first."""
    if not comparison.gates:
        return []
    found = t.tree(gates_view(comparison))
    lines = [f"GATES  {flat(found['sentence'])}"]
    for row in found["rows"]:
        where = f"{row['kernel']}: " if row["kernel"] else ""
        first = f"  {pad(row['said'], 16)}  "
        text = f"{row['gate']}  {where}{flat(row['text'])}"
        lines += t.wrap(text, first=first, indent=" " * 20)
    return lines


def _head(t: Terminal, comparison: Comparison, view: dict[str, Any]) -> list[str]:
    lines = [t.cut_middle(view["heading"], t.width)]
    sides = [("base", comparison.base), *(("other", against.other) for against in comparison.others)]
    for name, side in sides:
        gpus = ", ".join(dict.fromkeys(s.kernel.gpu or "unknown GPU" for s in side.samples))
        lines.append(t.cut(f"  {pad(name, 5)}  {t.text(side.label)}  {t.text(gpus)}", t.width))
    for warning in view["warnings"]:
        lines += t.wrap(warning, first="! ", indent="  ")
    if view["synthetic"]:
        lines += t.wrap(flat(view["synthetic"]), first="! ", indent="  ")
    return lines


def _pair(t: Terminal, found: dict[str, Any], *, verbose: bool, short: bool = False) -> list[list[str]]:
    blocks = [_comparable(t, found, verbose=verbose), _verdict(t, found)]
    if not short:
        blocks += [_predictions(t, found), _sides(t, found)]
    blocks.append(_changes(t, found["changes"], verbose=verbose, rows=5 if short else ROWS))
    if not short:
        blocks += [
            _per(t, found["changes"]) if verbose or found["changes"]["per_told"] else [],
            _points(t, found["roofline"]),
            _bars(t, "STALLS", found["stalls"], "cycles an instruction"),
            _bars(t, "OCCUPANCY", found["occupancy"], ""),
            _bars(t, "MIX", found["mix"], "of the warp instructions", most=8 if not verbose else 99),
            _lines(t, found["lines"]),
        ]
    return blocks


def _comparable(t: Terminal, found: dict[str, Any], *, verbose: bool) -> list[str]:
    """Return whether they can be compared, before any number."""
    lines = t.wrap(flat(found["comparable"]["sentence"]), first="COMPARABLE  ", indent=" " * 12)
    for fact in found["comparable"]["facts"]:
        if not verbose and fact["status"] == "ok":
            continue
        first = f"  {pad(fact['sign'], 2)} {pad(fact['name'].lower(), 21)}  "
        lines += t.wrap(f"{fact['said']}. {flat(fact['text'])}", first=first, indent=" " * len(first))
    return lines


def _verdict(t: Terminal, found: dict[str, Any]) -> list[str]:
    summary = found["summary"]
    pips = summary["confidence"]["pips"]
    sure = f"{summary['confidence']['word'].lower()} ({pips} of 3)"
    lines = t.beside(f"VERDICT  {found['cls']}", sure)
    lines += t.wrap(flat(summary["claim"]))
    lines += t.wrap(flat(summary["deck"]))
    if summary["confidence"]["text"]:
        lines += t.wrap(summary["confidence"]["text"], first="  confidence: ", indent=" " * 14)
    return lines


def _predictions(t: Terminal, found: dict[str, Any]) -> list[str]:
    if not found["predictions"]:
        return []
    lines = t.wrap(flat(found["predicted"]), first="EXPERIMENT  ", indent=" " * 12)
    for row in found["predictions"]:
        first = f"  {pad(row['said'], 8)}  "
        lines += t.wrap(flat(row["text"]), first=first, indent=" " * 12)
    return lines


def _sides(t: Terminal, found: dict[str, Any]) -> list[str]:
    lines = []
    for side in found["sides"]:
        first = f"{pad(side['side'].upper(), 5)}  "
        lines += t.wrap(f"{side['cls']}. {flat(side['claim'])}", first=first, indent=" " * 7)
    return lines


def _changes(t: Terminal, found: dict[str, Any], *, verbose: bool, rows: int) -> list[str]:
    everything = [*found["rows"], *found["more"]]
    shown = everything if verbose else everything[:rows]
    cells = [
        [
            number(row["base"]),
            number(row["other"]),
            row["change"],
            row["explains"],
            _word(row, classes=found["classes"]),
        ]
        for row in shown
    ]
    head = ["base", "other", "change", "explains" if found["explained"] else "", ""]
    room = _room(t, [head, *cells])
    names = [f"  {t.cut(row['label'] or row['id'], room)}" for row in shown]
    table = [["CHANGED", *head], *([name, *line] for name, line in zip(names, cells, strict=True))]
    lines = [t.cut(line, t.width) for line in columns(table, "<>>>><", indent=0)]
    if not shown:
        lines = ["CHANGED  nothing beyond the noise"]
    left = len(everything) - len(shown)
    counts = [
        f"{left} more (--verbose)" if left else "",
        f"{len(found['same'])} without a change" if found["same"] else "",
        f"{len(found['no'])} not comparable" if found["no"] else "",
        f"{sum(len(u['ids']) for u in found['unknown'])} unknown" if found["unknown"] else "",
    ]
    lines += t.wrap(", ".join(text for text in counts if text), first="  ", indent="  ")
    for row in found["no"] if verbose else []:
        lines += t.wrap(f"{row['id']}: {flat(row['why'])}", first="  x ", indent="    ")
    for group in found["unknown"] if verbose else []:
        text = f"lacking in {group['side']}, {group['reason']}: {', '.join(group['ids'])}"
        lines += t.wrap(text, first="  - ", indent="    ")
    return lines


def _per(t: Terminal, found: dict[str, Any]) -> list[str]:
    """Return the quantities per unit of work."""
    rows = [[f"  {row['label']}", row["base"], row["other"], row["change"]] for row in found["per"]]
    if not rows:
        return []
    table = [["PER UNIT OF WORK", "base", "other", "change"], *rows]
    return [t.cut(line, t.width) for line in columns(table, "<>>>", indent=0)]


def _room(t: Terminal, rows: Sequence[Sequence[str]]) -> int:
    """Return the columns that the other cells leave to the names of the metrics."""
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]))]
    taken = sum(width + 2 for width in widths if width)
    return max(SHORT_NAME, min(NAME, t.width - 2 - taken))


def _word(row: dict[str, Any], *, classes: bool) -> str:
    said: str = row["said"]
    return f"{said} ({row['class']})".strip() if classes and not row["same_meaning"] else said


def _points(t: Terminal, found: dict[str, Any]) -> list[str]:
    if not found["rows"]:
        return []
    rows = [
        [
            row["side"],
            row["name"],
            row["intensity"],
            row["rate"],
            number(row["share"]) if row["share"] else "no roof",
        ]
        for row in found["rows"]
    ]
    lines = t.wrap(flat(found["sentence"]), first="ROOFLINE  ", indent=" " * 10)
    return lines + columns([["", "", "per byte", "rate", "of its roof"], *rows], "<<>>>")


def _bars(t: Terminal, name: str, found: dict[str, Any], what: str, most: int = 6) -> list[str]:
    rows = found["rows"][:most]
    if not rows:
        return []
    words = what or flat(found["sentence"])
    table = [
        [
            row["label"],
            number(row["base"]),
            number(row["other"]),
            "not comparable" if row["why"] else row["change"],
            t.bar(row["bars"][0], 12),
            t.bar(row["bars"][1], 12),
        ]
        for row in rows
    ]
    lines = t.wrap(words, first=f"{name}  ", indent=" " * (len(name) + 2))
    return lines + [
        t.cut(line, t.width) for line in columns([["", "base", "other", "change", "", ""], *table], "<>>><<")
    ]


def _lines(t: Terminal, found: dict[str, Any]) -> list[str]:
    lines = t.wrap(flat(found["sentence"]), first="SOURCE  ", indent=" " * 8)
    rows = [
        [row["base_line"], row["base"], row["other_line"], row["other"], row["change"], row["text"]]
        for row in found["rows"]
    ]
    return lines + [t.cut(line, t.width) for line in columns(rows, ">>>><<")]


def _pairs(t: Terminal, comparison: Comparison, *, verbose: bool) -> list[str]:
    pairs = [(a, p) for a in comparison.others for p in a.pairs]
    pairs.sort(key=lambda item: -_cost(item[1]))
    shown = pairs if verbose else pairs[:PAIRS]
    if not shown:
        return t.wrap(
            "Nothing to compare: launches pair by name and by grid, NVTX range or order. --match BASE=OTHER "
            "pairs kernels whose names differ."
        )
    several = len(comparison.others) > 1
    rows = [["", "KERNEL", "base", "other", "change", "", ""]]
    names = pair_names(comparison, [pair for _, pair in shown])
    for n, ((against, pair), name) in enumerate(zip(shown, names, strict=True), 1):
        base, other, change, word = (t.text(text) for text in pair_words(pair))
        rows.append(
            [
                str(n),
                t.cut_middle(t.text(name), NAME),
                base,
                other,
                change,
                word,
                t.cut(t.text(against.other.label), 24) if several else "",
            ]
        )
    lines = [t.cut(line, t.width) for line in columns(rows, "><>>><<", indent=0)]
    if len(pairs) > len(shown):
        lines.append(f"  and {len(pairs) - len(shown):,} more (--verbose)")
    return lines


def _totals(t: Terminal, view: dict[str, Any]) -> list[str]:
    rows = view["totals"]["rows"]
    if not rows:
        return []
    names = ["label", "base", "other", "change", "pairs"] + (["other_file"] if view["several"] else [])
    table = [[t.cut(row[name], NAME) for name in names] for row in rows]
    head = ["", "base", "other", "change", "counted"] + ([""] if view["several"] else [])
    lines = t.wrap(flat(view["totals"]["sentence"]), first="TOGETHER  ", indent=" " * 10)
    return lines + [t.cut(line, t.width) for line in columns([head, *table], "<>>><<"[: len(head)])]


def _cost(pair: Pair) -> float:
    base, other = pair.base.duration, pair.other.duration
    return abs(other - base) if base is not None and other is not None else 0.0


def _unmatched(t: Terminal, view: dict[str, Any], *, verbose: bool) -> list[str]:
    rows: Sequence[dict[str, Any]] = view["unmatched"]["rows"]
    if not rows:
        return []
    lines = t.wrap(flat(view["unmatched"]["sentence"]), first="NOT MATCHED  ", indent=" " * 13)
    for row in rows if verbose else rows[:6]:
        text = f"{row['name']} in {row['file']} ({row['noun']} {row['launches']}): {flat(row['reason'])}"
        lines += t.wrap(text, first="  - ", indent="    ")
    if not verbose and len(rows) > 6:
        lines.append(f"    and {len(rows) - 6} more (--verbose)")
    return lines
