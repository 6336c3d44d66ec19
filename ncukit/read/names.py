"""Names as they can be shown."""

from __future__ import annotations


def visible(name: str) -> str:
    """Return ``name`` with what cannot be seen escaped: a name of controls alone is shown whole.

    >>> visible("copy"), visible(chr(1) + chr(10)), visible(" ")
    ('copy', '\\\\x01\\\\n', ' ')
    """
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
