"""Launches and comparisons as data frames: the only user of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pandas

from ncukit.errors import UsageError
from ncukit.metrics import load
from ncukit.model import Kernel
from ncukit.model.comparison import Comparison, Pair, Row

CONTEXT = ("file", "index", "name", "demangled", "gpu", "failed")
FORMS = ("long", "wide")
BY = ("gpu", "compute_capability", "file", "name")
_TYPES = {"index": "Int64", "failed": "boolean"}
_LONG = (*CONTEXT, "metric", "value", "text", "unit", "quality", "reason")
_COMPARED = (
    *("other_side", "base_name", "other_name", "base_gpu", "other_gpu", "metric", "unit"),
    *("base", "other", "change", "change_unit", "ratio", "reading", "comparable", "why", "reason"),
    *("base_share", "other_share", "noise", "explains", "base_quality", "other_quality"),
)
_NUMBERS = frozenset(
    {"value", "base", "other", "change", "ratio", "base_share", "other_share", "noise", "explains"}
)


def frame(
    kernels: Iterable[Kernel],
    *,
    form: Literal["long", "wide"] = "wide",
    by: Literal["gpu", "compute_capability", "file", "name"] | None = None,
    raw: Sequence[str] = (),
) -> pandas.DataFrame:
    """Return launches as a frame: "wide" has one row a launch, "long" one row a launch and metric.

    Wide columns are metric ids in catalog units (``frame.attrs["units"]``); an unknown value is missing.  The
    long form keeps unit, quality and reason beside the value.  ``raw`` adds native metrics that were read.
    With ``by`` there is one row a kernel and metric and one column a GPU (capability, file or name): the
    median of its launches, missing where it is unknown in all of them.

    Raises:
        UsageError: there is no such ``form`` or ``by``.
    """
    for name, given, known in (("form", form, FORMS), ("by", by, (None, *BY))):
        if given not in known:
            choices = ", ".join(repr(one) for one in known if one is not None)
            raise UsageError(f"{name}={given!r} is no way to lay out a frame", f"{name} is one of {choices}")
    if by is not None:
        return _side_by_side(kernels, by, raw)
    return _wide(kernels, raw) if form == "wide" else _long(kernels, raw)


def comparison_frame(comparison: Comparison) -> pandas.DataFrame:
    """Return a comparison as a frame: one row a pair and metric, with change, reading and reason."""
    rows = [
        _compared(against.other.label, pair, row)
        for against in comparison.others
        for pair in against.pairs
        for row in pair.rows
    ]
    table = pandas.DataFrame(rows, columns=list(_COMPARED))
    return _typed(table, _units(()))


def _head(kernel: Kernel) -> dict[str, object]:
    return {
        "file": kernel.file,
        "index": kernel.index,
        "name": kernel.name,
        "demangled": kernel.demangled,
        "gpu": kernel.gpu,
        "failed": kernel.failed is not None,
    }


def _units(raw: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {id: metric.unit for id, metric in load().metrics.items()} | dict(raw)


def _wide(kernels: Iterable[Kernel], raw: Sequence[str]) -> pandas.DataFrame:
    catalog = load()
    rows, units = [], _RawUnits(raw)
    for kernel in kernels:
        rows.append(
            _head(kernel)
            | {id: kernel.metrics[id].value for id in catalog.metrics}
            | {name: kernel.raw.metrics.get(name) for name in raw}
        )
        units.see(kernel)
    table = pandas.DataFrame(rows, columns=[*CONTEXT, *catalog.metrics, *raw])
    texts = {id for id, metric in catalog.metrics.items() if metric.kind == "string"} | units.texts
    for id in (*catalog.metrics, *raw):
        table[id] = table[id].astype("string" if id in texts else "Float64")
    return _context(table, _units(units.found.items()))


def _long(kernels: Iterable[Kernel], raw: Sequence[str]) -> pandas.DataFrame:
    rows: list[dict[str, object]] = []
    units = _RawUnits(raw)
    for kernel in kernels:
        head = _head(kernel)
        units.see(kernel)
        for value in kernel.metrics.values():
            entry = _entry(value.id, value.value, value.unit, value.quality, value.reason)
            rows.append(head | entry)
        for name in raw:
            found = kernel.raw.metrics.get(name)
            reason = None if found is not None else "not in the report"
            rows.append(head | _entry(name, found, kernel.raw.units.get(name, ""), None, reason))
    table = pandas.DataFrame(rows, columns=list(_LONG))
    return _typed(table, _units(units.found.items()))


def _entry(
    id: str, value: float | int | str | None, unit: str, quality: str | None, reason: str | None
) -> dict[str, object]:
    text = isinstance(value, str)
    return {
        "metric": id,
        "value": None if text else value,
        "text": value if text else None,
        "unit": unit,
        "quality": quality,
        "reason": reason,
    }


def _side_by_side(kernels: Iterable[Kernel], by: str, raw: Sequence[str]) -> pandas.DataFrame:
    """Return numbers by kernel and metric, one column a value of ``by``."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    columns: dict[str, None] = {}
    units = _RawUnits(raw)
    for kernel in kernels:
        units.see(kernel)
        column = _column(kernel, by)
        columns.setdefault(column)
        numbers = {id: value.number for id, value in kernel.metrics.items()} | {
            name: n for name in raw if isinstance(n := kernel.raw.metrics.get(name), int | float)
        }
        for id, number in numbers.items():
            key = (id,) if by == "name" else (kernel.name, id)
            cells = found.setdefault(key, {})
            if number is not None:
                cells.setdefault(column, []).append(number)
    names = ("metric",) if by == "name" else ("name", "metric")
    table = pandas.DataFrame(
        [
            [*key, *(pandas.Series(cells[c]).median() if c in cells else None for c in columns)]
            for key, cells in found.items()
        ],
        columns=[*names, *columns],
    ).set_index(list(names))
    table = table.astype("Float64")
    table.columns.name = by
    table.attrs["units"] = _units(units.found.items())
    return table


def _column(kernel: Kernel, by: str) -> str:
    value = {
        "gpu": kernel.gpu,
        "compute_capability": kernel.compute_capability,
        "file": kernel.file,
        "name": kernel.name,
    }[by]
    return value or "unknown"


class _RawUnits:
    """Units of native metrics, and which of them are text, as they are met."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.found: dict[str, str] = {}
        self.texts: set[str] = set()

    def see(self, kernel: Kernel) -> None:
        for name in self.names:
            if name in kernel.raw.units:
                self.found.setdefault(name, kernel.raw.units[name])
            if isinstance(kernel.raw.metrics.get(name), str):
                self.texts.add(name)


def _compared(label: str, pair: Pair, row: Row) -> dict[str, object]:
    texts = [value.value if isinstance(value.value, str) else None for value in (row.base, row.other)]
    return {
        "other_side": label,
        "base_name": pair.base.kernel.name,
        "other_name": pair.other.kernel.name,
        "base_gpu": pair.base.kernel.gpu,
        "other_gpu": pair.other.kernel.gpu,
        "metric": row.id,
        "unit": row.base.unit,
        "base": None if texts[0] is not None else row.base.value,
        "other": None if texts[1] is not None else row.other.value,
        "change": row.finite,
        "change_unit": row.change_unit,
        "ratio": row.ratio,
        "reading": row.reading,
        "comparable": row.comparable,
        "why": row.why,
        "reason": row.reason,
        "base_share": row.shares[0],
        "other_share": row.shares[1],
        "noise": row.noise,
        "explains": row.explains,
        "base_quality": row.base.quality,
        "other_quality": row.other.quality,
    }


def _typed(table: pandas.DataFrame, units: Mapping[str, str]) -> pandas.DataFrame:
    """Return a long frame with numbers as Float64 and words as string."""
    for name in table.columns:
        if name not in _TYPES:
            table[name] = table[name].astype("Float64" if name in _NUMBERS else "string")
    return _context(table, units)


def _context(table: pandas.DataFrame, units: Mapping[str, str]) -> pandas.DataFrame:
    for name in CONTEXT:
        if name in table.columns:
            kind: Any = _TYPES.get(name, "string")
            table[name] = table[name].astype(kind)
    table.attrs["units"] = dict(units)
    return table
