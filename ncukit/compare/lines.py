"""Source lines of two versions, matched by their text, with the share of the stall samples at each."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from ncukit.diagnose.source import source_view
from ncukit.model import Kernel
from ncukit.model.comparison import LinePair
from ncukit.model.source import SourceView
from ncukit.record import dataclass

MOVED = 3.0
"""[points] A line whose share of the samples moved by this is told, even if its text is the same."""
VISIBLE = 1.0
"""[%] of the samples from which a line that is only on one side is told."""
MOST = 12


@dataclass(frozen=True)
class Lines:
    """Lines that changed, the largest share first, or why there are none."""

    pairs: tuple[LinePair, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class _Line:
    file: str
    number: int
    text: str | None
    share: float


def changed_lines(base: Kernel, other: Kernel) -> Lines:
    """Return the lines that are new, gone, or whose share of the samples moved.

    The kernels must have been read with their code; a baseline holds none.
    """
    views = [source_view(kernel) for kernel in (base, other)]
    for side, view in zip(("base", "other"), views, strict=True):
        if why := _lacks(view):
            return Lines(why=f"the {side} holds {why}")
    left, right = (_lines(view) for view in views if view is not None)
    found = [LinePair(*line) for line in _aligned(left, right) if _told(*line[1:])]
    found.sort(key=lambda line: -max(line.base_share or 0.0, line.other_share or 0.0))
    return Lines(tuple(found[:MOST]))


def _lacks(view: SourceView | None) -> str:
    """Return what a view lacks for its lines to be compared, or ""."""
    if view is None or view.basis == "none":
        return "no stall samples at instructions"
    return "" if view.files else "no line information (build with -lineinfo)"


def _told(a: int | None, b: int | None, before: float | None, after: float | None) -> bool:
    if a is None or b is None:
        return max(before or 0.0, after or 0.0) >= VISIBLE
    return abs((after or 0.0) - (before or 0.0)) >= MOVED


def _lines(view: SourceView) -> list[_Line]:
    """Return the lines that have instructions, in order, with their share of the samples [%]."""
    return [
        _Line(file.name, line.number, line.text and line.text.strip(), view.share(line.cost) or 0.0)
        for file in view.files
        for line in file.lines
        if line.cost is not None and line.rows
    ]


def _aligned(
    left: Sequence[_Line], right: Sequence[_Line]
) -> list[tuple[str, int | None, int | None, float | None, float | None]]:
    keys = [[(line.file, line.text or str(line.number)) for line in lines] for lines in (left, right)]
    found: list[tuple[str, int | None, int | None, float | None, float | None]] = []
    for kind, a, b, c, d in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        if kind == "equal":
            for one, two in zip(left[a:b], right[c:d], strict=True):
                found.append((_shown(one), one.number, two.number, one.share, two.share))
            continue
        found += [(_shown(one), one.number, None, one.share, None) for one in left[a:b]]
        found += [(_shown(two), None, two.number, None, two.share) for two in right[c:d]]
    return found


def _shown(line: _Line) -> str:
    return f"{line.file}: {line.text}" if line.text is not None else line.file
