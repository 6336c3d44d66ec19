"""Which files are meant, what is known of them, and the task that reads one."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import Any

from ncukit.dataset.rows import is_part
from ncukit.errors import NcukitError, ReaderCrashed, ReportError, ReportNotFound, UsageError
from ncukit.files import write_text
from ncukit.folders import Folder, way_out
from ncukit.model import Kernel
from ncukit.record import dataclass
from ncukit.report.container import refuse_pipe
from ncukit.schemas.check import read_document

# ---- From what a user names to the files that are meant: patterns, folders, files

SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""Names of reports, where a folder is named."""


@dataclass(frozen=True)
class Inputs:
    """The files that are meant: absolute path -> name as the user would say it, and what was ``skipped``."""

    files: Mapping[str, str]
    skipped: tuple[str, ...] = ()


def expand(inputs: Iterable[str | os.PathLike[str]]) -> Inputs:
    """Return every file that ``inputs`` mean, once.

    A folder means the reports below it; ``**`` in a pattern means folders of any depth.  A file that is found
    that way is skipped if it is a link that leads out of the folder, or if its name is not UTF-8.

    Raises:
        ReportNotFound: one of them means no file.
        UsageError: a name that was given is not UTF-8.
    """
    found: dict[str, str] = {}
    skipped: list[str] = []
    for one in inputs:
        given = os.fspath(one)
        if os.path.lexists(given) and not os.path.isdir(given):
            if not is_text(given):
                raise UsageError(f"the name {os.fsencode(given)!r} is no UTF-8", "rename that file or folder")
            found.setdefault(os.path.abspath(given), given)
            continue
        base, names = _meant(given)
        any_file, leads_out, before = False, way_out(base), len(skipped)
        for name in sorted(names):
            if (why := unfit(name, leads_out)) is None:
                any_file = True
                found.setdefault(os.path.abspath(name), name)
            else:
                skipped.append(f"{legible(name)} is skipped: {why}")
        if not any_file:
            hint = skipped[-1] if len(skipped) > before else "quote patterns; ** means folders of any depth"
            raise ReportNotFound(given, f"no report matches {given!r}", hint)
    return Inputs(found, tuple(skipped))


def unfit(name: str, leads_out: Callable[[str], bool]) -> str | None:
    """Return why the file ``name``, which was found in a folder, is not read; None where it is."""
    if not is_text(name):
        return "its name is not UTF-8"
    if leads_out(name):
        return "it is a link that leads out of the folder"
    return None


def is_text(name: str) -> bool:
    """Return whether ``name`` can be written into a table."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def legible(name: str) -> str:
    r"""Return ``name`` with bytes that are no text as escapes.

    >>> legible("caf\udce9.ncu-rep")
    'caf\\xe9.ncu-rep'
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _meant(given: str) -> tuple[str, Iterator[str]]:
    """Return the folder below which ``given`` looks, and the files that it means there."""
    if os.path.isdir(given):
        return given, _below(given)
    fixed: list[str] = []
    for part in Path(given).parts:
        if glob.has_magic(part):
            break
        fixed.append(part)
    found = (name for name in glob.iglob(given, recursive=True) if not os.path.isdir(name))
    return os.path.join(*fixed) if fixed else ".", found


def _below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (str(Path(place, name)) for name in names if name.endswith(SUFFIXES))


# ---- One report into its part files: the unit of work, the same for a local process and a Dask worker


@dataclass(frozen=True)
class Task:
    """A report to read into the dataset ``folder``.

    ``path`` is absolute; ``file`` is how the user named it.  ``known`` is the SHA-256 of what the dataset
    holds of it: the same content is not read again.  With ``isolate`` the native reader gets a process of
    its own.
    """

    path: str
    file: str
    folder: str
    size: int = 0
    known: str = ""
    isolate: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a task: ``parts`` inside the dataset, or the ``error`` in its JSON form.

    ``size`` [byte] and ``mtime_ns`` [ns] were taken before the file was read.  ``unchanged``: the content
    is what the dataset holds already.
    """

    path: str
    file: str
    size: int = 0
    mtime_ns: int = 0
    sha256: str = ""
    launches: int = 0
    parts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: Mapping[str, Any] | None = None
    unchanged: bool = False


def extract(task: Task) -> Outcome:
    """Read the report of ``task`` and write its rows; what is wrong with the report is in the outcome.

    Raises:
        UsageError: the dataset cannot be written to.
    """
    outcome = Outcome(task.path, task.file)
    try:
        found = os.stat(task.path)
        outcome = replace(outcome, size=found.st_size, mtime_ns=found.st_mtime_ns)
        refuse_pipe(Path(task.path))
        outcome = replace(outcome, sha256=digest(task.path))
        if task.known and outcome.sha256 == task.known:
            return replace(outcome, unchanged=True)
        return _read(task, outcome)
    except OSError as error:
        return failed(outcome, ReportNotFound(task.path, f"{task.path} cannot be read: {error.strerror}"))
    except UsageError:
        raise
    except NcukitError as error:
        return failed(outcome, error)
    except Exception as error:
        what = f"internal error: {type(error).__name__}: {error}"
        return failed(outcome, ReportError(task.path, f"{task.path}: {what}", code="internal"))


def failed(outcome: Outcome, error: NcukitError) -> Outcome:
    """Return ``outcome`` with the error that ended it."""
    return replace(outcome, error=error.as_dict())


def crashed(task: Task, how: str) -> Outcome:
    """Return the outcome of a task whose worker died; ``how`` says of what."""
    outcome = Outcome(task.path, task.file)
    try:
        found = os.stat(task.path)
        outcome = replace(outcome, size=found.st_size, mtime_ns=found.st_mtime_ns, sha256=digest(task.path))
    except OSError:
        pass  # it went away meanwhile: the error says enough
    return failed(
        outcome,
        ReaderCrashed(
            task.path,
            f"{task.path}: the reader crashed on this file ({how})",
            "the file is damaged inside; copy it again from where it was made, or profile again",
        ),
    )


def digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(task: Task, outcome: Outcome) -> Outcome:
    from ncukit.dataset.parts import Parts
    from ncukit.judge.facts import Facts
    from ncukit.judge.verdict import verdict
    from ncukit.report.reader import Source

    source = Source(task.path, isolate=task.isolate)
    with Parts(task.folder, task.path, outcome.sha256) as parts:
        for kernel in _kernels(source, task.file):
            parts.add(kernel, verdict(Facts.of(kernel), advise=False))
        return replace(outcome, launches=parts.launches, parts=parts.finish(), warnings=source.warnings)


def _kernels(source: Any, file: str) -> Iterator[Kernel]:
    from ncukit.metrics.normalise import normalise, wanted

    for raw in source.launches(replace(wanted(), nvtx=True)):
        yield normalise(raw, file)


# ---- What a dataset knows of its reports: ``_state.json``, written whole or not at all

SCHEMA = "ncukit.dataset/1"
NAME = "_state.json"
ERRORS = "_errors.parquet"
METRICS = "_metrics.parquet"
_LOCK = "_lock"
_AGAIN = "remove the folder and build the dataset again"
_ERROR = ("code", "message", "hint", "exit_code")


@dataclass(frozen=True)
class Entry:
    """What is known of one report; the path is its key."""

    file: str
    size: int
    mtime_ns: int
    sha256: str
    launches: int = 0
    parts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> Entry:
        """Return the entry that ``outcome`` leaves."""
        return cls(**{f.name: getattr(outcome, f.name) for f in fields(cls)})

    def same_file(self, found: os.stat_result) -> bool:
        """Return whether size and time of change are still the same."""
        return (self.size, self.mtime_ns) == (found.st_size, found.st_mtime_ns)


@dataclass
class State:
    """The reports of a dataset by absolute path; ``fingerprint`` says how their rows were computed."""

    fingerprint: str
    files: dict[str, Entry] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> State | None:
        """Return the state of the dataset ``folder``; None where there is none.

        Raises:
            UsageError: the folder holds other files, or a state that this version cannot read.
        """
        try:
            data = read_document(folder / NAME, SCHEMA, _AGAIN, found=True)
            return cls(
                data["fingerprint"], {path: _entry(path, data["files"][path]) for path in data["files"]}
            )
        except ReportNotFound as error:
            if os.path.lexists(folder / NAME):
                raise UsageError(f"{folder / NAME} cannot be used: {error.message}", _AGAIN) from error
            if folder.is_dir() and any(not name.startswith((".", "_")) for name in os.listdir(folder)):
                raise UsageError(
                    f"{folder} holds files that are no dataset", "give a new or an empty folder with -o"
                ) from None
            return None
        except (ReportError, ValueError) as error:
            raise UsageError(f"{folder / NAME} cannot be used: {error}", _AGAIN) from error

    def doubt(self, tasks: Iterable[Task]) -> None:
        """Let the reports of ``tasks`` match no file until they are read: the next build goes on there."""
        for task in tasks:
            if (entry := self.files.get(task.path)) is not None:
                self.files[task.path] = replace(entry, mtime_ns=-1, sha256=task.known)

    def save(self, folder: Path) -> None:
        """Write the state; it appears only when whole.

        Raises:
            UsageError: it cannot be written.
        """
        files = {path: asdict(entry) for path, entry in sorted(self.files.items())}
        data = {"schema": SCHEMA, "fingerprint": self.fingerprint, "files": files}
        write_text(folder / NAME, json.dumps(data, indent=1))


@contextmanager
def locked(path: Path) -> Iterator[Folder]:
    """Yield the folder ``path``, and keep other builds out of it meanwhile.

    The lock ends with its process, however that ends.

    Raises:
        UsageError: another build is at work there, or the folder cannot be written to.
    """
    hint = "give another place with -o"
    try:
        folder = Folder.open(path, make=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{path} is a file, and a dataset is a folder", hint) from error
    except OSError as error:
        raise UsageError(f"cannot write into {path}: {error.strerror}", hint) from error
    with folder, ExitStack() as stack:
        try:
            stack.enter_context(folder.locked(_LOCK))
        except BlockingIOError as error:
            raise UsageError(f"another build is at work in {path}", "wait for its end") from error
        except OSError as error:
            raise UsageError(f"{path / _LOCK} cannot be used: {error.strerror}", hint) from error
        yield folder


def _entry(path: str, data: Mapping[str, Any]) -> Entry:
    """Return the entry of the report ``path``.

    Raises:
        ValueError: a path in it is none that a build writes.
    """
    if "\0" in path or not os.path.isabs(path):
        raise ValueError(f"{path!r} is not an absolute path")
    for part in data["parts"]:
        if not is_part(part):
            raise ValueError(f"{part!r} is not the name of a part")
    error = data["error"] and {name: data["error"][name] for name in _ERROR}
    return Entry(
        **{**data, "parts": tuple(data["parts"]), "warnings": tuple(data["warnings"]), "error": error}
    )
