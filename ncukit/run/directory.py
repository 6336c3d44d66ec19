"""The run directory: one writer, one job a GPU, files that appear only when whole, and the user's seal."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from errno import ELOOP
from pathlib import Path

from ncukit.errors import ReportFormatError, UsageError
from ncukit.folders import Folder, Refused, hidden_name, is_own_way
from ncukit.media import dumps, word
from ncukit.model.run import RUN_SCHEMA, TIMING_SCHEMA, OutputFile, Run, Timing
from ncukit.run.tools import cuda
from ncukit.schemas.check import read_document

# ---- The seal of a run: by it ncukit knows a run that the same user recorded in the same folder
#  A run directory may come from somebody else, and its record names a program, tools and variables.  The
# seal is a hash of those with a key that lies in the user's state folder and that nobody else can read.  It
# covers no path of the run directory, which may be moved or copied: whoever copies a sealed record makes
# the user's own command of it, to be run from the folder in which it was begun.

KEY = "key"
_SIZE = 32


def sealed(run: Run, cwd: Path | None = None) -> Run:
    """Return ``run`` with its seal, without one where the key cannot be kept; it is run in ``cwd``."""
    key = _key(make=True)
    return replace(run, seal=None if key is None else _seal(run, key, cwd))


def own(run: Run) -> bool:
    """Return whether this user's ncukit recorded ``run`` in the current folder."""
    key = _key(make=False) if run.seal else None
    return key is not None and hmac.compare_digest(str(run.seal).encode(), _seal(run, key).encode())


def going_on(path: str | os.PathLike[str], run: Run) -> str:
    """Return the command that goes on with ``run`` in ``path``; a stranger's program is to be given."""
    command = f"ncukit profile --resume {word(path, 'RUNDIR')}"
    return command if own(run) else f"{command} -- PROGRAM"


def _seal(run: Run, key: bytes, cwd: Path | None = None) -> str:
    """Return the hash of all that a run which goes on takes from its record."""
    compiled = run.step("compile")
    parts = {
        "created": run.created,
        "version": run.version,
        "target": run.target,
        "options": run.options,
        "tools": run.tools,
        "compiled": [] if compiled is None else [asdict(file) for file in compiled.files],
        "cwd": _folder() if cwd is None else str(cwd),
    }
    return hmac.digest(key, json.dumps(parts, sort_keys=True).encode(), "sha256").hex()


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it is deleted
        return ""


def _key(*, make: bool) -> bytes | None:
    """Return the user's key; None where there is none, and where another user could have read or put it."""
    state, home = os.environ.get("XDG_STATE_HOME", ""), os.path.expanduser("~")
    place = Path(state if os.path.isabs(state) else os.path.join(home, ".local/state"), "ncukit")
    if not (place.is_absolute() and is_own_way(place, home)):  # there is no home, or it is another's
        return None
    try:
        if make:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir(mode=0o700, exist_ok=True)
        with Folder.open(place.parent) as above, above.folder(place.name) as folder:
            if not _private(folder.descriptor):
                return None
            if make and folder.find(KEY) is None:
                _make(folder)
            with folder.open_file(KEY) as file:
                key = file.read(_SIZE + 1)
                return key if len(key) == _SIZE and _private(file.fileno()) else None
    except OSError:
        return None


def _make(folder: Folder) -> None:
    """Make the key, whole and once: of two processes that make it, one does."""
    hidden = hidden_name()
    try:
        with folder.create(hidden) as file:
            file.write(secrets.token_bytes(_SIZE))
        with suppress(FileExistsError):
            os.link(hidden, KEY, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
    finally:
        folder.remove(hidden)


def _private(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    return found.st_uid == os.geteuid() and not found.st_mode & 0o077


# ---- The run directory: one run each, files that appear only when whole, one writer at a time

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
            _make_directory(path, exist_ok=True)
            return cls._open(path, made=made)
        stamp = f"{now or datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        for number in range(1, 1000):
            suffix = f"-{number}" if number > 1 else ""
            found = Path("reports") / f"{slug(name)}-{stamp}{suffix}"
            try:
                _make_directory(found, exist_ok=False)
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


def _make_directory(path: Path, *, exist_ok: bool) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=exist_ok)
    except FileExistsError:
        raise
    except OSError as error:
        raise UsageError(f"cannot make {path}: {error.strerror}", "give another folder with -o") from error


# ---- One job a GPU at a time: two at once would measure each other


@contextmanager
def turn(environ: Mapping[str, str] | None = None) -> Iterator[None]:
    """Wait until the first visible GPU of this machine is free, and keep it until the end.

    It holds among all that ask for a turn on this machine, whoever starts them.  Without a GPU there is
    nothing to wait for.
    """
    gpus = cuda.driver(os.environ if environ is None else environ).gpus
    if not gpus:
        yield
        return
    path = Path(tempfile.gettempdir()) / f"ncukit-{slug(gpus[0].uuid)}.lock"
    lock = _open(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _open(path: Path) -> int:
    """Open a lock that users share: who made it does not matter, reading is enough to lock."""
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
