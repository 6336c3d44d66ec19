"""CSV that a spreadsheet may open: a text from a report is never a formula."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from ncukit.media import line

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet computes (OWASP, CSV injection)."""


class Rows:
    """Writes rows as CSV; ``delimiter`` parts the cells."""

    def __init__(self, out: TextIO, delimiter: str = ",") -> None:
        self._writer = csv.writer(out, lineterminator="\n", delimiter=delimiter)

    def write(self, cells: Iterable[Any]) -> None:
        """Write one row; a number is a number, None an empty cell."""
        self._writer.writerow([inert(cell) for cell in cells])

    def write_all(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write every row."""
        for row in rows:
            self.write(row)


def inert(cell: Any) -> Any:
    """Return ``cell``; a text that a spreadsheet would compute, or that has a NUL, is quoted.

    >>> inert("=cmd|' /C calc'!A0"), inert("void f()"), inert(-1.5)
    ("'=cmd|' /C calc'!A0", 'void f()', -1.5)
    """
    if not isinstance(cell, str):
        return cell
    plain = line(cell.replace("\x00", "\ufffd"))
    return f"'{plain}" if cell.startswith(_FORMULA) else plain
