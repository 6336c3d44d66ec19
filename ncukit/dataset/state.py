"""What a dataset knows of its reports: ``_state.json``, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import Any

from ncukit.dataset.partitions import is_part
from ncukit.dataset.tasks import Outcome, Task
from ncukit.errors import ReportError, ReportNotFound, UsageError
from ncukit.folders import Folder
from ncukit.record import dataclass
from ncukit.schemas.documents import read_document
from ncukit.whole import write_text

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
