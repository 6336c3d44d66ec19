"""Words that sentences share: lists, capital letters, how much faster."""

from __future__ import annotations

from ncukit.quantity import MUCH, factor


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


def faster(bound: float | None) -> str:
    """Return in words how much faster something can be at most; None: no bound.

    >>> faster(1.2), faster(73.284), faster(1.0013), faster(1.00001), faster(None)
    ('at most 1.20 times as fast', 'at most 73.3 times as fast', 'at most 0.1 % faster', \
'not measurably faster', 'faster without bound')
    """
    if bound is None:
        return "faster without bound"
    if bound < MUCH:
        gain = 100 * (bound - 1)
        return f"at most {gain:.1f} % faster" if gain >= 0.05 else "not measurably faster"
    return f"at most {factor(bound)} times as fast"
