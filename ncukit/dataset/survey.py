"""Questions to datasets and folders: in SQL, or as the survey of what lies there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from ncukit.dataset.build import Progress, build, gpu_of
from ncukit.dataset.inputs import ERRORS, METRICS, NAME, SUFFIXES, Entry, State, is_text, legible, unfit
from ncukit.dataset.parts import DamagedPart, kernels
from ncukit.errors import NcukitError, ReportError, ReportNotFound, UsageError
from ncukit.folders import Folder, way_out
from ncukit.model.comparison import Measured, Origin, Survey, Unusable
from ncukit.model.run import Run
from ncukit.record import dataclass
from ncukit.report.reader import created
from ncukit.run.directory import PAGE, PROFILE, RECORD, read_record, read_timing
from ncukit.run.tools.locate import install_command

# ---- Questions to a dataset in SQL, answered by DuckDB

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

    from ncukit.dataset.rows import PARTITION, schema

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


# ---- Look through a folder of runs, reports and datasets; reports that no dataset holds are read now


@dataclass
class _Found:
    """What a walk through the folder met."""

    reports: list[Path] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)
    datasets: dict[Path, State] = field(default_factory=dict)
    skipped: list[Unusable] = field(default_factory=list)

    def skip(self, path: Path, home: Path, why: str) -> None:
        """Name what is left out."""
        self.skipped.append(Unusable(legible(_name(path, home)), why))


@dataclass(frozen=True)
class _Known:
    """A report as the dataset ``dataset`` holds it."""

    dataset: Path
    path: str
    entry: Entry


def survey(
    folder: str | os.PathLike[str], *, workers: int | None = None, progress: Progress | None = None
) -> Survey:
    """Return what lies below ``folder``.

    Raises:
        ReportNotFound: there is no such folder, or no report, run or dataset in it.
    """
    home = Path(folder).absolute()
    if not home.is_dir():
        raise ReportNotFound(str(folder), f"there is no folder {folder}", "give a folder of runs and reports")
    found = _walk(home)
    if not (found.reports or found.runs or found.datasets):
        hint = "profile something first"
        if found.skipped:
            hint = f"{found.skipped[0].name} is skipped: {found.skipped[0].reason}"
        raise ReportNotFound(home, f"{folder} holds no report, run or dataset", hint)
    known: list[_Known] = []
    unusable = found.skipped
    held: set[str] = set()
    for dataset, state in found.datasets.items():
        entries = _usable(state)
        if entries is None:
            why = "the dataset was made by another version of ncukit or of its code: build it again"
            unusable.append(Unusable(_name(dataset, home), why))
            continue
        held |= {path for path, entry in entries.items() if _current(path, entry)}
        known += [_Known(dataset, path, entry) for path, entry in entries.items()]
    rest = [str(path) for path in found.reports if str(path) not in held]
    with tempfile.TemporaryDirectory(prefix="ncukit-") as scratch:
        known += _read(rest, Path(scratch, "rest"), workers, progress)
        measured, damaged = _take(known, home, unusable)
        again = sorted(damaged & set(map(str, found.reports)))
        measured += _take(_read(again, Path(scratch, "again"), workers, progress), home, unusable)[0]
    unusable += _runs_without_counters(found.runs, home)
    datasets = tuple(_name(path, home) for path in found.datasets)
    return Survey(
        str(folder), tuple(measured), tuple(unusable), len(found.reports), len(found.runs), datasets
    )


def _walk(home: Path) -> _Found:
    found, leads_out = _Found(), way_out(home)
    for place, folders, names in os.walk(home):
        if NAME in names and (state := _state(Path(place), home, found.skipped)) is not None:
            found.datasets[Path(place)] = state
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in [name for name in folders if not is_text(name)]:
            folders.remove(name)
            found.skip(Path(place, name), home, "its name is not UTF-8")
        if RECORD in names:
            found.runs.append(Path(place))
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                if (why := unfit(str(Path(place, name)), leads_out)) is None:
                    found.reports.append(Path(place, name))
                else:
                    found.skip(Path(place, name), home, why)
    return found


def _state(dataset: Path, home: Path, unusable: list[Unusable]) -> State | None:
    """Return the state of a dataset; add one that is damaged to ``unusable``."""
    try:
        return State.load(dataset)
    except UsageError as error:
        why = error.message.replace(str(dataset / NAME), NAME)
        unusable.append(Unusable(_name(dataset, home), f"the dataset is damaged: {why}"))
        return None


def _read(
    reports: Sequence[str], scratch: Path, workers: int | None, progress: Progress | None
) -> list[_Known]:
    """Read ``reports`` into a dataset in ``scratch``, and return what it holds."""
    if not reports:
        return []
    build(reports, scratch, workers=workers, progress=progress)
    state = State.load(scratch)
    return [_Known(scratch, path, entry) for path, entry in (state.files if state else {}).items()]


def _usable(state: State) -> Mapping[str, Entry] | None:
    """Return the entries whose reports did not change since, or are gone; None for another version's rows."""
    from ncukit.dataset.rows import fingerprint

    if state.fingerprint != fingerprint():
        return None
    return {
        path: entry
        for path, entry in state.files.items()
        if _current(path, entry) or not os.path.exists(path)
    }


def _current(path: str, entry: Entry) -> bool:
    try:
        return entry.same_file(os.stat(path))
    except OSError:
        return False


def _take(known: list[_Known], home: Path, unusable: list[Unusable]) -> tuple[list[Measured], set[str]]:
    """Return the kernels of every report, of copies of one file once, and reports whose parts are damaged.

    Reports that give none, and damaged parts, are added to ``unusable``.
    """
    measured: list[Measured] = []
    damaged: set[str] = set()
    for same in _copies(known):
        origins = [_origin(Path(one.path), one.entry.mtime_ns, home) for one in same]
        at = min(range(len(same)), key=lambda n: (not origins[n].recorded, origins[n].page is None))
        one, others = same[at], {origin.name for origin in origins} - {origins[at].name}
        origin = replace(origins[at], copies=tuple(sorted(others)))
        if one.entry.error is not None:
            unusable.append(Unusable(origin.name, _reason(one.entry, one.path), origin.page))
        try:
            measured += _kernels_of(one, origin)
        except DamagedPart as error:
            damaged.add(one.path)
            name = _name(one.dataset / error.part, home)
            unusable.append(Unusable(name, f"the part of a dataset is damaged: {error.why}"))
    return measured, damaged


def _kernels_of(one: _Known, origin: Origin) -> list[Measured]:
    """Return the kernels of a report as its dataset holds them.

    Raises:
        DamagedPart: a part of it cannot be read.
    """
    measured: list[Measured] = []
    with Folder.open(one.dataset) as folder:
        for part in one.entry.parts:
            if folder.find(part) is not None:
                measured += kernels(folder, part, origin, gpu_of(part))
    return measured


def _copies(known: list[_Known]) -> Iterable[list[_Known]]:
    """Return the reports, those with the same bytes together; what cannot be used stands alone."""
    groups: dict[str, list[_Known]] = {}
    for one in known:
        groups.setdefault(one.path if one.entry.error else one.entry.sha256 or one.path, []).append(one)
    return groups.values()


def _origin(path: Path, mtime_ns: int, home: Path) -> Origin:
    said = created(path)
    time = said or datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    page = _beside(path.with_suffix(".html"))
    origin = Origin(str(path), _name(path, home), time, page=page, of_file=said is None)
    if path.name != PROFILE:
        return origin
    try:
        run = read_record(path.parent)
    except ReportError:
        return origin
    git = run.git or {}
    began = _time(run)
    return Origin(
        origin.path,
        origin.name,
        began or time,
        began is not None,
        _beside(path.parent / PAGE) or origin.page,
        git.get("revision"),
        bool(git.get("modified")),
        dict(run.target.get("params") or {}),
        _clean(path.parent),
        of_file=began is None and origin.of_file,
    )


def _reason(entry: Entry, path: str) -> str:
    """Return why a report cannot be used, without the folders that lead to it."""
    message = str((entry.error or {}).get("message", ""))
    return message.removeprefix(path).lstrip(" :").replace(path, Path(path).name)


def _clean(folder: Path) -> float | None:
    """Return the median [s] of the clean timing of a run; None where there is none of the GPU."""
    try:
        timing = read_timing(folder)
    except ReportError:
        return None
    return timing.median if timing.is_gpu_time else None


def _time(run: Run) -> datetime | None:
    try:
        found = datetime.fromisoformat(run.created)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _runs_without_counters(runs: list[Path], home: Path) -> Iterator[Unusable]:
    for path in runs:
        if (path / PROFILE).is_file():
            continue
        name, page = _name(path, home), _beside(path / PAGE)
        try:
            run = read_record(path)
        except ReportError as error:
            yield Unusable(name, error.message, page)
            continue
        if run.points:
            continue  # a sweep: its points are runs of their own
        failure = run.error or {}
        why = failure.get("message") or f"the run is {run.status}"
        yield Unusable(name, f"no counters: {why}", page)


def _beside(page: Path) -> str | None:
    return str(page) if page.is_file() else None


def _name(path: Path, home: Path) -> str:
    """Return the name of ``path`` inside the folder; of one outside, its last parts."""
    try:
        return path.relative_to(home).as_posix() if path != home else home.name
    except ValueError:
        return "/".join(path.parts[-2:])
