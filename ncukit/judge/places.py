"""The lines and instructions that a finding points at: where most of something happened.

With line information places are lines, else single instructions.  Where the instruction that waits is the
victim of another one, the place is the other one, and the note says who waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ncukit.model import Place
from ncukit.quantity import brief

if TYPE_CHECKING:
    from ncukit.model.source import Cost, SassRow, SourceView

    Amount = Callable[[Cost], int | None]
    Fits = Callable[[SassRow], bool]

SEVERAL = 3
"""Places that a finding names at most."""

VISIBLE = 3.0
"""[%] of the amount: a place with less is not worth naming."""


def places(
    view: SourceView | None,
    amount: Amount,
    unit: str,
    fits: Fits = lambda row: True,
    *,
    count: int = SEVERAL,
    total: float | None = None,
) -> tuple[Place, ...]:
    """Return where most of ``amount`` [``unit``] happened among the rows that fit, most first.

    Shares are of the rows that fit, or of ``total``.
    """
    if view is None:
        return ()
    chosen = {i: n for i, row in enumerate(view.rows) if fits(row) and (n := amount(row.cost) or 0)}
    everything = sum(chosen.values()) if total is None else total
    if not everything:
        return ()
    by_place: dict[tuple[int, int] | int, list[int]] = defaultdict(list)
    for i in chosen:
        by_place[view.rows[i].line or i].append(i)
    ranked = sorted(by_place.values(), key=lambda rows: -sum(chosen[i] for i in rows))
    return tuple(
        _place(view, rows, n, unit, share)
        for rows in ranked[:count]
        if (share := 100 * (n := sum(chosen[i] for i in rows)) / everything) >= VISIBLE
    )


def waits(view: SourceView, states: Iterable[str] = (), *, count: int = SEVERAL) -> tuple[Place, ...]:
    """Return who makes warps wait, by samples in ``states`` (raw names; none: all), most first.

    The samples of a row whose producer is known are its producer's.
    """
    chosen = frozenset(states)
    samples: dict[int, int] = defaultdict(int)
    victims: dict[int, list[int]] = defaultdict(list)
    for i, row in enumerate(view.rows):
        n = sum(v for s, v in row.cost.states.items() if not chosen or s in chosen)
        if n:
            cause = i if row.producer is None else row.producer
            samples[cause] += n
            if cause != i:
                victims[cause].append(i)
    total = view.amount(view.total)
    by_place: dict[tuple[int, int] | int, list[int]] = defaultdict(list)
    for i in samples:
        by_place[view.rows[i].line or i].append(i)
    ranked = sorted(by_place.values(), key=lambda rows: -sum(samples[i] for i in rows))
    found = []
    for rows in ranked[:count]:
        n = sum(samples[i] for i in rows)
        share = 100 * n / total if total else 0.0
        if share >= VISIBLE:
            hottest = max(rows, key=lambda i: samples[i])
            note = _victim(view, hottest, victims[hottest])
            found.append(_place(view, [hottest, *rows], n, "sample", share, note))
    return tuple(found)


def _victim(view: SourceView, cause: int, rows: list[int]) -> str:
    """Return in words who waits for ``cause``; empty where it is itself what was sampled."""
    if not rows:
        return ""
    row = view.rows[max(rows, key=lambda i: view.amount(view.rows[i].cost))]
    where = view.place(row)
    at = f"{where} ({row.opcode})" if where and where != view.place(view.rows[cause]) else row.opcode
    return f"the samples stand at {at}, which waits for this {view.rows[cause].opcode}"


def _place(
    view: SourceView, rows: list[int], amount: float, unit: str, share: float, note: str = ""
) -> Place:
    row = view.rows[rows[0]]
    text = None
    if row.line is not None:
        number = row.line[1]
        text = next((line.text for line in view.files[row.line[0]].lines if line.number == number), None)
    return Place(view.place(row), row.offset, (text or row.text).strip(), amount, unit, share, note)


def first_place(found: tuple[Place, ...]) -> str:
    """Return the first place in a sentence: where, how much, and who waits.

    >>> first_place((Place("a.cu:7", 16, "x = y[i];", 90, "sample", 45.0),))
    'a.cu:7 has 45.0\\u202f% of them'
    """
    first = found[0]
    where = first.source or f"{first.text} at +0x{first.offset:x}"
    note = f"; {first.note}" if first.note else ""
    return f"{where} has {brief(first.share, '%')} of them{note}"
