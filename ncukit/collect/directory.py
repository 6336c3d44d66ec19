"""The run directory: one run each, files that appear only when whole, one writer at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from errno import ELOOP
from pathlib import Path

from ncukit.collect.seal import sealed
from ncukit.errors import ReportFormatError, UsageError
from ncukit.folders import Folder, Refused
from ncukit.media import dumps, word
from ncukit.model.run import RUN_SCHEMA, TIMING_SCHEMA, OutputFile, Run, Timing
from ncukit.schemas.documents import read_document

RECORD = "run.json"
TIMING = "timing.json"
TRACE = "timeline.nsys-rep"
EXPORT = "timeline.sqlite"
TORCH_TRACE = "timeline.json.gz"
PROFILE = "profile.ncu-rep"
METRICS = "metrics.json"
LOGS = "logs"
PAGE = "report.html"
_LONGEST = 200
"""Bytes of the longest name of a run directory after which its scratch folder is called."""


class RunDirectory:
    """A folder that this process alone writes, until `close`.

    Unfinished files lie in a scratch folder beside it, so that whatever ends this process leaves only whole
    files inside.
    """

    def __init__(self, folder: Folder, *, made: bool = False) -> None:
        self.path = folder.path
        self._folder, self._made = folder, made
        self._scratch: Path | None = None

    @classmethod
    def create(cls, path: Path | None, name: str, *, now: datetime | None = None) -> RunDirectory:
        """Make a new directory: at ``path``, or a name of its own in ``reports``; an older run is never used.

        Raises:
            UsageError: ``path`` holds something already, or cannot be written.
        """
        if path is not None:
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise UsageError(
                    f"{path} exists already",
                    f"--resume {word(path, 'RUNDIR')} goes on with a broken-off run; "
                    "else give another folder with -o",
                )
            made = not path.exists()
            _make(path, exist_ok=True)
            return cls._open(path, made=made)
        stamp = f"{now or datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        for number in range(1, 1000):
            suffix = f"-{number}" if number > 1 else ""
            found = Path("reports") / f"{slug(name)}-{stamp}{suffix}"
            try:
                _make(found, exist_ok=False)
            except FileExistsError:
                continue
            return cls._open(found, made=True)
        raise UsageError(f"{found.parent} is full of runs of this second", "give a folder with -o")

    @classmethod
    def resume(cls, path: Path) -> tuple[RunDirectory, Run]:
        """Open the directory of a run that was broken off, and what is recorded of it.

        Raises:
            ReportError: there is no run there.
            UsageError: another process works on it.
        """
        run = read_record(path)
        inside(path, LOGS)
        directory = cls._open(path)
        place = path.absolute()
        left = re.compile(rf"{re.escape(_hidden(place.name))}[0-9a-f]{{8}}\.part")
        with suppress(OSError), Folder.open(place.parent) as parent:
            for name in filter(
                left.fullmatch, parent.names()
            ):  # of processes that are gone: we have the lock
                parent.remove_folder(name, content=True)
        return directory, run

    @classmethod
    def _open(cls, path: Path, *, made: bool = False) -> RunDirectory:
        folder = Folder.open(path)
        try:
            fcntl.flock(folder.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            folder.close()
            raise UsageError(
                f"another ncukit works on {path}", "wait for it, or give another folder"
            ) from error
        return cls(folder, made=made)

    def close(self) -> None:
        """Remove what is unfinished, also a folder made for a run without a record, and let others in."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None
        if self._made:
            with suppress(OSError):  # it is not empty
                self.path.rmdir()
        self._folder.close()

    @property
    def scratch(self) -> Path:
        """A folder for unfinished files, on the same file system."""
        if self._scratch is None:
            place = self.path.absolute()
            self._scratch = place.with_name(f"{_hidden(place.name)}{secrets.token_hex(4)}.part")
            self._scratch.mkdir(mode=0o700)
        return self._scratch

    def adopt(self, file: Path, name: str) -> OutputFile:
        """Move a finished file of the scratch folder to ``name`` and return what it is.

        Raises:
            UsageError: ``name`` lies in a folder that is a link.
        """
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
            size = os.fstat(handle.fileno()).st_size
        try:
            self._folder.take(file, name)
        except Refused as error:
            message = f"cannot write {self.path / name}: {error.strerror}"
            raise UsageError(message, "give another folder with -o") from error
        return OutputFile(name, size, digest)

    def log(self, name: str, text: str) -> None:
        """Keep the output of a command as ``logs/<name>.log``."""
        beside = self.scratch / f"{name}.log"
        beside.write_text(text, encoding="utf-8", errors="replace")
        with suppress(Refused):  # adopt says so
            self._folder.folder(LOGS, make=True).close()
        self.adopt(beside, f"{LOGS}/{name}.log")

    def remove(self, name: str) -> None:
        """Remove the file ``name``, if there is one; of a link the link itself."""
        self._folder.remove(name)

    def write(self, name: str, text: str) -> OutputFile:
        """Write a text file, whole or not at all."""
        beside = self.scratch / f"new-{name}"
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return self.adopt(beside, name)

    def record(self, run: Run, cwd: Path | None = None) -> Run:
        """Write run.json, and return ``run``, which runs in ``cwd``, with its seal."""
        run = sealed(run, cwd)
        self.write(RECORD, dumps(run.as_dict(), indent=1) + "\n")
        return run

    def holds(self, file: OutputFile) -> bool:
        """Return whether ``file`` is there as it was recorded."""
        return whole(self.path, file)


def whole(folder: Path, file: OutputFile) -> bool:
    """Return whether ``file`` lies in ``folder`` as it was recorded: size [byte] and SHA-256."""
    try:
        with Folder.open(folder) as own, own.open_file(file.name) as handle:
            if os.fstat(handle.fileno()).st_size != file.size:
                return False
            return hashlib.file_digest(handle, "sha256").hexdigest() == file.sha256
    except OSError:
        return False


def set_aside(path: Path) -> Path:
    """Rename the run directory ``path``, so that another can begin there; return its new name."""
    number = 1
    while (aside := path.with_name(f"{path.name}-before-{number}")).exists():
        number += 1
    return path.rename(aside)


def inside(folder: Path, name: str) -> Path:
    """Return the path ``name`` in the run directory ``folder``; neither a link nor a name leads out of it.

    Raises:
        ReportFormatError: it does, or is a link.
    """
    path = folder / name
    try:
        with Folder.open(folder) as own:
            own.require_plain(name)
    except Refused as error:
        link = error.errno == ELOOP
        what = "is a link, which is not followed in a" if link else "leads out of the"
        hint = "put the file itself there, or name what it leads to"
        raise ReportFormatError(path, f"{path} {what} run directory", hint) from error
    except OSError:  # there is no such folder: reading the file says so
        pass
    return path


def read_record(path: Path) -> Run:
    """Return what ``run.json`` in the directory ``path`` says.

    Raises:
        ReportNotFound: there is no such directory, or no run in it.
        ReportFormatError: it is damaged, or of a version that this ncukit does not know.
    """
    return Run.from_dict(read_document(inside(path, RECORD), RUN_SCHEMA, found=True))


def read_timing(folder: Path) -> Timing:
    """Return the timing in the run directory ``folder``.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it is damaged, or of a version that this ncukit does not know.
    """
    return Timing.from_dict(read_document(inside(folder, TIMING), TIMING_SCHEMA, "time again", found=True))


def slug(name: str) -> str:
    """Return ``name`` as a part of a folder's name.

    >>> slug("void gemm<float>(T*)"), slug("")
    ('void-gemm-float-T', 'run')
    """
    return re.sub(r"[^A-Za-z0-9_.=]+", "-", name).strip("-.")[:60] or "run"


def _hidden(name: str) -> str:
    """Return how the scratch folders of the run directory ``name`` begin; a name has at most 255 bytes."""
    data = os.fsencode(name)
    return f".{name}." if len(data) <= _LONGEST else f".{hashlib.sha256(data).hexdigest()[:32]}."


def _make(path: Path, *, exist_ok: bool) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=exist_ok)
    except FileExistsError:
        raise
    except OSError as error:
        raise UsageError(f"cannot make {path}: {error.strerror}", "give another folder with -o") from error
