"""Kernel against kernel, version against version, GPU against GPU; and gates on what changed.

In reading order: `baseline` reads what is compared, `pairs` puts repeats together and pairs, `comparable`
says what may be compared, `rows` puts the metrics side by side, `facts` says what goes with the change in
time, `summary` says it in words, `options` and `gates` decide.  Not here: drawing, printing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncukit.comparison.comparable import Sides
from ncukit.comparison.facts import explain, facts
from ncukit.comparison.pairs import Match, Steering, match
from ncukit.comparison.rows import clean_row, other_kind, per, read, rows, totals
from ncukit.comparison.summary import changed_lines, predictions, summarise
from ncukit.model.comparison import Against, Comparison, Pair, Row, Side

__all__ = ["compare"]


def compare(
    base: Side,
    others: Sequence[Side],
    *,
    steering: Steering | None = None,
    elements: tuple[float | None, ...] = (),
) -> Comparison:
    """Return ``base`` against each of ``others``.

    ``elements`` holds the number of output elements of the base and of each other side; a single number holds
    for all.

    Raises:
        UsageError: ``steering`` names what is not there.
    """
    counts = elements if len(elements) != 1 else elements * (1 + len(others))
    counts = (*counts, *(None,) * (1 + len(others) - len(counts)))
    steerings = (steering or Steering()).within([other.samples for other in others])
    return Comparison(
        base,
        tuple(
            _against(base, other, steers, (counts[0], count))
            for other, steers, count in zip(others, steerings, counts[1:], strict=False)
        ),
    )


def _against(
    base: Side, other: Side, steering: Steering | None, elements: tuple[float | None, float | None]
) -> Against:
    found, only_base, only_other = match(base.samples, other.samples, steering)
    crossed = [one for one in found if one.asked and one.base.launches != one.other.launches]
    if crossed and base.same_report(other):  # the rest would be compared with itself
        found, only_base, only_other = crossed, [], []
    clean = clean_row(base, other)
    whole = clean if len(found) == 1 else None  # a clean time of several kernels says nothing of one
    pairs = [_pair(m, base, other, whole, elements) for m in found]
    pairs.sort(key=lambda pair: -_cost(pair))
    return Against(other, tuple(pairs), tuple(only_base), tuple(only_other), clean, totals(pairs))


def _pair(
    found: Match, base: Side, other: Side, clean: Row | None, elements: tuple[float | None, float | None]
) -> Pair:
    sides = Sides(found.base.kernel, found.other.kernel)
    unread = rows(found.base, found.other, sides)
    kind = other_kind(unread, sides)
    table = read(unread, kind, sides.elsewhere)
    accounts = {} if kind else explain(table, sides.base, sides.other)
    for id, (share, words) in accounts.items():
        table[id] = replace(table[id], explains=share, account=words)
    known = facts(found, sides, table, base, other)
    lines = changed_lines(sides.base, sides.other)
    return Pair(
        found.base,
        found.other,
        found.by,
        tuple(table.values()),
        per(sides.base, sides.other, elements),
        known,
        summarise(found, sides, table, known, clean),
        predictions(found.base.diagnosis.verdict.experiment, table, sides, clean),
        sides.same_gpu,
        lines.pairs,
        lines.why,
    )


def _cost(pair: Pair) -> float:
    """Return how much the duration of a pair changed [s], for their order; an unknown one counts as none."""
    base, other = pair.base.duration, pair.other.duration
    return abs(other - base) if base is not None and other is not None else 0.0
