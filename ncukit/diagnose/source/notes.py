"""What a source view cannot show, and what would let it."""

from __future__ import annotations

from collections import Counter

from ncukit.model import Kernel
from ncukit.model.source import SourceView

ENOUGH = 100
"""Samples below which shares are noise."""

NO_LINES = (
    "No line information: build with `nvcc -lineinfo` (Triton writes it unless TRITON_DISABLE_LINE_INFO is "
    "set), and profile again."
)
NO_SAMPLES = "No PC samples: `--section SourceCounters` collects them."
NO_TEXT = "The report holds no SASS text for these instructions."
SUMS = (
    "A line stands for all its instructions, inlined code included; a line that is not listed was folded "
    "into others by the compiler, it is not free."
)


def notes(view: SourceView, kernel: Kernel, damaged: int = 0) -> tuple[str, ...]:
    """Return sentences on what is missing in ``view`` and why; ``damaged`` counts were left out."""
    found = [*_samples(view, kernel)]
    if damaged:
        are = "1 count is" if damaged == 1 else f"{damaged} counts are"
        found.append(f"{are} negative or beyond 64 bits: damaged, and left out.")
    if not any(row.text for row in view.rows):
        found.append(NO_TEXT)
    if not view.files:
        return (*found, NO_LINES)
    return (*found, *_lines(view), *_texts(view), SUMS)


def _samples(view: SourceView, kernel: Kernel) -> list[str]:
    total = view.amount(view.total)
    if view.basis == "none":
        return [NO_SAMPLES]
    found = []
    if total < ENOUGH:
        found.append(f"Only {total} samples: shares are noise below some hundreds.")
    if view.basis == "samples":
        found.append("Samples in which the scheduler issued are not told apart: shares are of all samples.")
    if kernel.number("pc_samples_dropped_bytes"):
        found.append("The sampling buffer overflowed: some samples are lost.")
    return found


def _lines(view: SourceView) -> list[str]:
    without = sum(row.line is None for row in view.rows)
    return [f"{without} of {len(view.rows)} instructions belong to no line."] if without else []


def _texts(view: SourceView) -> list[str]:
    count = Counter(file.status for file in view.files)
    found = []
    if count["missing"]:
        gone = sorted({f.generated for f in view.files if f.status == "missing" and f.generated})
        found.append(
            f"Source not found: the text of {count['missing']} of {len(view.files)} files is neither in the "
            "report nor, at its path, below this folder; `--import-source yes` puts it into the report."
            + (
                f" {' and '.join(gone)} wrote some of them into a cache, from which they vanish."
                if gone
                else ""
            )
        )
    if count["changed"]:
        found.append(
            f"{count['changed']} files changed after the report was written: their text is not shown."
        )
    if count["builtin"]:
        found.append(f"{count['builtin']} files are library code of the compiler, named without a folder.")
    return found
