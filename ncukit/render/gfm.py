"""Pieces of the view as GitHub Markdown: a table, a fold, a fence, a line, a name, plain text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from ncukit import media
from ncukit.render.line import Line, Part
from ncukit.render.text.parts import number

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$])")
"""What would be markup inside a line."""
_BEGINS = re.compile(r"^ ?(?:\d{1,9}(?=[.)](?:\s|$))|(?=(?:[-+]|#{1,6})(?:\s|$)|-{2,}|=+\s*$))")
"""Before what a line would become a heading, an item of a list or a rule."""
_MARGIN = re.compile(r"^\s{2,}")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LINK = re.compile(r"(?i)(@|#(?=\d)|\bGH-(?=\d)|\bwww(?=\.)|:(?=//)|\b(?:mailto|xmpp):)")
"""Behind what GitHub would make a link of what follows: a mention, an issue, an address."""
_UNLINKED = "&#8203;"
_BARS = re.compile(r"(\\*)\|")
_TICKS = re.compile("`+")


def table(head: Sequence[str], align: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; ``align`` holds "l" or "r" for each column.

    >>> table(["a", "n"], "lr", [["x", "1"]])
    ['| a | n |', '| :-- | --: |', '| x | 1 |']
    """
    rule = {"l": ":--", "r": "--:"}
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(rule[a] for a in align)} |"]
    return lines + [f"| {' | '.join(map(_cell, row))} |" for row in rows]


def fold(title: str | Line, lines: Sequence[str]) -> list[str]:
    """Return ``lines`` folded behind ``title``; GitHub wants empty lines around what is inside.

    The title stands in HTML, where no Markdown is read.
    """
    text = title if isinstance(title, str) else "".join(map(_said, title))
    said = html.escape(media.line(text), quote=False)
    end = [""] if lines[-1:] != [""] else []
    return [f"<details><summary>{said}</summary>", "", *lines, *end, "</details>", ""]


def fence(lines: Iterable[str], language: str = "") -> list[str]:
    """Return ``lines`` as a block of code that none of them can end."""
    shown = [media.line(text) for text in lines]
    longest = max((len(run) for text in shown for run in _TICKS.findall(text)), default=0)
    mark = "`" * max(3, longest + 1)
    return [mark + language, *shown, mark, ""]


def flat(line: Line) -> str:
    """Return a line of the view as Markdown: code stays code, the rest cannot become markup."""
    return "".join(code(_said(part)) if "code" in part else escape(_said(part)) for part in line)


def code(text: str) -> str:
    """Return ``text`` as code that no backtick in it can end.

    >>> code("void f()"), code("a`b")
    ('`void f()`', '``a`b``')
    """
    if not text:
        return ""
    shown = media.line(text)
    mark = "`" * (max((len(run) for run in _TICKS.findall(shown)), default=0) + 1)
    around = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{mark}{around}{shown}{around}{mark}"


def escape(text: str) -> str:
    """Return text that GitHub shows as it is, on one line, without a link.

    >>> escape("a|b <c>"), escape("# a"), escape("see #1")
    ('a\\\\|b \\\\<c\\\\>', '\\\\# a', 'see #&#8203;1')
    """
    plain = _MARGIN.sub(" ", media.line(text.replace("\r\n", " ").replace("\n", " ")))
    plain = _ENTITY.sub("&amp;", _SPECIAL.sub(r"\\\1", plain))
    return _LINK.sub(lambda found: found[0] + _UNLINKED, _BEGINS.sub(lambda found: f"{found[0]}\\", plain))


def _said(part: Part) -> str:
    return number(part["cell"]) if "cell" in part else str(next(iter(part.values())))


def _cell(text: str) -> str:
    """Return a cell in which no bar, be it in code, begins the next one."""
    return _BARS.sub(lambda bar: bar[0] if len(bar[1]) % 2 else f"{bar[1]}\\|", text)
