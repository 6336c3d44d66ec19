"""Questions to a dataset in SQL, answered by DuckDB."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from ncukit.dataset.state import ERRORS, METRICS, State
from ncukit.errors import NcukitError, UsageError
from ncukit.folders import Folder
from ncukit.record import dataclass
from ncukit.tools.extras import install_command

_SHUT = {"enable_external_access": "false", "temp_directory": ""}
"""No file, no network, no extension, nothing written to disk: what SQL reaches is the registered tables."""


@dataclass(frozen=True)
class Answer:
    """A table: names and SQL types of its columns, and its rows."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def query(folder: str | os.PathLike[str], sql: str) -> Answer:
    """Return the answer to ``sql``; its tables are ``launches``, ``metrics`` and ``errors``.

    The SQL reaches nothing else: it reads and writes no other file, loads no extension, and changes neither
    the dataset nor DuckDB's settings.

    Raises:
        UsageError: the folder is no dataset, or the SQL is wrong; the hint is DuckDB's.
        NcukitError: DuckDB is not installed.
    """
    try:
        duckdb = import_module("duckdb")  # an extra: not there where types are checked
    except ImportError as error:
        raise NcukitError(
            "DuckDB, which answers queries, is not installed", install_command("query")
        ) from error
    home = Path(folder)
    with duckdb.connect(config=_SHUT) as connection:
        connection.register("launches", launches(home))
        for name, file in (("errors", ERRORS), ("metrics", METRICS)):
            connection.register(name, _table(home, file))
        connection.execute("SET lock_configuration = true")
        try:
            found = connection.execute(sql)
            described = None if found is None else found.description
            if described is None:
                raise UsageError("the SQL asks for nothing", 'for example: "SELECT count(*) FROM launches"')
            return Answer(
                tuple(column[0] for column in described),
                tuple(str(column[1]) for column in described),
                tuple(found.fetchall()),
            )
        except duckdb.Error as error:
            what, _, more = str(error).partition("\n")
            hint = next((line for line in more.splitlines() if line.strip()), "")
            raise UsageError(f"the SQL cannot be answered: {what}", hint.strip()) from error


def launches(folder: Path) -> Any:
    """Return the launches of the dataset ``folder`` as a ``pyarrow.dataset.Dataset`` with the one schema.

    Raises:
        UsageError: the folder is no dataset.
    """
    import pyarrow as pa
    import pyarrow.dataset

    from ncukit.dataset.partitions import PARTITION
    from ncukit.dataset.schema import schema

    state = State.load(folder)
    if state is None:
        raise UsageError(
            f"{folder} is no dataset", "ncukit dataset build 'runs/**/*.ncu-rep' -o DIR makes one"
        )
    with Folder.open(folder) as own:
        parts = sorted(part for entry in state.files.values() for part in entry.parts if own.find(part))
        for part in parts:
            if not own.holds(part):
                raise _damaged(folder / part, "it is not a regular file")
    if not parts:
        return schema().empty_table()
    home = str(folder)
    return pyarrow.dataset.dataset(
        [os.path.join(home, part) for part in parts],
        schema=schema(),
        partitioning=pyarrow.dataset.partitioning(pa.schema([(PARTITION, pa.string())]), flavor="hive"),
        partition_base_dir=home,
        format="parquet",
    )


def _table(folder: Path, name: str) -> Any:
    import pyarrow.parquet

    try:
        with Folder.open(folder) as own, own.open_file(name) as file:
            return pyarrow.parquet.read_table(file)
    except (OSError, pyarrow.lib.ArrowException) as error:
        raise _damaged(folder / name, str(error)) from error


def _damaged(file: Path, why: str) -> UsageError:
    return UsageError(f"{file} cannot be read: {why}", "build the dataset again with --force")
