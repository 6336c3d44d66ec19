"""The tables of an nsys export and their rows as columns of numbers."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ncukit.errors import ReportFormatError, ReportNotFound
from ncukit.model.trace import UNKNOWN, Columns, CounterSeries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# ---- The tables of an nsys export: found by looking, never assumed
#  nsys creates tables lazily, renames them between versions (``NVTX_EVENTS``, ``NVTX_EVENTS_V2``;
# ``META_DATA_EXPORT``, ``EXPORT_META_DATA``), adds and drops columns, and promises no row order.  The
# layout was read from exports of nsys 2020 to 2025.5 (schema 3.24) and from NVIDIA's schema reference.

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


# ---- Rows of an nsys export as columns: which column of which table feeds which field, as data

Spec = Mapping[str, tuple[Source, int]]


def _of(names: Mapping[str, str], default: int = UNKNOWN) -> dict[str, tuple[Source, int]]:
    return {name: (tuple(columns.split()), default) for name, columns in names.items()}


TIMES = _of({"start": "start", "end": "end"})
PLACE = _of(
    {
        "device": "deviceId",
        "context": "contextId",
        "stream": "streamId",
        "process": "globalPid",
        "correlation": "correlationId",
    }
)
KERNELS: Spec = {
    **TIMES,
    **PLACE,
    **_of({"name": "demangledName shortName", "short": "shortName demangledName"}),
    **_of({"registers": "registersPerThread", "graph_node": "graphNodeId"}),
    **_of({f"{what}_{axis}": f"{what}{axis.upper()}" for what in ("grid", "block") for axis in "xyz"}),
    **_of({"static_shared": "staticSharedMemory", "dynamic_shared": "dynamicSharedMemory"}),
}
COPIES: Spec = {
    **TIMES,
    **PLACE,
    **_of({"bytes": "bytes"}, 0),
    **_of({"kind": "copyKind", "source": "srcKind", "target": "dstKind", "graph_node": "graphNodeId"}),
    **_of({"source_device": "srcDeviceId", "target_device": "dstDeviceId"}),
}
MEMSETS: Spec = {**TIMES, **PLACE, **_of({"bytes": "bytes"}, 0), **_of({"graph_node": "graphNodeId"})}
GRAPHS: Spec = {**TIMES, **PLACE, **_of({"graph": "graphId graphExecId"})}
SYNCS: Spec = {**TIMES, **PLACE, **_of({"kind": "syncType"})}
CALLS: Spec = {
    **TIMES,
    **_of({"thread": "globalTid", "correlation": "correlationId", "name": "nameId", "class": "eventClass"}),
    **_of({"returned": "returnValue"}, 0),
}
OVERHEADS: Spec = {**TIMES, **_of({"thread": "globalTid"})}
_TABLES = {
    "kernels": (("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"), KERNELS),
    "copies": (("CUPTI_ACTIVITY_KIND_MEMCPY",), COPIES),
    "memsets": (("CUPTI_ACTIVITY_KIND_MEMSET",), MEMSETS),
    "graphs": (("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",), GRAPHS),
    "syncs": (("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",), SYNCS),
    "calls": (("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"), CALLS),
    "overheads": (("PROFILER_OVERHEAD",), OVERHEADS),
}
WHAT = {
    "kernels": "kernels",
    "copies": "copies",
    "memsets": "memory sets",
    "graphs": "graph executions",
    "syncs": "synchronisations",
    "calls": "CUDA calls",
    "overheads": "records of nsys's own work",
}

RANGE_STYLES = {59: 59, 60: 60, 70: 59, 71: 60}
"""Event types of ranges (59, 70 push/pop; 60, 71 start/end) and the style they are."""
_DOMAIN = 75
_UINT32 = 1 << 32


class Names:
    """Texts of a trace, each once; columns hold positions."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}

    def position(self, text: str) -> int:
        """Return the position of ``text``, a new one where it was not seen yet."""
        return self._positions.setdefault(text, len(self._positions))

    def texts(self) -> tuple[str, ...]:
        """Return all texts by position."""
        return tuple(self._positions)


def rows(db: Database, kind: str, names: Names, notes: list[str]) -> Columns:
    """Return the rows of ``kind`` (a key of `WHAT`), ordered by start.

    A missing table means that nothing of the kind was traced.  Rows without two valid times are left out and
    counted in ``notes``.
    """
    import numpy as np

    bases, spec = _TABLES[kind]
    parts, without = [], 0
    for base in bases:
        table = db.table(base)
        if table is None:
            continue
        if not db.has(table, "start", "end"):
            notes.append(f"table {table} has no start and end: its {WHAT[kind]} were not read")
            continue
        columns = db.integers(table, spec, '"start" IS NOT NULL AND "end" IS NOT NULL')
        ((total,),) = db.query(f'SELECT count(*) FROM "{table}"')
        timed = (columns["end"] >= columns["start"]) & ended(columns["end"])
        if kind in ("kernels", "copies", "memsets", "graphs"):
            timed &= (columns["start"] != 0) | (columns["end"] != 0)  # CUPTI: both 0 = time not collected
        without += total - int(timed.sum())
        parts.append(columns if timed.all() else {name: column[timed] for name, column in columns.items()})
    if without:
        notes.append(f"{without:,} of the {WHAT[kind]} have no valid start and end: not counted in any time")
    if not parts:
        return Columns({name: np.empty(0, np.int64) for name in spec})
    joined = parts[0] if len(parts) == 1 else {n: np.concatenate([p[n] for p in parts]) for n in spec}
    for name in ("correlation", "stream", "context"):
        if name in joined and (joined[name] < -1).any():
            joined[name] = np.where(joined[name] < -1, joined[name] + _UINT32, joined[name])
    for name in ("name", "short"):
        if name in joined:
            joined[name] = _positions(db, joined[name], names)
    if (joined["start"][1:] >= joined["start"][:-1]).all():
        return Columns(joined)
    order = np.argsort(joined["start"], kind="stable")
    return Columns({name: column[order] for name, column in joined.items()})


def _positions(db: Database, ids: NDArray[np.int64], names: Names) -> NDArray[np.int64]:
    """Return ``ids`` of strings as positions in ``names``; what has no string keeps its number as text."""
    import numpy as np

    unique, inverse = np.unique(ids, return_inverse=True)
    texts = db.strings(int(i) for i in unique)
    found = [UNKNOWN if i == UNKNOWN else names.position(texts.get(int(i), f"(name {i})")) for i in unique]
    return np.array(found, np.int64)[inverse]


def ranges(db: Database, names: Names, notes: list[str], last: int) -> Columns:
    """Return the NVTX ranges, ordered by start; ``last`` [ns] ends those that were still open.

    Text stands in the row, or in StringIds, depending on how the program registered it.
    """
    import numpy as np

    kept: dict[str, list[int]] = {name: [] for name in RANGES}
    table = _range_table(db, notes)
    if table is not None:
        domains: dict[tuple[int, int], str] = {}
        rows_, ids = _range_rows(db, table)
        texts = db.strings(ids)
        for type, start, end, thread, end_thread, domain, text_id, text in rows_:
            said = text or texts.get(text_id, "")
            if type == _DOMAIN:
                domains[(thread >> 24, domain)] = said
                continue
            open_ = end is None or end >= 1 << 62 or (end == 0 < start)  # NULL, or the default of 2021
            of = domains.get((thread >> 24, domain), "" if domain == 0 else f"domain {domain}")
            row = (
                start,
                max(last, start) if open_ else end,
                thread,
                thread if end_thread is None else end_thread,
                names.position(said or "(no text)"),
                names.position(of),
                RANGE_STYLES[type],
                int(open_),
            )
            for column, value in zip(RANGES, row, strict=True):
                kept[column].append(value)
    columns = {name: np.array(values, np.int64) for name, values in kept.items()}
    timed = columns["end"] >= columns["start"]
    if not timed.all():
        notes.append(f"{int((~timed).sum()):,} NVTX ranges end before they start: not read")
    order = np.argsort(columns["start"][timed], kind="stable")
    return Columns({name: column[timed][order] for name, column in columns.items()})


RANGES = ("start", "end", "thread", "end_thread", "name", "domain", "style", "open")


def _range_table(db: Database, notes: list[str]) -> str | None:
    table = db.table("NVTX_EVENTS")
    candidates = [table] if table else [t for t in db.tables if re.match(r"NVTX_\w*(EVENT|RANGE)", t)]
    for name in candidates:
        if db.has(name, "start", "end") and (db.has(name, "text") or db.has(name, "textId")):
            return name
    if candidates:
        notes.append(f"NVTX ranges were not read: table {candidates[0]} has an unknown layout")
    return None


def _range_rows(db: Database, table: str) -> tuple[list[tuple[Any, ...]], set[int]]:
    present = db.columns(table)

    def column(name: str, default: str) -> str:
        return f'"{present[name.lower()]}"' if name.lower() in present else default

    types = ",".join(str(t) for t in (*RANGE_STYLES, _DOMAIN))
    type = column("eventType", "59")
    parts = (
        type,
        column("start", "NULL"),
        column("end", "NULL"),
        f"COALESCE({column('globalTid', '0')}, 0)",
        column("endGlobalTid", "NULL"),
        f"COALESCE({column('domainId', '0')}, 0)",
        column("textId", "NULL"),
        column("text", "NULL"),
    )
    where = f"{type} IN ({types}) AND {parts[1]} IS NOT NULL"
    order = f"({type} = {_DOMAIN}) DESC, {parts[1]}"
    found = list(db.query(f'SELECT {", ".join(parts)} FROM "{table}" WHERE {where} ORDER BY {order}'))
    return found, {row[6] for row in found if not row[7] and row[6] is not None}


def counters(db: Database) -> tuple[CounterSeries, ...]:
    """Return the sampled GPU metrics: unsigned values that SQLite stores signed are restored."""
    table, info = db.table("GPU_METRICS"), db.table("TARGET_INFO_GPU_METRICS")
    if table is None or not db.has(table, "typeId", "metricId", "value"):
        return ()
    value = f"(CASE WHEN value < 0 THEN value + {_UINT32} ELSE value END)"
    label = {}
    if info is not None and db.has(info, "typeId", "metricId", "metricName"):
        label = {(t, m): n for t, m, n in db.query(f'SELECT typeId, metricId, metricName FROM "{info}"')}
    found = db.query(
        f"SELECT typeId, metricId, count(*), avg({value}), max({value}) "
        f'FROM "{table}" GROUP BY 1, 2 ORDER BY 1, 2'
    )
    return tuple(
        CounterSeries(str(label.get((type, metric), f"metric {metric}")), n, float(mean), int(top))
        for type, metric, n, mean, top in found
    )


def pairs(db: Database, base: str, key: str, value: str) -> Iterable[tuple[int, Any]]:
    """Yield two columns of table ``base``, nothing where it or a column is absent."""
    table = db.table(base)
    if table is not None and db.has(table, key, value):
        yield from db.query(f'SELECT "{key}", "{value}" FROM "{table}" WHERE "{key}" IS NOT NULL')
