"""The kernels of a part file, which may be damaged or a stranger's: it is checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ncukit.folders import Folder
from ncukit.model.survey import Measured, Origin

_LIGHT = [
    *("index", "demangled", "grid", "block", "class", "limiter", "confidence", "synthetic"),
    "kernel_duration",
]
"""Columns that are read of every launch; the longest of a kernel is read whole."""
_NEEDED = ("file", "index", "name", "demangled", "class", "confidence", "synthetic")
"""Columns that hold a value in every row."""


class DamagedPart(Exception):
    """The part file ``part`` cannot be used; ``why`` says so in one line."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(f"{part}: {why}")
        self.part, self.why = part, why


def kernels(folder: Folder, part: str, origin: Origin, gpu: str | None) -> list[Measured]:
    """Return every kernel of the part file ``part`` of the dataset ``folder``; memory is that of the part.

    Raises:
        DamagedPart: it cannot be read, or does not hold what a build writes.
    """
    import pyarrow.parquet

    try:
        with folder.open_file(part) as file:
            table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True).read()
        return list(_measured(table, origin, gpu))
    except (
        OSError,
        pyarrow.lib.ArrowException,
        ValueError,
        ArithmeticError,
        LookupError,
        TypeError,
    ) as error:
        why = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
        raise DamagedPart(part, why) from error


def _measured(table: Any, origin: Origin, gpu: str | None) -> Iterable[Measured]:
    from ncukit.dataset.rows import kernel_of
    from ncukit.dataset.schema import file_schema

    if not table.schema.equals(file_schema()):
        raise ValueError("its columns are others")
    table.validate(full=True)
    for name in _NEEDED:
        if table[name].null_count:
            raise ValueError(f"{name} is missing in a row")
    groups: dict[str, list[dict[str, Any]]] = {}
    for at, row in enumerate(table.select(_LIGHT).to_pylist()):
        groups.setdefault(row["demangled"], []).append({**row, "at": at})
    for launches in groups.values():
        if not all(0.0 <= (row["kernel_duration"] or 0.0) < math.inf for row in launches):
            raise ValueError("a duration is not a time")
        longest = max(launches, key=lambda row: row["kernel_duration"] or 0.0)
        (whole,) = table.take([longest["at"]]).to_pylist()
        _check(whole)
        limits: dict[tuple[str, str | None], float] = {}
        for row in launches:
            key = (row["class"], row["limiter"])
            limits[key] = limits.get(key, 0.0) + (row["kernel_duration"] or 0.0)
        durations = [row["kernel_duration"] for row in launches if row["kernel_duration"] is not None]
        yield Measured(
            origin,
            kernel_of(whole),
            gpu,
            longest["class"],
            longest["limiter"],
            longest["confidence"],
            longest["grid"],
            longest["block"],
            len(launches),
            tuple(sorted(durations)),
            limits,
            longest["synthetic"],
        )


def _check(row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} is not a finite number")
