"""What a dataset answers: to a query as text, CSV or JSON; to a build as JSON."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import Any, TextIO

from ncukit.dataset.build import Built
from ncukit.media import dumps, line
from ncukit.render import spreadsheet

NOTHING = "–"
WIDEST = 60
"""Characters of a line of a cell in the text table; what is longer goes on below."""

Rows = Sequence[Sequence[Any]]


def answer_text(columns: Sequence[str], rows: Rows, *, encoding: str = "utf-8") -> str:
    """Return a table with aligned columns; numbers stand right, null is a dash.

    >>> print(answer_text(["gpu", "n"], [["A40", 2], [None, 10]], encoding="ascii"))
    gpu   n
    A40   2
    -    10
    """
    plain = encoding.lower().replace("-", "") != "utf8"
    cells = [[_cell(value, plain) for value in row] for row in rows]
    table = [[[column] for column in columns], *cells]
    widths = [max(len(line) for row in table for line in row[i]) for i in range(len(columns))]
    right = [
        all(isinstance(row[i], int | float | None) for row in rows)
        and any(row[i] is not None for row in rows)
        for i in range(len(columns))
    ]
    lines = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for row in table
        for line in zip_longest(*row, fillvalue="")
    ]
    return "\n".join(lines)


def answer_csv(out: TextIO, columns: Sequence[str], rows: Rows) -> None:
    """Write the table as CSV; null is an empty cell."""
    sheet = spreadsheet.Rows(out)
    sheet.write(columns)
    sheet.write_all(rows)


def answer_json(columns: Sequence[str], rows: Rows) -> str:
    """Return the table as one JSON array of objects.

    >>> answer_json(["gpu", "n"], [["A40", 2]])
    '[{"gpu": "A40", "n": 2}]'
    """
    objects = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
    return dumps(objects, default=str)


def built_json(built: Built) -> str:
    """Return what a build did as JSON (schema ``ncukit.built/1``)."""
    data = {"schema": "ncukit.built/1", **asdict(built)}
    return dumps(data)


def _cell(value: Any, plain: bool) -> list[str]:
    """Return the lines of a cell."""
    if value is None:
        return ["-" if plain else NOTHING]
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    text = line(text.replace("\n", " "))
    text = text.encode("ascii", "replace").decode() if plain else text
    return textwrap.wrap(text, WIDEST, break_on_hyphens=False) or [""]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
