"""Pieces of the view as GitHub Markdown: a table, a line of words and numbers, a name, plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ncukit.media import visible
from ncukit.render.line import Line
from ncukit.render.text.parts import number

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$])")
"""What would be markup in a table cell; the rest of the punctuation has no meaning there."""


def table(head: Sequence[str], align: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; ``align`` holds "l" or "r" for each column.

    >>> table(["a", "n"], "lr", [["x", "1"]])
    ['| a | n |', '| :-- | --: |', '| x | 1 |']
    """
    rule = {"l": ":--", "r": "--:"}
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(rule[a] for a in align)} |"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def flat(line: Line) -> str:
    """Return a line of the view as Markdown: code stays code, the rest cannot become markup."""
    return "".join(
        code(part["code"])
        if "code" in part
        else escape(number(part["cell"]))
        if "cell" in part
        else escape(str(next(iter(part.values()))))
        for part in line
    )


def code(text: str) -> str:
    """Return ``text`` as code that no backtick in it can end."""
    return f"`{visible(text).replace('`', ' ').replace('|', '¦')}`" if text else ""


def escape(text: str) -> str:
    """Return text that GitHub shows as it is, on one line.

    >>> escape("a|b <c>")
    'a\\\\|b \\\\<c\\\\>'
    """
    plain = visible(text.replace("\r\n", " ").replace("\n", " "))
    return _SPECIAL.sub(r"\\\1", plain).replace("@", "&#64;")
