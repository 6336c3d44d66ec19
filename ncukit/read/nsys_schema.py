"""The tables of an nsys export: found by looking, never assumed.

nsys creates tables lazily, renames them between versions (``NVTX_EVENTS``, ``NVTX_EVENTS_V2``;
``META_DATA_EXPORT``, ``EXPORT_META_DATA``), adds and drops columns, and promises no row order.  The layout
was read from exports of nsys 2020 to 2025.5 (schema 3.24) and from NVIDIA's schema reference.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ncukit.errors import ReportFormatError, ReportNotFound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KNOWN_MAJORS = frozenset({"1", "2", "3"})
"""Major numbers of EXPORT_SCHEMA_VERSION whose layout is known; exports of 2021 and before have none."""

SYNTHETIC = "NCUKIT_SYNTHETIC"
"""What marks a trace that a program wrote as a sample."""

_MARKS = re.compile(
    r"(CUPTI_ACTIVITY_KIND|NVTX|TARGET_INFO|META_DATA|OSRT|GPU_METRICS|CUDA)_\w+|EXPORT_META_DATA|ANALYSIS_DETAILS"
)
_VERSIONED = re.compile(r"(.+?)_V(\d+)")
_CHUNK = 8192
_LARGEST = 1 << 28
"""Size [byte] of the longest text or row that is read."""
_HUGE = 1 << 62
"""Times beyond are placeholders, not times [ns]."""

BROKEN = (sqlite3.Error, UnicodeError, OverflowError)
"""What SQLite raises on a damaged file; even its own message may not be text."""

Source = tuple[str, ...]
"""Columns that may hold a value, the first present wins."""


class Database:
    """An nsys export, opened so that nothing can change it: read-only, no journal, no lock file.

    Raises:
        ReportNotFound: the file cannot be opened.
        ReportFormatError: it is damaged, or not an export of Nsight Systems.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        uri = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        try:
            self._db = sqlite3.connect(uri, uri=True)
        except sqlite3.OperationalError as error:
            raise ReportNotFound(path, f"{path} cannot be opened: {error}") from error
        self._db.execute("PRAGMA trusted_schema = OFF")  # the schema is the file's: it calls no functions
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
        self._db.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
        self._columns: dict[str, dict[str, str]] = {}
        try:
            for (name,) in self.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
                self._columns[name] = {}
            if not any(_MARKS.fullmatch(name) for name in self._columns):
                raise self._foreign()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all tables, sorted."""
        return tuple(self._columns)

    def table(self, base: str) -> str | None:
        """Return the table ``base`` or its newest version (``base_V3``), None where there is none."""
        found = [(0, base)] if base in self._columns else []
        for name in self._columns:
            if (match := _VERSIONED.fullmatch(name)) and match[1] == base:
                found.append((int(match[2]), name))
        return max(found)[1] if found else None

    def columns(self, table: str) -> Mapping[str, str]:
        """Return the columns of ``table``, as lower-case name to the name in the file."""
        if not self._columns.get(table):
            rows = self.query(f"PRAGMA table_info({_quoted(table)})")
            self._columns[table] = {row[1].lower(): row[1] for row in rows}
        return self._columns[table]

    def has(self, table: str | None, *columns: str) -> bool:
        """Whether ``table`` exists and has all ``columns``."""
        return table is not None and all(c.lower() in self.columns(table) for c in columns)

    def query(self, sql: str, values: Iterable[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of ``sql``.

        Raises:
            ReportFormatError: the database is damaged.
        """
        try:
            cursor = self._db.execute(sql, tuple(values))
            while rows := cursor.fetchmany(_CHUNK):
                yield from rows
        except BROKEN as error:
            raise self._damaged(error) from error

    def integers(
        self, table: str, wanted: Mapping[str, tuple[Source, int]], where: str = "1"
    ) -> dict[str, NDArray[np.int64]]:
        """Return columns of ``table`` as 64-bit integers, in the order of the file.

        ``wanted`` maps a name to (columns that may hold it, what stands for NULL or no such column).
        """
        import numpy as np

        present = self.columns(table)
        parts = []
        for sources, default in wanted.values():
            real = next((present[s.lower()] for s in sources if s.lower() in present), None)
            integer = f"COALESCE(CAST({_quoted(real or '')} AS INTEGER), {default})"
            parts.append(str(default) if real is None else integer)
        width = len(parts)
        chunks = []
        try:
            cursor = self._db.execute(f"SELECT {', '.join(parts)} FROM {_quoted(table)} WHERE {where}")
            while rows := cursor.fetchmany(_CHUNK):
                flat = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * width)
                chunks.append(flat.reshape(-1, width).T.copy())
        except BROKEN as error:
            raise self._damaged(error) from error
        if not chunks:
            return {name: np.empty(0, np.int64) for name in wanted}
        return {name: np.concatenate([c[i] for c in chunks]) for i, name in enumerate(wanted)}

    def metadata(self) -> dict[str, str]:
        """Return what the export says about itself and about what was traced; never the environment."""
        found: dict[str, str] = {}
        for base in ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE"):
            table = self.table(base)
            if table is not None and self.has(table, "name", "value"):
                keys = ("EXPORT_PRODUCT_%", "EXPORT_SCHEMA_%", "%COLLECT_CUDA%", SYNTHETIC)
                where = " OR ".join(["name LIKE ?"] * len(keys))
                found.update(self.query(f"SELECT name, value FROM {_quoted(table)} WHERE {where}", keys))
        return found

    def check_schema(self, force: bool) -> tuple[str | None, str | None]:
        """Return (version of the exporting nsys, schema version), each None where the file does not say.

        Raises:
            ReportFormatError: the schema's major number is unknown, and ``force`` is not set.
        """
        said = self.metadata()
        schema = said.get("EXPORT_SCHEMA_VERSION") or None
        tool = said.get("EXPORT_PRODUCT_VERSION")
        if schema is not None and schema.split(".")[0] not in KNOWN_MAJORS and not force:
            raise ReportFormatError(
                self.path,
                f"{self.path} has schema {schema} (nsys {tool or 'unknown'}), unknown to this ncukit",
                f"Known are schemas {', '.join(sorted(KNOWN_MAJORS))}.x. Try it with --force, or export the "
                ".nsys-rep with an nsys of 2021 to 2025.",
                code="schema-unknown",
            )
        return tool, schema

    def strings(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the strings that ``ids`` stand for; unknown ones are left out."""
        table = self.table("StringIds")
        if table is None or not self.has(table, "id", "value"):
            return {}
        wanted = sorted(set(ids))
        found: dict[int, str] = {}
        for i in range(0, len(wanted), 500):
            part = wanted[i : i + 500]
            marks = ",".join("?" * len(part))
            found.update(self.query(f"SELECT id, value FROM {_quoted(table)} WHERE id IN ({marks})", part))
        return {id: str(text) for id, text in found.items()}

    def _damaged(self, error: Exception) -> ReportFormatError:
        return ReportFormatError(
            self.path,
            f"{self.path} is a damaged SQLite database: {error}",
            "Copy it again, or export it again: nsys export --type sqlite REPORT.nsys-rep",
        )

    def _foreign(self) -> ReportFormatError:
        names = ", ".join(list(self._columns)[:4])
        what = f"its tables are {names}, ..." if names else "it has no tables"
        return ReportFormatError(
            self.path,
            f"{self.path} is an SQLite database, but not an export of Nsight Systems: {what}",
            "Give the .nsys-rep that nsys wrote, or its export: nsys export --type sqlite REPORT.nsys-rep",
            code="not-nsight",
        )


def ended(end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of the times ``end`` are times, not placeholders for "still open"."""
    return end < _HUGE


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
