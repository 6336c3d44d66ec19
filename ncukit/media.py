"""Text that leaves: what a name may not bring to a terminal, a cell, a page, JSON or a shell.

Each medium has one function, and every name and value goes through it:

- a terminal and a log of CI: `line` (`visible`, and no workflow command);
- CSV: `ncukit.render.spreadsheet.inert`, which adds to `line` what a spreadsheet computes;
- Markdown: `ncukit.render.gfm.code`, ``escape`` and ``fence``, which stand on `line`;
- a page and XML: `clean`, beside the escapes of the template;
- JSON: `dumps`;
- a shell: `word` for a path, `argument` for another word, `command` for what ncukit itself runs.

A suggested command is pasted from where it was shown.  A path with a control, a mark that reorders or a blank
other than a space cannot be shown and be pasted: such a path stands in a suggestion as a word in capitals,
and the reader writes it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import unicodedata
from collections.abc import Iterable
from typing import Any

# ---- Words that sentences share: lists, capital letters


def listed(items: list[str]) -> str:
    """Return ``items`` as a list in a sentence.

    >>> listed(["registers", "shared memory"])
    'registers and shared memory'
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def counted(number: float, one: str, more: str = "") -> str:
    """Return ``number`` of the things of which ``one`` is the name, or ``more`` where an s is not enough.

    >>> counted(1, "block"), counted(6000, "block"), counted(0, "entry", "entries")
    ('1 block', '6,000 blocks', '0 entries')
    """
    return f"{number:,.0f} {one if round(number) == 1 else more or one + 's'}"


def sentence(text: str) -> str:
    """Return ``text`` with a capital first letter.

    >>> sentence("shared memory is full")
    'Shared memory is full'
    """
    return text[:1].upper() + text[1:]


_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that steer, reorder, hide or break what stands around them."""
_ORDER = re.compile(r"^\s*:(?=:)|#(?=#\w*\[)")
"""Where a log of CI finds a command: GitHub's ``::x`` at the start of a line, its older ``##[x]`` anywhere,
and with that ``##vso[x]`` and ``##teamcity[x]`` of others."""
_IN_JSON = re.compile(
    "[\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_ORDER_IN_JSON = re.compile(r"#(?=#\w*\[)")
_ON_PAGES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"  # controls, lone surrogates, no characters at all
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]"  # marks that reorder or break text
)
_NUMBERS = frozenset((int, float, bool, type(None)))


class _Visible(dict[int, str]):
    def __missing__(self, point: int) -> str:
        c = chr(point)
        self[point] = shown = spelled(c) if unicodedata.category(c) in _HARMFUL else c
        return shown


_VISIBLE = _Visible()


def spelled(c: str) -> str:
    """Return ``c`` as Python writes it in a string.

    >>> spelled(chr(27)), spelled(chr(0x202E)), spelled(chr(10))
    ('\\\\x1b', '\\\\u202e', '\\\\n')
    """
    return c.encode("unicode_escape").decode("ascii")


def visible(text: str) -> str:
    """Return ``text`` on one line, with every control and every mark that hides or reorders escaped.

    >>> visible("copy"), visible(chr(1) + chr(10)), visible(" ")
    ('copy', '\\\\x01\\\\n', ' ')
    """
    return text if text.isascii() and text.isprintable() else text.translate(_VISIBLE)


def line(text: str) -> str:
    """Return ``text`` as one line of a terminal or of a log of CI: it steers neither.

    >>> line("a" + chr(10) + "b"), line("::error::x"), line("a::b ##[group]x")
    ('a\\\\nb', '\\\\x3a:error::x', 'a::b \\\\x23#[group]x')
    """
    return defused(visible(text))


def defused(text: str) -> str:
    """Return one line, whose controls are wanted, without a command for CI."""
    if "::" not in text and "##" not in text:
        return text
    return _ORDER.sub(lambda found: f"{found[0][:-1]}\\x{ord(found[0][-1]):02x}", text)


def clean(text: str) -> str:
    """Return ``text`` for a page or XML: controls, reordering marks and lone surrogates become U+FFFD.

    >>> clean("a" + chr(0x202E) + chr(0) + "b<c>")
    'a��b<c>'
    """
    return text if text.isascii() and text.isprintable() else _ON_PAGES.sub("\ufffd", text)


def cleaned(tree: Any) -> Any:
    """Return ``tree`` (dicts, lists, strings, numbers) with every string cleaned, keys as well."""
    if isinstance(tree, str):
        return clean(tree)
    if isinstance(tree, dict):
        return {clean(key): cleaned(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):  # most are long columns of numbers
        return [item if type(item) in _NUMBERS else cleaned(item) for item in tree]
    return tree


def dumps(data: Any, **options: Any) -> str:
    """Return ``data`` as JSON that a terminal can show: letters stay readable, what steers is escaped.

    NaN and infinity are no JSON.

    Raises:
        ValueError: ``data`` holds one of them.
    """
    text: str = json.dumps(data, ensure_ascii=False, allow_nan=False, **options)
    if not (text.isascii() and "\x7f" not in text):
        for c in set(_IN_JSON.findall(text)):
            text = text.replace(c, json.dumps(c)[1:-1])
    return _ORDER_IN_JSON.sub(r"\\u0023", text) if "##" in text else text


def word(path: str | os.PathLike[str], unknown: str = "FILE") -> str:
    """Return ``path`` as one word of a shell's command, never an option; ``unknown`` where none can be shown.

    >>> word("a b"), word("-rf.ncu-rep"), word("a" + chr(10)), word("a" + chr(10), "FOLDER")
    ("'a b'", './-rf.ncu-rep', 'FILE', 'FOLDER')
    """
    text = os.fspath(path)
    return argument(f"./{text}" if text.startswith("-") else text, unknown)


def argument(text: str, unknown: str = "NAME") -> str:
    """Return ``text`` as one word of a shell's command; ``unknown`` where it cannot be shown and pasted."""
    shown = text.isprintable() and defused(f"/{text}") == f"/{text}"
    return shlex.quote(text) if shown else unknown


def command(words: Iterable[str]) -> str:
    """Return a command that ncukit runs, as a shell takes it; the escapes are those of bash and zsh.

    >>> command(["python", "-c", "a" + chr(10) + "b's"])
    "python -c $'a\\\\nb\\\\'s'"
    """
    return " ".join(_exact(each) for each in words)


def _exact(text: str) -> str:
    if argument(text, "") or not text:
        return shlex.quote(text)
    try:
        raw = text.encode("utf-8", "surrogateescape")  # a name of a file that is no UTF-8
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "replace")
    return "$'" + "".join(_byte(byte) for byte in raw) + "'"


def _byte(byte: int) -> str:
    c = chr(byte)
    if c in "\\'":
        return f"\\{c}"
    if c == "\n":
        return "\\n"
    return c if " " <= c <= "~" and c != "#" else f"\\x{byte:02x}"
