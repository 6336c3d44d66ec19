"""Text that leaves: what a name may not bring to a terminal, a cell, a page of Markdown, JSON or a shell."""

from __future__ import annotations

import json
import os
import shlex
import unicodedata
from typing import Any

from ncukit.pattern import pattern

_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that steer, reorder, hide or break what stands around them."""
_IN_JSON = pattern("[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


class _Visible(dict[int, str]):
    def __missing__(self, point: int) -> str:
        c = chr(point)
        harmful = unicodedata.category(c) in _HARMFUL
        self[point] = shown = c.encode("unicode_escape").decode("ascii") if harmful else c
        return shown


_VISIBLE = _Visible()


def visible(text: str) -> str:
    """Return ``text`` on one line, with every control and every mark that hides or reorders escaped."""
    return text if text.isascii() and text.isprintable() else text.translate(_VISIBLE)


def dumps(data: Any, **options: Any) -> str:
    """Return ``data`` as JSON that a terminal can show: letters stay readable, what steers is escaped."""
    options.setdefault("ensure_ascii", False)
    text: str = json.dumps(data, **options)
    return text if text.isascii() and "\x7f" not in text else _IN_JSON.sub(_escaped, text)


def word(path: str | os.PathLike[str]) -> str:
    """Return ``path`` as one word of a shell's command, never an option."""
    text = os.fspath(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def _escaped(match: Any) -> str:
    return f"\\u{ord(match[0]):04x}"
