"""Source lines of two versions, matched by their text, with the share of the stall samples at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePath

from ncukit.compare.side import SAMPLES
from ncukit.model import Kernel
from ncukit.model.comparison import LinePair

MOVED = 3.0
"""[points] A line whose share of the samples moved by this is told, even if its text is the same."""
VISIBLE = 1.0
"""[%] of the samples from which a line that is only on one side is told."""
MOST = 12


@dataclass(frozen=True)
class _Line:
    file: str
    number: int
    text: str | None
    share: float


def changed_lines(base: Kernel, other: Kernel) -> tuple[LinePair, ...]:
    """Return the lines that are new, gone, or whose share of the samples moved; the largest share first.

    Empty where a report has no line information or no samples; see `why_none`.
    """
    left, right = _lines(base), _lines(other)
    if not left or not right:
        return ()
    found = [
        LinePair(text, a, b, before, after)
        for text, a, b, before, after in _aligned(left, right)
        if _told(a, b, before, after)
    ]
    found.sort(key=lambda line: -max(line.base_share or 0.0, line.other_share or 0.0))
    return tuple(found[:MOST])


def why_none(base: Kernel, other: Kernel) -> str:
    """Return why lines cannot be compared, or "" where they can."""
    for side, kernel in (("base", base), ("other", other)):
        if not kernel.raw.instances.get(SAMPLES):
            return f"the {side} holds no stall samples at instructions"
        if not kernel.raw.lines:
            return f"the {side} holds no line information (build with -lineinfo)"
    return ""


def _told(a: int | None, b: int | None, before: float | None, after: float | None) -> bool:
    if a is None or b is None:
        return max(before or 0.0, after or 0.0) >= VISIBLE
    return abs((after or 0.0) - (before or 0.0)) >= MOVED


def _lines(kernel: Kernel) -> list[_Line]:
    """Return the lines that have instructions, in order, with their share of the samples [%]."""
    samples = {pc: float(n) for pc, n in kernel.raw.instances.get(SAMPLES, ()) if not isinstance(n, str)}
    total = sum(samples.values())
    if not total or not kernel.raw.lines:
        return []
    shares: dict[tuple[str, int], float] = {}
    for pc, place in kernel.raw.lines.items():
        shares[place] = shares.get(place, 0.0) + 100 * samples.get(pc, 0.0) / total
    texts = {file: content.splitlines() for file, content in kernel.raw.source_files.items()}
    return [
        _Line(PurePath(file).name, number, _text(texts.get(file), number), share)
        for (file, number), share in sorted(shares.items())
    ]


def _text(lines: Sequence[str] | None, number: int) -> str | None:
    return lines[number - 1].strip() if lines is not None and 0 < number <= len(lines) else None


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
