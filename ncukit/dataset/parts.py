"""The part files of one report: one a GPU, visible only when the whole report was read."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow.parquet

from ncukit.dataset.partitions import part_name, partition_name
from ncukit.dataset.rows import Rows
from ncukit.dataset.schema import file_schema
from ncukit.errors import UsageError
from ncukit.model import Kernel, Verdict

ROWS = 512
"""Launches of a row group: what a worker holds of a file of any length."""
_SORTABLE = ["file", "name", "class", "limiter"]
"""Columns whose smallest and largest value are stored: those that questions filter by."""


class Parts:
    """Writes the rows of the report at ``path`` into the dataset ``folder``.

    Files begin with a dot until `finish`; leaving the context without it removes them.

    Raises:
        UsageError: the folder cannot be written to.
    """

    def __init__(self, folder: str | Path, path: str, sha256: str) -> None:
        self.folder, self.sha256 = Path(folder), sha256
        self._name = part_name(path)
        self._open: dict[str, tuple[Rows, Any, Path]] = {}
        self.launches = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, writer, hidden in self._open.values():
            with suppress(OSError):  # the disk may be full: what is there goes away in any case
                writer.close()
            hidden.unlink(missing_ok=True)

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
        for rows, writer, _ in self._open.values():
            if len(rows):
                self._write(writer, rows)
            self._try(writer.close)
        for partition, (_, _, hidden) in self._open.items():
            os.replace(hidden, self.folder / partition / self._name)
        names = tuple(f"{partition}/{self._name}" for partition in sorted(self._open))
        self._open.clear()
        return names

    def _write(self, writer: Any, rows: Rows) -> None:
        batch = rows.take()
        self._try(lambda: writer.write_batch(batch))

    def _writer(self, partition: str) -> tuple[Rows, Any, Path]:
        hidden = self.folder / partition / f".{self._name}.{os.getpid()}.tmp"

        def start() -> Any:
            hidden.parent.mkdir(parents=True, exist_ok=True)
            return pyarrow.parquet.ParquetWriter(
                hidden, file_schema(), compression="zstd", store_schema=False, write_statistics=_SORTABLE
            )

        try:
            return Rows(self.sha256), self._try(start), hidden
        except UsageError:
            hidden.unlink(missing_ok=True)
            raise

    def _try(self, write: Callable[[], Any]) -> Any:
        try:
            return write()
        except OSError as error:
            raise UsageError(
                f"cannot write into {self.folder}: {error.strerror or error}", "give another place with -o"
            ) from error
