"""What a terminal can show: its characters, its width, its colour; and text that cannot take it over.

Everything that is printed passes `Terminal.text` first, so that a kernel name cannot move the cursor, and
once more `Terminal.page`, so that nothing is forgotten.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from rich.cells import cell_len

from ncukit.media import defused, spelled, visible
from ncukit.quantity import NARROW
from ncukit.record import dataclass

HOT, COLD = "\ue000", "\ue001"
"""Private marks around what belongs to the verdict; `Terminal.text` never lets them through from outside."""
_MARKS = re.compile(f"([{HOT}{COLD}])")
_RED, _RESET = "\x1b[31m", "\x1b[0m"
_BLOCKS = ("█", "▏▎▍▌▋▊▉", "·")
_ALWAYS = {"≈": "~", "◀": "<-", "\u00a0": NARROW, "\t": "    ", NARROW: NARROW}
_PLAIN = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "…": "...", "×": "x", "µ": "u", "μ": "u", "·": ".",
    "∞": "inf", "√": "sqrt ", "≥": ">=", "≤": "<=", "→": "->", "←": "<-", "≠": "!=", "ƒ": "f",
    "“": '"', "”": '"', "‘": "'", "’": "'", "✓": "ok", "✗": "x", "\u2009": " ", "▲": "^", "●": "o",
    "■": "#", "◆": "*", "²": "^2", "³": "^3",
}  # fmt: skip
"""How a character is spelled where the encoding lacks it; all others become escapes."""
_UNIT = re.compile(
    r"(?<=[\d∞]) (?=(?:%|x|[pnµumkMGTPE]?(?:B|s|Hz|FLOP|OP|inst)(?:/s)?|[KMGT]iB)(?![\w/]))"
    r"|(?<=\d x) (?=\d)|(?<=~) (?=\d)"
)
"""A plain space that belongs to a number."""
_SUPERSCRIPT = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


class _Spelling(dict[int, str]):
    """Code point -> how it is written in ``encoding``; filled as characters are met."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding

    def __missing__(self, point: int) -> str:
        self[point] = spelled = self._spell(chr(point))
        return spelled

    def _spell(self, c: str) -> str:
        if c in _ALWAYS:
            return _ALWAYS[c]
        if (shown := visible(c)) != c or self.has(c):
            return shown
        return _PLAIN.get(c) or spelled(c)

    def has(self, text: str) -> bool:
        try:
            text.encode(self.encoding)
        except UnicodeError:
            return False
        return True


@dataclass(frozen=True)
class Terminal:
    """A terminal of ``width`` columns that understands ``encoding`` and, or not, ``color``.

    >>> Terminal(encoding="ascii").text("1.4 µs " + chr(27) + "[31m")
    '1.4 us \\\\x1b[31m'
    """

    width: int = 80
    encoding: str = "utf-8"
    color: bool = False

    @cached_property
    def _spelling(self) -> _Spelling:
        try:
            return _Spelling(codecs.lookup(self.encoding).name)
        except LookupError:
            return _Spelling("ascii")

    @cached_property
    def _bar(self) -> tuple[str, str, str]:
        return _BLOCKS if self._spelling.has("".join(_BLOCKS)) else ("#", "", ".")

    @property
    def ellipsis(self) -> str:
        """What stands for the part of a name that was cut."""
        return self.text("…")

    def text(self, text: str) -> str:
        """Return ``text`` in this terminal's characters, on one line, with nothing in it that steers."""
        if text.isascii() and text.isprintable():
            return text
        if not self._spelling.has("⁻⁰"):
            text = _SUPERSCRIPT.sub(lambda m: "^" + m.group().translate(_DIGITS), text)
        return text.translate(self._spelling)

    def tree(self, tree: Any) -> Any:
        """Return ``tree`` (dicts, lists, strings, numbers) with every string made safe for this terminal."""
        if isinstance(tree, str):
            return self.text(tree)
        if isinstance(tree, dict):
            return {key: self.tree(value) for key, value in tree.items()}
        if isinstance(tree, list | tuple):
            return [self.tree(item) for item in tree]
        return tree

    def bar(self, percent: float, width: int) -> str:
        """Return a bar of ``width`` columns, full at 100 [%]; the number beside it is never clipped.

        >>> Terminal(encoding="ascii").bar(50, 8), Terminal().bar(55, 8)
        ('####....', '████▍···')
        """
        full, parts, rest = self._bar
        eighths = round(min(100.0, max(0.0, percent)) / 100 * width * 8)
        if not parts:
            whole = round(eighths / 8)
            return full * whole + rest * (width - whole)
        drawn = full * (eighths // 8) + (parts[eighths % 8 - 1] if eighths % 8 else "")
        return drawn + rest * (width - len(drawn))

    def cut(self, text: str, width: int) -> str:
        """Return ``text`` in at most ``width`` columns, its end cut."""
        if cell_len(text) <= width:
            return text
        return _head(text, width - len(self.ellipsis)).rstrip() + self.ellipsis

    def cut_middle(self, text: str, width: int) -> str:
        """Return ``text`` in at most ``width`` columns, cut in its middle: names differ at both ends."""
        if cell_len(text) <= width:
            return text
        room = width - len(self.ellipsis)
        return _head(text, room - room // 2) + self.ellipsis + _head(text[::-1], room // 2)[::-1]

    def wrap(self, text: str, *, first: str = "", indent: str = "", whole: bool = False) -> list[str]:
        """Return the lines of ``text``, the first one after ``first``, the others after ``indent``.

        Lines break at spaces only, so no number is parted from its unit; a word wider than a line is cut
        up, or left ``whole`` where somebody must be able to copy it.
        """
        lines, line, start = [], first, True
        for word in _UNIT.sub(NARROW, text).split(" "):
            if not word:
                continue
            if not start and cell_len(line) + 1 + cell_len(word) > self.width:
                lines.append(line)
                line, start = indent, True
            line += word if start else f" {word}"
            start = False
            at = 0
            while not whole and _wider(line, at, self.width - (len(indent) if at else 0)):
                head = _head(line[at : at + 4 * self.width], self.width - (len(indent) if at else 0))
                lines.append(indent + head if at else head)
                at += len(head)
            line = indent + line[at:] if at else line
        return [*lines, line]

    def beside(self, left: str, right: str) -> list[str]:
        """Return ``left`` and, at the right margin or, without room, on a line of its own, ``right``."""
        gap = self.width - cell_len(left) - cell_len(right)
        return [left + " " * gap + right] if gap >= 2 else [left, right]

    def row(self, *parts: str, gap: int = 4) -> list[str]:
        """Return ``parts`` on as few lines as hold them, ``gap`` spaces apart."""
        lines: list[str] = []
        for part in parts:
            if lines and cell_len(lines[-1]) + gap + cell_len(part) <= self.width:
                lines[-1] += " " * gap + part
            else:
                lines += self.wrap(part, indent="  ")
        return lines

    def page(self, lines: Iterable[str]) -> str:
        """Return ``lines`` as one text: plain spaces, colours if wanted, nothing that steers."""
        marks = {HOT: _RED, COLD: _RESET} if self.color else {HOT: "", COLD: ""}
        parts = (_MARKS.split(line.rstrip()) for line in lines)
        return "\n".join(
            defused("".join(marks[part] if part in marks else self.text(part) for part in line))
            for line in parts
        ).replace(NARROW, " ")


def hot(text: str) -> str:
    """Mark ``text`` as part of the verdict, after its width was settled."""
    return f"{HOT}{text}{COLD}" if text else text


def columns(rows: Sequence[Sequence[str]], align: str, *, gap: int = 2, indent: int = 2) -> list[str]:
    """Return ``rows`` as aligned lines; ``align`` holds "<" or ">" for each column.

    >>> columns([["a", "10"], ["bc", "9"]], "<>")
    ['  a   10', '  bc   9']
    """
    widths = [max((cell_len(row[i]) for row in rows), default=0) for i in range(len(align))]
    used = [i for i, width in enumerate(widths) if width]
    return [
        " " * indent + (" " * gap).join(pad(row[i], widths[i], align[i]) for i in used).rstrip()
        for row in rows
    ]


def pad(text: str, width: int, align: str = "<") -> str:
    """Return ``text`` filled with spaces to ``width`` columns."""
    space = " " * (width - cell_len(text))
    return space + text if align == ">" else text + space


def _wider(text: str, start: int, width: int) -> bool:
    """Return whether ``text`` from ``start`` on is wider than ``width``; it is not measured whole."""
    part = text[start : start + 4 * max(1, width) + 1]
    return len(part) > 4 * max(1, width) or cell_len(part) > width


def _head(text: str, width: int) -> str:
    """Return as much of ``text`` as fits into ``width`` columns; at least one character."""
    if not _wider(text, 0, width):
        return text
    text = text[: max(1, width)]
    n = len(text)
    while n > 1 and cell_len(text[:n]) > width:
        n -= 1
    return text[:n]
