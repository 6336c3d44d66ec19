"""The part files of one report: written whole, and checked before they are used."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import pyarrow.parquet

from ncukit.dataset.rows import Rows, file_schema, part_name, partition_name
from ncukit.errors import UsageError
from ncukit.folders import Folder
from ncukit.model import Kernel, Verdict
from ncukit.model.comparison import Measured, Origin

# ---- The kernels of a part file, which may be damaged or a stranger's: it is checked before it is used

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
    from ncukit.dataset.rows import file_schema, kernel_of

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


# ---- The part files of one report: one a GPU, visible only when the whole report was read

ROWS = 512
"""Launches of a row group: what a worker holds of a file of any length."""
_SORTABLE = ["file", "name", "class", "limiter"]
"""Columns whose smallest and largest value are stored: those that questions filter by."""

_OPTIONS: Mapping[str, Any] = {
    "compression": "zstd",
    "store_schema": False,
    "write_statistics": _SORTABLE,
    "write_page_checksum": True,
}


class Parts:
    """Writes the rows of the report at ``path`` into the dataset ``folder``.

    Files begin with a dot until `finish`; leaving the context without it removes them.

    Raises:
        UsageError: the folder cannot be written to.
    """

    def __init__(self, folder: str | Path, path: str, sha256: str) -> None:
        self.folder, self.sha256 = Path(folder), sha256
        self._name = part_name(path)
        self._hidden = f".{self._name}.{os.getpid()}.tmp"
        self._open: dict[str, tuple[Rows, Any, BinaryIO]] = {}
        self._home = self._try(lambda: Folder.open(folder))
        self.launches = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for partition, (_, writer, file) in self._open.items():
            with suppress(OSError):  # the disk may be full: what is there goes away in any case
                writer.close()
            with suppress(OSError):
                file.close()
            self._home.remove(f"{partition}/{self._hidden}")
        self._home.close()

    def add(self, kernel: Kernel, verdict: Verdict) -> None:
        """Add one launch."""
        partition = partition_name(kernel.gpu)
        if partition not in self._open:
            self._open[partition] = self._writer(partition)
        rows, writer, _ = self._open[partition]
        rows.add(kernel, verdict)
        self.launches += 1
        if len(rows) >= ROWS:
            self._write(writer, rows)

    def finish(self) -> tuple[str, ...]:
        """Make the files visible; return their paths inside the dataset."""
        for rows, writer, file in self._open.values():
            if len(rows):
                self._write(writer, rows)
            self._try(writer.close)
            self._try(file.close)
        for partition in self._open:
            there = f"{partition}/{self._hidden}", f"{partition}/{self._name}"
            self._try(partial(self._home.publish, *there))
        names = tuple(f"{partition}/{self._name}" for partition in sorted(self._open))
        self._open.clear()
        return names

    def _write(self, writer: Any, rows: Rows) -> None:
        batch = rows.take()
        self._try(lambda: writer.write_batch(batch))

    def _writer(self, partition: str) -> tuple[Rows, Any, BinaryIO]:
        hidden = f"{partition}/{self._hidden}"

        def start() -> tuple[Any, BinaryIO]:
            self._home.folder(partition, make=True).close()
            self._home.remove(hidden)  # of a process with this number that was killed
            file = self._home.create(hidden)
            try:
                return pyarrow.parquet.ParquetWriter(file, file_schema(), **_OPTIONS), file
            except BaseException:
                file.close()
                raise

        try:
            return Rows(self.sha256), *self._try(start)
        except UsageError:
            self._home.remove(hidden)
            raise

    def _try(self, write: Callable[[], Any]) -> Any:
        try:
            return write()
        except OSError as error:
            raise UsageError(
                f"cannot write into {self.folder}: {error.strerror or error}", "give another place with -o"
            ) from error
