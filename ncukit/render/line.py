"""A line of the page: plain words, code, links and numbers in the order they are read.

A line is a list of parts, each a dict with one kind as its first key; one template macro prints them all.
"""

from __future__ import annotations

from typing import Any

from ncukit.render.words import prose

Part = dict[str, Any]
Line = list[Part]


def line(*items: str | Part) -> Line:
    """Return a line of ``items``: a string is prose (backticks mark code), a cell is a number.

    >>> line("uses `bar.sync` ", bold("twice"))
    [{'text': 'uses '}, {'code': 'bar.sync'}, {'text': ' '}, {'bold': 'twice'}]
    """
    parts: Line = []
    for item in items:
        if isinstance(item, str):
            parts += prose(item) if item else []
        else:
            parts.append({"cell": item} if "tip" in item else item)
    return parts


def bold(text: str) -> Part:
    """Return words that stand out."""
    return {"bold": text}


def code(text: str) -> Part:
    """Return a name as the report spells it."""
    return {"code": text}


def small(text: str) -> Part:
    """Return words of less weight."""
    return {"small": text}


def link(text: str, target: str) -> Part:
    """Return a link to the part of the page with id ``target``."""
    return {"link": text, "to": target}
