"""Pieces of the view as plain text: a line of words and numbers, a number, a ledger, a command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

from ncukit.quantity import NARROW
from ncukit.render.cells import Cell
from ncukit.render.line import Line
from ncukit.render.text.terminal import Terminal, pad

_WORDS = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+""")
_LONG = 12
"""Columns from which a number is no number but words, and does not widen the column of digits."""


def flat(line: Line) -> str:
    """Return a line of the view as one string.

    >>> flat([{"text": "reaches "}, {"cell": {"text": "92 %", "state": "estimate"}}]).replace(NARROW, " ")
    'reaches ~ 92 %'
    """
    return "".join(
        number(part["cell"]) if "cell" in part else str(next(iter(part.values()))) for part in line
    )


def number(cell: Cell | None) -> str:
    """Return the text of a cell: ~ before an estimate, the reason behind a value that no rule may use."""
    if cell is None:
        return "–"
    text = str(cell["text"])
    if cell["state"] == "estimate":
        return f"~{NARROW}{text}"
    return f"{text} ! {cell['mark']}" if cell["state"] == "flagged" else text


def ledger(t: Terminal, blocks: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> list[str]:
    """Return headed lists of (number, words), the digits of all lists under each other."""
    numbers = [parted(n) for _, rows in blocks for n, _ in rows]
    left = max((cell_len(digits) for digits, _ in numbers if cell_len(digits) < _LONG), default=5)
    right = max((cell_len(unit) for _, unit in numbers), default=0)
    left = max(left + 2, 7)
    lines = []
    for heading, rows in blocks:
        lines += [heading] if rows and heading else []
        for text, words in rows:
            digits, unit = parted(text)
            shown = f"{pad(digits, left, '>')} {pad(unit, right)}" if right else pad(digits, left, ">")
            indent = " " * (left + right + (3 if right else 2))
            lines += t.wrap(words, first=pad(shown, len(indent) - 2) + "  ", indent=indent)
    return lines


def shell(t: Terminal, command: str, first: str) -> list[str]:
    r"""Return a shell command behind ``first``; a long one goes on after ``\``, never inside a quote."""
    indent = " " * (cell_len(first) + 2)
    lines, line, start = [], first, True
    for word in _WORDS.findall(t.text(command)):
        if not start and cell_len(line) + cell_len(word) + 3 > t.width:
            lines.append(line + " \\")
            line, start = indent, True
        line += word if start else f" {word}"
        start = False
    return [*lines, line]


def parted(number: str) -> tuple[str, str]:
    """Return the digits of a number and, apart from them, its unit.

    >>> parted(f"67.4{NARROW}M"), parted(f"6.27{NARROW}×{NARROW}10⁻⁵"), parted("not collected")
    (('67.4', 'M'), ('6.27\\u202f×\\u202f10⁻⁵', ''), ('not collected', ''))
    """
    digits, _, unit = number.rpartition(NARROW)
    if not digits or digits == "~" or unit[0].isdigit() or len(unit) > 8:
        return number, ""
    return digits, unit
