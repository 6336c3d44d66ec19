"""Words that sentences share: lists, capital letters."""

from __future__ import annotations


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
