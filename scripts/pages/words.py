"""Text as Markdown shows it."""

from __future__ import annotations


def plain(text: str) -> str:
    """Return ``text`` with what Markdown would read as markup escaped, outside of `code`.

    >>> plain("op_* and <name>, `a*b`")
    'op_\\\\* and \\\\<name>, `a*b`'
    """
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = parts[i].replace("*", r"\*").replace("<", r"\<").replace("|", r"\|")
    return "`".join(parts)
