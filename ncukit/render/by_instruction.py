"""What every instruction and source line cost, as data: `plain` for JSON, `packed` for a page.

Both are columns, one entry an instruction.  In a page they are packed: `runs` where neighbours are alike,
`gaps` where most are zero; ``templates/data.js`` makes the plain form of it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ncukit.render.json import COSTS

if TYPE_CHECKING:
    from ncukit.model.source import SourceView


def plain(view: SourceView) -> dict[str, Any]:
    """Return ``view`` as columns: ``rows`` hold instructions, ``files`` lines; no column is not counted."""
    rows = view.rows
    return _around(view) | {
        "rows": {
            "function": [row.function for row in rows],
            "offset": [row.offset for row in rows],
            "sass": [row.text for row in rows],
            "file": [None if row.line is None else row.line[0] for row in rows],
            "line": [None if row.line is None else row.line[1] for row in rows],
            "producer": [row.producer for row in rows],
            **_costs(view),
        },
        "stalls": {state: [row.cost.states.get(state, 0) for row in rows] for state in view.total.states},
    }


def packed(view: SourceView) -> dict[str, Any]:
    """Return the columns of `plain` in the form that a page carries."""
    rows = view.rows
    # a step is 8 or 16 bytes nearly everywhere; 0 stands for the start of a function
    steps = [row.offset - rows[i - 1].offset if row.offset else 0 for i, row in enumerate(rows)]
    return _around(view) | {
        "count": len(rows),
        "sass": [row.text for row in rows],
        "runs": {
            "function": runs(row.function for row in rows),
            "step": runs(steps),
            "file": runs(-1 if row.line is None else row.line[0] for row in rows),
            "line": runs(0 if row.line is None else row.line[1] for row in rows),
        },
        "gaps": {
            "producer": gaps([0 if row.producer is None else row.producer + 1 for row in rows]),
            **{name: gaps(column) for name, column in _costs(view).items()},
        },
        "stalls": {
            state: gaps([row.cost.states.get(state, 0) for row in rows]) for state in view.total.states
        },
    }


def runs(values: Iterable[Any]) -> list[Any]:
    """Return [value, how often in a row, value, ...].

    >>> runs([16, 16, 16, 8]), runs([])
    ([16, 3, 8, 1], [])
    """
    found: list[Any] = []
    for value in values:
        # 1 and True, 0 and -0.0 are equal but not the same
        last = found[-2] if found else None
        if found and (last is value or (last == value and repr(last) == repr(value))):
            found[-1] += 1
        else:
            found += [value, 1]
    return found


def gaps(column: Sequence[int]) -> list[int]:
    """Return what is not zero as [distance from the one before, value, distance, value, ...].

    >>> gaps([0, 0, 7, 9, 0])
    [3, 7, 1, 9]
    """
    found: list[int] = []
    last = -1
    for i, value in enumerate(column):
        if value:
            found += (i - last, value)
            last = i
    return found


def counted(view: SourceView) -> tuple[str, ...]:
    """Return the names of the costs that the report counted.

    >>> from ncukit.model.source import Cost, SourceView
    >>> counted(SourceView("none", Cost(instructions=3, spills=0), (), (), ()))
    ('instructions', 'spills')
    """
    return tuple(name for name in COSTS if getattr(view.total, name) is not None)


def _costs(view: SourceView) -> dict[str, list[int]]:
    return {name: [getattr(row.cost, name) or 0 for row in view.rows] for name in counted(view)}


def _around(view: SourceView) -> dict[str, Any]:
    from ncukit.metrics.catalog import category

    return {
        "basis": view.basis,
        "categories": {state: category(state) for state in view.total.states},
        "functions": [{"name": f.name, "first": f.first, "last": f.last} for f in view.functions],
        "files": [
            {
                "name": file.name,
                "status": file.status,
                "generated": file.generated,
                "lines": [line.number for line in file.lines],
                "texts": [line.text for line in file.lines],
            }
            for file in view.files
        ],
        "notes": list(view.notes),
    }
