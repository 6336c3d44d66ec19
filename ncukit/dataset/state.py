"""What a dataset knows of its reports: ``_state.json``, written whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import Any

from ncukit.dataset.tasks import Outcome, Task
from ncukit.errors import UsageError
from ncukit.record import dataclass
from ncukit.whole import write_text

SCHEMA = "ncukit.dataset/1"
NAME = "_state.json"
ERRORS = "_errors.parquet"
METRICS = "_metrics.parquet"
_LOCK = "_lock"


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
            data = json.loads((folder / NAME).read_text(encoding="utf-8"))
            if data["schema"] != SCHEMA:
                raise ValueError(f"schema {data['schema']}")
            return cls(data["fingerprint"], {path: _entry(entry) for path, entry in data["files"].items()})
        except FileNotFoundError:
            if folder.is_dir() and any(not name.startswith((".", "_")) for name in os.listdir(folder)):
                raise UsageError(
                    f"{folder} holds files that are no dataset", "give a new or an empty folder with -o"
                ) from None
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{folder / NAME} cannot be used: {error}", "remove the folder and build the dataset again"
            ) from error

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
def locked(folder: Path) -> Iterator[None]:
    """Keep other builds out of ``folder`` meanwhile; a lock ends with its process, however that ends.

    Raises:
        UsageError: another build is at work there, or the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / _LOCK, "w", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        message = f"cannot write into {folder}: {error.strerror}"
        if isinstance(error, FileExistsError):
            message = f"{folder} is a file, and a dataset is a folder"
        raise UsageError(message, "give another place with -o") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"another build is at work in {folder}", "wait for its end") from error
        except OSError:
            pass  # a file system without locks
        yield


def _entry(data: Mapping[str, Any]) -> Entry:
    return Entry(**{**data, "parts": tuple(data["parts"]), "warnings": tuple(data["warnings"])})
